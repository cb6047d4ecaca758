"""The share of its peak that a phase of training reaches, by the size of the model it trains.

`SizeLayouts.at` is the training planner's best layout for one model; `search_size_grid` tries
sizes one percent apart for the best of them, which no monomial of the size could say: layouts
switch from one size to the next.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from planner.architecture.counts import ModelSizes
from planner.problems.training.outputs import training_point
from planner.problems.training.plan import TrainingPoint
from planner.problems.training.question import PretrainPhase, TrainingQuestion, Work
from planner.problems.training.resolve import TrainingCase, resolve_training
from planner.problems.training.search import RatedLayout, search_layouts
from planner.problems.training.step.step_times import step_times
from planner.problems.training.step.training_counts import TrainingCounts, counts_from_sizes
from planner.protocol.parameter import with_value
from planner.protocol.plan import DataSource
from planner.text.errors import FieldError, ModelError
from planner.token_costs.phase_costs import FORWARD, PhaseCost, PlannedSlope, SizedShare, best_phase
from planner.token_costs.spending import FixedShare, PlannedLayout, TrainedTokens

PATH = "phases.pretrain"
GRID_RATIO = 1.01  # factor between two sizes of the ladder
COARSE_STRIDE = 8  # rungs between sizes that are laid out first
# Rungs to either side: a factor of 2.6; the middle moves where the best is at an end.
MAX_STEPS = 96
OF_SYSTEM = ("system", "price", "precision")  # keys that a phase has itself
LINKS = ("scale_up", "scale_out")  # which a topology file has itself
DIFFERENCE_STEP = 1e-4  # of a figure of the machine, in logarithms


@dataclass(frozen=True, eq=False)
class PlannedStep:
    """The best layout of one model, and the share of the peak that its weights' FLOP are."""

    n_active: float
    share: float
    rated: RatedLayout

    @cached_property
    def point(self) -> TrainingPoint:
        """The layout as a training answer has it."""
        return training_point(self.rated)

    @property
    def case(self) -> TrainingCase:
        """System, price and stack."""
        return self.rated.chips.case


@dataclass(frozen=True, eq=False)
class SizeLayouts:
    """The training planner on every model that a question may choose.

    `member` counts the model of a size. Sizes that were laid out are kept in `steps`, what was
    refused of others in `refused`.
    """

    scenario: Any
    member: Callable[[float], ModelSizes]
    steps: dict[float, PlannedStep | None] = field(default_factory=dict)
    refused: list[FieldError] = field(default_factory=list)

    @property
    def phase(self) -> PretrainPhase:
        """Pre-training phase of the scenario."""
        phase: PretrainPhase = self.scenario.phases.pretrain
        return phase

    def at(self, n_active: float) -> PlannedStep | None:
        """Cheapest layout for the model of a size; None if no layout is feasible."""
        if n_active not in self.steps:
            self.steps[n_active] = self._best(n_active)
        return self.steps[n_active]

    def _best(self, n_active: float) -> PlannedStep | None:
        try:
            counted = self.member(n_active)
        except ModelError:
            return None  # the family has no such member
        try:
            resolution = resolve_training(self.question(counts_from_sizes(counted)))
            ranked = search_layouts(resolution).ranked(1)
        except FieldError as error:
            self.refused.append(FieldError(*((_placed(path), text) for path, text in error.faults)))
            return None
        if not ranked:
            return None
        size = float(counted.n_active["all"])
        return PlannedStep(size, planned_mfu(size, ranked[0]), ranked[0])

    def question(self, counts: TrainingCounts) -> TrainingQuestion:
        """The phase as a training question about a model that is counted."""
        run, phase = self.phase.training, self.phase
        assert run is not None
        assert phase.system is not None  # refused as it is read
        question = TrainingQuestion.model_construct(
            problem="training", model="", system=phase.system, chips=run.chips,
            work=Work.model_construct(
                global_batch=run.global_batch, sequence=run.sequence, tokens=None),
            precision=phase.dtype, state=run.state, reliability=run.reliability,
            choose=run.choose, objective="cost", price=phase.price, profile=run.profile,
        )  # fmt: skip
        return question.model_copy(update={"model": counts})

    def slopes(self, step: PlannedStep) -> tuple[PlannedSlope, ...]:
        """Elasticities of the price of a FLOP to the machine's figures at a fixed layout [-]."""
        system, dtype = step.case.system, self.phase.dtype
        figures = (
            (f"flops.{dtype}", system.chip.peak(dtype), "flop/s"),
            ("memory_bandwidth", system.chip.memory_bandwidth, "byte/s"),
            *((key, getattr(system, key), "byte/s") for key in LINKS if system.file is None),
        )
        rows = []
        for key, value, unit in figures:
            if not value:
                continue
            path = f"system.{key}"
            varied = with_value(self.scenario, f"{PATH}.{path}", value * math.exp(DIFFERENCE_STEP))
            faster = replace(self, scenario=varied)
            slope = math.log(faster.held_step(step) / step.rated.step) / DIFFERENCE_STEP
            if slope:
                rows.append(PlannedSlope(path, value, unit, slope))
        return tuple(rows)

    def held_step(self, step: PlannedStep) -> float:
        """Time of a step [s] of the same layout in this phase, whose machine may differ."""
        (case,) = resolve_training(self.question(step.case.task.counts)).cases
        return float(np.asarray(step_times(case.task, step.rated.layout, ("step",)).step))


