"""Bills of a plan by contract and by model, and of plans with one freedom or one rule less."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.problems.fleet import plan as records
from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import fleet_program
from planner.problems.fleet.search import SMALL_SIZE, FleetChoice, solve_min_cost
from planner.programs.integer import NoPoint, solve_lp_relaxation

MAX_EXACT_HOURS = 48  # hours above which comparisons are of the mean day
DAY = 24
REL_TOL = 1e-6  # relative, of two bills
PROOF_GAP = 1e-4  # gap below which a plan is the optimum that others are compared with


def model_bills(task: FleetTask, choice: FleetChoice) -> dict[str, records.ModelBill]:
    """Return the bill of each model: machines by its share of the chips in use, and starts."""
    usd = np.zeros(len(task.models))
    for k, pool in enumerate(task.pools):
        firm = choice.reserved[k] * (pool.reserved or 0.0) * task.hours
        firm += choice.on_demand[k].sum() * (pool.on_demand or 0.0)
        spot = choice.spot_machines[k].sum() * (pool.spot or 0.0) * (1 + pool.lost * pool.redo)
        for paid, replicas in ((firm, choice.firm), (spot, choice.spot)):
            chips = task.used_chips * replicas.sum(axis=1) * (task.pool_of == k)
            if chips.sum():
                np.add.at(usd, task.model_of, paid * chips / chips.sum())
    np.add.at(usd, task.model_of, task.start_costs * replica_starts(choice).sum(axis=1))
    total = usd.sum() or 1.0
    bills = {}
    for m, name in enumerate(task.models):
        # Requests over the horizon that a model's replicas serve.
        rate = task.demand[m].sum()
        if any(m in (route.origin, route.site) for route in task.routes):
            assert choice.flows is not None
            rate = choice.flows[[route.site == m for route in task.routes]].sum()
        requests = float(rate) * 3600
        tokens = task.tokens[m]
        bills[name] = records.ModelBill(
            usd[m] / task.hours,
            usd[m] / (requests * tokens) * 1e6 if tokens and requests else None,
            usd[m] / requests * 1000 if requests else 0.0,
            usd[m] / total,
        )
    return bills


def replica_starts(choice: FleetChoice) -> np.ndarray:
    """Replicas of each column that start in each hour (C, T)."""
    there = choice.firm + choice.spot
    return np.maximum(0, there - np.roll(there, 1, axis=1))


def restricted_bills(task: FleetTask, choice: FleetChoice) -> tuple[records.RestrictedFleet, ...]:
    """The bill with one freedom less or one rule less, each by an optimum where programs are small.

    Where they are large the relaxations are compared, and of a long horizon its mean day.
    """
    exact = fleet_program(task).program.columns <= SMALL_SIZE and choice.gap < PROOF_GAP
    base = task if exact or task.hours <= MAX_EXACT_HOURS else mean_day(task)
    at = choice.value / task.hours
    whole = at if exact else _relaxed(base)
    assert whole is not None
    scale = at / whole if whole and not exact else 1.0
    rows = []
    for words, changed in restricted_tasks(base):
        usd = _bill(changed) if exact else _relaxed(changed)
        rows.append(_compared(words, usd, at, scale))
    if task.rival_layouts:
        free = None if choice.free is None else choice.free / task.hours
        usd = free or _bill(replace(task, one_layout=False))
        rows.append(_compared("layouts free", usd, at, 1.0))
    alone = list(_alone(base))
    if len(alone) > 1 and not any(pool.owned for pool in task.pools):
        parts = [_bill(t) if exact else _relaxed(t) for t in alone]
        usd = sum(p for p in parts if p is not None) if None not in parts else None
        rows.append(_compared("each model alone", usd, at, scale))
    return tuple(rows)


def _compared(words: str, usd: float | None, at: float, scale: float) -> records.RestrictedFleet:
    if usd is None or not at:
        return records.RestrictedFleet(words, usd, None)
    more = usd * scale / at - 1
    return records.RestrictedFleet(words, usd * scale, more if abs(more) > REL_TOL else 0.0)


def restricted_tasks(task: FleetTask) -> Iterator[tuple[str, FleetTask]]:
    """Yield (name, task) of restrictions: with one freedom less, then with one rule less."""
    if len(task.pools) > 1:
        for k, pool in enumerate(task.pools):
            if {c.model for c in task.columns if c.pool == k} == set(range(len(task.models))):
                columns = tuple(c for c in task.columns if c.pool == k)
                yield f"only {pool.name}", replace(task, columns=columns)
    if any(pool.reserved is not None for pool in task.pools):
        pools = tuple(replace(pool, reserved=None) for pool in task.pools)
        yield "without reserved", replace(task, pools=pools)
    if any(pool.spot is not None for pool in task.pools):
        pools = tuple(replace(pool, spot=None, spot_most=0) for pool in task.pools)
        yield "without spot", replace(task, pools=pools)
    if all(pool.reserved is not None for pool in task.pools):
        pools = tuple(replace(pool, on_demand=None, spot=None, spot_most=0) for pool in task.pools)
        yield "only reserved", replace(task, pools=pools)
    if task.spare and task.headroom:
        yield "without spare", replace(task, spare=0, headroom=0.0)
    if task.spare:
        yield f"without N+{task.spare}", replace(task, spare=0)
    if task.headroom:
        yield "without headroom", replace(task, headroom=0.0)
    if task.spot_share < 1 and any(pool.spot is not None for pool in task.pools):
        yield "no limit on spot", replace(task, spot_share=1.0)
    stay = tuple(route for route in task.routes if route.origin == route.site)
    if len(stay) < len(task.routes):
        yield "no requests move", replace(task, routes=stay)
    single = tuple(route for route in task.routes if route.pool is None)
    if len(single) < len(task.routes):
        yield "one pool", replace(task, routes=single)
    if task.starts.any() and task.hours > 1:
        columns = tuple(replace(column, start=0.0) for column in task.columns)
        yield "instant start-up", replace(task, columns=columns)


def mean_day(task: FleetTask) -> FleetTask:
    """The day whose demand in each hour is the mean of that hour over the horizon."""
    days = task.hours // DAY
    demand = task.demand[:, : days * DAY].reshape(len(task.models), days, DAY).mean(axis=1)
    windows = tuple(min(window, DAY - 1) for window in task.windows)
    return replace(task, demand=demand, windows=windows)


def _alone(task: FleetTask) -> Iterator[FleetTask]:
    """Each model by itself, with those that its requests may be served as."""
    groups = {m: {m} for m in range(len(task.models))}
    for route in task.routes:
        both = groups[route.origin] | groups[route.site]
        groups |= dict.fromkeys(both, both)
    for group in {min(each): sorted(each) for each in groups.values()}.values():
        place = {m: i for i, m in enumerate(group)}
        yield replace(
            task, models=tuple(task.models[m] for m in group),
            columns=tuple(
                replace(c, model=place[c.model]) for c in task.columns if c.model in place
            ),
            demand=task.demand[group], windows=tuple(task.windows[m] for m in group),
            tokens=tuple(task.tokens[m] for m in group),
            routes=tuple(
                replace(r, origin=place[r.origin], site=place[r.site])
                for r in task.routes if r.origin in place
            ),
        )  # fmt: skip


def _bill(task: FleetTask) -> float | None:
    """Minimum cost of a plan [USD/hour]; None if infeasible."""
    try:
        return solve_min_cost(task).value / task.hours
    except NoPoint:
        return None


def _relaxed(task: FleetTask) -> float | None:
    """Lower bound on the cost of a plan by its LP relaxation [USD/hour]; None if infeasible."""
    try:
        return solve_lp_relaxation(fleet_program(task).program.compiled()).value / task.hours
    except NoPoint:
        return None
