"""The way out of an infeasible question, one promise at a time: what it would have to be alone.

Every promised time grows with the batch, so in one pool the least value of each is that of the
smallest batch, over all layouts that keep everything else. Two pools are searched again with the
promise eased, until no smaller one is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from planner.problems.serving.deployment.pair import PairCandidate, evaluate_pair
from planner.problems.serving.deployment.pool_pairs import search_pools
from planner.problems.serving.deployment.pools import OnePool, Question, TwoPools
from planner.problems.serving.search.batch import LARGEST_BATCH, feasible, given
from planner.problems.serving.search.sizing import carrying
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import PROMISES, Task
from planner.protocol.bracket import Bracket, bracketed

CLOSE = 5e-7  # share of a value below which no smaller one is sought
STEPS = {promise: name for name, promise in PROMISES.items()}


def eased(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Each promise, what was promised, and the least value that all others would leave possible.

    `alone` is in the unit of the promise, null where no value of it alone makes an answer.
    """
    made: dict[str, float] = {}
    least: dict[str, float] = {}
    for each in questions:
        tasks = [each.task] if isinstance(each, OnePool) else [each.pools.prefill, each.task]
        for task in tasks:
            made |= task.promises
    for each in sorted(questions, key=lambda one: isinstance(one, TwoPools)):
        for name in made:
            known = least.get(name, math.inf)
            found = _alone(each, name) if isinstance(each, OnePool) else _of_two(each, name, known)
            least[name] = min(known, found)
    return [
        {
            "promise": name,
            "promised": limit,
            "alone": least[name] if math.isfinite(least[name]) else None,
        }
        for name, limit in made.items()
    ]


def _without(task: Task, name: str, value: float | None = None) -> Task:
    """The same question with a promise eased, or without it."""
    others = {key: limit for key, limit in task.promises.items() if key != name}
    if name in task.promises and value is not None:
        others[name] = value
    return task.with_layout(promises=others)


def _alone(question: OnePool, name: str) -> float:
    """The least value in one pool; infinite where the others cannot be kept."""
    task, step = _without(question.task, name), question.step
    if name not in question.task.promises:
        return math.inf
    step, batch, fill = _smallest(step.asked(task))
    if not len(step.layouts):
        return math.inf
    values = step(batch, fill)
    kept = feasible(task, values)
    found = np.broadcast_to(values[STEPS[name]], kept.shape)[kept]
    return float(found.min(initial=math.inf))


def _smallest(step: Step) -> tuple[Step, np.ndarray, np.ndarray]:
    """Every layout at the smallest batch that the question admits."""
    task = step.task
    if task.loaded:
        # The more chips carry the load, the less each holds.
        paid = np.full(len(step.layouts), max(task.chips))
        if task.limits_of.get("replicas") is None:
            step = step.on(step.layouts.on(paid, task.machine.chips_per_domain))
        batch = carrying(step, LARGEST_BATCH)
        kept = batch > 0
        return step.take(kept), batch[kept], np.ones(int(kept.sum()))
    if task.batches is not None or task.mode == "prefill":
        rows, batch, fill = given(task, step.layouts)
        return step.take(rows), batch, fill
    return step, np.ones(len(step.layouts)), np.ones(len(step.layouts))


def _of_two(question: TwoPools, name: str, bound: float) -> float:
    """The least value in two pools, sought below a `bound`; infinite where there is none."""
    promises = {**question.pools.prefill.promises, **question.pools.decode.promises}
    reached = _kept(question, name, bound * (1 - CLOSE))
    if not math.isfinite(reached):
        return reached
    missed = False

    def tight(turn: int) -> bool:
        # Values are those of layouts: often nothing is left below the last.
        return turn == 0 if question.pools.demand is not None else turn % 2 == 0

    def propose(bracket: Bracket) -> Sequence[float]:
        if missed and tight(bracket.turn - 1):
            return ()
        below = reached * (1 - CLOSE)
        return (below,) if tight(bracket.turn) else (math.sqrt(bracket.far * reached),)

    def difference(values: Sequence[float]) -> list[float]:
        nonlocal reached, missed
        least = _kept(question, name, values[0])
        missed = not math.isfinite(least)
        reached = reached if missed else least
        return [-1.0 if missed else 1.0]

    start = Bracket(reached, promises[name])
    bracketed(difference, start, propose, lambda bracket: reached / bracket.far <= 1 + CLOSE)
    return reached


def _kept(question: TwoPools, name: str, value: float) -> float:
    """What a plan with the promise at this value makes of it; infinite where there is none."""
    pools = question.pools
    eased_ = None if math.isinf(value) else value
    # Without a load the smallest batch is the fastest.
    objective = "latency" if pools.demand is None else pools.decode.objective
    first, second = (
        _without(task, name, eased_).with_layout(objective=objective)
        for task in (pools.prefill, pools.decode)
    )
    asked = replace(pools, prefill=first, decode=second)
    reading = question.reading.step.asked(first)
    decoding = question.decoding.step.asked(second.with_layout(arrivals=None))
    pairs, _ = search_pools(asked, reading, decoding)
    if not pairs:
        return math.inf
    reached = [_reached(evaluate_pair(asked, reading, decoding, pair), name) for pair in pairs]
    if pools.demand is None or eased_ is None:
        return min(reached)
    return eased_


def _reached(pair: PairCandidate, name: str) -> float:
    """The promised time of a pair [s]."""
    tpot = pair.decoders.chosen_by["tpot"]
    if name == "tpot":
        return tpot
    if name == "e2e":
        return pair.ttft + (pair.task.output_tokens - 1) * tpot
    return pair.ttft if name == "ttft" else pair.readers.chosen_by[name] + pair.moved
