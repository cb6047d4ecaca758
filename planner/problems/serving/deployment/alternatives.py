"""Runners-up of another kind: another mode, other machines, or another family of layouts.

A family is which ways of splitting a layout uses at all; of two pools it is that of the one that
decodes. More replicas, or more chips of a way already used, are the same kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.problems.serving.deployment.pool_pairs import search_pools
from planner.problems.serving.deployment.pools import (
    DoublePoint,
    OnePool,
    Point,
    Question,
    SinglePoint,
    TwoPools,
)
from planner.problems.serving.search.batch import SAME_PRICE
from planner.problems.serving.step.layouts import Layouts

MOST = 4  # rivals of a plan that are told
COARSE = 3  # of them by mode and machines, where there are other families as well
NEAREST = 24  # layouts that decode, tried first when the best of another family is sought
WAYS = {
    "tp": "tensor-parallel attention",
    "cp": "contexts cut into parts",
    "dp_attention": "data-parallel attention",
    "ep": "expert parallelism",
    "tp_expert": "experts cut into parts",
    "pp": "pipeline stages",
}


@dataclass(frozen=True)
class Contender:
    """The best point of one kind, its question's number, and the layouts that are of its kind.

    `rows` index the layouts of the question, those of the pool that decodes if there are two;
    None stands for all of them.
    """

    kind: str
    question: int
    point: Point
    rows: np.ndarray | None


def machines(number: int, singles: int, systems: int) -> tuple[int, ...]:
    """Which systems of the scenario a question is about: one, or one for each of two pools.

    `singles` questions of one pool come first; of each mode and set of formats there is one for
    every system, of two pools one for every pair.
    """
    if number < singles:
        return (number % systems,)
    return divmod((number - singles) % systems**2, systems)


def winner(questions: Sequence[Question], best: Point) -> Contender:
    """The plan as a contender: every layout of its question."""
    mine = best.task if isinstance(best, SinglePoint) else best.pools
    number = next(
        k for k, each in enumerate(questions)
        if (each.task if isinstance(each, OnePool) else each.pools) is mine
    )  # fmt: skip
    return Contender("", number, best, None)


def contenders(
    questions: Sequence[Question], plan: Contender, systems: int
) -> list[tuple[Contender, Contender]]:
    """The best of every other kind with what of the plan's kind it stands against, best first."""
    singles = sum(isinstance(each, OnePool) for each in questions)
    of = [machines(k, singles, systems) for k in range(len(questions))]
    best: dict[tuple[str, tuple[int, ...]], Contender] = {}
    mine = (_mode(plan.point), _chosen(of[plan.question]))
    for number, each in enumerate(questions):
        points: Sequence[Point] = each.points()
        if not points:
            continue
        found = points[0]
        key = (_mode(found), _chosen(of[number]))
        if key != mine and (key not in best or found.score < best[key].point.score):
            best[key] = Contender(_words(found, plan.point, key, mine), number, found, None)
    coarse = sorted(best.values(), key=lambda one: one.point.score)
    # What is exactly as good lost only by its speed: under a load all that carry it cost the same.
    worse = plan.point.score * (1 + SAME_PRICE)
    families = [pair for pair in _families(questions, plan) if pair[0].point.score > worse]
    families.sort(key=lambda pair: pair[0].point.score)
    first = coarse[: COARSE if families else MOST]
    found_ = [(one, plan) for one in first] + families[: MOST - len(first)]
    return sorted(found_, key=lambda pair: pair[0].point.score)


def _chosen(of: tuple[int, ...]) -> tuple[int, ...]:
    """Machines of a question; two pools of one system are on what one pool would be."""
    return of[:1] if len(set(of)) == 1 else of


def _mode(point: Point) -> str:
    return point.task.mode if isinstance(point, SinglePoint) else "disaggregated"


def _words(
    point: Point, plan: Point, key: tuple[str, tuple[int, ...]], mine: tuple[str, tuple[int, ...]]
) -> str:
    words = [key[0]] if key[0] != mine[0] else []
    return " ".join(words if key[1] == mine[1] else [*words, _where(point, plan)])


