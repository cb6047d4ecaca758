"""Small fleets are solved to their optimum: every plan tried, by rules stated once more."""

import math
from collections.abc import Callable
from itertools import count as natural

import pytest

from planner.problems.fleet.answer import recheck
from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.search import solve_min_cost
from planner.programs.integer import NoPoint
from planner.scenario import load
from tests.cases.fleet_brute_force import (
    least_bill,
    least_paired_bill,
    least_regional_bill,
    paired_scenario,
    regional_scenario,
    small_scenario,
)
from tests.cases.fleet_layouts import least_of_one_layout, one_layout_each
from tests.sizes import first, seldom

DRAWN = (
    ("free", small_scenario, least_bill, (20, 80, 200)),
    ("free", regional_scenario, least_regional_bill, (8, 40, 100)),
    ("free", paired_scenario, least_paired_bill, (8, 40, 100)),
    ("one", small_scenario, least_bill, (20, 80, 200)),
    ("one", regional_scenario, least_regional_bill, (8, 40, 100)),
)
FEW, MANY, ALL = ([(*of, counts[size]) for *of, counts in DRAWN] for size in range(3))


@pytest.mark.parametrize(
    ("layouts", "drawn", "least_of", "count"), [*FEW, *first(0, MANY), *seldom(ALL)]
)
def test_the_cheapest_of_every_plan(
    layouts: str, drawn: Callable[[int], dict], least_of: Callable[[dict], float], count: int
) -> None:
    """Of at most 3 models, 3 pools, 2 regions and 4 hours; where layouts rival one another.

    Starts, waits, packing, spare, shares, limits, requests that move, phases in pools.
    """
    compared = 0
    for seed in natural():
        scenario = drawn(seed)
        rivals = len([*one_layout_each(scenario)]) > 1
        if layouts == "one" and not rivals:
            continue
        least = least_of_one_layout(scenario, least_of) if layouts == "one" else least_of(scenario)
        if math.isnan(least):
            continue
        task = resolve_fleet(load(scenario | {"layouts": layouts})).task
        assert bool(task.rival_layouts) == (rivals and layouts == "one")
        try:
            choice = solve_min_cost(task)
            recheck(task, choice)
            value = choice.value
        except NoPoint:
            value = math.inf
        assert value == pytest.approx(least, rel=1e-6), seed
        compared += 1
        if compared == count:
            break