def planned_mfu(n_active: float, rated: RatedLayout) -> float:
    """Share of the peak that the FLOP of the weights are, idle chips and failures paid for [1]."""
    from formulas.scaling.budget_outputs import planned_share

    case = rated.chips.case
    token = float(rated.chips.worth(rated.step, 0.0)["w_train"])
    return float(planned_share.numpy()(
        N_active=n_active, c_fwd=FORWARD, p_chip=case.price.value, w_train=token,
        F_train=case.task.machine.peak,
    ))  # fmt: skip


def search_size_grid(
    layouts: SizeLayouts, score: Callable[[np.ndarray, np.ndarray], np.ndarray], around: float,
    within: tuple[float, float], beside: Sequence[float] = (),
) -> PlannedStep:  # fmt: skip
    """The step of the size with the least score, of all sizes on a ladder of one percent.

    Sizes are laid out a few rungs apart first; then every rung at which the best share of those
    would pay. Raises FieldError where no size has a layout.

    Args:
        score: What is made small at sizes (n,) [param] that reach shares (n,); infinite where a
            size cannot be as good as asked.
        around: The size in the middle.
        within: The sizes that are allowed.
        beside: Sizes off the ladder that are laid out too.
    """
    while True:
        middle = round(math.log(around) / math.log(GRID_RATIO))  # fixed grid for any `around`
        rungs = GRID_RATIO ** np.arange(middle - MAX_STEPS, middle + MAX_STEPS + 1, dtype=float)
        rungs = np.unique(np.clip(rungs, *within))
        # Best step on the coarse grid and extra sizes; FieldError if no size has a layout.
        first = (*rungs[::COARSE_STRIDE].tolist(), *beside)
        steps = [step for size in first if (step := layouts.at(size))]
        if not steps:
            if layouts.refused:
                raise layouts.refused[-1]
            words = "no layout fits into the memory of these chips for any size; give more chips"
            raise FieldError((f"{PATH}.training.chips", words))
        best = _best_step(steps, score)
        hopeful = score(rungs, np.full(len(rungs), max(step.share for step in steps)))
        steps += [step for size in rungs[hopeful < best[0]] if (step := layouts.at(float(size)))]
        step = _best_step(steps, score)[1]
        ends = [end for end in rungs[[0, -1]].tolist() if end not in within]
        end = min(ends, key=lambda size: abs(math.log(size / step.n_active)), default=around)
        if (
            abs(math.log(end / step.n_active)) > COARSE_STRIDE * math.log(GRID_RATIO)
            or end == around
        ):
            return step
        around = end


