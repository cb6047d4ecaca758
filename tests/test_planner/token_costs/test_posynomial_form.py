"""Tangent monomials of a law that knows repetition: what a geometric program is given of it."""

from __future__ import annotations

import numpy as np
import pytest

from planner.token_costs.budget_task import assembled
from tests.cases.budget import question

UNIQUE = 2.5e10


@pytest.mark.parametrize(("n", "d"), [(2e9, 1e11), (6e9, 3e11), (1e9, 1e10), (5e9, 1e12)])
def test_tangents_touch_from_below(n, d):
    """Equal at the point, nowhere above, and of the same slopes: what a geometric program needs."""
    grid = [np.log(x * np.geomspace(0.01, 30, 41)) for x in (n, d)]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*grid)], axis=1)
    at = np.log([[n, d]])
    budgets = assembled([question("muennighoff-2023", unique=UNIQUE, served=1e12)])
    tangent = budgets.tangent(at)
    here, there = budgets.losses(at), tangent.losses(at)
    assert there.value == pytest.approx(here.value, rel=1e-12)
    assert there.slope == pytest.approx(here.slope, rel=1e-12)
    rows = np.zeros(len(points), dtype=int)
    true, below = (each.rows(rows).losses(points).value for each in (budgets, tangent))
    assert (below <= true + 1e-12).all()
    law = budgets.losses(at).value
    excess = question("muennighoff-2023").law.loss(n, d, unique=UNIQUE)
    floor = question("muennighoff-2023").terms.floor
    if d > UNIQUE:
        assert floor + np.exp(law) == pytest.approx(float(excess), rel=1e-9)


def test_without_repetition_the_tangent_is_the_law():
    """Monomials are their own tangents."""
    budgets = assembled([question("besiroglu-2024", served=1e12)])
    assert budgets.tangent(np.log([[1e9, 1e10]])) is budgets
