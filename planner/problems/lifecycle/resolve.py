"""Resolve a lifecycle scenario: inputs of law, training and serving for any model of a family."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from planner.laws.laws import ScalingLaw, scaling_law
from planner.laws.model_family import ModelFamily
from planner.problems import training as planned
from planner.problems.lifecycle.members import FamilyRule, Formats, ScaledModel
from planner.problems.lifecycle.question import LifecycleScenario, TrainingPhase
from planner.problems.lifecycle.serving_cost import ServingQuestion, serving_question
from planner.protocol.plan import DataSource
from planner.text.errors import FieldError
from planner.token_costs import phase_costs as costs
from planner.token_costs.budget_task import BudgetTask, required_loss, with_rl
from planner.token_costs.posynomial_form import Budgets
from planner.token_costs.spending import ServedTokens

INFERENCE = 2  # the column of serving in the costs of a budget


@dataclass(frozen=True)
class LifecycleTask:
    """Everything that does not depend on the model.

    `sparsities` are the ratios of total to active parameters to try, `left_out` says which of
    those asked for lie outside the law's range.
    """

    scenario: LifecycleScenario
    law: ScalingLaw
    family: FamilyRule | ScaledModel
    serving: ServingQuestion
    demand: ServedTokens
    sparsities: tuple[float, ...]
    left_out: tuple[str, ...] = ()
    laid_out: dict[float, planned.SizeLayouts] = field(default_factory=dict)

    @property
    def bounds(self) -> tuple[float, float]:
        """Fewest and most active parameters [param]."""
        choose = self.scenario.choose
        return choose.smallest, choose.largest

    def training(
        self, sparsity: float, pretrain: costs.PhaseCost | None = None
    ) -> dict[str, costs.PhaseCost]:
        """The phases of training of dense or sparse models, those that are used.

        `pretrain` is pre-training as it was laid out, where it is.
        """
        phases, rl = self.scenario.phases, self.scenario.rl
        used: dict[str, tuple[TrainingPhase, float]] = {}
        if pretrain is None:
            used["pretrain"] = (phases.pretrain, 3 * costs.FORWARD)
        if rl.used and phases.rl is not None:
            used["rl"] = (phases.rl, rl.k)
        fixed = {
            name: costs.best_phase(
                name, phase, arithmetic, unpriced=f"phases.{name}.price",
                sparse=sparsity > 1.0, duration=phase.duration,
            )
            for name, (phase, arithmetic) in used.items()
        }  # fmt: skip
        return fixed if pretrain is None else {"pretrain": pretrain, **fixed}

    def layouts(self, sparsity: float) -> planned.SizeLayouts:
        """The training layouts of every member of a sparsity."""
        if sparsity not in self.laid_out:
            self.laid_out[sparsity] = planned.SizeLayouts(
                self.scenario, lambda size: self.family.member(size, sparsity, Formats()).sizes
            )
        return self.laid_out[sparsity]

    def budget(self, sparsity: float, pretrain: costs.PhaseCost | None = None) -> BudgetTask:
        """The budget of a sparsity without its serving, in USD."""
        task = BudgetTask(
            law=self.law,
            phases=self.training(sparsity, pretrain),
            in_usd=True,
            sparsity=_of_the_law(self.law, self.family, sparsity),
            served=self.demand.counted,
            unique=self.scenario.data.unique,
            required=required_loss(self.scenario.quality),
        )
        return with_rl(task, self.scenario.rl)


def resolve_life(scenario: LifecycleScenario) -> LifecycleTask:
    """A scenario with everything looked up.

    Raises InputError for what is not known, or contradicts itself.
    """
    assert not isinstance(scenario.law, tuple)  # a list is refused as it is read
    part, law = scenario.family, scaling_law(scenario.law)
    for choice in ("loss", "size", "tokens"):
        law.need(choice)
    family = ScaledModel(part.like) if part.like else FamilyRule(ModelFamily(part.attention))
    sparsities, left_out = _sparsities(scenario, law, family)
    serving = serving_question(scenario.serving)
    if math.isinf(scenario.inference.tokens or 0.0):
        words = "optimal is asked of problem: budget; give a number of tokens"
        raise FieldError(("inference.tokens", words))
    return LifecycleTask(
        scenario=scenario,
        law=law,
        family=family,
        serving=serving,
        demand=costs.served_tokens(scenario.inference),
        sparsities=sparsities,
        left_out=left_out,
    )


def with_serving(
    budgets: Budgets, n_active: float, price: float, slope: float, tokens: float
) -> Budgets:
    """The budgets with serving as a monomial of the size: `price * (N / n_active)**slope`.

    `tokens` are those served as they weigh in the cost.
    """
    cost, powers = budgets.cost.copy(), budgets.cost_powers.copy()
    cost[:, INFERENCE] = math.log(tokens * price) - slope * math.log(n_active)
    powers[INFERENCE] = 0.0
    powers[INFERENCE, budgets.choices.index("n_active")] = slope
    return replace(budgets, cost=cost, cost_powers=powers)


def _sparsities(
    scenario: LifecycleScenario, law: ScalingLaw, family: FamilyRule | ScaledModel
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The sparsities to try, and sentences on those that the law was not fitted on.

    Raises FieldError where none is left: they are answered only with `extrapolate: true`.
    """
    wanted = scenario.choose.sparsity or (law.fixed_sparsity or 1.0,)
    path = "choose.sparsity"
    if isinstance(family, ScaledModel):
        wanted, path = (family.sparsity,), "family.like"
    if scenario.extrapolate is True:
        return wanted, ()
    beyond = {each: law.outside(sparsity=_of_the_law(law, family, each)) for each in wanted}
    inside = tuple(each for each, sentences in beyond.items() if not sentences)
    outside = [sentence for sentences in beyond.values() for sentence in sentences]
    if not inside:
        raise FieldError((path, f"{'; '.join(outside)}; extrapolate: true answers all the same"))
    return inside, tuple(f"{each}; left out (extrapolate: true would try it)" for each in outside)


