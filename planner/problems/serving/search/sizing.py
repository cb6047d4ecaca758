"""A fleet for a given load: the batch that carries it, and the fewest chips that keep the promises.

With open arrivals nobody chooses the batch. Requests gather until as many leave as arrive, so the
batch is the smallest one whose slots carry the load, B g/T(B) = load per replica. More replicas
mean less load on each, a smaller batch and shorter queues: whatever is kept by some number of
chips is kept by more, and the fewest are found by bisection.

A pool that only reads takes several prompts into one pass. The more share a pass the less each
costs, and the later is its first token: every number is tried up to `PROMPTS_PER_RANK`, then
steps of a quarter, up to as many as fill a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from planner.problems.serving.search.promise_limits import PromiseLimits
from planner.problems.serving.step.occupancy import LARGEST_BATCH, first
from planner.problems.serving.step.packing import ChipSplit
from planner.problems.serving.step.step import Step
from planner.text.tolerances import REL_TOL

PROMPTS_PER_RANK, STEP = 8.0, 1.25  # prompts a rank, and the factor to the next number beyond
CHUNK_POINTS = 50_000  # layouts at a batch that are computed together: 5 kB each
MAX_BISECTIONS = 40  # of the share of time that readers may be busy
NEXT_TO_NOTHING = np.finfo(float).tiny ** 0.5  # share of its time that a pool nobody waits for uses
COMPACTION_SHARE = 0.8  # of rows that go on, below which the others are left out

# Predicate (outputs of a step, rows): True for rows that keep their promises.
Keeps: TypeAlias = Callable[[dict[str, np.ndarray], np.ndarray], np.ndarray]
# Predicate (rows, low, high): True for rows that may be the best of their kind between two rates.
UtilisationStep: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class PhaseLayouts:
    """Layouts of one phase, as columns of shape (n,).

    `rows` index the step's layouts; those of two phases may be paired where `group` is the same.
    `stages` of `stage` chips, in domains of `domain` chips, are a replica; `batch` is that of a
    replica, `fill` the share of its time or slots that may be in use, `slot` the time it spends per
    request [s], `rate` its requests per second at its most. `latency` is the time to first token,
    transfer included, or the time from a request's first token to its last [s], `promised` the
    first at the quantile at which promises must hold [s]; `weight` what a
    second of a chip in use counts in the objective: USD, or J. `engines` run a layout, as bits.
    A batch given for all replicas is in flight on `count` of them, 0 where there may be any number;
    of the rows before one, `slower` are of its kind and may take its place (`tiers`). `odd` says
    how far a layout is from a plain one, where that may decide between equals, else 0.
    """

    rows: np.ndarray
    group: np.ndarray
    stage: np.ndarray
    stages: np.ndarray
    domain: np.ndarray
    batch: np.ndarray
    fill: np.ndarray
    slot: np.ndarray
    rate: np.ndarray
    latency: np.ndarray
    promised: np.ndarray
    weight: np.ndarray
    engines: np.ndarray
    count: np.ndarray
    slower: np.ndarray
    odd: np.ndarray

    @property
    def room(self) -> ChipSplit:
        """The room that a replica takes."""
        return ChipSplit(self.stage, self.stages, self.domain)

    def take(self, rows: np.ndarray) -> PhaseLayouts:
        """Return the selected rows, by number or by mask."""
        return PhaseLayouts(*(column[rows] for column in vars(self).values()))

    @classmethod
    def joined(cls, several: Sequence[PhaseLayouts]) -> PhaseLayouts:
        """The layouts of several tables one after the other."""
        columns = zip(*(vars(layouts).values() for layouts in several), strict=True)
        return cls(*map(np.concatenate, columns))

    def fastest(self) -> PhaseLayouts:
        """Keep the layout of each group and room with the least objective per request."""
        return self.take(self._first_of_each_room(self.weight / self.rate))

    def fastest_by_engines(self) -> PhaseLayouts:
        """`fastest` of each set of engines: `fastest` of these is that of all, in their order."""
        return self.take(np.sort(self._first_of_each_room(self.weight / self.rate, self.engines)))

    def quickest(self) -> PhaseLayouts:
        """Keep the layout of each group and room with the minimum latency."""
        return self.take(self._first_of_each_room(self.latency))

    def undominated(self, key: np.ndarray | None = None) -> PhaseLayouts:
        """Drop layouts that another of equal group and room betters in rate and in latency.

        Another `key` that is to be small may stand in for the latency.
        """
        return self.take(self._better(-self.rate, self.latency if key is None else key)[0])

    def tiers(self, key: np.ndarray) -> PhaseLayouts:
        """Keep layouts, by group, room and count, with a `key` below that of all slower layouts.

        The slowest of a kind first: where prompts come too slowly for one, those before it may do.
        """
        rows, slower = self._better(self.rate, key)
        return replace(self.take(rows), slower=slower)

    def _better(self, first: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows whose `key` is less than that of all of their kind that come `first`, kind by kind.

        Beside them how many of the kind come before each.
        """
        kind = self._kinds()
        order = np.lexsort((key, first, kind))
        number = np.unique(kind[order], return_inverse=True)[1]
        rank = np.unique(key, return_inverse=True)[1][order] - number * key.size
        best = np.minimum.accumulate(rank)
        stays = rank < np.concatenate([[key.size], best[:-1]])[: key.size]
        number = number[stays]
        return order[stays], np.arange(number.size) - np.searchsorted(number, number)

    def _kinds(self, *of: np.ndarray) -> np.ndarray:
        kind = self.group
        rank = np.unique(self.odd, return_inverse=True)[1]
        for column in (self.stage, self.stages, self.count, rank, *of):
            kind = kind * (np.max(column, initial=0) + 1) + column
        return kind

    def _first_of_each_room(self, key: np.ndarray, *of: np.ndarray) -> np.ndarray:
        room = self._kinds(*of)
        order = np.lexsort((key, room))
        return np.asarray(order[np.unique(room[order], return_index=True)[1]])


