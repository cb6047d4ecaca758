"""A plan's days simulated: demand is served though machines are lost and replicas fail."""

from dataclasses import replace

import pytest

from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.search import solve_min_cost
from planner.scenario import load
from tests.cases.fleet_simulation import hours_served
from tests.paths import ROOT

FAILS = 0.002  # of a replica in an hour: it fails every three weeks, for an hour
STRETCHED = 40  # times slower: as many hours and replicas, fewer requests, so more noise


@pytest.mark.slow
def test_demand_is_served_in_99_percent_of_hours():
    """A week of days of the example: machines lost at 5 % an hour, replicas failing, starts."""
    task = resolve_fleet(load(str(ROOT / "examples" / "plan-fleet-day.yaml"))).task
    choice = solve_min_cost(task)
    assert choice.spot.any()
    columns = tuple(replace(c, rate=c.rate / STRETCHED) for c in task.columns)
    slower = replace(task, demand=task.demand / STRETCHED, columns=columns)
    assert hours_served(slower, choice, 7, FAILS, seed=0).mean() >= 0.99
    # With 40 % more than was planned for, spare and headroom are not enough.
    busier = replace(slower, demand=slower.demand * 1.4)
    assert hours_served(busier, choice, 1, FAILS, seed=0).mean() < 0.9
