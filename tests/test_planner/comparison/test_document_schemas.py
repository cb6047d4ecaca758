"""Every example's `--json` is valid by `planner schema`, and keys are not renamed."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
import pytest

import planner
from planner.comparison.document_schemas import DOCUMENTS, document_schema
from planner.comparison.gate import gate
from planner.comparison.price_difference import difference
from planner.scenario.kinds import ROOMS
from planner.text.errors import InputError
from tests.cases.frozen import examples, file_of
from tests.paths import DATA, EXAMPLES

RECORDED = DATA / "answer_keys.json"
CHEAP = ("lecture", "budget-70b-quality", "infeasible")


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Of the documents of a kind; the schema itself is sound."""
    schema = document_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def as_printed(document: object) -> Any:
    """What a reader of --json gets."""
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.parametrize("name", CHEAP)
def test_an_examples_document_is_valid(name):
    """The plan of an example that ships, or why there is none, as it is answered now."""
    plan = planner.solve(EXAMPLES / f"{name}.yaml")
    document = as_printed(plan.document)
    validator(plan.kind).validate(document)
    assert document["schema"] == validator(plan.kind).schema["title"]


def test_every_examples_frozen_document_is_valid():
    """What `planner solve --json` printed of every example when it was last agreed on."""
    documents = [
        document
        for case in examples()
        if (document := json.loads(file_of(case).read_text("utf-8"))["document"])
    ]
    assert len(documents) >= len(list(EXAMPLES.glob("*.yaml")))
    for document in documents:
        validator(document["problem"]).validate(document)


@pytest.mark.parametrize("spoil", [{"schema": "serving/0"}, {"status": 3}, {"plan": []}])
def test_what_is_spoilt_is_not_valid(spoil):
    """The schema is no formality."""
    document = as_printed(planner.solve(EXAMPLES / "lecture.yaml").document)
    with pytest.raises(jsonschema.ValidationError):
        validator("serving").validate({**document, **spoil})


def test_documents_of_diff_and_gate_are_valid():
    """The two commands that answer something else than a plan."""
    file = EXAMPLES / "lecture.yaml"
    changed = {**planner.solve(file).scenario, "price": 0.003}
    validator("diff").validate(as_printed(difference(file, changed).document))
    validator("gate").validate(as_printed(gate(file, (), {"usd_per_mtok": 1e-9}).document))
    with pytest.raises(InputError, match="did you mean 'serving'"):
        document_schema("servign")


def keys(name: str) -> list[str]:
    """Every key of a schema, below its type."""
    schema: Any = document_schema(name)
    return sorted(f"{x}.{key}" for x, y in schema["$defs"].items() for key in y["properties"])


@pytest.mark.parametrize("name", [*ROOMS, *DOCUMENTS])
def test_a_key_that_was_there_is_there_under_the_same_version(name):
    """Adding keeps the version; renaming or leaving out raises it."""
    recorded = json.loads(RECORDED.read_text("utf-8"))
    version = document_schema(name)["title"]
    assert version in recorded, f"write the keys of {version} into {RECORDED.name}"
    assert not set(recorded[version]) - set(keys(name))
