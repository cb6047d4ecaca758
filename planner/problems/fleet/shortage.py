"""Shortage of a fleet without a plan: the model and hour that fall short, and the repair."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import fleet_program
from planner.problems.fleet.search import MIDDLE, SECONDS, WORK_LIMIT
from planner.programs.integer import NoPoint, solve_lp_relaxation, solved
from planner.protocol.plan import MissedPromise
from planner.text.wording import usd_text

GAP = 1e-4  # relative optimality gap that ends the search for a repair
PENALTY = 1e3  # of a machine that is not offered, over its price
DOES = " would do,"
PENALTY_RATIO = 10.0  # in an hour, over the dearest price
ZERO = 1e-6  # machines: what solvers take for none


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
    pools = range(len(task.pools))
    try:
        repair = cheapest_repair(task, pools)
    except NoPoint:
        return (MissedPromise("spare", None, "no number of machines keeps the spare and the firm "
                              "share: ease spare, start.time or spot_share"),)  # fmt: skip
    used = np.flatnonzero(repair.more).tolist()
    rows: list[MissedPromise] = []
    for k in used:
        rows += _rows(task, repair, k, "and " if rows else "", "," if k != used[-1] else DOES)
    for k in sorted({*pools} - {*used}) if len(used) == 1 else used:
        if used and repair.exact and fleet_program(task).program.columns <= MIDDLE:
            with suppress(NoPoint):
                rows += _rows(task, cheapest_repair(task, [k]), k, "or ", DOES)[:1]
    return tuple(rows)


@dataclass(frozen=True)
class FleetRepair:
    """Machines to add to each pool (K,), machines beyond the offer by hour (K, T), main users.

    `busiest` is the model with most chips on a pool's firm machines (K, T); where `exact` is false
    time was up and machines are those of the relaxation, rounded up.
    """

    more: np.ndarray
    over: np.ndarray
    busiest: np.ndarray
    exact: bool


def _rows(
    task: FleetTask, repair: FleetRepair, k: int, before: str, after: str
) -> list[MissedPromise]:
    """Return the worst hour of a pool with its repair, then those of other models there."""
    pool, price, count = task.pools[k], _price(task, k), int(repair.more[k])
    firm = "" if pool.on_demand is not None or pool.reserved is not None else "firm "
    least = "" if repair.exact else "at least "
    machines = f"{firm}machine{'s' * (count > 1)} of {pool.name}"
    rows: list[MissedPromise] = []
    load = task.demand[repair.busiest[k], np.arange(task.hours)]
    for t in np.lexsort((-load, -repair.over[k])).tolist():
        m, over = int(repair.busiest[k, t]), int(repair.over[k, t])
        promise = f"models.{task.models[m]}.demand"
        if not over or promise in {row.promise for row in rows}:
            continue
        words = f"{over} of these machines of {pool.name}"
        if not rows:
            words = (
                f"{before}{least}{count} more {machines}{after} {usd_text(count * price)}/hour at "
                f"{usd_text(price)} a machine"
            )
        rows.append(MissedPromise(promise, None, f"{task.models[m]} in hour {t}: {words}"))
    return rows


def _may_run(task: FleetTask, m: int) -> bool:
    ways = {i for i, route in enumerate(task.routes) if route.origin == m}
    closed = {i for each in task.stations if not task.at(each).size for i in each.flows}
    return bool(ways - closed) if ways else bool((task.model_of == m).any())


def _price(task: FleetTask, k: int) -> float:
    """Price of one more machine of a pool [USD/hour]."""
    pool = task.pools[k]
    return pool.on_demand if pool.on_demand is not None else pool.start_price


def cheapest_repair(task: FleetTask, pools: Iterable[int]) -> FleetRepair:
    """Cheapest machines to add to some pools, in all hours, that make the task feasible.

    Raises NoPoint where none helps.
    """
    dearest = max((_price(task, k) for k in range(len(task.pools))), default=1.0) or 1.0
    prices = [_price(task, k) or dearest for k in range(len(task.pools))]
    offered = np.array([
        0.0 if p.on_demand is None else np.inf if p.on_demand_most is None else p.on_demand_most
        for p in task.pools
    ])  # fmt: skip
    # Machines beyond an offer cost more than any price: an hour rents no more than it needs.
    dear = np.where(np.isfinite(offered), PENALTY_RATIO * dearest, prices)
    eased = replace(
        task,
        pools=tuple(replace(p, on_demand=float(price), on_demand_most=None)
                    for p, price in zip(task.pools, dear, strict=True)),
    )  # fmt: skip
    made = fleet_program(eased)
    most = np.where(np.isin(np.arange(offered.size), [*pools]), np.inf, 0.0)
    cost = PENALTY * task.hours * np.array(prices)
    more = made.program.variables(offered.shape, cost, most)
    for k in np.flatnonzero(np.isfinite(offered)):
        beyond = [(made.on_demand[k], 1.0), (np.repeat(more[k], task.hours), -1.0)]
        made.program.subject(beyond, high=offered[k])
    program = made.program.compiled()
    best = solved(program, GAP, WORK_LIMIT // program.most.size, SECONDS)
    point = solve_lp_relaxation(program).point if best is None else best.point
    over = np.ceil(np.maximum(0.0, point[made.on_demand] - offered[:, None]) - ZERO).astype(int)
    chips = task.used_chips[:, None] * point[made.firm]
    load = np.zeros((offered.size, len(task.models), task.hours))
    np.add.at(load, (task.pool_of, task.model_of), chips)
    return FleetRepair(over.max(axis=1), over, load.argmax(axis=1), best is not None)
