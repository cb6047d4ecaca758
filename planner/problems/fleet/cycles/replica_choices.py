"""Replicas that a model may run in an hour, and what going from some to others takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.problems.fleet.cycles.model_covers import CoverPrices, tried_replicas
from planner.problems.fleet.fleet_task import FleetTask

Array = np.ndarray
MOST = 300  # rows of a model that are tried at a time
CHEAP, SWAPPED = 6, 8  # items that are added to others, and that others are changed for
LONGEST = 60  # replicas added one by one
LEVELS = (0.0, 0.35, 0.7)  # quantiles of demand whose covers are added to
SLACK = 1.15  # of the busiest hour, up to which replicas are added
BASES = 2  # covers of each level


@dataclass(frozen=True)
class ReplicaChoices:
    """What one model may run: K rows of replicas, what they carry and take, and their starts.

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
    served[(largest == 0) & (task.spare > 0)] = -1.0  # a spare is wanted though nothing is asked
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
    """A model's replicas firm and on spot, 2 n items: what each serves [seq/s] and costs [USD/h].

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
        """The rows that cost least for what they serve, and those that stay in any case."""
        if len(rows) > MOST:
            paid = rows @ np.where(np.isfinite(self.costs), self.costs, 0.0)
            worth = paid / np.maximum(rows @ self.rates, 1e-9)
            best = rows[np.argsort(worth, kind="stable")[:MOST]]
            rows = np.concatenate([best, always])
        return np.unique(rows, axis=0)


def items_of(task: FleetTask, m: int, prices: CoverPrices) -> ReplicaItems:
    """The items of a model at prices of chips."""
    mine = np.flatnonzero(task.model_of == m)
    rates = task.rates[mine]
    return ReplicaItems(
        np.concatenate([rates, rates * (1 - task.lost[mine])]),
        np.concatenate([prices.firm[mine].mean(axis=1), prices.spot[mine].mean(axis=1)]),
    )


def first_choices(task: FleetTask, prices: CoverPrices) -> list[Array]:
    """Rows of each model to begin with: covers of its hours, and covers with more of an item."""
    rows = []
    for m, covers in enumerate(tried_replicas(task, [prices])):
        items = items_of(task, m, prices)
        longer = _longer(task, m, covers, items)
        rows.append(items.fewer(np.concatenate([covers, *longer]), covers))
    return rows


def _longer(task: FleetTask, m: int, covers: Array, items: ReplicaItems) -> list[Array]:
    """Cheap covers of some levels of demand with more and more of a cheap item."""
    n = covers.shape[1] // 2
    rates = items.rates[:n]
    largest = np.where(covers[:, :n] + covers[:, n:] > 0, rates, 0.0).max(axis=1)
    served = covers @ items.rates - task.spare * largest
    paid = covers @ np.where(np.isfinite(items.costs), items.costs, 0.0)
    most = (task.demand[m].max() * (1 + task.headroom) + task.spare * rates.max()) * SLACK
    rows = []
    for level in np.quantile(task.demand[m], LEVELS):
        good = served >= level * (1 + task.headroom)
        good &= covers[:, :n] @ rates >= (1 - task.spot_share) * level
        enough = np.flatnonzero(good)
        for base in covers[enough[np.argsort(paid[enough], kind="stable")[:BASES]]]:
            for item in items.order[:CHEAP]:
                count = int(np.clip(np.ceil((most - base @ items.rates) / items.rates[item]),
                                    0, LONGEST))  # fmt: skip
                added = np.zeros((count, 2 * n), int)
                added[:, item] = np.arange(1, count + 1)
                rows.append(base + added)
    return rows


def next_choices(rows: Array, items: ReplicaItems) -> Array:
    """Rows in use and those beside them: an item more, one less, one for a cheap other."""
    used = np.unique(rows, axis=0)
    unit = np.eye(used.shape[1], dtype=int)
    offered, cheap = items.order, items.order[:SWAPPED]
    beside: list[Array] = [used]
    for row in used:
        there = np.flatnonzero(row > 0)
        beside += [row + unit[offered], row - unit[there]]
        beside += [row - unit[item] + unit[cheap] for item in there]
    return items.fewer(np.concatenate(beside), used)


def placed(rows: Array, path: Sequence[Array]) -> Array:
    """The number of each row of a path among some rows."""
    number = {tuple(row): i for i, row in enumerate(rows.tolist())}
    return np.array([number[tuple(row.tolist())] for row in path])