def min_batch_for_load(step: Step, largest: int | np.ndarray) -> np.ndarray:
    """Smallest batch of each layout that carries its load, 0 if no batch up to `largest` does.

    `largest` is one for all layouts, or one for each of them.

    Throughput grows from one full group of pp * dp * cp sequences to the next; within a group it
    grows where no ceiling of the model moves, in pieces (see `_piece`).
    """
    layouts = step.layouts
    if step.task.mode == "prefill":
        return fastest_prefill_batch(step)
    batches = np.zeros(len(layouts))
    group = layouts.group
    most = np.maximum(np.floor(largest / group), 1)
    rows = np.flatnonzero(_carries(step, most * group))
    if not rows.size:
        return batches
    part, group, most = step.take(rows), group[rows], most[rows]
    groups = first(_carried(part, group), np.zeros(rows.size), most)
    start, end = _piece(part, (groups - 1) * group)
    batches[rows] = first(_carried(part, np.ones(rows.size)), start, end)
    return batches


def _piece(step: Step, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends (start, end] of the first batches beyond `before`, in its group, that carry the load.

    In each of the cp cells of pp * dp sequences a rank's number stands, and throughput grows from
    one full number of the experts, of pp * cp sequences, to the next; what is left of a cell
    beyond the last of these is a piece of its own.
    """
    layouts = step.layouts
    cell, full = layouts.pp * layouts.dp_attention, layouts.pp * layouts.cp
    start, end = np.zeros((2, before.size))
    unknown = np.ones(before.size, dtype=bool)
    for number in 1 + np.arange(layouts.cp.max()):
        rows = np.flatnonzero(unknown & (layouts.cp >= number))
        low = before[rows] + (number - 1) * cell[rows]
        high, none = low + cell[rows], np.floor(low / full[rows])
        most = np.floor(high / full[rows])
        last = np.maximum(most, 1) * full[rows]
        inside = (most > none) & _carries(step.take(rows), last)
        at = rows[inside]
        whole = first(_carried(step.take(at), full[at]), none[inside], most[inside])
        end[at] = whole * full[at]
        start[at] = end[at] - full[at]
        beyond = ~inside & _carries(step.take(rows), high)
        start[rows[beyond]], end[rows[beyond]] = low[beyond], high[beyond]
        unknown[rows[inside | beyond]] = False
    return start, end


def max_utilisation(
    step: Step,
    batch: np.ndarray,
    keeps: Keeps,
    ahead: UtilisationStep | None = None,
    least: np.ndarray | float = NEXT_TO_NOTHING,
) -> tuple[np.ndarray, np.ndarray]:
    """Layouts that keep their promises when next to nothing arrives, and how busy they may be.

    `keeps(values, rows)` judges what the step says of the layouts `rows`. Returns those rows, and
    the largest share of their slots that may be filled, by bisection: waits grow with it. Rows
    that are no longer `ahead` at rates between two may be left out; those that do not keep their
    promises where a share `least` is filled are.
    """
    rows = np.arange(len(step.layouts))
    idle = np.broadcast_to(least, rows.shape)
    values = step.filled(batch)(idle)
    slot = np.broadcast_to(values["slot"], rows.shape)
    # Readers are as busy as slots are filled: beyond their limit nothing need be tried.
    reads = values["readers"] / idle / step.limits.get("readers", np.inf)
    most = np.broadcast_to(1 / np.maximum(reads * (1 + 0.5**MAX_BISECTIONS), 1), rows.shape)
    rows = rows[keeps(values, rows)]
    low, high, at = idle[rows], most[rows], None
    for turn in range(1 + MAX_BISECTIONS):
        good = ahead(rows, low / slot[rows], high / slot[rows]) if ahead else rows >= 0
        if at is None or good.mean() < COMPACTION_SHARE:
            rows, low, high = rows[good], low[good], high[good]
            at = step.take(rows).filled(batch[rows])
        middle = (low + high) / 2 if turn else high
        good = keeps(at(middle), rows)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
        if (low == high).all():
            break
    return rows, low


def filled_in_part(step: Step, rows: np.ndarray, batch: np.ndarray) -> tuple[np.ndarray, ...]:
    """Layouts, batches and shares of slots that serve more than the full batches of `rows`.

    Promises that a full batch keeps may leave room for some requests more, which the next batch
    that carries them serves with slots to spare. Where latency is to be least, only batches that
    may be sooner than all before: a larger one has longer steps, whoever waits.
    """
    free, hurries = 1 - step.task.headroom, step.task.objective == "latency"
    soonest = np.full(len(step.layouts), np.inf)
    up, most = step.layouts.replicas - step.task.spare, np.full(len(step.layouts), NEXT_TO_NOTHING)
    values = evaluate_chunked(step, rows, batch, np.ones(rows.size))
    keeps = PromiseLimits(step.take(rows), batch).hold(values)
    np.maximum.at(most, rows[keeps], free / values["slot"][keeps])
    np.minimum.at(soonest, rows[keeps], values["latency"][keeps])
    parts = [(rows[:0], batch[:0], batch[:0])]
    at = np.flatnonzero(up > 0)
    # Waits and chances are not monotonic in the batch, since it fills ranks in turn: a larger batch
    # may keep a promise that a smaller batch breaks.
    while at.size:
        load = most[at] * up[at] * (1 + REL_TOL)
        batch = min_batch_for_load(step.take(at).bearing(load), LARGEST_BATCH)
        at, batch = at[batch > 0], batch[batch > 0]
        if hurries:
            sooner = step.take(at).filled(batch)(NEXT_TO_NOTHING)["latency"] < soonest[at]
            at, batch = at[sooner], batch[sooner]
        part = step.take(at)
        rate = free / np.broadcast_to(part.work(batch)["slot"], at.shape)
        good, fill = max_utilisation(
            part, batch, PromiseLimits(part, batch).hold, least=most[at] / rate
        )
        at, batch = at[good], batch[good]
        parts.append((at, batch, fill))
        most[at] = rate[good]
        if hurries:
            soonest[at] = np.minimum(soonest[at], step.take(at).filled(batch)(fill)["latency"])
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def shared_batches(step: Step, largest: np.ndarray) -> tuple[np.ndarray, ...]:
    """Batches given for all replicas of a pool, on each number of them that may share one.

    Rows, sequences of the fullest replica, up to the `largest` of each layout, the share of the
    slots in use, and replicas. Of the numbers with as many sequences each the fewest serve as much.
    """
    task, layouts, parts = step.task, step.layouts, []
    for total in task.batches or ():
        numbers = 1 + np.arange(layouts.replicas.max(initial=0))
        fewest = numbers[np.unique(np.ceil(total / numbers), return_index=True)[1]]
        for number in task.limits_of.get("replicas", fewest):
            fullest = np.ceil(total / number)
            fits = (layouts.replicas >= number) & (fullest <= largest)
            rows = np.flatnonzero(fits & ((layouts.halves == 1) | (total > number * layouts.group)))
            columns = fullest, total / (fullest * number), number
            parts.append((rows, *(np.full(rows.size, value) for value in columns)))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def with_places(step: Step, batch: np.ndarray) -> np.ndarray:
    """Requests in flight on a replica that fit in memory, at most `batch`, at least 1; shape (n,).

    The others wait, where a closed loop lets them.
    """
    if not step.task.waits:
        return batch
    alone = step.with_task(step.task.with_layout(loop=None))
    most = np.array(batch, dtype=float)

    def full(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        tried = np.ones(most.size)
        tried[rows] = numbers
        return ~np.broadcast_to(alone.holds_together(tried), most.shape)[rows]

    rows = np.flatnonzero(full(np.arange(most.size), most))
    most[rows] = first(lambda at, n: full(rows[at], n), np.zeros(rows.size), most[rows]) - 1
    return np.maximum(most, 1.0)


def evaluate_chunked(
    step: Step, rows: np.ndarray, batch: np.ndarray, fill: np.ndarray
) -> dict[str, np.ndarray]:
    """Evaluate layouts at batches, one value a row; `CHUNK_POINTS` computed together."""
    parts = []
    for k in range(0, max(rows.size, 1), CHUNK_POINTS):
        at = slice(k, k + CHUNK_POINTS)
        values = step.take(rows[at])(batch[at], fill[at])
        parts.append({name: np.broadcast_to(x, rows[at].shape) for name, x in values.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def minimize_feasible_chips(step: Step, keeps: Callable[[Step], np.ndarray]) -> Step:
    """Return the layouts, each on the fewest chips of the question that `keeps` approves.

    Layouts that no number of chips approves stay on the most. `keeps` maps a step to one verdict
    for every layout.
    """
    paid = np.unique(np.asarray(step.task.chips, dtype=np.int64))
    rows = np.arange(len(step.layouts))
    domain = step.task.machine.chips_per_domain

    def approved(at: np.ndarray, index: np.ndarray) -> np.ndarray:
        part = step.take(at)
        return keeps(part.on(part.layouts.on(paid[index.astype(np.int64)], domain)))

    top = np.full(rows.size, paid.size - 1.0)
    enough = approved(rows, top)
    fewest = top.copy()
    fewest[enough] = first(
        lambda at, index: approved(rows[enough][at], index),
        np.full(enough.sum(), -1.0),
        top[enough],
    )
    return step.on(step.layouts.on(paid[fewest.astype(np.int64)], domain))


def _carried(step: Step, size: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a test if multiples of `size` sequences carry the load, for some of the rows."""

    def holds(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        # All rows in order need no copy, for example in the search for the size of one layout.
        part = step if rows.size == len(step.layouts) else step.take(rows)
        return _carries(part, numbers * size[rows])

    return holds


def _carries(step: Step, batch: np.ndarray) -> np.ndarray:
    limit = step.limits["load"]
    return np.broadcast_to(step.only(("load",), batch)["load"] <= limit, batch.shape)


def pass_sizes(step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Layouts, as rows, and prompts of a replica in flight that are worth trying.

    Shapes (n_points,); every layout has one prompt per rank and stage as its first.
    """
    layouts = step.layouts
    ranks = layouts.pp * layouts.dp_attention
    # No roof has anything that a pass costs once.
    room = np.ones(len(layouts)) if step.bound else step.prompts_of_a_pass
    rows, sizes = [np.arange(len(layouts))], [np.ones(len(layouts))]
    number = 1.0
    while (at := np.flatnonzero(room > number)).size:
        number = np.floor(number * STEP) if number >= PROMPTS_PER_RANK else number + 1
        rows.append(at)
        sizes.append(np.minimum(number, room[at]))
    tried = np.concatenate(rows)
    return tried, np.concatenate(sizes) * ranks[tried]


def fastest_prefill_batch(step: Step) -> np.ndarray:
    """Prompts in flight of each layout with the earliest first token under load, 0 if infeasible.

    Where few share a pass they wait for it longer; where many do, for each other. Of those that
    carry the load the ones that keep every promise come first.
    """
    rows, batch = pass_sizes(step)
    part = step.take(rows)
    values = {name: np.broadcast_to(value, rows.shape) for name, value in part(batch).items()}
    carries = values["load"] <= part.limits["load"]
    in_time = PromiseLimits(part, batch).hold(values)
    best = np.zeros(len(step.layouts))
    order = np.lexsort((batch, values["ttft"], ~in_time, rows))
    order = order[carries[order]]
    at, first = np.unique(rows[order], return_index=True)
    best[at] = batch[order[first]]
    return best
