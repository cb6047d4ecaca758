"""Small fleets are solved to their optimum: every plan tried, by rules stated once more."""

import math
from itertools import count

import pytest

from planner.problems.fleet.answer import recheck
from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.search import cheapest
from planner.programs.integer import NoPoint
from planner.scenario import load
from tests.cases.fleet_brute_force import least_bill, small_scenario
from tests.sizes import sized


@pytest.mark.sized
def test_the_cheapest_of_every_plan() -> None:
    """Of at most 3 models, 3 pools and 4 hours; starts, waits, packing, spare, shares, limits."""
    compared = 0
    for seed in count():
        scenario = small_scenario(seed)
        least = least_bill(scenario)
        if math.isnan(least):
            continue
        task = resolve_fleet(load(scenario)).task
        try:
            choice = cheapest(task)
            recheck(task, choice)
            value = choice.value
        except NoPoint:
            value = math.inf
        assert value == pytest.approx(least, rel=1e-6), seed
        compared += 1
        if compared == sized(25, 200):
            break
