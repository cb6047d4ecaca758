"""Plans model by model: the cheapest cycle of one model's replicas through the hours, others held.

What replicas cost is exact: the machines that must be added to those that the other models fill,
and the starts from one hour to the next. At first chips have the prices of the relaxation, then
less and less of them; after each turn machines are reserved anew, and each model's replicas are
chosen among those beside the ones in use.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.problems.fleet.cycles.model_covers import CoverPrices, tried_replicas
from planner.problems.fleet.fleet_task import FleetTask

Array = np.ndarray
FEASIBLE_TOL = 1e-9  # relative, of capacity over demand
FROM_PRICES = (1.0, 0.95, 0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0)
FROM_PLAN = (0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0)  # share of a chip's price, the rest exact machines
MAX_RENT = 100.0  # times its rent, of a machine that is not offered
MAX_STATES = 300  # rows of a model that are tried at a time
ADDED_ITEMS, SWAPPED_ITEMS = 6, 8  # items that are added to others, and that others are changed for
MAX_ADDED_REPLICAS = 60  # replicas added one by one
COVER_LEVELS = (0.0, 0.35, 0.7)  # quantiles of demand whose covers are added to
SLACK = 1.15  # maximum added rate, relative to the need of the busiest hour
BASES = 2  # covers of each level


@dataclass(frozen=True)
class ReplicaChoices:
    """Replica counts of one model: K rows, their chips and rates, and the costs of changes.

    `counts` (K, 2 n) firm then spot; `chips` (2, K, pools); `firm` what firm ones serve (K,)
    [seq/s]; `begun` what going from row to row costs (K, K) [USD], and `room` what is served after
    it beside the spare (K, K) [seq/s].
    """

    counts: Array
    chips: Array
    firm: Array
    begun: Array
    room: Array


def replica_choices(task: FleetTask, m: int, counts: Array) -> ReplicaChoices:
    """The rows of a model with all that a cycle through them needs."""
    mine = np.flatnonzero(task.model_of == m)
    n, rates = mine.size, task.rates[mine]
    firm, spot = counts[:, :n], counts[:, n:]
    both = firm + spot
    largest = np.where(both > 0, rates, 0.0).max(axis=1)
    served = firm @ rates + spot @ (rates * (1 - task.lost[mine])) - task.spare * largest
    served[(largest == 0) & (task.spare > 0)] = -1.0  # a spare is required even at zero demand
    started = np.maximum(0, both[None, :, :] - both[:, None, :]) * (task.hours > 1)
    pools = np.zeros((n, len(task.pools)))
    pools[np.arange(n), task.pool_of[mine]] = task.used_chips[mine]
    return ReplicaChoices(
        counts, np.stack([firm @ pools, spot @ pools]), firm @ rates,
        started @ task.start_costs[mine],
        served[None, :] - started @ (rates * task.starts[mine]),
    )  # fmt: skip


@dataclass(frozen=True)
class ReplicaItems:
    """A model's replicas firm and on spot, 2 n items: rate [seq/s] and cost [USD/h] of each.

    Costs are means over the hours at given prices of chips; infinite of what is not offered.
    """

    rates: Array
    costs: Array

    @property
    def order(self) -> Array:
        """Items that are offered, the cheapest per request first."""
        offered = np.flatnonzero(np.isfinite(self.costs))
        worth = self.costs[offered] / self.rates[offered]
        return np.asarray(offered[np.argsort(worth, kind="stable")])

    def fewer(self, rows: Array, always: Array) -> Array:
        """Limit rows to the `MAX_STATES` cheapest per rate, in addition to those of `always`."""
        if len(rows) > MAX_STATES:
            paid = rows @ np.where(np.isfinite(self.costs), self.costs, 0.0)
            worth = paid / np.maximum(rows @ self.rates, 1e-9)
            best = rows[np.argsort(worth, kind="stable")[:MAX_STATES]]
            rows = np.concatenate([best, always])
        return np.unique(rows, axis=0)


def knapsack_items(task: FleetTask, m: int, prices: CoverPrices) -> ReplicaItems:
    """The items of a model at prices of chips."""
    mine = np.flatnonzero(task.model_of == m)
    rates = task.rates[mine]
    return ReplicaItems(
        np.concatenate([rates, rates * (1 - task.lost[mine])]),
        np.concatenate([prices.firm[mine].mean(axis=1), prices.spot[mine].mean(axis=1)]),
    )


def _longer(task: FleetTask, m: int, covers: Array, items: ReplicaItems) -> list[Array]:
    """Cheap covers of some levels of demand with more and more of a cheap item."""
    n = covers.shape[1] // 2
    rates = items.rates[:n]
    largest = np.where(covers[:, :n] + covers[:, n:] > 0, rates, 0.0).max(axis=1)
    served = covers @ items.rates - task.spare * largest
    paid = covers @ np.where(np.isfinite(items.costs), items.costs, 0.0)
    most = (task.demand[m].max() * (1 + task.headroom) + task.spare * rates.max()) * SLACK
    rows = []
    for level in np.quantile(task.demand[m], COVER_LEVELS):
        good = served >= level * (1 + task.headroom)
        good &= covers[:, :n] @ rates >= (1 - task.spot_share) * level
        enough = np.flatnonzero(good)
        for base in covers[enough[np.argsort(paid[enough], kind="stable")[:BASES]]]:
            for item in items.order[:ADDED_ITEMS]:
                count = int(np.clip(np.ceil((most - base @ items.rates) / items.rates[item]),
                                    0, MAX_ADDED_REPLICAS))  # fmt: skip
                added = np.zeros((count, 2 * n), int)
                added[:, item] = np.arange(1, count + 1)
                rows.append(base + added)
    return rows


def next_choices(rows: Array, items: ReplicaItems) -> Array:
    """Return the rows in use and their neighbours: an item more, one less, or one swapped."""
    used = np.unique(rows, axis=0)
    unit = np.eye(used.shape[1], dtype=int)
    offered, cheap = items.order, items.order[:SWAPPED_ITEMS]
    beside: list[Array] = [used]
    for row in used:
        there = np.flatnonzero(row > 0)
        beside += [row + unit[offered], row - unit[there]]
        beside += [row - unit[item] + unit[cheap] for item in there]
    return items.fewer(np.concatenate(beside), used)


def row_indices(rows: Array, path: Sequence[Array]) -> Array:
    """The number of each row of a path among some rows."""
    number = {tuple(row): i for i, row in enumerate(rows.tolist())}
    return np.array([number[tuple(row.tolist())] for row in path])


@dataclass(frozen=True)
class CyclePlan:
    """Replicas (columns, hours) and machines (pools,) and (pools, hours) of a plan."""

    firm: Array
    spot: Array
    reserved: Array
    on_demand: Array
    spot_machines: Array


@dataclass
class ModelCycles:
    """Plan in progress: choices of each model, its row of them in each hour, reserved machines.

    `paths` (models, hours), -1 of models without a plan as yet; `reserved` (pools,); `prices`
    (2, pools, hours) of a chip on firm and on spot machines.
    """

    task: FleetTask
    choices: list[ReplicaChoices]
    prices: Array
    reserved: Array
    paths: Array

    def used(self) -> Array:
        """Chips in use (2, pools, hours), firm and on spot."""
        used = np.zeros_like(self.prices)
        for choices, path in zip(self.choices, self.paths, strict=True):
            if path[0] >= 0:
                used += choices.chips[:, path].transpose(0, 2, 1)
        return used

    def machines(self, used: Array) -> tuple[Array, Array]:
        """Machines for chips in use (..., pools, hours): on demand beyond the fixed; on spot."""
        sizes = np.array([pool.size for pool in self.task.pools])[:, None]
        owned = np.array([pool.owned for pool in self.task.pools])
        firm, spot = np.ceil(used / sizes - FEASIBLE_TOL)
        return np.maximum(0, firm - (self.reserved + owned)[:, None]), spot

    def usd(self, used: Array) -> tuple[Array, Array]:
        """Rent of machines by hour (..., hours), and a penalty for those beyond the offer."""
        rented, spot = self.machines(used)
        rent = np.zeros(rented.shape[:-2] + rented.shape[-1:])
        penalty = np.zeros_like(rent)
        for k, pool in enumerate(self.task.pools):
            more, taken = rented[..., k, :], spot[..., k, :]
            rent += more * (pool.on_demand or 0.0)
            rent += taken * (pool.spot or 0.0) * (1 + pool.lost * pool.redo)
            over = np.maximum(0, taken - (pool.spot_most if pool.spot is not None else 0))
            most = 0 if pool.on_demand is None else pool.on_demand_most
            over = over + (0 if most is None else np.maximum(0, more - most))
            penalty += over * MAX_RENT * max(pool.start_price, 1.0)
        return rent, penalty

    def total(self) -> float:
        """The bill over the horizon [USD]; infinite where limits are not kept."""
        if (self.paths < 0).any():
            return float("inf")
        rent, penalty = self.usd(self.used())
        if penalty.any():
            return float("inf")
        prices = np.array([pool.reserved or 0.0 for pool in self.task.pools])
        starts = sum(
            float(choices.begun[np.roll(path, 1), path].sum())
            for choices, path in zip(self.choices, self.paths, strict=True)
        )
        return float(self.reserved @ prices * self.task.hours + rent.sum() + starts)

    def turn(self, linear: float) -> bool:
        """Every model's cycle anew, the largest first; whether each has one.

        Of the price of its chips `linear` is that of the relaxation, the rest of whole machines.
        """
        used = self.used()
        for m in np.argsort(-self.task.demand.sum(axis=1), kind="stable"):
            choices, path = self.choices[m], self.paths[m]
            if path[0] >= 0:
                used = used - choices.chips[:, path].transpose(0, 2, 1)
            rent, penalty = self.usd(used[:, None] + choices.chips[..., None])
            cost = linear * np.einsum("akp,aph->kh", choices.chips, self.prices)
            cost = cost + (1 - linear) * (rent - self.usd(used)[0]) + penalty
            better = _cycle(self.task, int(m), choices, cost)
            if better is None:
                return False
            if (
                linear > 0
                or path[0] < 0
                or _worth(choices, cost, better) < _worth(choices, cost, path)
            ):
                self.paths[m] = better
            used = used + choices.chips[:, self.paths[m]].transpose(0, 2, 1)
        return True

    def reserve(self) -> None:
        """Reserve the machines of each pool that cost least for the chips in use."""
        firm = self.used()[0]
        for k, pool in enumerate(self.task.pools):
            if pool.reserved is None:
                continue
            needed = np.maximum(0, np.ceil(firm[k] / pool.size - FEASIBLE_TOL) - pool.owned)
            most = np.inf if pool.reserved_most is None else pool.reserved_most
            counts = np.unique(np.minimum(np.append(needed, 0.0), most))
            rest = np.maximum(0, needed[None, :] - counts[:, None])
            rented = 0 if pool.on_demand is None else pool.on_demand_most
            usd = rest * (pool.on_demand or 0.0)
            if rented is not None:
                usd += np.maximum(0, rest - rented) * MAX_RENT * max(pool.start_price, 1.0)
            bills = counts * pool.reserved * self.task.hours + usd.sum(axis=1)
            self.reserved[k] = counts[int(np.argmin(bills))]

    def plan(self) -> CyclePlan:
        """The plan as it is."""
        shape = len(self.task.columns), self.task.hours
        firm, spot = np.zeros(shape, int), np.zeros(shape, int)
        for m, (choices, path) in enumerate(zip(self.choices, self.paths, strict=True)):
            mine, rows = self.task.model_of == m, choices.counts[path].T
            firm[mine], spot[mine] = np.split(rows, 2)
        rented, taken = self.machines(self.used())
        return CyclePlan(firm, spot, self.reserved.copy(), rented, taken)


def improve_by_model(
    task: FleetTask, prices: CoverPrices, chips: Array, reserved: Array,
    start: CyclePlan | None = None,
) -> CyclePlan | None:  # fmt: skip
    """Best plan of fixed rounds of per-model cycles, from `start` or prices; None if not found.

    Args:
        prices, chips: of replicas and of chips (2, pools, hours), in the relaxation.
        reserved: machines of each pool to begin with (pools,).
    """
    models = range(len(task.models))
    if start is None:
        rows = []
        for model, covers in enumerate(tried_replicas(task, [prices])):
            items = knapsack_items(task, model, prices)
            longer = _longer(task, model, covers, items)
            rows.append(items.fewer(np.concatenate([covers, *longer]), covers))
        paths = np.full(task.demand.shape, -1)
    else:
        columns = [task.model_of == m for m in models]
        here = [np.vstack([start.firm[mine], start.spot[mine]]).T for mine in columns]
        rows = [next_choices(here[m], knapsack_items(task, m, prices)) for m in models]
        paths = np.array([row_indices(rows[m], list(here[m])) for m in models])
    choices = [replica_choices(task, m, rows[m]) for m in models]
    making = ModelCycles(task, choices, chips, reserved.astype(float), paths)
    least, best = making.total(), start
    for linear in FROM_PRICES if start is None else FROM_PLAN:
        if not making.turn(linear):
            return best
        making.reserve()
        total = making.total()
        if total < least:
            least, best = total, making.plan()
        for m in models:
            here_m = making.choices[m].counts[making.paths[m]]
            rows_m = next_choices(here_m, knapsack_items(task, m, prices))
            making.paths[m] = row_indices(rows_m, list(here_m))
            making.choices[m] = replica_choices(task, m, rows_m)
    return best


def _worth(choices: ReplicaChoices, cost: Array, path: Array) -> float:
    rows = cost[path, np.arange(path.size)]
    return float(rows.sum() + choices.begun[np.roll(path, 1), path].sum())


def _cycle(task: FleetTask, m: int, choices: ReplicaChoices, cost: Array) -> Array | None:
    """Cheapest cycle of rows through the hours at costs (K, hours); None if infeasible.

    A lap finds where a cycle comes back to; another is closed there.
    """
    wanted = task.demand[m] * (1 + task.headroom) * (1 + FEASIBLE_TOL)
    firm = (1 - task.spot_share) * task.demand[m] * (1 + FEASIBLE_TOL)
    steps = [
        np.where((choices.room >= wanted[t]) & (choices.firm >= firm[t])[None, :],
                 choices.begun + cost[None, :, t], np.inf)
        for t in range(task.hours)
    ]  # fmt: skip
    value = np.zeros(cost.shape[0])
    for step in steps:
        value = (value[:, None] + step).min(axis=0)
    home = int(np.argmin(value))
    value = np.full(cost.shape[0], np.inf)
    value[home] = 0.0
    before = []
    for step in steps:
        through = value[:, None] + step
        before.append(through.argmin(axis=0))
        value = through.min(axis=0)
    if not np.isfinite(value[home]):
        return None
    path, row = np.zeros(task.hours, int), home
    for t in range(task.hours - 1, -1, -1):
        path[t] = row
        row = int(before[t][row])
    return path
