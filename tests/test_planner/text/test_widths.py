"""Answers on terminals of any width: every line fits, and every column of a table is there."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

import planner
from planner.protocol.problem import get_problem
from planner.protocol.section import Section, sections_text
from planner.text.terminal import MARGIN
from planner.text.wording import COLUMNS, WIDTH
from tests.paths import EXAMPLES
from tests.sizes import first

# The quickest of each kind, and the one whose tables are widest, in every run.
QUICK = ("budget-lecture-frontier", "cache-deepseek-v3", "lecture", "lifecycle-7b-on-premises",
         "plan-fleet-week", "prices-fast-mode", "rl-qwen3-32b-h100", "schedule-departing-train",
         "serve-deepseek-v3-h200", "train-too-large")  # fmt: skip
FILES = sorted(EXAMPLES.glob("*.yaml"), key=lambda file: file.stem not in QUICK)


@pytest.mark.parametrize("file", first(len(QUICK), FILES), ids=lambda file: file.stem)
def test_an_answer_fits_its_terminal_and_a_screen(file: Path) -> None:
    """No line is wider than the terminal, no word of a table is lost; 25 lines at 80, or 30."""
    plan = planner.solve(file)
    problem = get_problem(plan.kind)
    assert len(plan.text().splitlines()) <= problem.most_lines <= 30
    for width in (60, 80, 120, 200):
        token = COLUMNS.set(width - MARGIN)
        try:
            lines = [*plan.text().splitlines(), *plan.text("more").splitlines()]
            tables = [(x, sections_text([x])) for x in problem.sections(plan) if x.heads]
        finally:
            COLUMNS.reset(token)
        assert [line for line in lines if len(line) > width] == []
        for section, text in tables:
            assert [x for x in section.heads if x.strip() not in text] == []
            assert [x for x in chain(*section.cells) if width > 60 and x.strip() not in text] == []


def test_columns_that_do_not_fit_go_below_the_one_before_them() -> None:
    """A range below its value, halves below each other, and what fits stays as it is."""
    wide = Section("", heads=("", "expected", "80% range"), cells=(("TPOT", "10.0 ms", "9–" * 20),))
    numbers = Section("", heads=("", "price", "80% range", "limit"),
                      cells=(("TPOT", "1" * 20, "2" * 20, "3" * 20),))  # fmt: skip
    both = Section("", heads=("step", "10 s", "memory", "80 GB"), halves=True,
                   cells=(("x" * 30, "5 s", "y" * 30, "40 GB"), ("z", "5 s", "", "")))  # fmt: skip
    assert len(sections_text([wide]).splitlines()) == 2
    token = COLUMNS.set(58)
    try:
        below = sections_text([numbers]).splitlines()
        parts = sections_text([both]).splitlines()
    finally:
        COLUMNS.reset(token)
    assert [line.split() for line in below] == [
        ["price", "limit"], ["80%", "range"], ["TPOT", "1" * 20, "3" * 20], ["2" * 20]]  # fmt: skip
    assert below[0].index("price") + 5 == below[3].index("2" * 20) + 20
    assert [line.split()[0] for line in parts] == ["step", "x" * 30, "z", "memory", "y" * 30]
    assert max(map(len, sections_text([numbers, both]).splitlines())) <= WIDTH
