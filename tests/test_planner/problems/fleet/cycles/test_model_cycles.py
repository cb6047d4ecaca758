"""Plans model by model keep every rule, and cuts of covers cut no plan away."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from planner.problems.fleet.answer import recheck
from planner.problems.fleet.cycles.cycle_bounds import CoverItems, cheapest_covers, cycle_bound
from planner.problems.fleet.cycles.model_covers import cover_cuts
from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import fleet_program
from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.search import cheapest_by_cycles, solve_min_cost
from planner.programs.integer import NoPoint, solve_lp_relaxation, solved
from planner.scenario import load
from tests.cases.fleet_brute_force import small_scenario
from tests.cases.fleets import large_fleet
from tests.sizes import first, seldom


def small_fleet(seed: int) -> FleetTask:
    """Two models on two kinds over eight hours, of few replicas."""
    task = large_fleet(2, 8, seed=seed, pools=2)
    return replace(task, demand=task.demand * 0.03)


@pytest.mark.parametrize("seed", [*first(2, range(10)), *seldom(range(10, 20))])
def test_cuts_of_covers_cut_no_cheapest_plan_away(seed):
    """The optimum of the whole program with the cuts is that without; the relaxation is lifted."""
    task = resolve_fleet(load(small_scenario(seed))).task
    made = fleet_program(task)
    program = made.program.compiled()
    try:
        linear = solve_lp_relaxation(program)
        best = solved(program)
    except NoPoint:
        return
    cut = program.with_rows(cover_cuts(task, made, program, linear))
    assert best is not None
    again = solved(cut)
    assert again is not None
    assert again.value == pytest.approx(best.value, rel=1e-6)
    lifted = solve_lp_relaxation(cut)
    assert linear.value * (1 - 1e-9) <= lifted.value <= best.value * (1 + 1e-9)
    if not any(task.windows):
        for point in (linear, lifted):
            assert cycle_bound(task, made, point) <= best.value * (1 + 1e-9)


@pytest.mark.parametrize("seed", [*first(1, range(3)), *seldom(range(3, 10))])
def test_a_plan_by_models_keeps_all_rules_and_the_optimum_lies_between_it_and_its_bound(seed):
    """The evaluation states every rule by itself; the answer is as near to the optimum as it says.

    A plan by models alone may be far off: fleets so small are answered by the whole program.
    """
    task = small_fleet(seed)
    plan = cheapest_by_cycles(task)
    assert plan is not None
    recheck(task, plan)
    best = solved(fleet_program(task).program.compiled(), gap=0.04)
    assert best is not None
    assert plan.linear.value * (1 - 1e-9) <= plan.bound <= best.value * (1 + 1e-9)
    assert best.bound <= plan.value * (1 + 1e-9)
    assert solve_min_cost(task).value <= 1.04 * best.value


@pytest.mark.parametrize("seed", range(6))
def test_no_cover_that_is_not_listed_costs_less_than_what_is_said_of_all_others(seed):
    """Every count of two columns, firm and on spot, is tried beside the list."""
    draw = np.random.default_rng(seed)
    rates, costs = np.sort(draw.uniform(1, 4, 2)), draw.uniform(1, 5, 4) * (seed % 3 > 0)
    costs[0] += 1.0
    served, firm = np.append(rates, 0.9 * rates), np.append(rates, [0.0, 0.0])
    most, spare = np.array([7, 6, 5, 4]), seed % 2
    listed = cheapest_covers(CoverItems(served, firm, costs, most), 9.0, 4.0, spare, 100)
    counts = np.array(list(product(*(range(n + 1) for n in most))))
    largest = np.where(counts[:, :2] + counts[:, 2:] > 0, rates, 0.0).max(axis=1)
    good = (counts @ served - spare * largest >= 9.0) & (counts @ firm >= 4.0)
    there = {tuple(row) for row in listed.counts.tolist()}
    rest = [row for row in counts[good].tolist() if tuple(row) not in there]
    assert len(there) == len(listed.counts) == good.sum() - len(rest)
    assert listed.costs == pytest.approx(listed.counts @ costs)
    assert min((np.array(row) @ costs for row in rest), default=np.inf) >= listed.others - 1e-6


@pytest.mark.parametrize("seed", [*first(1, range(3)), *seldom(range(3, 10))])
def test_cycles_lift_the_bound_over_that_of_hours(seed):
    """What starts cost between hours is of no single hour; the optimum lies above."""
    task = small_fleet(seed)
    made = fleet_program(task)
    program = made.program.compiled()
    linear = solve_lp_relaxation(program)
    lifted = solve_lp_relaxation(program.with_rows(cover_cuts(task, made, program, linear)))
    best = solved(program, gap=0.04)
    assert best is not None
    assert lifted.value < cycle_bound(task, made, lifted) <= best.value


def test_cuts_lift_the_bound_of_few_replicas():
    """With a spare of large replicas no relaxation knows how many there are."""
    task = small_fleet(0)
    plan = cheapest_by_cycles(task)
    assert plan is not None
    assert plan.bound >= 1.02 * plan.linear.value
    assert np.all(plan.reserved >= 0)
