"""Where a fleet has no plan: which model falls short in which hour, and what would repair it."""

from dataclasses import replace

import numpy as np

from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import fleet_program
from planner.programs.integer import NoPoint, solved
from planner.protocol.plan import MissedPromise
from planner.text.wording import money

SECONDS, GAP = 20.0, 0.02  # at which the search for a repair ends
PENALTY = 1e3  # of a machine that is not offered, over the dearest that is


def shortfalls(task: FleetTask) -> tuple[MissedPromise, ...]:
    """The models and hours that fall short, with the fewest machines more that would do."""
    alone = [
        MissedPromise(f"models.{name}", None, f"hour {t}: no pool holds {name} for "
                      f"{task.demand[m, t]:.3g} requests/s: give it a column, a larger machine or, "
                      "in a region, moves: allowed")
        for m, name in enumerate(task.models)
        for t in [int(np.argmax(task.demand[m] > 0))]
        if not _may_run(task, m)
    ]  # fmt: skip
    if alone:
        return tuple(alone)
    missing, short = _missing(task)
    if short is None:
        return (MissedPromise("spare", None, "no number of machines keeps the spare and the firm "
                              "share: ease spare, start.time or spot_share"),)  # fmt: skip
    rows = []
    for k, pool in enumerate(task.pools):
        if not missing[k].any():
            continue
        t = int(np.argmax(missing[k]))
        count = int(missing[k, t])
        price = _price(task, k)
        words = (
            f"hour {t}: {count} more machine{'s' * (count > 1)} of {pool.name} would do, "
            f"{money(count * price)}/hour at {money(price)} a machine"
        )
        for m in short[t]:
            name = task.models[m]
            rows.append(MissedPromise(f"models.{name}.demand", None, f"{name} in {words}"))
    return tuple(rows)


def _may_run(task: FleetTask, m: int) -> bool:
    """Whether there are columns that may serve a model's requests."""
    ways = {i for i, route in enumerate(task.routes) if route.origin == m}
    closed = {i for each in task.stations if not task.at(each).size for i in each.flows}
    return bool(ways - closed) if ways else bool((task.model_of == m).any())


def _price(task: FleetTask, k: int) -> float:
    """What one more machine of a pool would cost [USD/hour]."""
    pool = task.pools[k]
    return pool.on_demand if pool.on_demand is not None else pool.start_price


def _missing(task: FleetTask) -> tuple[np.ndarray, dict[int, list[int]] | None]:
    """Machines beyond what is offered (pools, hours), as few as do; who uses them by hour."""
    dearest = max((_price(task, k) for k in range(len(task.pools))), default=1.0) or 1.0
    eased = replace(
        task,
        pools=tuple(replace(p, on_demand=p.start_price or dearest, on_demand_most=None)
                    for p in task.pools),
    )  # fmt: skip
    made = fleet_program(eased)
    program = made.program.compiled()
    cost = program.cost.copy()
    offered = [
        (p.on_demand_most if p.on_demand_most is not None else np.inf) if p.on_demand else 0.0
        for p in task.pools
    ]
    for k, most in enumerate(offered):
        if most == 0:
            cost[made.on_demand[k]] = PENALTY * dearest
        elif np.isfinite(most):
            cost[made.on_demand[k]] += PENALTY * dearest / task.hours
    try:
        best = solved(replace(program, cost=cost), GAP, seconds=SECONDS)
    except NoPoint:
        best = None
    empty = np.zeros((len(task.pools), task.hours), int)
    if best is None:
        return empty, None
    taken = np.round(best.point[made.on_demand]).astype(int)
    over = np.array([np.maximum(0, row - most) for row, most in zip(taken, offered, strict=True)])
    over = np.where(np.isfinite(over), over, 0).astype(int)
    short = {}
    firm = np.round(best.point[made.firm])
    for t in range(task.hours):
        pools = np.flatnonzero(over[:, t])
        here = np.isin(task.pool_of, pools) & (firm[:, t] > 0)
        there = sorted(set(task.model_of[here].tolist()))
        load = [task.demand[m, t] for m in there]
        short[t] = [there[int(np.argmax(load))]] if there else []
    return over, short
