"""The planner answers as it did before it was rebuilt: `tests/freeze.py` wrote down how.

Numbers may differ by a part in a billion, as processors do; `FROZEN_EXACT=1` allows nothing, for
the machine that wrote them down.
"""

from __future__ import annotations

import json

import pytest

from tests.cases.frozen import (
    AS_WRITTEN,
    EXACT,
    FROZEN,
    Case,
    answered,
    broken,
    differences,
    examples,
    file_of,
    helps,
    refused,
    sound,
)
from tests.loops import for_all

pytestmark = pytest.mark.skipif(
    not AS_WRITTEN, reason="the answers were written down on Python 3.11"
)  # fmt: skip

OFTEN = (
    12  # of the sound scenarios, one in so many is solved at every run; all of them with -m slow
)
REFUSED = json.loads((FROZEN / "broken.json").read_text(encoding="utf-8"))
BROKEN = broken()


def chosen() -> list[object]:
    """Every sound scenario; test_examples.py solves the examples."""
    often = [pytest.param(case, id=case.name) for case in sound()[::OFTEN]]
    others = [case for place, case in enumerate(sound()) if place % OFTEN]
    return often + [pytest.param(case, id=case.name, marks=pytest.mark.slow) for case in others]


@pytest.mark.parametrize("case", chosen())
def test_a_scenario_is_answered_as_it_was(case: Case, tmp_path):
    """Status, messages, text and document, keys in their order."""
    frozen = json.loads(file_of(case).read_text(encoding="utf-8"))
    assert not differences(frozen, answered(case, tmp_path), exact=EXACT)


@for_all("case", BROKEN, ids=lambda case: case.name)
def test_a_mistake_is_told_as_it_was(case: Case, tmp_path):
    """Status 2 and the same messages, at the same places."""
    answer = refused(case, tmp_path)
    assert answer["status"] == 2
    assert not differences(REFUSED[case.name], answer)


def test_help_and_schema_are_what_they_were():
    """Every command's help, and the JSON Schema, to the letter."""
    known = {file.name: file.read_text(encoding="utf-8") for file in (FROZEN / "help").iterdir()}
    answer = helps()
    assert known.keys() == answer.keys()
    assert [name for name in known if known[name] != answer[name]] == []


def test_every_answer_has_its_scenario():
    """No scenario without an answer, no answer without a scenario, no name twice."""
    cases = [*examples(), *sound()]
    known = {file.name for file in (FROZEN / "answers").iterdir()}
    assert known == {file_of(case).name for case in cases}
    assert len(known) == len(cases)
    assert REFUSED.keys() == {case.name for case in BROKEN}


@for_all(
    ("answer", "alike"),
    [
        ({"a": 1.0 + 1e-12, "b": [1, "x"]}, True),
        ({"a": 1.0 + 1e-6, "b": [1, "x"]}, False),
        ({"a": 1, "b": [1, "x"]}, False),
        ({"b": [1, "x"], "a": 1.0}, False),
        ({"a": 1.0, "b": [1, "y"]}, False),
        ({"a": 1.0, "b": [1]}, False),
        ({"a": 1.0, "b": [True, "x"]}, False),
        ({"a": 1.0, "b": [1, "x"], "c": None}, False),
    ],
)
def test_a_difference_is_seen(answer, alike):
    """Order and presence of keys, types and texts exactly; numbers to a part in a billion."""
    assert (not differences({"a": 1.0, "b": [1, "x"]}, answer)) == alike


@pytest.mark.parametrize(
    ("line", "alike"),
    [
        ("6.8 % below 12 chips", True),
        ("6.9 % below 12 chips", True),
        ("7.0 % below 12 chips", False),
        ("6.85 % below 12 chips", False),
        ("6.8 % below 13 chips", False),
        ("6.8 % above 12 chips", False),
    ],
)
def test_a_printed_decimal_may_be_rounded_the_other_way(line, alike):
    """By one in its last digit, in a line of text alone; whole numbers and words stay."""
    frozen = {"text": ["6.8 % below 12 chips"]}
    assert (not differences(frozen, {"text": [line]})) == alike
    assert differences(frozen, {"text": ["6.9 % below 12 chips"]}, exact=True)
    assert differences({"a": "6.8 %"}, {"a": "6.9 %"})


def test_another_solver_may_have_arrived():
    """Where a first one stops just short of its tolerance; every other message stays."""
    note = "warning: what binds was solved by SCS, since Clarabel gave up on it; it may be off"
    assert not differences({"stderr": ["warning: b"]}, {"stderr": [note, "warning: b"]})
    assert differences({"stderr": ["warning: b"]}, {"stderr": [note, "warning: c"]})
    assert differences({"stderr": ["warning: b"]}, {"stderr": [note, "warning: b"]}, exact=True)


def test_a_document_may_gain_what_is_listed():
    """At its top, and nowhere else."""
    assert not differences({"document": {"a": 1}}, {"document": {"schema": 2, "a": 1}})
    assert differences({"document": {"a": {}}}, {"document": {"a": {"schema": 2}}})
    assert differences({"document": {"a": 1}}, {"document": {"other": 2, "a": 1}})
