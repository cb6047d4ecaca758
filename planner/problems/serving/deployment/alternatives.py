"""Runners-up of another kind: another mode, other machines, or another family of layouts.

A family is which ways of splitting a layout uses at all; of two pools it is that of the one that
decodes. More replicas, or more chips of a way already used, are the same kind.

The kinds and how much dearer they are come with every answer. What would have to change is worked
out only when asked for, since both kinds are then solved again many times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.catalogue.chips import borrowed_efficiency_note
from planner.problems.serving.advice.switch_points import Contender, SwitchScan, machines, switches
from planner.problems.serving.deployment.questions import Question, TwoPools, all_searches
from planner.problems.serving.deployment.scored_points import PlanPoint, ranked_points
from planner.problems.serving.pairs.pool_pairs import Pair, search_parts
from planner.problems.serving.plan import ComparedSystem, RivalKind
from planner.problems.serving.point import short_point
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.batch import SAME_PRICE
from planner.problems.serving.task.resolve import resolve
from planner.scenario.keys.references import File

MAX_ALTERNATIVES = 4  # alternative kinds that are printed
MAX_COARSE_ALTERNATIVES = 3  # alternatives by mode and machines, if other families exist as well
NEAREST_LAYOUTS = 24  # layouts that decode, tried first when the best of another family is sought
FAMILIES = {
    "tp": "tensor-parallel attention",
    "cp": "contexts cut into parts",
    "dcp": "contexts cut over chips of tp",
    "dp_attention": "data-parallel attention",
    "ep": "expert parallelism",
    "tp_expert": "experts cut into parts",
    "pp": "pipeline stages",
    "halves": "overlapped half-batches",
}


def alternative_kinds(
    scenario: Scenario, questions: Sequence[Question], best: PlanPoint, *, why: bool = False
) -> tuple[RivalKind, ...]:
    """The best plan of every other kind, best first.

    `behind` is by how much its objective is worse, as a fraction. `wins_if` lists the nearest
    changes of one given quantity at which its kind overtakes the plan's; it is None unless `why`.
    """
    contest = SwitchScan(scenario, questions)
    return tuple(
        RivalKind(
            kind=contender.kind,
            plan=short_point(contender.point.candidate.plan()),
            behind=contender.point.score / best.score - 1,
            wins_if=switches(contest, against, contender) if why else None,
        )
        for contender, against in contenders(questions, winner(questions, best), contest.systems)
    )


def explained_kinds(scenario: Scenario) -> tuple[RivalKind, ...]:
    """Alternative kinds of plan, with the changes that let each win; empty without a plan."""
    questions = all_searches(resolve(scenario))
    points = ranked_points(questions)
    return alternative_kinds(scenario, questions, points[0], why=True) if points else ()


def compared_systems(
    scenario: Scenario, questions: Sequence[Question], best: PlanPoint
) -> tuple[ComparedSystem, ...] | None:
    """Compare the plan with the best plan on each listed system alone; None for one system.

    `behind` is by how much the objective is worse, None where nothing keeps the promises.
    """
    systems = scenario.systems()
    if len(systems) == 1:
        return None
    points: dict[int, PlanPoint] = {}
    for number, question in enumerate(questions):
        of = set(machines(questions, number, len(systems)))
        if len(of) == 1 and (alone := question.points()):
            k = of.pop()
            points[k] = min(points.get(k, alone[0]), alone[0], key=lambda point: point.score)
    # Systems are called by their catalogue names, or by the files that wire them.
    names = (system.written if isinstance(system, File) else system.name for system in systems)
    return tuple(
        ComparedSystem(
            name,
            points[k].score / best.score - 1 if k in points else None,
            k in points and _unranked(points[k], best),
        )
        for k, name in enumerate(names)
    )


def _unranked(point: PlanPoint, best: PlanPoint) -> bool:
    task = point.tasks[-1]
    if borrowed_efficiency_note(task.chip.name, task.profile.chips):
        return True
    if task.chip.maker in {task.chip.maker for task in best.tasks}:
        return False
    ends, least = _ends(point), _ends(best)
    return ends is not None and least is not None and ends[0] < least[1]


def _ends(point: PlanPoint) -> tuple[float, float] | None:
    candidate = point.candidate
    band = candidate.band(candidate.plan())
    if band is None:
        return None
    if point.objective == "latency":
        return band.tpot or band.ttft
    return band.joule_per_token if point.objective == "energy" else band.usd_per_mtok


def winner(questions: Sequence[Question], best: PlanPoint) -> Contender:
    """The plan as a contender: every layout of its question."""
    number = next(k for k, each in enumerate(questions) if each.task is best.tasks[-1])
    return Contender("", number, best, None)


def contenders(
    questions: Sequence[Question], plan: Contender, systems: int
) -> list[tuple[Contender, Contender]]:
    """Pair the best of every other kind with its counterpart of the plan's kind, best first."""
    every = (machines(questions, k, systems) for k in range(len(questions)))
    # Two pools on one system count as that system, like one pool.
    of = [each[:1] if len(set(each)) == 1 else each for each in every]
    best: dict[tuple[str, tuple[int, ...]], Contender] = {}
    mine = (plan.point.mode, of[plan.question])
    for number, question in enumerate(questions):
        points = question.points()
        if not points:
            continue
        point, key = points[0], (points[0].mode, of[number])
        if key != mine and (key not in best or point.score < best[key].point.score):
            words = [point.mode] if key[0] != mine[0] else []
            words += [_where(point, plan.point)] if key[1] != mine[1] else []
            best[key] = Contender(" ".join(words), number, point, None)
    coarse = sorted(best.values(), key=lambda contender: contender.point.score)
    # Families of equal score lost only by speed: under a load, plans that carry it cost equally.
    worse = plan.point.score * (1 + SAME_PRICE)
    families = [pair for pair in _families(questions, plan) if pair[0].point.score > worse]
    families.sort(key=_by_price)
    first = coarse[: MAX_COARSE_ALTERNATIVES if families else MAX_ALTERNATIVES]
    pairs = [(contender, plan) for contender in first] + families[: MAX_ALTERNATIVES - len(first)]
    return sorted(pairs, key=_by_price)


