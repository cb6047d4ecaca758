"""An answer that was saved is read where its version is ours, else refused by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import planner
from planner.comparison.gate import gate
from planner.comparison.price_difference import difference
from planner.text.errors import InputError
from tests.cases.doors import question

OTHERS = ("serving/1", "serving/99", "budget/1", "serving", "gate/2", "", 3, None)


@pytest.fixture(scope="module")
def saved():
    """The document of the lecture's scenario as it is printed."""
    return json.loads(json.dumps(dict(planner.solve(question("lecture")).document)))


@pytest.fixture
def file(saved, tmp_path):
    """A function that saves the document under another version, with a key that is not ours."""

    def write(schema: object = saved["schema"], **keys: object) -> str:
        path = tmp_path / "plan.json"
        scenario = {**saved["scenario"], **keys}
        path.write_text(json.dumps({**saved, "schema": schema, "scenario": scenario}))
        return str(path)

    return write


def test_an_answer_of_this_version_is_read(file, tmp_path):
    """By both commands: nothing differs, and no price rose."""
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(question("lecture")))
    assert difference(file(), file()).difference == 0
    assert gate(str(path), against=Path(file())).status == "kept"


@pytest.mark.parametrize("schema", OTHERS)
@pytest.mark.parametrize("keys", [{}, {"key_of_then": 1}])
def test_an_answer_of_another_version_is_refused_by_it(file, saved, schema, keys):
    """Whatever its keys are: both versions are named, and what to do."""
    path = file(schema, **keys)
    calls = (
        lambda: difference(path, path),
        lambda: difference({**saved, "schema": schema}, path),
        lambda: gate(question("lecture"), against=Path(path)),
    )
    for call in calls:
        with pytest.raises(InputError) as refusal:
            call()
        assert "this version reads serving/2; solve its scenario again" in str(refusal.value)
        assert repr(schema) in str(refusal.value)
