"""Integer program of a fleet: replicas by hour, machines by contract, and their constraints.

Hours are cyclic. Every rule of the plan is a block of rows here; `evaluation` states each of them
again by itself.
"""

from dataclasses import dataclass

import numpy as np

from planner.problems.fleet.fleet_task import FleetTask
from planner.programs.integer import IntegerProgram, TooManyWays, filling_ways, needs_ways
from planner.text.errors import InputError

Array = np.ndarray
Term = tuple[Array, Array | float]


@dataclass(frozen=True)
class FleetProgram:
    """The program and which variable is what: columns C, pools K, models M, hours T.

    `hourly` are variables of an hour alone, by hour; `shared` all others that are not whole.
    """

    program: IntegerProgram
    firm: Array  # (C, T) replicas
    spot: Array  # (C, T) replicas
    started: Array  # (C, T)
    reserved: Array  # (K,) machines
    on_demand: Array  # (K, T) machines
    spot_machines: Array  # (K, T)
    demand_rows: Array  # (M, T) that demand is served; of models with routes, that all of it goes
    station_rows: Array  # (S, T)
    firm_rows: Array  # (S, T)
    flows: Array  # (R, T) requests/s by route
    machine_rows: Array  # (K, T)
    spot_rows: Array  # (K, T)
    start_rows: Array  # (columns that take time to start, T)
    layouts: Array  # (L,) whether each of `rival_layouts` is in use, one after another
    others: tuple[Array, ...]  # (n, T) further variables of an hour
    deferred: tuple[Array, ...]  # (T,) work served and left, of models that may wait


def fleet_program(task: FleetTask) -> FleetProgram:
    """The program of a task."""
    made = IntegerProgram()
    hours, pools, columns = task.hours, task.pools, len(task.columns)
    offered = np.array([p.spot is not None for p in pools])[task.pool_of]
    most = replica_upper_bounds(task)
    firm = made.variables((columns, hours), 0.0, most[:, None])
    spot = made.variables((columns, hours), 0.0, np.where(offered, most, 0)[:, None])
    started = made.variables(
        (columns, hours), task.start_costs[:, None], most[:, None], whole=False
    )
    reserved = made.variables(
        (len(pools),),
        np.array([hours * (p.reserved or 0.0) for p in pools]),
        np.array([_limit(p.reserved, p.reserved_most) for p in pools]),
    )
    on_demand = made.variables(
        (len(pools), hours),
        np.array([[p.on_demand or 0.0] for p in pools]),
        np.array([[_limit(p.on_demand, p.on_demand_most)] for p in pools]),
    )
    spot_machines = made.variables(
        (len(pools), hours),
        np.array([[(p.spot or 0.0) * (1 + p.lost * p.redo)] for p in pools]),
        np.array([[p.spot_most if p.spot is not None else 0] for p in pools]),
    )
    others: list[Array] = []
    deferred = {
        m: _deferred(made, task, m)
        for m in sorted({route.origin for route in task.routes if task.windows[route.origin]})
    }
    flows, routed = _routed(made, task, deferred, others)
    station_rows, firm_rows = _demand(made, task, firm, spot, started, flows, deferred, others)
    demand_rows = routed.copy()
    for rows, station in zip(station_rows, task.stations, strict=True):
        if not station.flows:
            demand_rows[station.model] = rows
    machine_rows, spot_rows = _machines(
        made, task, firm, spot, reserved, on_demand, spot_machines, others
    )
    # Rows: replicas started in an hour are at least the increase since the hour before.
    start_rows = np.zeros((0, task.hours), int)
    for c in np.flatnonzero(task.starts > 0) if task.hours > 1 else ():
        before = [(np.roll(each[c], 1), 1.0) for each in (firm, spot)]
        now = [(each[c], -1.0) for each in (firm, spot)]
        more = made.subject([(started[c], 1.0), *before, *now], low=0.0)
        start_rows = np.vstack([start_rows, more])
    return FleetProgram(
        made, firm, spot, started, reserved, on_demand, spot_machines, demand_rows, station_rows,
        firm_rows, flows, machine_rows, spot_rows, start_rows,
        _one_layout(made, task, firm, spot), tuple(others),
        tuple(numbers for m in sorted(deferred) for numbers in deferred[m]),
    )  # fmt: skip


