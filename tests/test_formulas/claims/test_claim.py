"""The rule of the verdicts on numbers of any kind: figures, formulas, ranges, open ends."""

import math

import pytest

from formulas.claims.claim import RULE, ClaimComparison, Verdict, compare_with_claim, verdict_counts
from tests.loops import for_all


def judged(*factors):
    """A verdict on numbers that are so many times what is stated."""
    return Verdict(tuple(ClaimComparison("x", 100 * by, 100, 100, "") for by in factors))


@for_all(
    ("factors", "word"),
    [((), "unnumbered"), ((1,), "holds"), ((1.05,), "holds"), ((1.06,), "near"), ((0.96,), "holds"),
     ((0.9,), "near"), ((1.5,), "near"), ((1 / 1.5,), "near"), ((1.51,), "off"), ((10,), "off"),
     ((0.1,), "off"), ((10.1,), "far"), ((0,), "far"), ((1, 1, 30), "far"), ((1, 1.2), "near")],
)  # fmt: skip
def test_the_number_farthest_apart_decides(factors, word):
    """Too much and too little are the same distance; nothing else of the claim counts."""
    assert judged(*factors).word == word


def test_the_rule_prints_its_own_limits():
    """What is printed is what is applied."""
    assert "holds within 5 %" in RULE
    assert "near within a factor of 1.5" in RULE
    assert "off within a factor of 10, else far" in RULE


@for_all(
    ("says", "value", "factor"),
    [(3, 6, 2), ("1/3", 1, 3), ([150, 200], 300, 1.5), ([150, 200], 100, 1.5), ([150, 200], 170, 1),
     ([500, ""], 72, 500 / 72), ([500, ""], 600, 1), (["", 5], 4, 1), (["", 5], 10, 2),
     ("B*L_ctx/1000", 12, 2), (["B", "2*B"], 9_000_000, 1.5)],
)  # fmt: skip
def test_what_is_stated(says, value, factor):
    """A figure, a fraction, a range, an open end, a formula at the case."""
    unit = "" if isinstance(says, int) else "s"
    found = compare_with_claim("x", value, says, {"B": 3e6, "L_ctx": 8e-3}, unit)
    assert found.factor == pytest.approx(factor)


def test_a_formula_gives_base_units_and_a_figure_the_unit_of_its_row():
    """0.05 s is 50 ms."""
    assert compare_with_claim("x", 50, "T_step", {"T_step": 0.05}, "ms").factor == pytest.approx(1)
    assert compare_with_claim("x", 50, 50, {}, "ms").text == "50 ms for 50 ms"


def test_without_a_statement_there_is_nothing_to_compare():
    """The number is shown, not judged."""
    assert compare_with_claim("x", 1.0, None, {}) is None
    assert judged(0).farthest.factor == math.inf


def test_the_tally_has_all_words():
    """In the order of the rule."""
    words = verdict_counts([judged(1), judged(2), judged()])
    assert words == "3 claims: holds 1, near 0, off 1, far 0, unnumbered 1."
