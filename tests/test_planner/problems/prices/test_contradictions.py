"""Clashing assumptions: the set is minimal, and what alone would settle it does."""

import math
import random
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

import planner
from planner.problems.prices.contradictions import LogRow, LogSystem, minimum_hitting_sets
from planner.problems.prices.price_regression import laws
from tests.sizes import first

SHEET = {
    "input": "$1.25/Mtok", "output": "$10/Mtok", "storage": "$4.50/Mtok/hour",
    "steps": [{"above": "200k", "output": "1.5x"}],
    "tiers": [{"name": "fast", "price": "6x", "speed": "2.5x"}, {"name": "batch", "price": "0.5x"}],
}  # fmt: skip


def feasible(rows):
    """Whether rows have a solution for some machine, by another program: no slack, no dual."""
    machines = {row.machine for row in rows if row.machine} or {""}
    return any(solvable([x for x in rows if x.machine in ("", each)]) for each in machines)


def solvable(rows):
    """Whether the rows of one machine have a solution."""
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
    rows, slack = [], pick.choice([1.0, 3.0])  # tight systems clash, loose ones mostly do not
    for group in range(pick.randint(3, 9)):
        for _ in range(pick.randint(1, 3)):
            names = pick.sample(quantities, pick.randint(1, len(quantities)))
            middle = pick.uniform(-3, 3)
            width = slack * pick.choice([0.0, 0.5, 2.0]) + (slack - 1.0)
            low = -math.inf if pick.random() < 0.3 else middle - width
            high = math.inf if pick.random() < 0.3 and math.isfinite(low) else middle + width
            coefficients = {name: pick.choice([-2.0, -1.0, 1.0, 2.0]) for name in names}
            rows.append(LogRow(f"assumption {group}", coefficients, low, high))
    for machine in range(pick.choice([0, 0, 2, 3, 5])):  # each ties all quantities by one rent
        for name in quantities:
            tie = {name: 1.0, "rent": pick.choice([-1.0, 1.0])}
            rows.append(LogRow("machines", tie, x := pick.uniform(-2, 2), x, f"{machine}"))
        rent = LogRow("machines", {"rent": 1.0}, -1.0, pick.choice([-1.0, 0.0, 1.0]), f"{machine}")
        rows.append(rent)
    return LogSystem(tuple(rows))


SEEDS = range(200)


@pytest.mark.parametrize("seeds", first(1, [SEEDS[i::8] for i in range(8)]))
def test_minimal_sets_of_made_systems(seeds):
    """Of 200 made systems the verdict is that of another program, and each set is minimal."""
    clashes = through = 0
    for seed in seeds:
        system = made_system(seed)
        if feasible(system.rows):
            assert system.minimal() == ()
        else:
            through += "machines" in check_minimal(system)
            clashes += 1
    assert 0.25 < clashes / len(seeds) < 1
    assert through


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


def made_sheet(seed):
    """A sheet with storage and an output step, chips of two makes, and what both allow.

    In logarithms the sum s of parameters and rent lies where the parameters and the rent are, where
    storage and the step have it, and where the input price has it: by hand, for each chip and peak.
    """
    pick = random.Random(seed)
    chips = [
        {"flops": {"bf16": pick.uniform(2e14, 2e15)}, "memory": pick.uniform(4e10, 4e11),
         "memory_bandwidth": pick.uniform(1e12, 8e12), "price": f"${pick.uniform(0.5, 9):.4f}/hour"}
        for _ in range(2)
    ]  # fmt: skip
    price = pick.uniform(0.1, 1.4)
    hold = price * math.exp(pick.uniform(-3.5, -0.5))
    low = 64e9 * price * math.exp(pick.uniform(-0.8, 0.6))
    scenario = {
        "problem": "prices", "units": "base", "chips": chips,
        "sheet": {"input": f"${price}/Mtok", "output": f"${3 * price}/Mtok",
                  "storage": f"${hold}/Mtok/hour", "steps": [{"above": "200k", "output": "1.5x"}]},
        "given": {"n_active": [low, low * 1.3], "margin": [1, 2], "context": [90e3, 1e5]},
    }  # fmt: skip
    law = laws()["n_active"]
    sizes = (max(low, law.reference * price / law.factor),
             min(low * 1.3, law.reference * price * law.factor))  # fmt: skip
    ways = []
    for each in chips:
        rent = float(each["price"][1:-5]) / 3600
        peak, drain = each["flops"]["bf16"], each["memory_bandwidth"] / each["memory"]
        arithmetic = [price * 1e-6 * peak * share / 2 for share in (0.25 / 2, 0.65)]
        held = [hold * 1e-6 / 3600 * peak * x / drain / 2
                for x in ((250e3 - 1.5e5) / 0.5, (500e3 - 1.35e5) / 0.5)]  # fmt: skip
        sums = (arithmetic, held, [size * rent for size in sizes])
        ways.append(max(x[0] for x in sums) <= min(x[1] for x in sums) and sizes[0] <= sizes[1])
    return scenario, any(ways)


