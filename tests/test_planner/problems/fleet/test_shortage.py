"""Where there is no plan: the machines that repair it are enough, and no cheaper ones are."""

from dataclasses import replace
from itertools import count, product

import numpy as np
import pytest

import planner
from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.search import solve_min_cost
from planner.problems.fleet.shortage import cheapest_repair, shortfalls
from planner.programs.integer import NoPoint
from planner.scenario import load
from tests.cases.fleet_brute_force import small_scenario

COMPARED, WIDEST = 8, 200


def feasible(task: FleetTask, more: tuple[int, ...]) -> bool:
    """Whether there is a plan with so many machines more of each pool, at any price."""
    pools = tuple(
        replace(pool, owned=pool.owned + extra)
        for pool, extra in zip(task.pools, more, strict=True)
    )
    try:
        solve_min_cost(replace(task, pools=pools))
    except NoPoint:
        return False
    return True


def test_a_repair_is_enough_and_no_cheaper_one_is() -> None:
    """Of random small fleets without a plan: every cheaper addition is tried."""
    compared = 0
    for seed in count():
        task = resolve_fleet(load(small_scenario(seed))).task
        if feasible(task, (0,) * len(task.pools)):
            continue
        try:
            repair = cheapest_repair(task, range(len(task.pools)))
        except NoPoint:
            assert not feasible(task, (WIDEST,) * len(task.pools))
            assert [row.promise for row in shortfalls(task)] != []
            continue
        more = tuple(map(int, repair.more))
        prices = np.array([p.on_demand or p.start_price for p in task.pools])
        assert feasible(task, more), seed
        bill = float(prices @ more)
        most = [int(bill / price) if price else 0 for price in prices]
        for fewer in product(*(range(n + 1) for n in most)):
            if prices @ fewer < bill * (1 - 1e-9):
                assert not feasible(task, fewer), (seed, more, fewer)
        rows = shortfalls(task)
        assert all(any(task.pools[k].name in row.expression for row in rows)
                   for k in np.flatnonzero(more))  # fmt: skip
        compared += 1
        if compared == COMPARED:
            break


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ["chat in hour 2: ", "more machine", "code in hour 0: ", "of these machines of big",
              "of small would do, $", "or 4 more machines of big would do, $128/hour"]),
        ({"chance": 0.95, "most": 6}, ["with the margin that a chance of 95% takes"]),
        ({"most": 0, "spot": True}, ["firm machines of big"]),
        ({"regions": True}, ["chat us in hour 2: 3 more machines of small us", "chat eu in hour"]),
    ],
)  # fmt: skip
def test_every_pool_names_its_worst_hour_and_its_models(changes: dict, words: list[str]) -> None:
    """Two models on two pools; repairs together, and each pool alone."""
    big = {"size": 8, "on_demand": {"price": "$4/hour", "most": changes.get("most", 2)}}
    small = {"size": 4, "on_demand": {"price": "$2/hour", "most": 3}}
    if "spot" in changes:
        big = {"size": 8, "spot": {"price": "$4/hour", "machines": 9}}
        small = {"size": 4, "spot": {"price": "$2/hour", "machines": 9}}
    scenario = {
        "problem": "fleet", "units": "base", "hours": 4, "pools": {"big": big, "small": small},
        "models": {
            "chat": {"demand": [4, 9, 20, 3], "columns": [
                {"pool": "big", "chips": 4, "rate": 2}, {"pool": "small", "chips": 4, "rate": 1}]},
            "code": {"demand": [9, 2, 3, 3], "columns": [{"pool": "big", "chips": 8, "rate": 3}]},
        },
    }  # fmt: skip
    if "chance" in changes:
        scenario["chance"] = changes["chance"]
    if "spot" in changes:
        scenario["spot_share"] = 0.2
    if "regions" in changes:
        scenario["regions"] = {"us": {"demand": 0.5}, "eu": {"demand": 0.5}}
    plan = planner.solve(scenario)
    assert plan.status == "infeasible"
    text = "; ".join(row.expression for row in plan.infeasible)
    for each in words:
        assert each in text
