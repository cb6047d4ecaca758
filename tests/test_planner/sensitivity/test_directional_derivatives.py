"""Slopes in the direction of a given that is several symbols, at kinks and between ceilings."""

from __future__ import annotations

import pytest
import sympy as sp

from formulas.numerics.evaluate import record
from formulas.numerics.slopes import tape_values
from planner.problems.serving.slopes.directional_derivatives import (
    differentiate_tape,
    without_ceilings,
)

a, b, x, y, B = sp.symbols("a b x y B", positive=True)
ROW = {"a": 6.0, "b": 4.0, "x": 3.0, "y": 2.0}


def test_a_given_that_moves_both_branches_alike_makes_no_kink():
    """max(a/x, b/y) at a tie: x alone has one, x and y together have none."""
    tape = record({"time": sp.Max(a / x, b / y)}, {})
    directions = {"x": {"x": 1.0}, "both": {"x": 1.0, "y": 1.0}, "half": {"x": 0.5, "y": 1.0}}
    values, slopes = differentiate_tape(tape, ROW, 1.0, directions)
    assert values["time"] == 2
    assert slopes["time"][:, 0] == pytest.approx([-1, 0])
    assert slopes["time"][:, 1] == pytest.approx([-1, -1])
    assert slopes["time"][:, 2] == pytest.approx([-1, -0.5])


def test_only_ceilings_of_the_batch_are_smoothed():
    """Between whole numbers the batch counts in parts, and never less than one."""
    tape = record({"groups": sp.ceiling(B / x), "blocks": sp.ceiling(a / y + b)}, {})
    smooth = without_ceilings(tape)
    for batch, groups in ((7.0, 7 / 3), (1.0, 1.0)):
        found = tape_values(smooth, {**ROW, "B": batch})
        assert found == {"groups": pytest.approx(groups), "blocks": 7}
    _, slopes = differentiate_tape(smooth, ROW, 7.0, {"x": {"x": 1.0}, "a": {"a": 1.0}})
    assert slopes["groups"][1] == pytest.approx([-1, 0, 1])
    assert slopes["blocks"][1] == pytest.approx([0, 0, 0])


def test_what_is_zero_has_no_slope():
    """Nothing stays nothing."""
    tape = record({"nothing": a * x, "rest": a * x + b}, {})
    _, slopes = differentiate_tape(tape, {**ROW, "a": 0.0}, 1.0, {"x": {"x": 1.0}})
    assert (slopes["nothing"] == 0).all()
    assert (slopes["rest"] == 0).all()


def test_a_row_that_is_not_known_comes_last_and_is_null():
    """In the mapping it is not a number, in the document null, in the text said."""
    from planner.protocol.elasticity import Elasticity
    from planner.report.text.sensitivity import elasticity_text
    from planner.sensitivity.elasticities import Elasticities

    rows = [Elasticity("a", 1.0, "1", "chip", float("nan"), float("nan"), "slope", "x"),
            Elasticity("b", 1.0, "1", "chip", 0.1, 0.1, "slope", "x")]  # fmt: skip
    table = Elasticities.of(rows)
    assert list(table) == ["b", "a"]
    assert rows[0].document()["elasticity"] is None
    assert "unknown" in elasticity_text(rows[0])
    assert elasticity_text(rows[1]) == "+0.10%"
