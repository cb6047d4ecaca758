"""The best layout and batch, exactly: every layout, every whole batch, no loop over either.

For one layout the largest batch that keeps every promise is the cheapest per token, because
T(B)/B never rises and T(B) never falls; both survive sums, maxima, coverage, square roots and a
prefill share. Ceilings break the first: copies of the experts see ceil(B/(pp cp)) sequences, ranks
decode ceil(B/(pp dp)) and parts of a context carry ceil(B/G), G = pp dp cp, so the price jumps
after each full number. It falls from one full group of G to the next, which beats every batch
before it. Beyond the last one a rank's number stands in each of cp cells of pp dp sequences; the
end of a cell and the last full number of the experts in it are tried. On-chip memory in the bound
breaks it too: where it holds all weights, traffic per sequence grows with the batch, and the cells
of the group in which memory becomes the highest roof are tried as well. The smallest batch is the
fastest. So a few bisections over all layouts at once decide all (layout, batch) pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.search import sizing
from planner.problems.serving.search.admitted_layouts import grows
from planner.problems.serving.search.promise_limits import PromiseLimits, lowered
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.occupancy import LARGEST_BATCH, first
from planner.problems.serving.step.step import Step

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task

SAME_PRICE = 1e-9  # prices closer than this are one price: the faster plan is taken


@dataclass(frozen=True)
class LayoutSearchResult:
    """Result of a search: candidates, best first, and the number of points.

    `largest` is the largest feasible batch per replica of every layout, shape (n_layouts,), 0
    where none is. `rows` index the layouts, `batch` holds sequences per replica, `fill` the share
    of slots in use, `score` the objective; all of shape (n_candidates,).
    """

    largest: np.ndarray
    rows: np.ndarray
    batch: np.ndarray
    fill: np.ndarray
    score: np.ndarray
    layouts_considered: int
    points_considered: int
    points_evaluated: int


def search(step: Step, largest: np.ndarray | None = None) -> LayoutSearchResult:
    """Return every feasible layout at its best batch, best first; empty if infeasible.

    `largest` are the largest feasible batches where they are known already, shape (n_layouts,).
    """
    return search_batched(step, [len(step.layouts)], largest)[0]


def search_batched(
    step: Step, counts: Sequence[int], largest: np.ndarray | None = None
) -> list[LayoutSearchResult]:
    """`search` of several questions at once, whose layouts follow each other in a joined step.

    Args:
        counts: how many layouts each question has.
    """
    task, layouts = step.task, step.layouts
    if task.loaded:
        largest, rows, batch, fill, looked = _loaded(step)
    elif task.mode != "prefill" and not task.batch_of_all:
        looked = np.zeros(len(layouts))
        if largest is None:
            largest, looked = largest_feasible(step)
        largest = np.minimum(largest, max(task.batches or (LARGEST_BATCH,)))
        rows, batch, fill = candidate_batches(step, largest)
        if step.bound and task.objective != "latency":
            batch = _smallest_as_cheap(step, rows, batch)
        elif task.load == "most" and not step.bound:
            both = (rows, batch, fill), sizing.filled_in_part(step, rows, batch)
            rows, batch, fill = map(np.concatenate, zip(*both, strict=True))
    else:
        rows, batch, fill = try_batches(step)
        if task.arrivals is not None:
            part = step.take(rows)
            at, fill = sizing.max_utilisation(part, batch, PromiseLimits(part, batch).hold)
            rows, batch = rows[at], batch[at]
        largest, looked = np.zeros(len(layouts)), np.zeros(len(layouts))
    values = sizing.evaluate_chunked(step, rows, batch, fill)
    keep = PromiseLimits(step.take(rows), batch).hold(values)
    given_batches = not task.loaded and (task.batches is not None or task.mode == "prefill")
    np.maximum.at(largest, rows[keep], batch[keep])
    ends = np.cumsum([0, *counts])
    results = []
    for begin, end in pairwise(ends.tolist()):
        tried = (rows >= begin) & (rows < end)
        at = np.flatnonzero(keep & tried)
        here = {name: column[at] for name, column in values.items()}
        order = _ranked(task, layouts.take(rows[at]), here)
        most = largest[begin:end]
        points = tried.sum() if given_batches else np.minimum(most + 1, LARGEST_BATCH).sum()
        results.append(
            LayoutSearchResult(
                largest=most,
                rows=rows[at][order] - begin,
                batch=batch[at][order],
                fill=fill[at][order],
                score=np.broadcast_to(task.score(here), at.shape)[order],
                layouts_considered=end - begin,
                points_considered=int(points),
                points_evaluated=int(looked[begin:end].sum() + tried.sum()),
            )
        )
    return results


def min_chips_step(step: Step) -> Step:
    """Every layout on the fewest chips of the question that keep its promises under the load."""
    task = step.task
    if not grows(task):
        return step

    def keeps(part: Step) -> np.ndarray:
        batch = sizing.min_batch_for_load(part, LARGEST_BATCH)
        tried = np.maximum(batch, 1)
        return (batch > 0) & PromiseLimits(part, tried).hold(part(tried))

    return sizing.minimize_feasible_chips(step, keeps)


def largest_feasible(step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Largest whole batch of each layout that keeps every promise (0 if infeasible), by bisection.

    Beside it, how many batches of each layout were looked at.
    """
    limits = step.task.limits
    task = step.task
    key = (step.model, task.spare, task.headroom, task.chance, *sorted(limits.items()))
    if key in step.largest:
        largest, looked = step.largest[key]
        return largest.copy(), looked
    low = np.zeros(len(step.layouts))
    high = np.full(len(step.layouts), float(LARGEST_BATCH + 1))
    looked = np.zeros(len(step.layouts))
    while (open_rows := np.flatnonzero(high - low > 1)).size:
        middle = _between(low[open_rows], high[open_rows])
        part = step if open_rows.size == low.size else step.take(open_rows)
        values = part.only(("need", *limits), middle)
        good = np.all([values[name] <= limit for name, limit in part.limits.items()], axis=0)
        low[open_rows[good]] = middle[good]
        high[open_rows[~good]] = middle[~good]
        looked[open_rows] += 1
    low = lowered(step, low)
    step.largest[key] = low.copy(), looked
    return low, looked


