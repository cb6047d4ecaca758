"""Hostile input of every family: an answer, an infeasible document or a mistake with its place."""

from __future__ import annotations

import pytest

from tests.campaign.hostile import FAMILIES
from tests.campaign.judged import MOST_CPU, WILD, refused_well, wild
from tests.campaign.running import run_chunk
from tests.sizes import sized

FEW = {"table": 2, "scenario": 6, "change": 6, "grid": 8, "profile": 6}  # cases that cost most


@pytest.mark.sized
@pytest.mark.parametrize("family", FAMILIES)
def test_hostile_cases_end_well(family):
    """The first of the family; `python -m tests.campaign --case FAMILY:NUMBER` shows one."""
    many = FEW.get(family, 12)
    _, tally = run_chunk((family, 0, sized(many // 2, many)))
    assert not tally.failures


@pytest.mark.parametrize(
    "number",
    [
        *("network:867", "network:3438", "table:23", "change:82"),
        *("profile:621", "profile:748", "profile:821", "profile:1905", "scenario:5072"),
        "saved:154",
    ],
)
def test_cases_that_once_ended_badly_end_well(number):
    """A million chips, thousands of nodes, half a request, 2e30, nine drafts, odd files."""
    family, _, first = number.partition(":")
    _, tally = run_chunk((family, int(first), int(first) + 1))
    assert not tally.failures


def test_what_is_not_finite_is_seen():
    """In a document, in a text, and not in words that look alike."""
    assert wild('{"a": Infinity, "b": [NaN, 1e400, 1.0]}', True) == ["Infinity", "NaN", "1e400"]
    assert WILD.findall("TTFT inf s, nan tokens, -inf") == ["inf", "nan", "-inf"]
    assert not WILD.findall("inference, nano, /nan/x, info, infiniband, ./inf")
    assert MOST_CPU == 5


@pytest.mark.parametrize(
    ("err", "well"),
    [
        ("two words  no such file\n", True),
        ("other words  no such file\n", False),
        ("s.yaml:1:2  x: wrong\n   1 | x\n", True),
        ("--set a=1  a: wrong\n", True),
        ("planner: t.csv: line 2: wrong\n", True),
        ("", False),
        ("s.yaml:1:2  x\x1b[31m\n", False),
    ],
)
def test_a_refusal_has_a_place(err, well):
    """Printable, on lines that begin with it."""
    assert refused_well(err, ("diff", "two words")) == well
