"""Tables on terminals of any width; tests/test_examples.py prints every answer at several."""

from __future__ import annotations

from planner.protocol.section import Section, sections_text
from planner.text.wording import COLUMNS, WIDTH


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
