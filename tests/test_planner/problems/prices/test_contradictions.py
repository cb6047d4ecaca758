"""Clashing assumptions: the set is minimal, and what alone would settle it does."""

import math
import random

import numpy as np
import pytest
from scipy.optimize import linprog

import planner
from planner.problems.prices.contradictions import LogRow, LogSystem
from tests.sizes import first

SHEET = {
    "input": "$1.25/Mtok", "output": "$10/Mtok", "storage": "$4.50/Mtok/hour",
    "steps": [{"above": "200k", "output": "1.5x"}],
    "tiers": [{"name": "fast", "price": "6x", "speed": "2.5x"}, {"name": "batch", "price": "0.5x"}],
}  # fmt: skip


def feasible(rows):
    """Whether rows have a solution, by another program than the room's: no slack, no dual."""
    names = sorted({name for row in rows for name in row.coefficients})
    sides, limits = [], []
    for row in rows:
        line = [row.coefficients.get(name, 0.0) for name in names]
        for sign, limit in ((1, row.high), (-1, -row.low)):
            if math.isfinite(limit):
                sides.append([sign * x for x in line])
                limits.append(limit)
    if not sides:
        return True
    solved = linprog(np.zeros(len(names)), A_ub=sides, b_ub=limits, bounds=(None, None))
    return solved.status == 0


def check_minimal(system):
    """The set clashes; without any one of it nothing does, so no proper subset does."""
    clashing = system.minimal()
    rows = [row for row in system.rows if row.group in clashing]
    assert not feasible(rows)
    for group in clashing:
        assert feasible([row for row in rows if row.group != group])
    return clashing


def made_system(seed):
    """Random readings over shared quantities, each assumption with one to three bounds."""
    pick = random.Random(seed)
    quantities = [f"q{i}" for i in range(pick.randint(1, 3))]
    rows = []
    for group in range(pick.randint(3, 9)):
        for _ in range(pick.randint(1, 3)):
            names = pick.sample(quantities, pick.randint(1, len(quantities)))
            middle = pick.uniform(-3, 3)
            width = pick.choice([0.0, 0.5, 2.0])
            low = -math.inf if pick.random() < 0.3 else middle - width
            high = math.inf if pick.random() < 0.3 and math.isfinite(low) else middle + width
            coefficients = {name: pick.choice([-2.0, -1.0, 1.0, 2.0]) for name in names}
            rows.append(LogRow(f"assumption {group}", coefficients, low, high))
    return LogSystem(tuple(rows))


SEEDS = range(200)


@pytest.mark.parametrize("seeds", first(1, [SEEDS[i::4] for i in range(4)]))
def test_minimal_sets_of_made_systems(seeds):
    """Of 200 made systems the verdict is that of another program, and each set is minimal."""
    clashes = 0
    for seed in seeds:
        system = made_system(seed)
        if feasible(system.rows):
            assert system.minimal() == ()
        else:
            check_minimal(system)
            clashes += 1
    assert 0.25 < clashes / len(seeds) < 1


def test_what_settles_a_made_clash_alone():
    """An assumption settles a clash alone if, and only if, the others are consistent."""
    for seed in range(30):
        system = made_system(seed)
        for group in system.minimal():
            rest = [row for row in system.rows if row.group != group]
            assert (system.stretch(group) is not None) == feasible(rest)


def test_minimal_sets_of_worked_sheets():
    """The two worked contradictions: minimal by brute force, and settled by their factor."""
    scenario = {"problem": "prices", "sheet": SHEET, "given": {"n_active": "100B"},
                "chips": "hgx-h100"}  # fmt: skip
    clashes = planner.solve(scenario).answer.plan.contradictions
    assert {each.name for each in clashes} == {"kv_bytes_per_token", "fixed_share"}
    for each in clashes:
        assert set(check_minimal(each.system)) == set(each.minimal)
        for row in each.reconciled_by:
            assert row.factor == pytest.approx(each.factor, rel=1e-6)


def test_a_wider_assumption_settles_it():
    """Giving one assumption as much as the answer says removes the contradiction, and less not."""
    scenario = {
        "problem": "prices",
        "sheet": {x: SHEET[x] for x in ("input", "output", "storage", "steps")},
        "given": {"n_active": "100B"}, "chips": "hgx-h100",
    }  # fmt: skip
    (clash,) = planner.solve(scenario).answer.plan.contradictions
    (row,) = [x for x in clash.reconciled_by if x.assumption.startswith("active parameters")]
    for factor, settled in ((row.factor * 1.01, True), (row.factor * 0.99, False)):
        wide = scenario | {"given": {"n_active": [100e9, 100e9 * factor]}}
        left = planner.solve(wide).answer.plan.contradictions
        assert bool([x for x in left if x.name == "kv_bytes_per_token"]) != settled
