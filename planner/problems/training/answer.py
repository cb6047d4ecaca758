"""The answer to a training question: best layout, certificate, band, alternatives, ways out."""

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np

from planner.problems.training import plan as records
from planner.problems.training import search
from planner.problems.training.layout_lattice import layout_faults
from planner.problems.training.outputs import layout_slopes, recheck, training_point
from planner.problems.training.question import TrainingQuestion
from planner.problems.training.resolve import ResolvedTraining, resolve_training
from planner.problems.training.step.step_times import step_times, usable
from planner.problems.training.step.training_task import LayoutTable
from planner.problems.training.worth import ChipCount
from planner.protocol.plan import BindingLimit, KnownAnswer, MissedPromise, Provenance
from planner.scenario import resolve_keys
from planner.text.errors import FieldError, InputError, SolverError
from planner.text.quantities import show
from planner.text.wording import excess, increase

ALTERNATIVES = 4
ROUNDING = 1e-9  # of a bound, relative
DOUBLINGS = 6  # of the chips that are tried, until something fits
COVERAGE = 0.8  # share of measured rows that a band holds
METHOD = (
    "every divisor tuple with every choice, as arrays; the best one again by walking the "
    "equations with plain floats"
)


def answer(question: TrainingQuestion) -> records.TrainingPlan:
    """The layout of least time, cost or energy, with its proof.

    Raises InputError for a question that contradicts itself; SolverError if a number of the plan
    is not what its equation gives.
    """
    resolution = resolve_task(question)
    tally = search.search_layouts(resolution)
    ranked = tally.ranked(1 + ALTERNATIVES)
    if not ranked:
        return _infeasible(resolution, tally)
    best = ranked[0]
    point = training_point(best)
    off = recheck(best, point)
    bound, relaxation = _bound(best, point, tally)
    whole = records.TrainingAnswer(
        scenario=resolve_keys(question),
        plan=point,
        band=_band(best, point),
        bound=bound,
        gap=0.0,  # of every layout compared
        certificate=records.TrainingCertificate(
            METHOD, tally.seen, tally.fitting, tally.within, best.score, relaxation,
            max(0.0, 1 - relaxation / best.score), off,
        ),
        binding=tuple(_binding(best, tally)),
        elasticities=layout_slopes(question, best),
        alternatives=tuple(_alternative(each, best) for each in ranked[1:]),
        current=_current(resolution, best),
        outside=best.chips.case.outside,
        provenance=_provenance(resolution, best, tally),
    )  # fmt: skip
    return records.TrainingPlan(KnownAnswer(whole), question)


def resolve_task(question: TrainingQuestion) -> ResolvedTraining:
    """Look up everything that a training question refers to; the input of the search.

    Raises FieldError for all that is refused before layouts are timed.
    """
    resolution = resolve_training(question)
    chips, _ = next(search.chip_counts(resolution))
    assert chips.goodput > 0
    _current_words(resolution)
    return resolution


def _bound(
    best: search.RatedLayout, point: records.TrainingPoint, tally: search.LayoutCounts
) -> tuple[records.TrainingBound, float]:
    """Lower bounds of the step time [s] and of the objective; SolverError for a plan below them."""
    task = best.chips.case.task
    peak = float(np.asarray(step_times(task, best.layout, ("bound",)).bound))
    steps = dict(search.relaxed_steps(tally))
    step = max(peak, steps[best.chips])
    relaxation = min(
        float(np.asarray(chips.score(np.asarray(low), np.asarray(0.0))))
        for chips, low in steps.items()
    )
    if not max(peak, step) <= point.step_time * (1 + ROUNDING):
        raise SolverError(f"a step of {point.step_time:.9g} s is below its bound of {step:.9g} s")
    return records.TrainingBound(peak, step), relaxation