def _one_layout(made: IntegerProgram, task: FleetTask, firm: Array, spot: Array) -> Array:
    """Add rows that allow at most one of rival layouts to be in use; returns their variables."""
    most, chosen = replica_upper_bounds(task), [np.zeros(0, int)]
    for layouts in task.rival_layouts:
        numbers = made.variables((len(layouts),), 0.0, 1.0)
        made.subject([(numbers[None, :], 1.0)], high=1.0)
        for number, columns in zip(numbers, layouts, strict=True):
            for c in columns:
                used = np.full(task.hours, number)
                every: list[Term] = [(firm[c], 1.0), (spot[c], 1.0), (used, -float(most[c]))]
                made.subject(every, high=0.0)
        chosen.append(numbers)
    return np.concatenate(chosen)


def _limit(price: float | None, most: int | None) -> float:
    if price is None:
        return 0.0
    return np.inf if most is None else most


def replica_upper_bounds(task: FleetTask) -> Array:
    """Replicas of each column (C,) above which more never help, in any hour.

    So many serve the model's busiest hour alone, while all of them start, with the spare.
    """
    peak = task.busiest[task.model_of] * (1 + task.headroom)
    widest = np.zeros(len(task.models))
    np.maximum.at(widest, task.model_of, task.rates)
    needed = peak + task.spare * widest[task.model_of]
    there = np.maximum(1 - task.lost - task.starts, 0.05)
    return np.ceil(needed / (task.rates * there)) + task.spare


def _routed(
    made: IntegerProgram, task: FleetTask, deferred: dict[int, tuple[Array, Array]],
    others: list[Array],
) -> tuple[Array, Array]:  # fmt: skip
    """Requests by route (R, T), and the rows that all of a model's demand goes by its routes."""
    most = [task.most_served[route.origin] for route in task.routes]
    shape = len(task.routes), task.hours
    flows = made.variables(shape, 0.0, np.array(most).reshape(shape), whole=False)
    rows = np.zeros((len(task.models), task.hours), int)
    for m in sorted({route.origin for route in task.routes}):
        terms: list[Term] = [(flows[[r.origin == m for r in task.routes]].T, 1.0)]
        level = task.demand[m]
        if m in deferred:
            terms.append((deferred[m][0], -1.0))
            level = np.zeros(task.hours)
        rows[m] = made.subject(terms, low=level, high=level)
    if task.routes:
        others.append(flows)
    return flows, rows


def _demand(
    made: IntegerProgram, task: FleetTask, firm: Array, spot: Array, started: Array, flows: Array,
    deferred: dict[int, tuple[Array, Array]], others: list[Array],
) -> tuple[Array, Array]:  # fmt: skip
    """Rows that every station serves its requests in every hour, with spare, and firmly.

    `deferred` grows by the models whose work waits and goes by no routes.
    """
    rows = np.zeros((2, len(task.stations), task.hours), int)
    for s, station in enumerate(task.stations):
        m, mine = station.model, task.at(station)
        rate, lost = task.rates[mine][None, :], task.lost[mine][None, :]
        late = task.starts[mine][None, :]
        terms: list[Term] = [
            (firm[mine].T, rate), (spot[mine].T, rate * (1 - lost)), (started[mine].T, -rate * late)
        ]  # fmt: skip
        least = task.demand[m] * (1 + task.headroom)
        firmly: list[Term] = [(firm[mine].T, rate)]
        firm_least = (1 - task.spot_share) * task.demand[m]
        served = [flows[list(station.flows)].T] if station.flows else []
        if not station.flows and task.windows[m]:
            deferred[m] = _deferred(made, task, m)
            served = [deferred[m][0]]
        for numbers in served:
            terms.append((numbers, -(1 + task.headroom)))
            firmly.append((numbers, -(1 - task.spot_share)))
            least, firm_least = np.zeros(task.hours), np.zeros(task.hours)
        if task.spare and mine.size:
            coming = flows[list(station.flows)]
            spare, level = _spare(made, task, mine, firm, spot, coming, others)
            terms += spare
            least = least + level
        rows[0, s] = made.subject(terms, low=least)
        rows[1, s] = made.subject(firmly, low=firm_least)
    return rows[0], rows[1]