def _by_price(pair: tuple[Contender, Contender]) -> tuple[float, int, int]:
    point = pair[0].point
    return float(f"{point.score:.9g}"), point.chips, point.odd()


def _where(point: PlanPoint, plan: PlanPoint) -> str:
    """Chips of a point; machines as well where the chips alone do not tell it from the plan."""
    names = [task.chip.name for task in point.tasks]
    ambiguous = len(set(names)) == 1 and (
        len(names) > 1 or (len(plan.tasks) == 1 and names[0] == plan.tasks[0].chip.name)
    )
    if ambiguous:
        names = [task.machine.name for task in point.tasks]
    if len(set(names)) == 1:
        return f"on {names[0]}"
    return f"reading on {names[0]}, decoding on {names[1]}"


def _families(
    questions: Sequence[Question], plan: Contender
) -> Iterator[tuple[Contender, Contender]]:
    """Yield the best of every other layout family of the question, with the plan's family."""
    question = questions[plan.question]
    # The family of every layout: one bit for each way of splitting that it uses.
    layouts = question.pools[-1].step.layouts
    used = [(getattr(layouts, name) > 1) * (1 << k) for k, name in enumerate(FAMILIES)]
    flags = np.sum(used, axis=0)
    mine = int(flags[plan.point.rows[-1]])
    against = replace(plan, rows=np.flatnonzero(flags == mine))
    for point in _best_of_others(question, flags, mine):
        family = int(flags[point.rows[-1]])
        more = [words for k, words in enumerate(FAMILIES.values()) if family & ~mine & (1 << k)]
        less = [words for k, words in enumerate(FAMILIES.values()) if mine & ~family & (1 << k)]
        parts = (("with", more), ("without", less))
        words = ", ".join(f"{word} {' and '.join(names)}" for word, names in parts if names)
        if isinstance(question, TwoPools):
            words = f"decoding {words}"
        yield Contender(words, plan.question, point, np.flatnonzero(flags == family)), against


def _best_of_others(question: Question, flags: np.ndarray, mine: int) -> Iterator[PlanPoint]:
    """The best point of each other family; of two pools the best of all others."""
    if isinstance(question, TwoPools):
        point = _best_pair(question, np.flatnonzero(flags != mine))
        if point is not None:
            yield point
        return
    families = flags[question.searched.rows]
    for family, at in zip(*np.unique(families, return_index=True), strict=True):
        if family != mine:
            yield question.point(int(at))


def _best_pair(question: TwoPools, rows: np.ndarray) -> PlanPoint | None:
    """The best pair whose decoding layout is one of the `rows`."""
    reading, decoding = (pool.searched for pool in question.pools)
    order, first = np.unique(decoding.rows, return_index=True)
    alone = np.full(decoding.layouts_considered, np.inf)
    alone[order] = decoding.score[first]
    rows = rows[np.isfinite(alone[rows])]
    rows = rows[np.argsort(alone[rows], kind="stable")]
    least = float(reading.score.min(initial=np.inf))
    best: Pair | None = None

    def nearest() -> Iterator[np.ndarray]:
        for start in range(0, rows.size, NEAREST_LAYOUTS):
            # No split costs less than what either pool costs by itself.
            if best is not None and alone[rows[start]] + least >= best.score:
                return
            yield rows[start : start + NEAREST_LAYOUTS]

    for pairs in search_parts(question.pair, *question.steps, nearest()) if rows.size else ():
        if pairs and (best is None or pairs[0].score < best.score):
            best = pairs[0]
    return None if best is None else question.point(best)
