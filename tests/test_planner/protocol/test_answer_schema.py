"""Every frozen answer is of the shape that `planner schema --answer KIND` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from planner.protocol.solve import answer_schema
from planner.scenario.kinds import PROBLEM_PACKAGES
from tests.cases.frozen import examples, file_of, sound
from tests.loops import for_all

TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float),
         "null": type(None), "object": dict, "array": list}  # fmt: skip
# What some answers add: with --why the layout held, with reinforcement learning its chips, where
# training is laid out its layout.
ADDED = {"layout_held", "rl", "training"}


@cache
def schema(kind: str) -> dict[str, Any]:
    """The schema of the answers of a kind."""
    return answer_schema(kind)


def faults(value: Any, shape: Mapping[str, Any], whole: Mapping[str, Any], at: str) -> list[str]:
    """Where a value is not of a shape."""
    if "$ref" in shape:
        return faults(value, whole["$defs"][shape["$ref"].rsplit("/", 1)[-1]], whole, at)
    if "anyOf" in shape:
        tried = [faults(value, each, whole, at) for each in shape["anyOf"]]
        return [] if any(not each for each in tried) else min(tried, key=len)
    if "enum" in shape and value not in shape["enum"]:
        return [f"{at}: {value!r} is none of {shape['enum']}"]
    names = shape.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not isinstance(value, tuple(TYPES[name] for name in names)):
        return [f"{at}: {value!r} is no {names}"]
    if isinstance(value, dict):
        return _of_mapping(value, shape, whole, at)
    if isinstance(value, list):
        items = shape.get("items", {})
        return [x for i, one in enumerate(value) for x in faults(one, items, whole, f"{at}[{i}]")]
    return []


def _of_mapping(
    value: Mapping[str, Any], shape: Mapping[str, Any], whole: Mapping[str, Any], at: str
) -> list[str]:
    known, others = shape.get("properties", {}), shape.get("additionalProperties", {})
    missing = [f"{at}: no {name}" for name in shape.get("required", ()) if name not in value]
    more = [
        f"{at}: {name} is not in the schema"
        for name in value
        if known and name not in known.keys() | ADDED
    ]
    inner = [
        fault
        for name, item in value.items()
        for fault in faults(item, known.get(name, others), whole, f"{at}.{name}")
    ]
    return [*missing, *([] if others else more), *inner]


@for_all("kind", PROBLEM_PACKAGES)
def test_frozen_answers_follow_the_schema_of_their_kind(kind):
    """No key is missing, none is unknown, and every value has the type that is stated."""
    documents = [
        document
        for case in [*examples(), *sound()]
        if (document := json.loads(file_of(case).read_text(encoding="utf-8"))["document"])
        and document["problem"] == kind
    ]
    assert documents
    shape = schema(kind)
    plain = [{k: v for k, v in each.items() if k != "schema"} for each in documents]
    wrong = [fault for each in plain for fault in faults(each, shape, shape, kind)]
    assert wrong == []


UNPRICED = ("schedule",)  # kinds that say nothing of money


@for_all("kind", PROBLEM_PACKAGES)
def test_numbers_of_a_schema_have_units(kind):
    """Seconds, bytes and dollars are told apart in the schema itself."""
    text = json.dumps(schema(kind))
    assert schema(kind)["title"].startswith(f"{kind}/")
    assert ('"unit": "USD' in text) == (kind not in UNPRICED)
    assert '"unit": "' in text
