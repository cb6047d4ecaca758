"""Lower bound of a plan: the cheapest cycle of each model's replicas at the relaxation's prices.

Machines have prices by hour (the duals of their rows), so that models are apart (Lagrange). What a
start costs is paid where replicas are fewer before; the dual y of that row, 0 <= y <= the cost,
moves it into what a replica costs in its hour, and leaves c * started - y * change >= 0 between two
hours. Of each hour the covers that cost least are listed, up to a cost that all others are at; one
state stands for those, which any other goes to and comes from without a start. No cycle through the
hours costs less than the cheapest walk of some laps, over their number.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import FleetProgram, replica_upper_bounds
from planner.programs.integer import LinearPoint

Array = np.ndarray
MAX_COVERS, MIN_COVERS = 20_000, 200  # covers of an hour, of all models together, and of one
PARTIAL = 20_000  # maximum partial covers enumerated together
FIRST, TRIES = 0.04, 12  # first cost range over an hour's least cost [1], maximum number of ranges
WIDER, WIDENING = 1.6, 1.25  # growth of the cost range per try, with few covers and with many
MAX_CYCLE_ITERATIONS = 4
FEASIBLE_TOL = 1e-9
MIN_ITEM_COST = 1e-9  # USD, of an item, that counts of it be finite


@dataclass(frozen=True)
class CoverItems:
    """A model's replicas in an hour, firm then on spot (2 n,): rates, firm rates, costs, limits.

    `served` and `firm` in seq/s, `costs` in USD and not negative, `most` of each.
    """

    served: Array
    firm: Array
    costs: Array
    most: Array

    def at_most(self, first: Array, target: float, budget: float, always: int) -> list[int]:
        """Items of some columns that a cover within a budget may have, those of one in any case."""
        count = self.served.size // 2
        items = [i for c in first for i in (c, count + c) if self.most[i] > 0]
        worth = min((self.costs[i] / self.served[i] for i in items), default=np.inf)
        if worth * target > budget:
            return []
        spare = budget - worth * target + FEASIBLE_TOL
        dear = self.costs - worth * self.served > spare
        return [i for i in items if i % count == always or not dear[i]]


@dataclass(frozen=True)
class CheapestCovers:
    """Cheapest covers of an hour (K, 2 n), their costs (K,), and a lower bound on all others."""

    counts: Array
    costs: Array
    others: float


def cheapest_covers(
    items: CoverItems, needed: float, firmly: float, spare: int, wanted: int
) -> CheapestCovers:
    """Find the `wanted` cheapest covers of a demand plus spare, and a lower bound on all others."""
    count = items.served.size // 2
    offered = items.most > 0
    worth = float((items.costs[offered] / items.served[offered]).min())
    least = worth * (needed + spare * items.served[:count].min())
    listed = CheapestCovers(np.zeros((0, 2 * count), int), np.zeros(0), least)
    wide = max(FIRST * least, 1e-3)
    for _ in range(TRIES):
        groups = list(_by_largest(items, needed, firmly, spare, least + wide))
        if any(group is None for group in groups):
            break
        counts = [np.zeros((0, 2 * count), int), *(group[0] for group in groups if group)]
        costs = np.concatenate([np.zeros(0), *(group[1] for group in groups if group)])
        listed = CheapestCovers(np.concatenate(counts), costs, least + wide)
        if costs.size > wanted:
            break
        wide *= WIDER if 4 * costs.size < wanted else WIDENING
    order = np.argsort(listed.costs, kind="stable")
    others = listed.others
    if order.size > wanted:
        others = min(others, float(listed.costs[order[wanted]]))
    order = order[:wanted]
    return CheapestCovers(listed.counts[order], listed.costs[order], others)


def _by_largest(
    items: CoverItems, needed: float, firmly: float, spare: int, budget: float
) -> Iterator[tuple[Array, Array] | None]:
    """All covers within a budget by their largest column: counts, costs; None where too many."""
    count = items.served.size // 2
    rates = items.served[:count]
    order = np.argsort(-rates, kind="stable")
    if not spare and needed <= 0:
        yield np.zeros((1, 2 * count), int), np.zeros(1)
    for place, largest in enumerate(order):
        target = needed + spare * rates[largest]
        which = items.at_most(order[place:], target, budget, int(largest))
        if which:
            yield _within(items, which, (target, firmly), budget, int(largest))


def _within(
    items: CoverItems, which: list[int], target: tuple[float, float], budget: float, largest: int
) -> tuple[Array, Array] | None:
    """Covers of a target, and firmly of its second, that have a largest column, item by item."""
    count = items.served.size // 2
    worth = items.costs[which] / items.served[which]
    rest_worth = np.append(np.minimum.accumulate(worth[::-1])[::-1], np.inf)
    counts, cost = np.zeros((1, 2 * count), int), np.zeros(1)
    need, firm_need = np.array([target[0]]), np.array([target[1]])
    tiny = FEASIBLE_TOL * target[0]
    for place, item in enumerate(which):
        usd = max(float(items.costs[item]), MIN_ITEM_COST)
        most = np.minimum(np.floor((budget - cost) / usd + FEASIBLE_TOL), items.most[item])
        more = np.maximum(most.astype(int), -1) + 1
        if more.sum() > PARTIAL:
            return None
        row = np.repeat(np.arange(more.size), more)
        added = np.arange(more.sum()) - np.repeat(np.cumsum(more) - more, more)
        cost = cost[row] + added * items.costs[item]
        need = need[row] - added * items.served[item]
        firm_need = firm_need[row] - added * items.firm[item]
        counts = counts[row]
        counts[:, item] += added
        left = np.where(need > tiny, need, 0.0)
        rest = np.multiply(left, rest_worth[place + 1], out=np.zeros_like(left), where=left > 0)
        good = cost + rest <= budget + FEASIBLE_TOL
        if place + 1 == len(which):
            good &= firm_need <= FEASIBLE_TOL * max(target[1], 1.0)
        if place + 1 == len(which) or which[place + 1] % count != largest:
            good &= counts[:, largest] + counts[:, count + largest] > 0
        counts, cost, need, firm_need = counts[good], cost[good], need[good], firm_need[good]
    return counts, cost


def cycle_bound(task: FleetTask, made: FleetProgram, linear: LinearPoint) -> float:
    """Lower bound on the cost of a plan [USD over the horizon], by the duals of a relaxation.

    Of a task whose models serve their own demand in its hour: none waits, none goes by routes.
    """
    prices = np.maximum(0.0, -linear.duals[np.stack([made.machine_rows, made.spot_rows])])
    carried = np.zeros((len(task.columns), task.hours))
    carried[np.flatnonzero(task.starts > 0)] = linear.duals[made.start_rows]
    prices, machines = _offered(task, prices)
    models = sum(_model_bound(task, m, prices, carried) for m in range(len(task.models)))
    return (machines + models) * (1 - FEASIBLE_TOL)


def _offered(task: FleetTask, prices: Array) -> tuple[Array, float]:
    """Prices (2, pools, hours) that no unlimited contract is below, and what machines then cost.

    Machines that are owned, or offered below those prices up to a limit, cost less than nothing.
    """
    prices, usd = prices.copy(), 0.0
    for k, pool in enumerate(task.pools):
        if pool.on_demand is not None and pool.on_demand_most is None:
            prices[0, k] = np.minimum(prices[0, k], pool.on_demand / pool.size)
        worth = pool.size * prices[0, k].sum()
        if pool.reserved is not None:
            rent = task.hours * pool.reserved
            if pool.reserved_most is None and worth > rent:
                prices[0, k] *= rent / worth
            else:
                usd += (pool.reserved_most or 0) * min(0.0, rent - worth)
        if pool.on_demand is not None and pool.on_demand_most is not None:
            over = np.minimum(0.0, pool.on_demand - pool.size * prices[0, k])
            usd += pool.on_demand_most * float(over.sum())
        if pool.spot is not None:
            rent = pool.spot * (1 + pool.lost * pool.redo)
            usd += pool.spot_most * float(np.minimum(0.0, rent - pool.size * prices[1, k]).sum())
        usd -= pool.owned * pool.size * float(prices[0, k].sum())
    return prices, usd


def _model_bound(task: FleetTask, m: int, prices: Array, carried: Array) -> float:
    """Lower bound on a cycle of a model's replicas [USD], at prices of chips (2, pools, hours)."""
    mine = np.flatnonzero(task.model_of == m)
    pools, used = task.pool_of[mine], task.used_chips[mine]
    offers = [task.pools[k] for k in pools]
    chips = used[:, None] * prices[:, pools]
    carried = np.clip(carried[mine], 0.0, task.start_costs[mine][:, None])
    spot = np.array([offer.spot is not None for offer in offers])
    least = np.where(spot[:, None], chips.min(axis=0), chips[0])
    for t in 2 * list(range(task.hours)):  # that none costs less than nothing
        after = (t + 1) % task.hours
        carried[:, after] = np.minimum(carried[:, after], least[:, t] + carried[:, t])
    costs = np.maximum(0.0, chips + (carried - np.roll(carried, -1, axis=1)))
    most = replica_upper_bounds(task)[mine]
    lent = np.array([offer.size * offer.spot_most for offer in offers]) // used
    rates = task.rates[mine]
    served = np.concatenate([rates, rates * (1 - task.lost[mine])])
    firm = np.concatenate([rates, np.zeros_like(rates)])
    limits = np.concatenate([most, np.where(spot, np.minimum(most, lent), 0)])
    wanted = max(MIN_COVERS, MAX_COVERS // (len(task.models) * task.hours))
    listed = [
        cheapest_covers(
            CoverItems(served, firm, np.concatenate([costs[0, :, t], costs[1, :, t]]), limits),
            task.demand[m, t] * (1 + task.headroom), (1 - task.spot_share) * task.demand[m, t],
            task.spare, wanted,
        )
        for t in range(task.hours)
    ]  # fmt: skip
    steps = [
        _step(task, mine, listed[t - 1], listed[t], carried[:, t], task.demand[m, t])
        for t in range(task.hours)
    ]
    value = np.zeros(steps[0].shape[0])
    for step in MAX_CYCLE_ITERATIONS * steps:
        value = (value[:, None] + step).min(axis=0)
    return float(value.min()) / MAX_CYCLE_ITERATIONS


def _step(
    task: FleetTask,
    mine: Array,
    before: CheapestCovers,
    after: CheapestCovers,
    carried: Array,
    demand: float,
) -> Array:
    """Cost of each step, from covers and the others (K + 1) to those of the next hour (L + 1)."""
    rates, n = task.rates[mine], mine.size
    was, now = (each.counts[:, :n] + each.counts[:, n:] for each in (before, after))
    largest = np.where(now > 0, rates, 0.0).max(axis=1, initial=0.0)
    room = after.counts[:, :n] @ rates + after.counts[:, n:] @ (rates * (1 - task.lost[mine]))
    room = np.broadcast_to(room - task.spare * largest, (was.shape[0], now.shape[0])).copy()
    step = np.zeros((was.shape[0] + 1, now.shape[0] + 1))
    step[:, :-1], step[:, -1] = after.costs, after.others
    inner = step[:-1, :-1]
    for i, c in enumerate(mine):
        change = now[None, :, i] - was[:, None, i]
        started = np.maximum(0, change)
        inner += task.start_costs[c] * started - carried[i] * change
        room -= rates[i] * task.starts[c] * started
    inner[room < demand * (1 + task.headroom) * (1 - FEASIBLE_TOL)] = np.inf
    return step
