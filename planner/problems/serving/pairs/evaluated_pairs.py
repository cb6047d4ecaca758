"""Evaluated pairs of layouts at their splits: both pools sized for the pair's load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from planner.problems.serving.deployment.candidate import Candidate, JointPools
from planner.problems.serving.deployment.drawn_power import power_output
from planner.problems.serving.deployment.marginal_prices import pools_symbols
from planner.problems.serving.deployment.pool import Lazy, evaluate
from planner.problems.serving.pairs.pool_matching import shards
from planner.problems.serving.pairs.pool_pairs import Pair, group_compatible_steps
from planner.problems.serving.search.sizing import fastest_prefill_batch, min_batch_for_load
from planner.problems.serving.step.kernels import load_share, pools_values
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import TaskPair

T = TypeVar("T")


class EvaluatedPairs:
    """Pairs of several questions, evaluated when first asked for, much of it for all of them.

    Where power counts every pair is settled, and those of all questions are evaluated together;
    else the batches of the best pair of each.

    Args:
        questions: The tasks and the models of both pools on all their layouts.
        pairs: The best pairs of each question, best first.
    """

    def __init__(
        self, questions: Sequence[tuple[TaskPair, Step, Step]], pairs: Sequence[Sequence[Pair]]
    ) -> None:
        self._questions = questions
        settled = [power_output(decoding) is not None for *_, decoding in questions]
        several = [*enumerate(zip(settled, pairs, strict=True))]
        self._settled = [(k, pair) for k, (counts, of) in several if counts for pair in of]
        self._best = [(k, pair) for k, (counts, of) in several if not counts for pair in of[:1]]

    def __call__(self, number: int, pair: Pair) -> Candidate:
        """A pair of a question, one of its best or any other."""
        place, question = (number, pair), (*self._questions[number], pair)
        if place in self._settled:
            return self._together[place]
        best = place in self._best
        return evaluate_pair(*question, (lambda: self._carried[place]) if best else None)

    @cached_property
    def _together(self) -> dict[tuple[int, Pair], Candidate]:
        every = [(*self._questions[k], pair) for k, pair in self._settled]
        return dict(zip(self._settled, evaluate_pairs(every), strict=True))

    @cached_property
    def _carried(self) -> dict[tuple[int, Pair], float]:
        every = [(self._questions[k][0], self._questions[k][2], pair) for k, pair in self._best]
        return dict(zip(self._best, min_decode_batches(every), strict=True))


def min_decode_batches(questions: Sequence[tuple[TaskPair, Step, Pair]]) -> list[float]:
    """Minimum batch of each pair's decode layout that carries the pair's load.

    The pairs of questions that are alike are looked at together.
    """
    batches = np.array([pair.batch for _, _, pair in questions])
    if questions and questions[0][0].decode.batches is not None:
        return batches.tolist()  # all of a given batch is in flight
    steps = [_decoding(*question) for question in questions]
    for numbers in group_compatible_steps([(step,) for step in steps]):
        together = Step.joined([steps[number] for number in numbers])
        carried = min_batch_for_load(together, batches[numbers])
        # Rounding may put the load of a sized pool above its capacity; its own batch stays then.
        batches[numbers] = np.where(carried > 0, carried, batches[numbers])
    return batches.tolist()


def evaluate_pairs(questions: Sequence[tuple[TaskPair, Step, Step, Pair]]) -> list[Candidate]:
    """`evaluate_pair` of each question; pools of compatible questions are computed together."""
    pairs = [pair for *_, pair in questions]
    reading = [_reading(tasks, step, pair) for tasks, step, _, pair in questions]
    decoding = [_decoding(tasks, step, pair) for tasks, _, step, pair in questions]
    reads = np.array([pair.reads for pair in pairs])
    fills = np.array([_fill(tasks, pair) for tasks, *_, pair in questions])
    carried = np.array(
        min_decode_batches([(tasks, step, pair) for tasks, _, step, pair in questions])
    )

    def quickest(step: Step, at: list[int]) -> list[float]:
        passes = (
            fastest_prefill_batch(step) if step.task.arrivals is not None else np.zeros(len(at))
        )
        return np.where(passes > 0, passes, reads[at]).tolist()

    reads = np.array(_together(reading, quickest))
    values = zip(
        _together(reading, lambda step, at: _floats(step, reads[at], fills[at])),
        _together(decoding, lambda step, at: _floats(step, carried[at], np.ones(len(at)))),
        strict=True,
    )
    return [
        _joint(*question, (reading[k], decoding[k]), (reads[k], carried[k]), of_both)
        for k, (question, of_both) in enumerate(zip(questions, values, strict=True))
    ]


def _together(steps: Sequence[Step], of: Callable[[Step, list[int]], list[T]]) -> list[T]:
    results: dict[int, T] = {}
    for at in group_compatible_steps([(step,) for step in steps]):
        results |= zip(at, of(Step.joined([steps[k] for k in at]), at), strict=True)
    return [results[k] for k in range(len(steps))]


def _floats(step: Step, batch: np.ndarray, fill: np.ndarray) -> list[dict[str, float]]:
    columns = {k: np.broadcast_to(v, batch.shape).tolist() for k, v in step(batch, fill).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def evaluate_pair(
    tasks: TaskPair,
    reading: Step,
    decoding: Step,
    pair: Pair,
    carried: Callable[[], float] | None = None,
) -> Candidate:
    """One pair at its split: the pool with room to spare runs below its most.

    `carried` gives its `min_decode_batches`, where those of other questions are worked out with it.
    """
    step = _reading(tasks, reading, pair)
    waits = tasks.prefill.arrivals is not None
    reads = (float(fastest_prefill_batch(step)[0]) if waits else 0.0) or pair.reads
    batch = carried() if carried else min_decode_batches([(tasks, decoding, pair)])[0]
    steps = step, _decoding(tasks, decoding, pair)
    return _joint(tasks, reading, decoding, pair, steps, (reads, batch))


def _joint(
    tasks: TaskPair,
    reading: Step,
    decoding: Step,
    pair: Pair,
    steps: tuple[Step, Step],
    batches: tuple[float, float],
    estimates: tuple[Mapping[str, float], ...] = (),
) -> Candidate:
    """A pair whose pools are sized, at their batches, with their estimates if these are known."""
    (first, last), fill = steps, _fill(tasks, pair)
    decode = evaluate(last.task, last.layouts, batches[1], sized=last)
    decoded = load_share(pair.requests, pair.slots[1], pair.replicas[1])
    pools = (
        evaluate(first.task, first.layouts, batches[0], fill, sized=first),
        replace(decode, share=decoded),
    )
    if estimates:
        pools = replace(pools[0], estimate=estimates[0]), replace(pools[1], estimate=estimates[1])
    chips = shards(reading)[pair.rows[0]], shards(decoding)[pair.rows[1]]
    transfer = float(tasks.transfer(*chips))

    def together(values: Sequence[Mapping[str, float]], made: Pair | None) -> dict[str, float]:
        slots = values[0]["slot"], values[1]["slot"]
        return pools_values(tasks.load, pools_symbols(tasks, pools, values, transfer, made, slots))

    symbols = Lazy(
        lambda: pools_symbols(
            tasks, pools, [pool.chosen_by for pool in pools], transfer, pair, pair.slots
        )
    )
    outputs = estimate = Lazy(lambda: pools_values(tasks.load, symbols))
    if last.task.uses_bound:
        estimate = Lazy(lambda: together([pool.estimate for pool in pools], pair))
    made = pair if last.task.batches else None
    bound = Lazy(lambda: together([pool.bound for pool in pools], made))
    return Candidate(pools, JointPools(tasks, pair, transfer, symbols, outputs, estimate, bound))


def _fill(tasks: TaskPair, pair: Pair) -> float:
    if tasks.prefill.arrivals is not None:
        return 1.0
    return load_share(pair.requests, pair.slots[0], pair.replicas[0])


def _reading(tasks: TaskPair, reading: Step, pair: Pair) -> Step:
    waits = tasks.prefill.arrivals is not None
    task = tasks.prefill.with_layout(arrivals=pair.requests if waits else None)
    return _sized(reading, pair.rows[0], pair.replicas[0], pair.chips[0]).with_values_of(task)


def _decoding(tasks: TaskPair, decoding: Step, pair: Pair) -> Step:
    step = _sized(decoding, pair.rows[1], pair.replicas[1], pair.chips[1])
    return step.with_values_of(tasks.decode.with_layout(arrivals=pair.requests))


def _sized(step: Step, row: int, replicas: int, chips: int) -> Step:
    part = step.take(np.array([row]))
    return part.on(replace(part.layouts, replicas=np.array([replicas]), chips=np.array([chips])))
