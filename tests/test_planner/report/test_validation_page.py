"""The page that ships says what the measurements say."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from planner.report.pages.validation_page import page_data
from planner.validation.estimates import read
from planner.validation.validation_document import document
from tests.paths import ROOT, shared

PAGE = ROOT / "docs" / "validation.html"
KINDS = {"serving runs", "steady batches", "training runs", "collectives", "exchanges"}


def shipped() -> dict[str, Any]:
    """The numbers in the page that ships."""
    told = PAGE.read_text(encoding="utf-8")
    inner = re.search(r'id="numbers">(.*?)</script>', told, re.DOTALL)
    assert inner is not None
    found: dict[str, Any] = json.loads(inner[1])
    return found


def alike(one: Any, other: Any) -> bool:
    """Whether two documents say the same, numbers to a part in a million."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-6, abs=1e-9)
    return bool(one == other)


def test_the_page_that_ships_holds_scores_and_no_row():
    """Every open table is scored or says why not; the page loads nothing from elsewhere."""
    told = PAGE.read_text(encoding="utf-8")
    found = shipped()
    assert {file["kind"] for file in found["files"]} == KINDS
    assert not re.search(r"(src|href)=\"(?!#)", told)
    keys = set(re.findall(r'"(\w+)":', json.dumps(found["files"])))
    assert not keys & {"measured", "seconds", "points", "worst"}


@pytest.mark.parametrize(
    ("part", "quantity"),
    [("aggregated", "tpot"), ("aggregated", "ttft"), ("disaggregated", "tpot"),
     ("clean", "all of them")],
)  # fmt: skip
def test_estimates_err_less_than_baselines(part, quantity):
    """In the median less than the best constant times the roofline, which errs less than one."""
    found = [
        section["scores"]
        for file in shipped()["files"]
        for section in file["sections"]
        if (section["part"], section["quantity"]) == (part, quantity)
    ]
    assert found
    for scores in found:
        medians = [scores[name]["median"] for name in ("estimate", "constant", "roofline")]
        assert medians == sorted(medians)


MARKS = pytest.mark.slow, pytest.mark.campaign  # every second of the tables


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(file, id=file["name"], marks=MARKS[place % 2])
        for place, file in enumerate(shipped()["files"])
    ],
)
def test_the_page_that_ships_is_what_the_command_writes(before):
    """`planner validate --data FILE ... --out docs/validation.html` on its tables gives it.

    Table by table: none changes what is said of another.
    """
    by = tuple(shipped()["files"][0]["sections"][0]["by"])  # the command's groupings
    (file,) = page_data(document("auto", [read(shared() / before["name"])], by))["files"]
    for section, old in zip(file["sections"], before["sections"], strict=True):
        name = f"{file['name']} {section['part']} {section['quantity']}"
        assert alike(json.loads(json.dumps(section)), old), name
    assert file["below_bound"] == before["below_bound"]