def max_batch_at_tpot(step: Step, largest: np.ndarray, paces: np.ndarray) -> np.ndarray:
    """Largest batch, of at most `largest`, that keeps each time per output token [s].

    Shape (n_paces, n_layouts).
    """
    rows = np.tile(np.arange(largest.size), paces.size)
    pace = np.repeat(paces, largest.size)
    low, high = np.zeros(rows.size), np.tile(largest, paces.size) + 1
    # Most layouts are too slow even for one sequence, or kept by something else than the pace.
    ends = [high - 1, np.ones(rows.size)]
    while (at := np.flatnonzero(high - low > 1)).size:
        batch = ends.pop()[at] if ends else _between(low[at], high[at])
        keeps = step.take(rows[at]).only(("tpot",), batch)["tpot"] <= pace[at]
        low[at[keeps]] = batch[keeps]
        high[at[~keeps]] = batch[~keeps]
    paced = step.with_task(step.task.promising(0.0)).take(rows).limited("tpot", pace)
    return lowered(paced, low).reshape(paces.size, largest.size)


def _loaded(step: Step) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Under a given load: the largest batch without it, and the smallest batch that carries it."""
    batch = sizing.min_batch_for_load(step, LARGEST_BATCH)
    rows = np.flatnonzero(batch > 0)
    unloaded = step.with_task(step.task.with_layout(arrivals=None))
    if step.task.mode == "prefill":
        largest, looked = batch, np.zeros(batch.size)
    else:
        largest, looked = largest_feasible(unloaded)
    return np.maximum(largest, batch), rows, batch[rows], np.ones(rows.size), looked + (batch > 0)


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    least = np.maximum(low, 1)
    return np.floor(np.where(high > 4 * least, np.sqrt(least * high), (low + high) / 2))


def candidate_batches(step: Step, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The batches worth pricing: those where the price may turn, or for latency the smallest."""
    rows = np.flatnonzero(largest >= 1)
    if step.task.objective == "latency":
        return rows, np.ones(rows.size), np.ones(rows.size)
    most, part = largest[rows], step.take(rows)
    group = part.layouts.group
    full = np.floor(most / group)
    tried = [(np.arange(rows.size), full * group), *_cells(part.layouts, full, most)]
    if step.bound:
        turn = _memory_takes_over(part, full)
        tried += [
            (np.arange(rows.size), (turn - 1) * group),
            *_cells(part.layouts, turn - 1, turn * group),
        ]
    at, batch = (np.concatenate(columns) for columns in zip(*tried, strict=True))
    return rows[at], np.maximum(batch, 1), np.ones(batch.size)


