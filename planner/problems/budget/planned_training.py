"""A budget whose pre-training costs what the best training layout of its model does.

A budget chooses a size; the model of that size is the member of the family rule, and the training
planner lays it out. Sizes one percent apart are compared at their shares of the peak.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from planner.architecture.counts import Sizes, sizes
from planner.laws.model_family import LARGEST, SMALLEST, ModelFamily
from planner.problems import training
from planner.problems.budget.question import BudgetScenario
from planner.protocol.parameter import with_value
from planner.protocol.plan import DataSource
from planner.text.errors import FieldError
from planner.token_costs.budget_task import BudgetTask, assembled
from planner.token_costs.optimum import BudgetOptimum, lagrangian_slope, solve_many, solve_one
from planner.token_costs.phase_costs import PhaseCost
from planner.token_costs.spending import FixedShare, PlannedLayout, TrainedTokens

PATH = "phases.pretrain.training"


@dataclass(frozen=True)
class PlannedPretraining:
    """The layouts of every size of a scenario, by sparsity."""

    scenario: BudgetScenario
    layouts: dict[float, training.SizeLayouts] = field(default_factory=dict)

    @property
    def phase(self) -> training.PretrainPhase:
        """Pre-training as it is asked for."""
        return self.scenario.phases.pretrain

    def planned(self, task: BudgetTask) -> BudgetTask:
        """A task that trains at the share of the peak of the best size's layout.

        Raises FieldError where no size has a layout.
        """
        layouts = self._size_layouts(task.sparsity)
        size = task.fixed_choices.get("n_active")
        if size is not None:
            step = layouts.at(size)
            if step is None:
                raise self._refusal(layouts, size)
            return _pretrained(task, training.planned_cost(layouts, step))
        task = _pretrained(task, training.cost_at(self.phase, 1.0))
        begun = solve_one(task)
        if not isinstance(begun, BudgetOptimum):
            return task  # even at the peak: the reason is another
        score = partial(_scores, task)
        beside = self._fixed_size(task)
        step = training.ladder_search(layouts, score, begun.n_active, (SMALLEST, LARGEST), beside)
        flat = _pretrained(task, training.planned_cost(layouts, step))
        growth = _supporting_growth(flat, step.n_active)
        return _pretrained(task, training.planned_cost(layouts, step, growth))

    def layout(
        self, best: BudgetOptimum
    ) -> tuple[PlannedLayout, tuple[DataSource, ...], tuple[str, ...]]:
        """The layout of an optimum, beside it what a fixed share gave; sources and warnings."""
        layouts = self._size_layouts(best.task.sparsity)
        step = layouts.at(best.n_active)
        if step is None:  # sizes are named by their members, a little off the rungs
            step = _nearest(layouts, best.n_active)
        record = training.planned_layout(layouts, step, best.pretrain)
        warnings = layouts.warnings(step)
        try:
            fixed = training.fixed_cost(self.phase, sparse=best.task.sparsity > 1)
        except FieldError as error:
            none = f"{PATH}: no fixed share of the peak stands beside ({error})"
            return record, layouts.data(step), (*warnings, none)
        record = replace(record, fixed_mfu=self._fixed(best, fixed))
        return record, layouts.data(step), warnings

    def _fixed_size(self, task: BudgetTask) -> tuple[float, ...]:
        """The size that a fixed share gives, where one is known: no plan is worse than it."""
        try:
            fixed = training.fixed_cost(self.phase, sparse=task.sparsity > 1)
        except FieldError:
            return ()  # the answer says so
        claimed = solve_one(_pretrained(task, fixed))
        return (claimed.n_active,) if isinstance(claimed, BudgetOptimum) else ()

    def _fixed(self, best: BudgetOptimum, fixed: PhaseCost) -> FixedShare | None:
        """What a fixed share gives, charged what training its size really costs."""
        claimed = solve_one(_pretrained(best.task, fixed))
        if not isinstance(claimed, BudgetOptimum):
            return None
        step = self._size_layouts(best.task.sparsity).at(claimed.n_active)
        cost = None
        if step is not None:
            score = _scores(best.task, np.array([claimed.n_active]), np.array([step.share]))
            cost = float(score[0])
        rate = fixed.rate
        return FixedShare(
            mfu=fixed.mfu or math.nan, source=f"{rate.source}; {rate.model}" if rate else "given",
            n_active=claimed.n_active, tokens=TrainedTokens(claimed.pretrain),
            claimed=claimed.score, cost=cost,
            worse_by=None if cost is None else cost / best.score - 1,
        )  # fmt: skip

    def _size_layouts(self, sparsity: float) -> training.SizeLayouts:
        if sparsity not in self.layouts:
            self.layouts[sparsity] = training.SizeLayouts(
                self.phase, partial(_member, sparsity), self._varied
            )
        return self.layouts[sparsity]

    def _varied(self, path: str, value: float) -> training.PretrainPhase:
        """The phase with another value at a path below it."""
        varied = with_value(self.scenario, f"phases.pretrain.{path}", value)
        assert isinstance(varied, BudgetScenario)
        return varied.phases.pretrain

    def _refusal(self, layouts: training.SizeLayouts, size: float) -> FieldError:
        """Why a size that is given has no layout."""
        if layouts.refused:
            return layouts.refused[-1]
        words = f"no layout of a model of {size:.3g} active parameters fits these chips"
        return FieldError((f"{PATH}.chips", words))


def _member(sparsity: float, n_active: float) -> Sizes:
    """The member of the family rule, counted."""
    return sizes(ModelFamily().member(n_active, sparsity))


def _nearest(layouts: training.SizeLayouts, size: float) -> training.PlannedStep:
    """The step of the size nearest to one that is laid out."""
    steps = [step for step in layouts.steps.values() if step is not None]
    return min(steps, key=lambda step: abs(math.log(step.n_active / size)))


def _pretrained(task: BudgetTask, pretrain: PhaseCost) -> BudgetTask:
    """A task with another cost of pre-training."""
    return replace(task, phases={**task.phases, "pretrain": pretrain})


def _scores(task: BudgetTask, n_active: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Least cost or loss at sizes (n,) that train at shares (n,) of the peak, infinite for none."""
    return np.fromiter(_each_score(task, n_active, shares), dtype=float)


def _each_score(task: BudgetTask, n_active: np.ndarray, shares: np.ndarray) -> Iterator[float]:
    phase = task.phases["pretrain"]
    assert phase.usd_per_flop is not None
    assert phase.mfu is not None
    paid = phase.usd_per_flop * phase.mfu
    tasks = [
        replace(
            _pretrained(task, replace(phase, mfu=share, usd_per_flop=paid / share, sized=None)),
            fixed_choices={**task.fixed_choices, "n_active": size},
        )
        for size, share in zip(n_active.tolist(), shares.tolist(), strict=True)
    ]
    for solved in solve_many(tasks):
        yield solved.score if isinstance(solved, BudgetOptimum) else math.inf


def _supporting_growth(task: BudgetTask, size: float) -> float:
    """The growth of the share at which a size is the optimum of its own power."""
    fixed = {**task.fixed_choices, "n_active": size}
    solved = solve_one(replace(task, fixed_choices=fixed))
    if not isinstance(solved, BudgetOptimum):
        return 0.0
    budgets = assembled([task])
    at = solved.at(budgets.choices)
    rise = lagrangian_slope(budgets, at, "n_active", solved.multiplier)
    weight = 1.0 if task.aim == "cost" else solved.multiplier
    return training.supporting_growth(rise, weight * float(budgets.costs(at).shares[0, 0]))
