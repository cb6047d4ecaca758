"""How the pre-training of the model that is chosen is laid out, and what a fixed share gave."""

import math
from dataclasses import dataclass, replace

from planner.problems import training
from planner.problems.lifecycle.resolve import LifecycleTask
from planner.problems.lifecycle.search import optimal_size as search
from planner.protocol.plan import DataSource
from planner.text.errors import FieldError
from planner.token_costs.phase_costs import PhaseCost
from planner.token_costs.spending import FixedShare, PlannedLayout, TrainedTokens


@dataclass(frozen=True)
class PlannedTraining:
    """A layout, where its figures stand and what to say of it; nothing where none was planned."""

    layout: PlannedLayout | None = None
    data: tuple[DataSource, ...] = ()
    warnings: tuple[str, ...] = ()


def planned_training(best: search.FixedLayoutOptimum) -> PlannedTraining:
    """The training layout of an optimum, and beside it what a fixed share of the peak gave.

    Raises SolverError where the life at a fixed share does not settle.
    """
    life, size = best.life, best.whole.n_active
    phase = life.scenario.phases.pretrain
    if phase.training is None:
        return PlannedTraining()
    layouts = life.layouts(best.sparsity)
    step = layouts.at(size)
    assert step is not None  # it was chosen
    record = training.planned_layout(layouts, step, best.whole.pretrain)
    warnings = layouts.warnings(step)
    try:
        fixed = training.fixed_cost(phase, sparse=best.sparsity > 1)
    except FieldError as error:
        none = f"phases.pretrain.training: no fixed share of the peak stands beside ({error})"
        return PlannedTraining(record, layouts.data(step), (*warnings, none))
    record = replace(record, fixed_mfu=_fixed(best, fixed))
    return PlannedTraining(record, layouts.data(step), warnings)


def _fixed(best: search.FixedLayoutOptimum, fixed: PhaseCost) -> FixedShare | None:
    """The life at a fixed share, charged what training its size really costs."""
    claimed = search.optimal_size(_unplanned(best.life), best.sparsity)
    if not isinstance(claimed, search.FixedLayoutOptimum):
        return None
    layouts = best.life.layouts(best.sparsity)
    step, cost = layouts.at(claimed.whole.n_active), None
    if step is not None:
        budget = best.life.budget(best.sparsity, training.planned_cost(layouts, step))
        cost = search.total_of(best.life, budget, claimed.served)
    rate = fixed.rate
    return FixedShare(
        mfu=fixed.mfu or math.nan, source=f"{rate.source}; {rate.model}" if rate else "given",
        n_active=claimed.whole.n_active, tokens=TrainedTokens(claimed.whole.pretrain),
        claimed=claimed.whole.total, cost=cost,
        worse_by=None if cost is None else cost / best.whole.total - 1,
    )  # fmt: skip


def _unplanned(life: LifecycleTask) -> LifecycleTask:
    """The same life at a fixed share of the peak."""
    phases = life.scenario.phases
    fixed = phases.pretrain.model_copy(update={"training": None})
    phases = phases.model_copy(update={"pretrain": fixed})
    return replace(life, scenario=life.scenario.model_copy(update={"phases": phases}))
