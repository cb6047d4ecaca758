"""Budget with pre-training charged by the best training layout of its model.

A budget chooses a size; the model of that size is the member of the family rule, and the training
planner lays it out. Sizes one percent apart are compared at their shares of the peak.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from planner.architecture.counts import model_sizes
from planner.laws.model_family import MAX_PARAMS, MIN_PARAMS, ModelFamily
from planner.problems import training
from planner.problems.budget.question import BudgetScenario
from planner.text.errors import FieldError
from planner.token_costs.budget_task import BudgetTask, stack_budgets
from planner.token_costs.optimum import BudgetOptimum, lagrangian_slope, solve_many, solve_one
from planner.token_costs.phase_costs import PhaseCost
from planner.token_costs.spending import FixedShare

PATH = "phases.pretrain.training"


@dataclass(frozen=True)
class PlannedPretraining:
    """The layouts of every size of a scenario, by sparsity."""

    scenario: BudgetScenario
    layouts: dict[float, training.SizeLayouts] = field(default_factory=dict)

    @property
    def phase(self) -> training.PretrainPhase:
        """Pre-training phase of the scenario."""
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
                words = f"no layout of a model of {size:.3g} active parameters fits these chips"
                none = FieldError((f"{PATH}.chips", words))
                raise layouts.refused[-1] if layouts.refused else none
            return _pretrained(task, training.planned_cost(layouts, step))
        task = _pretrained(task, training.cost_with_mfu(self.phase, 1.0))
        begun = solve_one(task)
        if not isinstance(begun, BudgetOptimum):
            return task  # even at the peak: the reason is another
        score = partial(_scores, task)
        beside = self._fixed_size(task)
        step = training.search_size_grid(
            layouts, score, begun.n_active, (MIN_PARAMS, MAX_PARAMS), beside
        )
        flat = _pretrained(task, training.planned_cost(layouts, step))
        fixed = {**flat.fixed_choices, "n_active": step.n_active}
        solved = solve_one(replace(flat, fixed_choices=fixed))
        if not isinstance(solved, BudgetOptimum):
            growth = 0.0
        else:
            budgets = stack_budgets([flat])
            at = solved.at(budgets.choices)
            rise = lagrangian_slope(budgets, at, "n_active", solved.multiplier)
            weight = 1.0 if flat.aim == "cost" else solved.multiplier
            growth = training.supporting_growth(
                rise, weight * float(budgets.costs(at).shares[0, 0])
            )
        return _pretrained(task, training.planned_cost(layouts, step, growth))

    def layout(self, best: BudgetOptimum) -> training.PlannedTraining:
        """Layout of an optimum, compared with a fixed share of the peak; sources and warnings."""
        layouts, size = self._size_layouts(best.task.sparsity), best.n_active
        step = layouts.at(size)
        if step is None:  # sizes are named by their members, a little off the rungs
            steps = [each for each in layouts.steps.values() if each is not None]
            step = min(steps, key=lambda laid: abs(math.log(laid.n_active / size)))
        return training.planned_training(
            layouts, step, best.pretrain, partial(self._fixed, best), sparse=best.task.sparsity > 1
        )

    def _fixed_size(self, task: BudgetTask) -> tuple[float, ...]:
        try:
            fixed = training.fixed_cost(self.phase, sparse=task.sparsity > 1)
        except FieldError:
            return ()  # the answer says so
        claimed = solve_one(_pretrained(task, fixed))
        return (claimed.n_active,) if isinstance(claimed, BudgetOptimum) else ()

    def _fixed(self, best: BudgetOptimum, fixed: PhaseCost) -> FixedShare | None:
        """Plan at a fixed share of the peak, charged its real training cost; None if infeasible."""
        claimed = solve_one(_pretrained(best.task, fixed))
        if not isinstance(claimed, BudgetOptimum):
            return None
        step = self._size_layouts(best.task.sparsity).at(claimed.n_active)
        cost = None
        if step is not None:
            score = _scores(best.task, np.array([claimed.n_active]), np.array([step.share]))
            cost = float(score[0])
        return training.fixed_share(
            fixed, claimed.n_active, claimed.pretrain, claimed.score, cost, best.score
        )

    def _size_layouts(self, sparsity: float) -> training.SizeLayouts:
        if sparsity not in self.layouts:
            self.layouts[sparsity] = training.SizeLayouts(
                self.scenario, lambda size: model_sizes(ModelFamily().member(size, sparsity))
            )
        return self.layouts[sparsity]


def _pretrained(task: BudgetTask, pretrain: PhaseCost) -> BudgetTask:
    return replace(task, phases={**task.phases, "pretrain": pretrain})


def _scores(task: BudgetTask, n_active: np.ndarray, shares: np.ndarray) -> np.ndarray:
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