def _best_step(
    steps: Sequence[PlannedStep], score: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[float, PlannedStep]:
    sizes, shares = (np.array([getattr(x, name) for x in steps]) for name in ("n_active", "share"))
    scores = score(sizes, shares)
    place = int(np.argmin(scores))
    return float(scores[place]), steps[place]


def planned_cost(layouts: SizeLayouts, step: PlannedStep, growth: float = 0.0) -> PhaseCost:
    """The phase at the share that a step reaches, with those of every size that was laid out."""
    laid = {each.n_active: each.share for each in layouts.steps.values() if each}
    sizes, shares = (np.array(x) for x in zip(*sorted(laid.items()), strict=True))
    trend = float(np.polyfit(np.log(sizes), np.log(shares), 1)[0]) if len(sizes) > 1 else 0.0
    sized = SizedShare(step.n_active, sizes, shares, growth, trend, layouts.slopes(step))
    return replace(cost_with_mfu(layouts.phase, step.share), sized=sized)


def cost_with_mfu(phase: PretrainPhase, share: float) -> PhaseCost:
    """The phase at any share of the peak."""
    at_share = phase.model_copy(update={"mfu": share})
    return best_phase("pretrain", at_share, 3 * FORWARD, unpriced=f"{PATH}.price")


def fixed_cost(phase: PretrainPhase, *, sparse: bool) -> PhaseCost:
    """The phase at the share of the peak that is given, or that a published run reached.

    Raises FieldError where none is given and none is known.
    """
    return best_phase("pretrain", phase, 3 * FORWARD, unpriced=f"{PATH}.price", sparse=sparse)


@dataclass(frozen=True)
class PlannedTraining:
    """Planned layout, its data sources and warnings; empty if no layout was planned."""

    layout: PlannedLayout | None = None
    data: tuple[DataSource, ...] = ()
    warnings: tuple[str, ...] = ()


def planned_training(
    layouts: SizeLayouts, step: PlannedStep, tokens: float,
    beside: Callable[[PhaseCost], FixedShare | None], *, sparse: bool,
) -> PlannedTraining:  # fmt: skip
    """Planned layout as an answer shows it, with the comparison to a fixed share of the peak.

    `tokens` are trained on, of dense or `sparse` models.
    """
    point, chips = step.point, step.rated.chips
    seconds = tokens / (point.tokens_per_s * chips.goodput)
    record = PlannedLayout(
        system=point.system, chips=point.chips, layout=step.rated.choice,
        step_time=point.step_time, tokens_per_s=point.tokens_per_s, mfu=point.mfu,
        share=step.share, usd_per_mtok=point.usd_per_mtok, days=seconds / 86400.0,
        sizes=sum(each is not None for each in layouts.steps.values()),
    )  # fmt: skip
    resolution = resolve_training(layouts.question(step.case.task.counts))
    data = tuple(replace(each, what=f"pretrain: {each.what}") for each in resolution.data)
    warnings = tuple(f"pretrain: {sentence}" for sentence in resolution.warnings)
    try:
        fixed = fixed_cost(layouts.phase, sparse=sparse)
    except FieldError as error:
        none = f"{PATH}.training: no fixed share of the peak stands beside ({error})"
        return PlannedTraining(record, data, (*warnings, none))
    return PlannedTraining(replace(record, fixed_mfu=beside(fixed)), data, warnings)


def fixed_share(
    fixed: PhaseCost, size: float, tokens: float, claimed: float, cost: float | None, best: float
) -> FixedShare:
    """Life of the size chosen by a fixed share of the peak: `claimed` cost and actual cost."""
    rate = fixed.rate
    return FixedShare(
        mfu=fixed.mfu or math.nan, source=f"{rate.source}; {rate.model}" if rate else "given",
        n_active=size, tokens=TrainedTokens(tokens), claimed=claimed, cost=cost,
        worse_by=None if cost is None else cost / best - 1,
    )  # fmt: skip


def supporting_growth(rise: float, share: float) -> float:
    """Value of d ln(share of the peak) / d ln(size) that makes a size stationary.

    Layouts switch from size to size, so the best of them is a corner: of the powers that touch the
    cost there, this is the one whose own optimum it is.

    Args:
        rise: d ln(what is made small) / d ln(size) at a constant share of the peak.
        share: d ln(what is made small) / d ln(cost of the phase).
    """
    return rise / share if share else 0.0


def _placed(path: str) -> str:
    key = path.partition(".")[0]
    if key == "precision":
        return f"{PATH}.dtype"
    return f"{PATH}.{path}" if key in OF_SYSTEM else f"{PATH}.training.{path}"
