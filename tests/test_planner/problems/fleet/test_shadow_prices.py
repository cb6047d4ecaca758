"""Shadow prices are slopes: each dual of the relaxation against a finite difference of it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from planner.problems.fleet import program
from planner.problems.fleet.answer import prices
from planner.problems.fleet.bills import restricted_tasks
from planner.problems.fleet.fleet_task import FleetTask, Route
from planner.problems.fleet.program import fleet_program
from planner.problems.fleet.search import FleetChoice
from planner.programs.integer import solve_lp_relaxation
from tests.cases.fleets import large_fleet

STEP = 1e-4


def relaxed_bill(task: FleetTask) -> float:
    """What no plan is below [USD/hour]."""
    return solve_lp_relaxation(fleet_program(task).program.compiled()).value / task.hours


def slope(task: FleetTask, changed: Callable[[float], FleetTask]) -> float:
    """The bill's central difference [USD/hour per unit]."""
    return (relaxed_bill(changed(STEP)) - relaxed_bill(changed(-STEP))) / (2 * STEP)


@pytest.fixture(scope="module")
def task() -> FleetTask:
    """Two models over six hours on two kinds, limits of reservation that bind, owned machines."""
    task = large_fleet(2, 6, seed=1, pools=2)
    pools = tuple(replace(pool, reserved_most=3, owned=1) for pool in task.pools)
    return replace(task, pools=pools)


@pytest.mark.parametrize("window", [0, 2])
@pytest.mark.parametrize("moves", [False, True])
def test_every_price_is_the_slope_of_the_bill(task, window, moves):
    """Of a request/s that may wait, or move, an owned machine, one more reserved, and headroom."""
    task = replace(task, windows=(0, window))
    if moves:
        columns = tuple(replace(c, slack=0.1 * (i % 2)) for i, c in enumerate(task.columns))
        routes = (Route(0, 0), Route(1, 1), Route(0, 1, 0.1))
        task = replace(task, columns=columns, routes=routes)
    linear = solve_lp_relaxation(fleet_program(task).program.compiled())
    none = np.zeros(0)
    choice = FleetChoice(0.0, none, none, none, none, none, linear, linear.value, 0, "")
    said = prices(task, choice)

    def more_demand(by: float) -> FleetTask:
        demand = task.demand.copy()
        demand[1, 3] += by
        return replace(task, demand=demand)

    def pool_with(name: str) -> Callable[[float], FleetTask]:
        first = task.pools[0]
        return lambda by: replace(
            task, pools=(replace(first, **{name: getattr(first, name) + by}), *task.pools[1:])
        )

    hours, first = task.hours, task.pools[0].name
    assert said.request[task.models[1]][3] == pytest.approx(hours * slope(task, more_demand), 1e-4)
    owned, reserved = pool_with("owned"), pool_with("reserved_most")
    assert np.mean(said.machine[first]) == pytest.approx(-slope(task, owned), rel=1e-4)
    assert said.reserved[first] == pytest.approx(-slope(task, reserved), rel=1e-4)
    assert said.reserved[first] > 0
    headroom = slope(task, lambda by: replace(task, headroom=task.headroom + by))
    assert 100 * said.headroom == pytest.approx(headroom, rel=1e-4)


def test_the_price_of_a_spare_replica_is_the_slope_of_the_bill(task, monkeypatch):
    """Of all models together, the most replicas of a column as they are; none without spare."""
    linear = solve_lp_relaxation(fleet_program(task).program.compiled())
    none = np.zeros(0)
    choice = FleetChoice(0.0, none, none, none, none, none, linear, linear.value, 0, "")
    said = prices(task, choice).spare
    most = program.replica_upper_bounds(task)
    monkeypatch.setattr(program, "replica_upper_bounds", lambda _: most)
    more = slope(task, lambda by: replace(task, spare=task.spare + by))
    assert min(said.values()) > 0
    assert sum(said.values()) == pytest.approx(more, rel=1e-4)
    assert prices(replace(task, spare=0), choice).spare == {}


def test_a_freedom_less_never_costs_less_and_a_rule_less_never_more(task):
    """Each restriction by itself; what both parts of the spare save together is at least either."""
    spotted = replace(task, spot_share=0.5)
    bill = relaxed_bill(spotted)
    bills = {words: relaxed_bill(changed) for words, changed in restricted_tasks(spotted)
             if not words.startswith("only") and not words.endswith("alone")}  # fmt: skip
    eased = {"without spare", "without N+1", "without headroom", "no limit on spot",
             "instant start-up"}  # fmt: skip
    assert eased < set(bills)
    for words, usd in bills.items():
        assert usd <= bill * (1 + 1e-9) if words in eased else usd >= bill * (1 - 1e-9), words
    assert bills["without spare"] <= min(bills["without N+1"], bills["without headroom"])