def _of_the_law(law: ScalingLaw, family: FamilyRule | ScaledModel, sparsity: float) -> float:
    """The sparsity passed to the law; 1 (dense) if it knows no other and a single model is given.

    Raises FieldError for a list of sparsities of which the law knows nothing.
    """
    if sparsity == 1.0 or "sparsity" not in law.lacks:
        return sparsity
    if isinstance(family, ScaledModel):
        return 1.0
    fault = (
        f"{law.name}: {law.lacks['sparsity']}; put a routed law on it, such as "
        "besiroglu-2024 + clark-2022-s-base"
    )
    raise FieldError(("choose.sparsity", fault))


def training_data(phases: Mapping[str, costs.PhaseCost]) -> list[DataSource]:
    """Sources of prices and of shares of the peak, with their dates."""
    sources = []
    for name, phase in phases.items():
        if phase.sized is not None:  # its layouts cite their own sources
            continue
        sources.append(costs.price_source(phase))
        rate, system = phase.rate, phase.system
        if rate is None or system is None:
            sources.append(DataSource(f"{name}: mfu", "given", ""))
            continue
        what = f"{name}: mfu of {system.chip.name}"
        sources.append(DataSource(what, f"{rate.source}; {rate.model}", rate.as_of))
    return sources


def training_warnings(phases: Mapping[str, costs.PhaseCost], today: date) -> list[str]:
    """Warnings on prices and on borrowed shares of the peak."""
    warnings = []
    for name, phase in phases.items():
        warnings += costs.price_warnings(phase, today)
        if phase.borrowed and phase.system is not None:
            warnings.append(
                f"{name}: {phase.system.chip.name} is taken to use the share of its peak that "
                f"{phase.borrowed} does; give mfu if you know better"
            )
    return warnings