def _band(best: search.RatedLayout, point: records.TrainingPoint) -> records.RunBand:
    """Error bands of the plan: measured over predicted step times of comparable rows."""
    task = best.chips.case.task
    counts, stack = task.counts, task.stack
    band = stack.band(
        routed=counts.n_experts > 0, model=counts.name, chip=task.machine.chip,
        precision=task.precision,
    )  # fmt: skip
    low, high = band.low, band.high
    left_out = "random half" if counts.name in stack.models else "model out"
    part = f"{'routed' if counts.n_experts else 'dense'}, {left_out}"
    like_it = part in stack.errors and not best.chips.case.outside
    error = stack.errors[part][0] / 100 if like_it else None

    def ends(value: float | None) -> records.Interval | None:
        return None if value is None else (value * low, value * high)

    def rates(value: float) -> records.Interval:
        return (value / high, value / low)

    return records.RunBand(
        COVERAGE, (point.step_time * low, point.step_time * high), rates(point.tokens_per_s),
        rates(point.mfu), ends(point.days), ends(point.usd), stack.name, band.n, error,
    )  # fmt: skip


def _binding(best: search.RatedLayout, tally: search.LayoutCounts) -> Iterator[BindingLimit]:
    """Memory and limits without which another layout would be better.

    The elasticity is the mean slope from the limit to what that layout needs, in logarithms.
    """
    free, unlimited = tally.free, tally.unlimited or best
    worst = usable(best.chips.case.task)
    if free is not None and free.used > usable(free.chips.case.task) and free.score < best.score:
        slope = math.log(free.score / best.score) / math.log(free.used / worst)
        yield BindingLimit("memory", slope)
    if unlimited.score >= best.score * (1 - ROUNDING):
        return
    for name, factor in _beyond(best.chips.question, unlimited):
        slope = math.log(unlimited.score / best.score) / math.log(factor)
        yield BindingLimit(name, slope)


def _beyond(question: TrainingQuestion, rated: search.RatedLayout) -> Iterator[tuple[str, float]]:
    point = training_point(rated)
    for name, limit in question.limits:
        value = getattr(point, name)
        if limit is not None and value is not None and value > limit:
            yield f"limits.{name}", value / limit


def _alternative(rated: search.RatedLayout, best: search.RatedLayout) -> records.OtherLayout:
    """Alternative layout, with its relative loss of the objective against the best."""
    utilisation = rated.chips.worth(rated.step, 0.0)["mfu"]
    return records.OtherLayout(
        system=rated.chips.case.system.name,
        chips=rated.chips.paid,
        choice=rated.choice,
        layout=records.TrainingLayout(**rated.words),  # type: ignore[arg-type]
        step_time=rated.step,
        mfu=float(utilisation),
        memory=rated.used,
        loses=rated.score / best.score - 1,
    )


def rated_layout(chips: ChipCount, layout: LayoutTable) -> search.RatedLayout:
    """One layout with its score, timed by itself."""
    task = chips.case.task
    times = step_times(task, layout, ("step", "used"))
    step = np.asarray(times.step)
    again = np.asarray(chips.case.forward_again[int(layout.recompute)])
    score = float(np.asarray(chips.score(step, again)))
    return search.RatedLayout(chips, layout, score, float(step), float(np.asarray(times.used)))