def _cells(
    layouts: Layouts, full: np.ndarray, most: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of up to `most` beyond `full` groups: ends of cells, and full experts in them."""
    cell, stages = layouts.pp * layouts.dp_attention, layouts.pp * layouts.cp
    for number in range(1, int(layouts.cp.max(initial=0)) + 1):
        at = np.flatnonzero(layouts.cp >= number)
        end = np.minimum(full[at] * layouts.group[at] + number * cell[at], most[at])
        yield at, end
        yield at, np.floor(end / stages[at]) * stages[at]


def memory_rises(step: Step) -> np.ndarray:
    """True for layouts whose weights all fit on-chip memory: the roof per sequence rises."""
    group = step.layouts.group
    roof, twice = (np.broadcast_to(step(n * group)["roof.memory"], group.shape) for n in (1.0, 2.0))
    return (roof <= 0) | (twice > 2 * roof)


def _memory_takes_over(step: Step, most: np.ndarray) -> np.ndarray:
    """First number of full groups, at most `most`, for memory to be the highest roof.

    Only asked where the roof per sequence rises; 0 elsewhere.
    """
    rows = np.flatnonzero((most >= 2) & memory_rises(step))
    part, turn = step.take(rows), np.zeros(most.size)

    def highest(at: np.ndarray, number: np.ndarray) -> np.ndarray:
        tested = part.take(at)
        batch = number * tested.layouts.group
        values, value = tested(batch), tested.values(batch)
        memory = value["L_dec"] * values["roof.memory"] / (value["g"] * batch)
        return np.asarray(memory >= values["slot"] * (1 - SAME_PRICE))

    turn[rows] = first(highest, np.zeros(rows.size), most[rows])
    return turn


def _smallest_as_cheap(step: Step, rows: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """The smallest whole number of groups that is as cheap: past the critical batch it is flat.

    Below the first group, or where a group is cut by a promise, the batch stays as it is.
    """
    part, task = step.take(rows), step.task
    group = part.layouts.group
    goal = np.broadcast_to(task.score(part(batch)) * (1 + SAME_PRICE), rows.shape)

    def cheap(at: np.ndarray, number: np.ndarray) -> np.ndarray:
        return np.asarray(task.score(part.take(at)(number * group[at])) <= goal[at])

    return np.minimum(first(cheap, np.zeros(rows.size), np.ceil(batch / group)) * group, batch)


def try_batches(step: Step) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The batches the question fixes, or how many prompts may share a pass of a pool of readers."""
    if step.task.mode == "prefill" and step.task.batches is None:
        rows, batch = sizing.pass_sizes(step)
        return rows, batch, np.ones(rows.size)
    return fixed_batches(step)


def fixed_batches(step: Step) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The batches the question fixes, spread over the replicas: the fullest one sets the pace.

    Of a closed loop that waits those that run.
    """
    task, layouts = step.task, step.layouts
    # Prefill ranks and pipeline stages get equal numbers of prompts.
    alike = layouts.pp * layouts.dp_attention if task.mode == "prefill" else 1
    rows, batch, fill = [], [], []
    for total in task.batches or ():
        per_replica = sizing.with_places(step, alike * np.ceil(total / (layouts.replicas * alike)))
        rows.append(np.arange(len(layouts)))
        batch.append(per_replica)
        fill.append(np.minimum(total / (per_replica * layouts.replicas), 1.0))
    return np.concatenate(rows), np.concatenate(batch), np.concatenate(fill)


def _ranked(task: Task, layouts: Layouts, values: dict[str, np.ndarray]) -> np.ndarray:
    score = task.score(values)
    coarse = np.floor(np.log(score / score.min()) / SAME_PRICE) if score.size else score
    return np.lexsort((
        layouts.dcp, layouts.halves, layouts.tp_expert, layouts.dp_attention, layouts.pp,
        layouts.replica_chips, np.round(values["latency"], 12), coarse,
    ))  # fmt: skip
