"""Layouts of two pools that keep their promises, each at its best, and which of them may be paired.

A prefill replica's rate is set by how busy it may be before requests wait too long, a decode
replica's by the largest batch that keeps its time per token. Of layouts whose replicas take the
same room only the fastest is kept, unless latency counts as well.

Layouts are paired between which a cache takes one time. It depends on how many chips receive the
cache, so layouts that prefill are sized once for each such number and matched with the layouts that
have it. A promise on the whole request ties the two closer: each time to first token leaves its own
room for decoding.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from planner.problems.serving.deployment import plain_plans
from planner.problems.serving.deployment.drawn_power import cost_in_use
from planner.problems.serving.pairs.receiving_chips import ReceivingChips, by_engine
from planner.problems.serving.search import batch as batch_search
from planner.problems.serving.search.promise_limits import PromiseLimits, quantile_factors
from planner.problems.serving.search.sizing import (
    CHUNK_POINTS,
    PhaseLayouts,
    UtilisationStep,
    max_utilisation,
    shared_batches,
)
from planner.problems.serving.step.kernels import BILLING, replica_rates
from planner.problems.serving.step.packing import distinct
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import TaskPair
from planner.text.tolerances import REL_TOL

TTFT_PROMISES: tuple[str, ...] = ("ttft", "ttft_p95", "ttft_p99", "latency")


# Layouts that prefill, and that decode; those of one group may be paired.
MatchedLayouts: TypeAlias = tuple[PhaseLayouts, PhaseLayouts]


def shards(step: Step) -> np.ndarray:
    """Chips that hold different parts of one sequence's cache, for every layout."""
    layouts = step.layouts
    heads = np.minimum(layouts.tp // layouts.dcp, step.task.sizes.n_kv_heads)
    return heads * layouts.dcp * layouts.pp * layouts.cp


def prefill_layouts(
    step: Step,
    transfer: np.ndarray,
    ahead: UtilisationStep | None = None,
    alike: np.ndarray | None = None,
) -> PhaseLayouts:
    """The layouts that read prompts in time, each as busy as its promises let it be.

    `transfer` are the seconds that a cache takes to the other pool, for every layout. Those
    that are not `ahead` may be left out; those whose transfer is all that differs have one number
    in `alike`, and are evaluated once.
    """
    task = step.task
    every, batches, _ = batch_search.try_batches(step)
    alike = np.arange(len(step.layouts)) if alike is None else alike
    unlike, kind = distinct(alike)
    odd = plain_plans.coarse_oddness(step.take(unlike))[kind]

    def read(tried: np.ndarray, batch: np.ndarray) -> PhaseLayouts:
        part, late = step.take(tried), transfer[tried]
        at, same = distinct(alike[tried], batch.astype(np.int64))
        once = part.take(at)
        limits = PromiseLimits(once, batch[at])

        def keeps(values: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
            return limits.hold(_delayed(values, late[rows]), same[rows])

        def first(at: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
            return ahead(tried[at], low, high) if ahead else at >= 0

        if task.arrivals is None:
            values = {
                name: np.broadcast_to(x, at.shape)[same] for name, x in once(batch[at]).items()
            }
            rows = np.flatnonzero(keeps(values, np.arange(batch.size)))
            rate = 1 / values["slot"][rows]
            rows = rows[first(rows, rate, rate)]
            fill = np.ones(rows.size)
            values = {name: each[rows] for name, each in values.items()}
        else:
            rows, fill = max_utilisation(part, batch, keeps, first)
            values = part.take(rows)(batch[rows], fill)
            rate = fill / values["slot"]
            good = np.flatnonzero(first(rows, rate, rate))
            rows, fill = rows[good], fill[good]
            values = {name: np.broadcast_to(x, rate.shape)[good] for name, x in values.items()}
        if task.inside_only:
            at = np.flatnonzero(plain_plans.is_covered(part.take(rows), batch[rows]))
            rows, fill, values = rows[at], fill[at], {name: x[at] for name, x in values.items()}
        values = _delayed(values, late[rows])
        taken = tried[rows]
        return _columns(step, taken, batch[rows], fill, values, "ttft", odd[taken])

    starts = range(0, max(every.size, 1), CHUNK_POINTS)
    return PhaseLayouts.joined(
        [read(every[k : k + CHUNK_POINTS], batches[k : k + CHUNK_POINTS]) for k in starts]
    )


def decode_layouts(
    step: Step, tpot: float | None, largest: np.ndarray | None = None
) -> PhaseLayouts:
    """Every layout that keeps this time per output token, at its fastest batch.

    `largest` are the largest batches that keep it, where they are known already.
    """
    task = step.task
    promises = {k: v for k, v in task.promises.items() if k in ("tpot", "cache_fits")}
    if tpot is not None:
        promises["tpot"] = tpot
    step = step.with_task(task.with_layout(promises=promises, arrivals=None))
    most = batch_search.largest_feasible(step)[0] if largest is None else largest
    if task.inside_only:
        most = np.minimum(most, plain_plans.largest_measured(step))
    rows, batch, fill = batch_search.candidate_batches(step, most)
    count = np.zeros(rows.size, np.int64)
    if task.batches is not None:
        rows, batch, fill, count = shared_batches(step, most)
    part = step.take(rows)
    values = part(batch, fill)
    keep = PromiseLimits(part, batch).hold(values)
    if task.inside_only:
        keep &= plain_plans.is_covered(part, batch)
    values = {name: np.broadcast_to(value, keep.shape)[keep] for name, value in values.items()}
    rows, batch = rows[keep], batch[keep]
    odd = plain_plans.coarse_oddness(step.take(rows), batch)
    decode = _columns(step, rows, batch, fill[keep], values, "latency", odd)
    return replace(decode, count=count[keep])


def _columns(
    step: Step,
    rows: np.ndarray,
    batch: np.ndarray,
    fill: np.ndarray,
    values: dict[str, np.ndarray],
    late: str,
    odd: np.ndarray,
) -> PhaseLayouts:
    """Layouts at their batches, all of one group; `late` names their latency."""
    layouts = step.layouts
    domain = np.full(len(rows), step.task.machine.chips_per_domain)
    slot, last = (np.broadcast_to(values[name], rows.shape) for name in ("slot", late))
    rate, task = replica_rates(slot, fill, step.task.headroom), step.task
    if task.objective == "energy" and task.power is None:
        raise task.powerless()
    weight = cost_in_use(step, rows, values.get("watts", np.zeros(())))
    none = np.zeros(rows.size, np.int64)
    return PhaseLayouts(
        rows, none, layouts.stage[rows], layouts.pp[rows], domain, batch, fill, slot, rate, last,
        last, np.broadcast_to(weight, rows.shape), layouts.engines[rows], none, none, odd,
    )  # fmt: skip


def _delayed(values: dict[str, np.ndarray], transfer: np.ndarray) -> dict[str, np.ndarray]:
    late = [name for name in TTFT_PROMISES if name in values]
    return {**values, **{name: values[name] + transfer for name in late}}


def matched_pools(
    several: Sequence[TaskPair], reading: tuple[Step, ...], decoding: tuple[Step, ...]
) -> list[MatchedLayouts]:
    """Layouts of both pools that may be paired, for questions with equal `joinable` steps."""
    prefills = _receivers(several, reading, decoding)
    return _beside(several, prefills, decoding)


def matched_parts(
    tasks: TaskPair, reading: Step, decoding: Step, parts: Iterable[np.ndarray]
) -> Iterator[tuple[np.ndarray, MatchedLayouts]]:
    """Parts of the layouts that decode, given as rows, each with its `matched_pools`.

    Layouts that read in time are worked out once.
    """
    prefills = _receivers([tasks], (reading,), (decoding,))
    if tasks.prefill.objective != "latency" and tasks.decode.promises.get("e2e") is None:
        prefills = [each.fastest_by_engines() for each in prefills]
    for rows in parts:
        yield rows, _beside([tasks], prefills, (decoding.take(rows),))[0]


def _beside(
    several: Sequence[TaskPair], prefills: Sequence[PhaseLayouts], decoding: tuple[Step, ...]
) -> list[MatchedLayouts]:
    """Match decode layouts to the prefill layouts that read in time, for each question."""
    decoding = tuple(_at_most(*each) for each in zip(several, decoding, strict=True))
    if several[0].decode.promises.get("e2e") is not None:
        paces = [np.array([tasks.decode.promises.get("tpot", np.inf)]) for tasks in several]
        promised = zip(several, decoding, prefills, paces, strict=True)
        return [_within_request(*question)[0] for question in promised]
    promising = []
    for tasks, step in zip(several, decoding, strict=True):
        tpot = tasks.decode.promises.get("tpot")
        promising.append(step if tpot is None else step.with_task(step.task.promising(tpot)))
    together = decode_layouts(Step.joined(promising), None)
    decodes = _parted(together, [len(step.layouts) for step in decoding])
    questions = zip(several, decoding, prefills, decodes, strict=True)
    return [_by_receivers(*question) for question in questions]


def match_pools_at_tpot(
    tasks: TaskPair, reading: Step, decoding: Step, paces: np.ndarray
) -> list[MatchedLayouts]:
    """`matched_pools` of one question for each promise on the time per output token [s]."""
    prefill = _receivers([tasks], (reading,), (decoding,))[0]
    decoding = _at_most(tasks, decoding)
    if tasks.decode.promises.get("e2e") is not None:
        return _within_request(tasks, decoding, prefill, paces)
    return [
        _by_receivers(tasks, decoding, prefill, decode_layouts(decoding, float(pace), most))
        for pace, most in zip(paces, _largest(tasks, decoding, paces), strict=True)
    ]


def _at_most(tasks: TaskPair, decoding: Step) -> Step:
    if tasks.demand is None or decoding.task.objective != "latency":
        return decoding
    return decoding.with_task(decoding.task.with_layout(objective="throughput"))


def _by_receivers(
    tasks: TaskPair, decoding: Step, prefill: PhaseLayouts, decode: PhaseLayouts
) -> MatchedLayouts:
    return _best(tasks, prefill, replace(decode, group=shards(decoding)[decode.rows]))


def _best(tasks: TaskPair, prefill: PhaseLayouts, decode: PhaseLayouts) -> MatchedLayouts:
    """Both pools without what another layout of the same group and room betters."""
    prefill, decode = by_engine(prefill, decode)
    if tasks.decode.batches is not None:
        # Prompts must come as fast as they are decoded: the fastest may be too fast for some.
        first, last = (_worth(tasks, each) for each in (prefill, decode))
        return prefill.undominated(first), decode.tiers(last)
    if tasks.prefill.objective == "latency":
        # Under a load the quickest may not carry it.
        alone = decode.quickest() if tasks.demand is None else decode.undominated()
        return prefill.undominated(), alone
    return prefill.fastest(), decode.fastest()


def _worth(tasks: TaskPair, of: PhaseLayouts) -> np.ndarray:
    return of.latency if tasks.prefill.objective == "latency" else of.weight / of.rate


def _within_request(
    tasks: TaskPair, decoding: Step, prefill: PhaseLayouts, paces: np.ndarray
) -> list[MatchedLayouts]:
    """Matches under an e2e promise: prefill layouts with decode layouts fast enough, per pace."""
    whole, steps = tasks.decode.promises["e2e"], tasks.decode.output_tokens - 1
    receiving = shards(decoding)
    prefill = prefill.undominated(prefill.promised)
    prefill = prefill.take(np.flatnonzero(prefill.promised < whole))
    parts = []
    for number in np.unique(receiving):
        first = prefill.take(np.flatnonzero(prefill.group == number))
        at = np.flatnonzero(receiving == number)
        step, slowest = decoding.take(at), (whole - first.promised) / steps
        largest = _largest(tasks, step, slowest), _largest(tasks, step, paces)
        parts.append((first, at, step, slowest, *largest))

    def matched(k: int) -> Iterator[MatchedLayouts]:
        for reading, at, step, slowest, slow, fast in parts:
            first = replace(reading, group=np.zeros_like(reading.group))
            # Prefill layouts with more time left than the pace needs share the decode layouts.
            free = slowest >= paces[k]
            if free.any():
                decode = decode_layouts(step, None, fast[k])
                yield first.take(np.flatnonzero(free)), replace(decode, rows=at[decode.rows])
            tight = np.flatnonzero(~free)
            if tight.size:
                tiled = step.take(np.tile(np.arange(at.size), tight.size))
                decode = decode_layouts(tiled, None, np.minimum(slow[tight], fast[k]).ravel())
                group, rows = np.divmod(decode.rows, at.size)
                alone = replace(first.take(tight), group=np.arange(tight.size))
                yield alone, replace(decode, rows=at[rows], group=group)

    none = prefill.take(np.arange(0))
    return [_best(tasks, *_grouped([(none, none), *matched(k)])) for k in range(paces.size)]


def _grouped(matched: Sequence[MatchedLayouts]) -> MatchedLayouts:
    """Concatenated layouts of both pools; the parts get disjoint group numbers."""
    counts = [1 + max(int(pool.group.max(initial=0)) for pool in pools) for pools in matched]
    starts = np.cumsum([0, *counts])

    def joined(several: Sequence[PhaseLayouts]) -> PhaseLayouts:
        return PhaseLayouts.joined([
            replace(layouts, group=layouts.group + start)
            for start, layouts in zip(starts, several, strict=False)
        ])  # fmt: skip

    return joined([first for first, _ in matched]), joined([second for _, second in matched])


def _parted(layouts: PhaseLayouts, counts: Sequence[int]) -> list[PhaseLayouts]:
    ends = np.cumsum([0, *counts])
    question = np.searchsorted(ends, layouts.rows, side="right") - 1
    several = [layouts.take(np.flatnonzero(question == k)) for k in range(len(counts))]
    return [replace(part, rows=part.rows - end) for part, end in zip(several, ends, strict=False)]


def _largest(tasks: TaskPair, decoding: Step, paces: np.ndarray) -> np.ndarray:
    alone = decoding.with_task(tasks.decode.promising(None).with_layout(arrivals=None))
    return batch_search.max_batch_at_tpot(alone, batch_search.largest_feasible(alone)[0], paces)


def _receivers(
    several: Sequence[TaskPair], reading: tuple[Step, ...], decoding: tuple[Step, ...]
) -> list[PhaseLayouts]:
    """Layouts that read in time, for each number of chips that may receive from them: its group."""
    steps = zip(reading, decoding, strict=True)
    ways = [ReceivingChips.of(shards(first), np.unique(shards(second))) for first, second in steps]
    ends = np.cumsum([0, *(len(step.layouts) for step in reading)])
    rows = np.concatenate([way.layouts + end for way, end in zip(ways, ends, strict=False)])
    transfer = [
        tasks.transfer(way.chips, way.chips) for tasks, way in zip(several, ways, strict=True)
    ]
    whole = Step.joined(reading)
    step = whole.take(rows)
    odd = plain_plans.coarse_oddness(whole)[rows]
    ahead = _ahead(several, reading, step, ways, odd)
    together = prefill_layouts(step, np.concatenate(transfer), ahead, rows)
    if several[0].decode.promises.get("e2e") is not None:
        factors = quantile_factors(step.take(together.rows), together.batch, also="ttft")
        together = replace(together, promised=together.latency * factors.get("ttft", 1.0))
    parts = _parted(together, [way.layouts.size for way in ways])
    return [way.grouped(part) for way, part in zip(ways, parts, strict=True)]


def _ahead(
    several: Sequence[TaskPair],
    reading: Sequence[Step],
    step: Step,
    ways: Sequence[ReceivingChips],
    odd: np.ndarray,
) -> UtilisationStep | None:
    """Filter for layouts that may still be the fastest of their kind: equal oddness `odd`, room,
    receivers and engines.

    None where more than their rates counts: chips of several prices, or times.
    """
    promised, objective = several[0].decode.promises, several[0].prefill.objective
    priced = objective in ("cost", "throughput") and reading[0].model.powered != BILLING
    if not priced or promised.get("e2e") is not None:
        return None
    pairs = zip(reading, ways, strict=True)
    more = [shards(step)[way.layouts] > way.chips for step, way in pairs]
    number = np.repeat(np.arange(len(ways)), [way.layouts.size for way in ways])
    receivers = np.concatenate([way.chips for way in ways])
    layouts = step.layouts
    columns = number, layouts.stage, layouts.pp, receivers, np.concatenate(more), odd
    at, kind = distinct(*columns, layouts.engines + 1)
    best = np.zeros(at.size)

    def ahead(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        np.maximum.at(best, kind[rows], low)
        return np.asarray(high * (1 + REL_TOL) >= best[kind[rows]])

    return ahead