def _where(point: Point, plan: Point) -> str:
    """Chips of a point; machines as well where the chips alone do not tell it from the plan."""
    if isinstance(point, SinglePoint):
        names = [point.task.chip.name]
        known = {plan.task.chip.name} if isinstance(plan, SinglePoint) else set()
        return f"on {point.task.machine.name if set(names) == known else names[0]}"
    tasks = (point.pools.prefill, point.pools.decode)
    first, second = (task.chip.name for task in tasks)
    if first == second:
        first, second = (task.machine.name for task in tasks)
    return f"on {first}" if first == second else f"reading on {first}, decoding on {second}"


def _families(
    questions: Sequence[Question], plan: Contender
) -> Iterator[tuple[Contender, Contender]]:
    """The best of every other family of the plan's own question, beside the plan's family."""
    question = questions[plan.question]
    if isinstance(question, OnePool):
        flags = _flags(question.step.layouts)
        point = plan.point
        own = int(_flags(point.layouts)[0])  # type: ignore[union-attr]
    else:
        flags = _flags(question.decoding.step.layouts)
        own = int(flags[plan.point.pair.rows[1]])  # type: ignore[union-attr]
    own_rows = replace(plan, rows=np.flatnonzero(flags == own))
    for family, rows, point in _others(question, flags, own):
        words = _difference(family, own)
        if isinstance(question, TwoPools):
            words = f"decoding {words}"
        yield Contender(words, plan.question, point, rows), own_rows


def _others(
    question: Question, flags: np.ndarray, own: int
) -> Iterator[tuple[int, np.ndarray, Point]]:
    if isinstance(question, OnePool):
        found = question.found
        _, leading = np.unique(flags[found.rows], return_index=True)
        for at in leading:
            family = int(flags[found.rows[at]])
            if family != own:
                yield family, np.flatnonzero(flags == family), _point(question, int(at))
        return
    point = _other_pair(question, np.flatnonzero(flags != own))
    if point is not None:
        family = int(flags[point.pair.rows[1]])
        yield family, np.flatnonzero(flags == family), point


def _other_pair(question: TwoPools, rows: np.ndarray) -> DoublePoint | None:
    """The best pair whose decoding layout is one of the `rows`."""
    found, reading = question.decoding.found, question.reading
    order, first = np.unique(found.rows, return_index=True)
    alone = np.full(len(question.decoding.step.layouts), np.inf)
    alone[order] = found.score[first]
    rows = rows[np.isfinite(alone[rows])]
    rows = rows[np.argsort(alone[rows], kind="stable")]
    least = float(reading.found.score.min(initial=np.inf))
    step, decoding = reading.step.asked(question.pools.prefill), question.decoding.step
    best, start = None, 0
    # No split costs less than what either pool costs by itself.
    while start < rows.size and (best is None or alone[rows[start]] + least < best.score):
        some = rows[start : start + NEAREST]
        pairs, _ = search_pools(question.pools, step, decoding.take(some))
        if pairs and (best is None or pairs[0].score < best.score):
            best = replace(pairs[0], rows=(pairs[0].rows[0], int(some[pairs[0].rows[1]])))
        start += NEAREST
    if best is None:
        return None
    return DoublePoint(best.score, question.pools, reading.step, decoding, best)


def _point(question: OnePool, at: int) -> SinglePoint:
    found = question.found
    return SinglePoint(
        float(found.score[at]),
        question.task,
        question.step.layouts.take(found.rows[at : at + 1]),
        float(found.batch[at]),
        float(found.fill[at]),
    )


def _flags(layouts: Layouts) -> np.ndarray:
    """The family of every layout: one bit for each way of splitting that it uses."""
    used = [(getattr(layouts, name) > 1) * (1 << k) for k, name in enumerate(WAYS)]
    return np.sum(used, axis=0)


def _difference(family: int, own: int) -> str:
    """What one family has that the other has not, in words."""
    more = [words for k, words in enumerate(WAYS.values()) if family & ~own & (1 << k)]
    less = [words for k, words in enumerate(WAYS.values()) if own & ~family & (1 << k)]
    told = ([f"with {' and '.join(more)}"] if more else []) + (
        [f"without {' and '.join(less)}"] if less else []
    )
    return ", ".join(told)