@pytest.mark.parametrize("seeds", first(1, [SEEDS[i::10] for i in range(10)]))
def test_minimal_sets_of_made_sheets(seeds):
    """Of 200 made sheets: a clash if, and only if, no chip allows it all by hand; each minimal."""
    verdicts, together = [], 0
    for seed in seeds:
        scenario, holds = made_sheet(seed)
        plan = planner.solve(scenario).answer.plan
        clashes = plan.contradictions
        assert bool(clashes) == bool(plan.left_out) != holds
        verdicts.append(holds)
        for clash in clashes:
            rows = [row for row in clash.system.rows if row.group in clash.minimal]
            assert not feasible(rows)
            for group in clash.minimal:
                assert feasible([row for row in rows if row.group != group])
            together += clash.name == "together"
    assert len({*verdicts}) == 2
    assert together


def test_a_clash_through_one_chip_is_seen_where_every_pair_of_readings_meets():
    """Storage says 2.5 kB of one chip and 0.5 kB of the other; the step below 1 kB, above 20 kB."""
    rows = {"memory": "100 GB", "price": "$4/hour"}
    lean = rows | {"flops": {"bf16": "1000 TFLOP/s"}, "memory_bandwidth": "2 TB/s"}
    broad = rows | {"flops": {"bf16": "100 TFLOP/s"}, "memory_bandwidth": "20 TB/s",
                    "price": "$20/hour"}  # fmt: skip
    scenario = {
        "problem": "prices",
        "sheet": {"input": "$0.8/Mtok", "output": "$2.4/Mtok", "storage": "$0.10/Mtok/hour",
                  "steps": [{"above": "200k", "output": "1.5x"}]},
        "given": {"n_active": "50B", "margin": [1, 6]},
    }  # fmt: skip
    plan = planner.solve(scenario | {"chips": [lean, broad]})
    (clash,) = plan.answer.plan.contradictions
    assert clash.name == "together"
    assert any("per hour, bf16" in words for words in clash.minimal)
    assert {words.partition(" ")[0] for words in clash.between} == {"output", "storage"}
    step, storage = (
        next(x for x in plan.answer.plan.inferences
             if x.name == "kv_bytes_per_token" and x.origin.startswith(words))
        for words in ("output step", "storage")
    )  # fmt: skip
    assert step.low < storage.low < storage.high < step.high
    for chip in (lean, broad):
        names = [
            x.name for x in planner.solve(scenario | {"chips": chip}).answer.plan.contradictions
        ]
        assert "kv_bytes_per_token" in names


def test_the_fewest_that_settle_all():
    """One name of each set, as few as by trying every set of names."""
    for seed in range(40):
        pick = random.Random(seed)
        sets = [pick.sample("abcdef", pick.randint(1, 4)) for _ in range(pick.randint(1, 5))]
        ways = minimum_hitting_sets(sets)
        (count,) = {len(chosen) for chosen in ways}
        settle = [x for x in combinations("abcdef", count) if all({*x} & {*y} for y in sets)]
        assert {frozenset(x) for x in ways} == {frozenset(x) for x in settle}
        fewer = combinations("abcdef", count - 1)
        assert not any(all({*few} & {*each} for each in sets) for few in fewer)


def test_of_two_clashes_of_their_own_both_are_said():
    """Two modes that clash, and two readings of a cache: settling one leaves the other."""
    scenario = {"problem": "prices", "sheet": SHEET, "given": {"n_active": "100B"},
                "chips": "hgx-h100"}  # fmt: skip
    one, other = planner.solve(scenario).answer.plan.contradictions
    assert {*one.minimal}.isdisjoint(other.minimal)
    both = LogSystem(one.system.rows + other.system.rows)
    for left_out in minimum_hitting_sets([one.minimal, other.minimal]):
        assert not both.minimal(without=left_out)
    for left_out in minimum_hitting_sets([one.minimal]):
        assert {*both.minimal(without=left_out)} == {*other.minimal}


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