def _spare(
    made: IntegerProgram, task: FleetTask, mine: Array, firm: Array, spot: Array, coming: Array,
    others: list[Array],
) -> tuple[list[Term], float]:  # fmt: skip
    """Return terms and constant of a station's spare: `task.spare` times the largest rate in use.

    One of its rates is the largest in use (`largest`); columns with a larger one are not used.
    Where requests come by routes they may all go elsewhere: a rate of zero stands for that, and
    what runs there then is no spare of anything.
    """
    rates = np.unique(np.append(task.rates[mine], [0.0] * bool(coming.size)))
    if rates.size == 1:
        return [], task.spare * float(rates[0])
    largest = made.variables((rates.size, task.hours), 0.0, 1.0)
    others.append(largest)
    made.subject([(largest.T, 1.0)], low=1.0, high=1.0)
    most = replica_upper_bounds(task)
    for c in mine:
        above = largest[rates >= task.rates[c] * (1 - 1e-12)]
        if coming.size:
            above = np.vstack([above, largest[:1]])
        if task.rates[c] > rates[0]:
            every = [(firm[c], 1.0), (spot[c], 1.0), (above.T, -float(most[c]))]
            made.subject(every, high=0.0)
    if coming.size:
        limit = task.busiest[task.model_of[mine[0]]]
        made.subject([(coming.T, 1.0), (largest[1:].T, -float(limit))], high=0.0)
    return [(largest.T, -task.spare * (rates - rates[0]))], task.spare * float(rates[0])


def _deferred(made: IntegerProgram, task: FleetTask, m: int) -> tuple[Array, Array]:
    """Add variables of a model's deferrable work, served and left by hour, with their rows."""
    arrivals, window = task.demand[m], task.windows[m]
    served = made.variables((task.hours,), 0.0, task.most_served[m], whole=False)
    recent = sum(np.roll(arrivals, shift) for shift in range(window))
    left = made.variables((task.hours,), 0.0, recent, whole=False)
    made.subject(
        [(left, 1.0), (np.roll(left, 1), -1.0), (served, 1.0)], low=arrivals, high=arrivals
    )
    return served, left


def _machines(
    made: IntegerProgram, task: FleetTask, firm: Array, spot: Array, reserved: Array,
    on_demand: Array, spot_machines: Array, others: list[Array],
) -> tuple[Array, Array]:  # fmt: skip
    """Rows that the replicas of every pool have room in its machines, counted and packed."""
    rows = np.zeros((2, len(task.pools), task.hours), int)
    for k, pool in enumerate(task.pools):
        mine = np.flatnonzero(task.pool_of == k)
        used = task.used_chips[mine]
        size = float(pool.size)
        all_hours = np.repeat(reserved[k], task.hours)
        firm_machines: list[Term] = [(all_hours, -1.0), (on_demand[k], -1.0)]
        lent: list[Term] = [(spot_machines[k], -1.0)]
        for replicas, machines, owned in ((firm, firm_machines, pool.owned), (spot, lent, 0)):
            room: list[Term] = [(numbers, sign * size) for numbers, sign in machines]
            terms = [(replicas[mine].T, used[None, :].astype(float)), *room]
            counted = made.subject(terms if mine.size else room, high=owned * size)
            rows[0 if replicas is firm else 1, k] = counted
            if needs_ways(used, pool.size):
                _packed(made, task, mine, replicas, machines, pool.size, owned, others)
    return rows[0], rows[1]


def _packed(
    made: IntegerProgram, task: FleetTask, mine: Array, replicas: Array,
    machines: list[Term], size: int, owned: int, others: list[Array],
) -> None:  # fmt: skip
    """Add rows that pack each replica within a machine, by the filling patterns of a machine."""
    used = task.used_chips[mine]
    try:
        parts, ways = filling_ways(used[used < size], size)
    except TooManyWays as many:
        raise InputError(
            f"replicas fill a machine of {size} chips in {many}; use columns whose chips "
            f"divide {size}"
        ) from None
    filled = made.variables((len(ways), task.hours))
    others.append(filled)
    for part, counts in zip(parts, np.array(ways).T, strict=True):
        which = replicas[mine[used == part]].T
        made.subject([(which, 1.0), (filled.T, -counts[None, :].astype(float))], high=0.0)
    whole = mine[used >= size]
    terms: list[Term] = [(filled.T, 1.0), *machines]
    if whole.size:
        terms.append((replicas[whole].T, (task.used_chips[whole] / size)[None, :]))
    made.subject(terms, high=owned)
