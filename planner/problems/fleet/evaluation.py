"""A fleet plan checked again, rule by rule, in plain numbers that share nothing with the search.

Demand with headroom and spare, the firm share, limits of contracts, packing of replicas into
machines, work that waits, and the bill, are worked out anew from the plan's whole numbers.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.problems.fleet.fleet_task import FleetColumn, FleetTask, PoolOffer, Route

DRAWS, SEED = 4000, 0  # of machines that are lost in an hour
FEASIBLE_TOL = 1e-6  # relative, of sums of rates and of bills
Table = Sequence[Sequence[int]]


@dataclass(frozen=True)
class WholePlan:
    """A plan in whole numbers: replicas (columns, hours), machines (pools,) and (pools, hours).

    `flows` are requests/s by route (routes, hours), of models that are served in several regions.
    """

    firm: Table
    spot: Table
    reserved: Sequence[int]
    on_demand: Table
    spot_machines: Table
    flows: Sequence[Sequence[float]] = ()


def broken_rules(task: FleetTask, plan: WholePlan) -> list[str]:
    """Return the rules that a plan breaks, each with its hour and its model or pool; else empty."""
    broken = []
    for m, model in enumerate(task.models):
        going = [
            sum(max(0.0, row[t]) for route, row in _routes(task, plan) if route.origin == m)
            for t in range(task.hours)
        ]
        routed = any(route.origin == m for route in task.routes)
        whole = ReplicaGroup(m)
        room = going if routed else [_served(task, plan, whole, t) for t in range(task.hours)]
        if task.windows[m]:
            late = _late(list(task.demand[m]), room, task.windows[m])
            broken += [f"{model}: work of hour {t} is served too late" for t in late]
        for t in range(task.hours):
            wanted = task.demand[m][t]
            if (
                routed
                and not task.windows[m]
                and abs(going[t] - wanted) > FEASIBLE_TOL * wanted + 1e-12
            ):
                broken.append(f"{model}: hour {t}: {going[t]:.6g} of {wanted:.6g} requests/s go")
            for group in _groups(task, m):
                if not task.windows[m] or routed:
                    broken += _missed(task, plan, group, t)
    broken += _mixed(task, plan) if task.one_layout else ()
    for k, pool in enumerate(task.pools):
        for t in range(task.hours):
            broken += [f"{pool.name}: hour {t}: {x}" for x in _pool(task, plan, k, pool, t)]
    return broken


def _mixed(task: FleetTask, plan: WholePlan) -> Iterator[str]:
    """Models that have two layouts on a kind of machine, in one region or another."""
    seen: dict[tuple[object, ...], str] = {}
    for i, column in enumerate(task.columns):
        if any(plan.firm[i]) or any(plan.spot[i]):
            kind = column.cell or (column.model, column.pool)
            layout = column.layout or column.name
            first = seen.setdefault((*kind, column.phase), layout)
            if first != layout:
                yield f"{task.models[column.model]}: {first} and {layout} on one kind of machine"


def _routes(task: FleetTask, plan: WholePlan) -> Iterator[tuple[Route, Sequence[float]]]:
    yield from zip(task.routes, plan.flows, strict=True)


@dataclass(frozen=True)
class ReplicaGroup:
    """Replicas of a model that must serve some requests by themselves.

    Those that leave room for a latency [s]; those of a pool that do one phase of a request.
    """

    model: int
    latency: float = 0.0
    phase: str = ""
    pool: int | None = None

    def has(self, column: FleetColumn) -> bool:
        """True if the replicas of a column belong to this group."""
        here = self.pool is None or column.pool == self.pool
        near = column.slack >= self.latency
        return here and near and (column.model, column.phase) == (self.model, self.phase)


def _groups(task: FleetTask, m: int) -> Iterator[ReplicaGroup]:
    yield ReplicaGroup(m)
    for route in task.routes:
        if route.site == m and route.pool is None:
            yield ReplicaGroup(m, route.latency)
        elif route.site == m:
            yield ReplicaGroup(m, route.latency, "prefill", route.pool)
            yield ReplicaGroup(m, 0.0, "decode", route.pool)


def _coming(task: FleetTask, plan: WholePlan, group: ReplicaGroup, t: int) -> float:
    """Rate that some replicas must serve in an hour [seq/s]: flow of routes, or the demand."""
    if not any(group.model in (route.origin, route.site) for route in task.routes):
        return float(task.demand[group.model][t])
    rows = [row[t] for route, row in _routes(task, plan)
            if (route.site, route.pool) == (group.model, group.pool)
            and route.latency >= group.latency]  # fmt: skip
    return float(sum(rows))


def _missed(task: FleetTask, plan: WholePlan, group: ReplicaGroup, t: int) -> Iterator[str]:
    """Yield the shortfalls of a group of replicas in an hour, in total and on firm machines."""
    wanted = _coming(task, plan, group, t)
    if wanted == 0 and any(group.model in (r.origin, r.site) for r in task.routes):
        return  # a site that serves no demand needs no spare
    most = _served(task, plan, group, t)
    where = f"{task.models[group.model]}: hour {t}"
    if most < wanted * (1 - FEASIBLE_TOL) - 1e-12:
        yield f"{where}: {most:.6g} of {wanted:.6g} requests/s are served with the spare kept"
    firm = sum(c.rate * plan.firm[i][t] for i, c in enumerate(task.columns) if group.has(c))
    if firm < (1 - task.spot_share - FEASIBLE_TOL) * wanted - 1e-12:
        yield f"{where}: {firm:.6g} requests/s are on firm machines"


def bill(task: FleetTask, plan: WholePlan) -> float:
    """Cost of a plan over the horizon [USD]: contracts, rework on spot, starts."""
    usd = 0.0
    for k, pool in enumerate(task.pools):
        usd += plan.reserved[k] * (pool.reserved or 0.0) * task.hours
        usd += sum(plan.on_demand[k]) * (pool.on_demand or 0.0)
        usd += sum(plan.spot_machines[k]) * (pool.spot or 0.0) * (1 + pool.lost * pool.redo)
    for i, column in enumerate(task.columns):
        pool = task.pools[column.pool]
        starting = _chips(column.chips, pool.size) * pool.start_price / pool.size * column.start
        starts = sum(_started(plan, i, t) for t in range(task.hours))
        usd += starting * starts if task.starts_paid else 0.0
    return usd


def _chips(chips: int, size: int) -> int:
    return chips if chips <= size else size * ((chips + size - 1) // size)


def _started(plan: WholePlan, i: int, t: int) -> int:
    now = plan.firm[i][t] + plan.spot[i][t]
    return max(0, now - plan.firm[i][t - 1] - plan.spot[i][t - 1])


def _served(task: FleetTask, plan: WholePlan, group: ReplicaGroup, t: int) -> float:
    """Demand that replicas carry in an hour, headroom and spare replicas kept [seq/s]."""
    room, largest = 0.0, 0.0
    for i, column in enumerate(task.columns):
        if not group.has(column):
            continue
        pool = task.pools[column.pool]
        there = (1 - pool.lost) ** math.ceil(column.chips / pool.size)
        room += column.rate * (plan.firm[i][t] + there * plan.spot[i][t])
        room -= column.rate * column.start * _started(plan, i, t)
        if plan.firm[i][t] + plan.spot[i][t] > 0:
            largest = max(largest, column.rate)
    if task.spare and not largest:
        return -1.0  # a spare is required even at zero demand
    return (room - task.spare * largest) / (1 + task.headroom)


def _late(arrivals: list[float], room: list[float], window: int) -> list[int]:
    """Hours whose work is not done within the window, first come first served, the hours cyclic."""
    hours = len(arrivals)
    queue: list[tuple[int, float]] = []
    late: set[int] = set()
    for t in range(3 * hours):
        queue.append((t, arrivals[t % hours]))
        left = max(0.0, room[t % hours]) * (1 + FEASIBLE_TOL) + 1e-9
        while queue and left > 0:
            came, waiting = queue.pop(0)
            done = min(left, waiting)
            left -= done
            if waiting - done > 1e-9:
                queue.insert(0, (came, waiting - done))
                break
        if queue and queue[0][0] + window <= t and queue[0][1] > 1e-6:
            late.add(queue[0][0] % hours)
    return sorted(late)


def _pool(task: FleetTask, plan: WholePlan, k: int, pool: PoolOffer, t: int) -> list[str]:
    """Return the violations by the machines of a pool in an hour: limits and packing."""
    wrong = []
    limits = (
        ("reserved", plan.reserved[k], pool.reserved, pool.reserved_most),
        ("on demand", plan.on_demand[k][t], pool.on_demand, pool.on_demand_most),
        ("spot", plan.spot_machines[k][t], pool.spot, pool.spot_most),
    )
    for name, count, price, most in limits:
        if count < 0 or (count and price is None) or (most is not None and count > most):
            wrong.append(f"{count} machines {name} are more than are offered")
    firm = plan.reserved[k] + plan.on_demand[k][t] + pool.owned
    for name, machines, replicas in (
        ("firm", firm, plan.firm), ("spot", plan.spot_machines[k][t], plan.spot)
    ):  # fmt: skip
        parts: Counter[int] = Counter()
        for i, column in enumerate(task.columns):
            if column.pool == k:
                parts[column.chips] += replicas[i][t]
        if not can_pack(parts, pool.size, machines):
            chips = sum(part * count for part, count in parts.items())
            wrong.append(f"replicas of {chips} chips do not fit {machines} {name} machines")
    return wrong


def can_pack(parts: Mapping[int, int], size: int, machines: int) -> bool:
    """True if so many replicas of these chips fit within machines, or in whole machines; exact."""
    whole = sum((part + size - 1) // size * n for part, n in parts.items() if part >= size)
    smaller = {part: n for part, n in sorted(parts.items(), reverse=True) if part < size and n > 0}
    bins = machines - whole
    if bins < 0 or sum(part * n for part, n in smaller.items()) > bins * size:
        return False
    if _packed(smaller, Counter({size: bins})):
        return True
    return _placed(
        tuple(part for part, n in smaller.items() for _ in range(n)), (size,) * bins, set()
    )


def _packed(parts: Mapping[int, int], rooms: Counter[int]) -> bool:
    """True if parts, the largest first, find room where least is left; rooms by what is left."""
    for part, needed in parts.items():
        count = needed
        for left in sorted(room for room in rooms if room >= part):
            per_room = left // part
            full = min(rooms[left], count // per_room)
            last = count - full * per_room if rooms[left] > full else 0
            rooms[left] -= full + (last > 0)
            rooms[left - per_room * part] += full
            rooms[left - last * part] += last > 0
            count -= full * per_room + last
        if count:
            return False
    return True


def _placed(parts: tuple[int, ...], rooms: tuple[int, ...], seen: set[object]) -> bool:
    """True if parts, the largest first, fit into rooms; every distinct packing is tried."""
    if not parts:
        return True
    state = (len(parts), rooms)
    if state in seen:
        return False
    seen.add(state)
    for room in sorted(set(rooms)):
        if room >= parts[0]:
            rest = list(rooms)
            rest.remove(room)
            rest.append(room - parts[0])
            if _placed(parts[1:], tuple(sorted(rest)), seen):
                return True
    return False


def served_share(task: FleetTask, plan: WholePlan) -> float | None:
    """The share of models and hours whose demand is served though spot machines are lost.

    Machines are lost each by itself, with all that is on them; replicas fill one after another, the
    largest first. Work that waits counts as served. None where no replica is on spot.
    """
    if not any(map(any, plan.spot)):
        return None
    draw = np.random.default_rng(SEED)
    served, count = 0.0, 0
    models = [m for m in range(len(task.models)) if not task.windows[m]]
    for t in range(task.hours):
        lost = np.zeros((DRAWS, len(task.columns)))
        for k, pool in enumerate(task.pools):
            for machines, rates in _filled(task, plan, k, pool.size, t):
                lost += draw.binomial(machines, pool.lost, (DRAWS, 1)) * np.array(rates)
        for m in models:
            good = np.ones(DRAWS, bool)
            for group in {*_groups(task, m)}:
                columns = [(i, c) for i, c in enumerate(task.columns) if group.has(c)]
                here = 0.0
                for i, column in columns:
                    here += column.rate * (plan.firm[i][t] + plan.spot[i][t])
                    here -= column.rate * column.start * _started(plan, i, t)
                gone = lost[:, [i for i, _ in columns]].sum(axis=1)
                good &= here - gone >= _coming(task, plan, group, t) * (1 - FEASIBLE_TOL)
            served += float(good.mean())
            count += 1
    return served / count if count else None


def _filled(
    task: FleetTask, plan: WholePlan, k: int, size: int, t: int
) -> Iterator[tuple[int, list[float]]]:
    """Yield spot machines of a pool in an hour: how many serve alike, and each column's rate."""
    columns = [(i, c) for i, c in enumerate(task.columns) if c.pool == k]
    room, last = 0, [0.0] * len(task.columns)
    for i, column in sorted(columns, key=lambda pair: -pair[1].chips):
        count = plan.spot[i][t]
        here = min(count, room // column.chips)
        last[i] += here * column.rate
        room, count = room - here * column.chips, count - here
        if not count:
            continue
        yield 1, last
        lost = max(1, size // column.chips)  # replicas; one on several machines goes with any
        full, rest = divmod(count - 1, lost)
        rows = np.zeros((2, len(task.columns)))
        rows[:, i] = lost * column.rate, (rest + 1) * column.rate
        yield full, rows[0].tolist()
        room, last = size - min(size, (rest + 1) * column.chips), rows[1].tolist()
    yield 1, last