def _current_words(resolution: ResolvedTraining) -> dict[str, Any] | None:
    """Layout in use by its axes, None without `current`; raises FieldError."""
    question = resolution.question
    layout = question.current
    if layout is None:
        return None
    case = resolution.cases[0]
    others = layout.tp * layout.pp * layout.cp
    words = dict(layout) | {
        "dp": layout.dp
        or next(n // others for n in sorted(question.chips, reverse=True) if not n % others),
        "tp_expert": layout.tp_expert or layout.tp,
        "offload": layout.offload[0],
        "sequence_parallel": int(layout.sequence_parallel),
        "overlap": int(layout.overlap),
    }
    faults = [(f"current.{key}", text) for key, text in layout_faults(case.divisions, words)]
    if faults:
        raise FieldError(*faults)
    return words


def _current(
    resolution: ResolvedTraining, best: search.RatedLayout | None
) -> records.CurrentLayout | None:
    """The layout in use, on the first system asked about."""
    question, words = resolution.question, _current_words(resolution)
    layout = question.current
    if layout is None or words is None:
        return None
    case = resolution.cases[0]
    chips = max(question.chips)
    others = layout.tp * layout.pp * layout.cp
    used = others * words["dp"]
    rated = rated_layout(
        ChipCount(question, case, used if used in question.chips else chips, used),
        LayoutTable.of(**words),
    )
    point = training_point(rated)
    short = rated.used - usable(case.task)
    saving = None if best is None or short > 0 else 1 - best.score / rated.score
    return records.CurrentLayout(point, short if short > 0 else None, saving)


def _infeasible(resolution: ResolvedTraining, tally: search.LayoutCounts) -> records.TrainingPlan:
    """Infeasible answer: limits missed by the nearest layout, and single changes that repair it."""
    question, nearest = resolution.question, tally.nearest
    assert nearest is not None  # a lattice without layouts is refused
    point = training_point(nearest)
    short = nearest.used - usable(nearest.chips.case.task)
    changes = repairs(question)
    whole = records.TrainingAnswer(
        scenario=resolve_keys(question),
        certificate=records.TrainingCertificate(
            METHOD, tally.seen, tally.fitting, 0, None, None, None, None
        ),
        current=_current(resolution, None),
        nearest=records.NearestLayout(point, short, changes) if short > 0 else None,
        repairs=changes,
        infeasible=missed_promises(question, tally),
        outside=nearest.chips.case.outside,
        provenance=_provenance(resolution, nearest, tally),
    )
    return records.TrainingPlan(KnownAnswer(whole), question)


def missed_promises(
    question: TrainingQuestion, tally: search.LayoutCounts
) -> tuple[MissedPromise, ...]:
    """Memory if no layout fits; else the limits missed by the best layout that fits."""
    nearest = tally.nearest
    assert nearest is not None
    if not tally.fitting:
        total, used = usable(nearest.chips.case.task), nearest.used
        words = f"{nearest.choice}: needs {show(used, 'size')} of {show(total, 'size')} a chip"
        more = increase(used / total - 1)
        return (MissedPromise("memory", used / total, f"{words} ({more})"),)
    best = tally.unlimited
    assert best is not None
    return tuple(
        MissedPromise(name, by, f"{best.choice}: takes {excess(by)} more than {name}")
        for name, by in _beyond(question, best)
    )


def _provenance(
    resolution: ResolvedTraining, best: search.RatedLayout, tally: search.LayoutCounts
) -> Provenance:
    """Provenance of the answer: data sources and warnings."""
    typed = {each.words for each in best.chips.case.outside}
    warnings = [each for each in resolution.warnings if each not in typed]
    idle = best.chips.paid - best.chips.used
    if idle:
        warnings.append(
            f"no layout uses all {best.chips.paid} chips: {idle} are idle, and paid; of fewer "
            f"chips the numbers from {tally.fewest} up were tried"
        )
    return Provenance(data=resolution.data, warnings=tuple(warnings))


def repairs(question: TrainingQuestion) -> tuple[records.Repair, ...]:
    """The changes that make some layout fit and keep the limits, each by itself, cheapest first."""
    repaired = []
    for change, varied in _changes(question):
        if (best := _best(varied)) is not None:
            price = training_point(best).usd_per_mtok
            repaired.append(records.Repair(change, best.choice, best.step, price))
            if varied.chips != question.chips:
                break
    return tuple(sorted(repaired, key=attrgetter("usd_per_mtok")))


def _changes(question: TrainingQuestion) -> Iterator[tuple[str, TrainingQuestion]]:
    for name, value in question.choose:
        if value is not None:
            free = question.choose.model_copy(update={name: None})
            yield f"choose.{name}=null", question.model_copy(update={"choose": free})
    for doublings in range(1, DOUBLINGS + 1):
        more = max(question.chips) * 2**doublings
        yield f"chips={more}", question.model_copy(update={"chips": (more,)})


def _best(question: TrainingQuestion) -> search.RatedLayout | None:
    try:
        ranked = search.search_layouts(resolve_training(question)).ranked(1)
    except InputError:
        return None
    return ranked[0] if ranked else None
