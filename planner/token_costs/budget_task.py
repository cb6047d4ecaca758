"""Budget task as numbers: law, sparsity, cost of every phase, and the target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from planner.catalogue import models
from planner.laws.law_forms import Terms
from planner.laws.scaling_law import ScalingLaw
from planner.text.errors import FieldError
from planner.token_costs.phase_costs import PhaseCost, rl_flop_needed
from planner.token_costs.phase_keys import Quality, Reinforcement, RewardedLoss
from planner.token_costs.posynomial_form import CHOICES, Budgets, Saturation

REPETITION = "repetition"
MISSING = -np.inf  # logarithm of a coefficient that is zero
LOG_SEARCH_RANGE = (0.0, 120.0)  # ln tokens; search interval of the compute-optimal tokens


@dataclass(frozen=True)
class LossTarget:
    """The loss to reach: given [nat], or that of a model of a size and, if given, its tokens."""

    loss: float | None = None
    n_active: float | None = None
    tokens: float | None = None
    sparsity: float = 1.0

    def value(self, law: ScalingLaw) -> float:
        """The loss [nat] as this law has it."""
        if self.loss is not None or self.n_active is None:
            return self.loss or math.nan
        terms = law_terms(law, self.sparsity)
        if "rl" not in law.lacks:
            raise FieldError(
                ("quality.like", f"{law.name} has a term in tokens of reinforcement learning, and "
                 "those of that model are not known; give quality.loss")
            )  # fmt: skip
        if self.tokens is not None and law.form == REPETITION:
            return float(law.loss(self.n_active, self.tokens))  # parameters may be more than fed
        tokens = self.tokens or compute_optimal_tokens(terms, self.n_active)
        if tokens is None:
            fault = "this law has no compute-optimal tokens for a size; give tokens too"
            raise FieldError(("quality.like", fault))
        return float(terms.loss(self.n_active, tokens))


@dataclass(frozen=True)
class BudgetTask:
    """One budget to be found.

    Attributes:
        phases: The phases that cost something, by name.
        in_usd: Whether the cost is money, or FLOP that are paid for.
        served: Tokens served, as they weigh in the cost [token].
        rl_tokens: Tokens of reinforcement learning, where they are given [token].
        rl_flop: Its arithmetic, where a reward asks for it whatever the size [flop].
        rl_term: What it takes off the loss, where its tokens are chosen and the law has no such
            term.
        required, limit: The loss to reach, or the cost that may not be exceeded [USD or flop]; one
            of them.
        fixed_choices: Choices that have one value alone: `n_active`, `pretrain`, and `rl` where the
            law has a term in its tokens.
    """

    law: ScalingLaw
    phases: Mapping[str, PhaseCost]
    in_usd: bool = False
    sparsity: float = 1.0
    served: float = 0.0
    rl_tokens: float = 0.0
    rl_flop: float = 0.0
    rl_term: RewardedLoss | None = None
    unique: float | None = None
    required: LossTarget | None = None
    limit: float | None = None
    fixed_choices: Mapping[str, float] = field(default_factory=dict)

    @property
    def aim(self) -> str:
        """Objective: `cost` (least cost) or `quality` (least loss)."""
        return "cost" if self.required is not None else "quality"

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices there are, held ones included."""
        return CHOICES if self.reinforced else CHOICES[:2]

    @property
    def reinforced(self) -> bool:
        """True if the loss has a term in tokens of reinforcement learning."""
        return self.rl_term is not None or "rl" not in self.law.lacks

    @property
    def repeats(self) -> bool:
        """True if the law models repeated data and the amount of unique data is given."""
        return self.unique is not None and self.law.form == REPETITION

    def runs_out(self, log_tokens: float) -> bool:
        """True if the tokens exceed the unique data under a law without repetition."""
        return not (self.unique is None or self.repeats or log_tokens <= math.log(self.unique))

    @property
    def curved(self) -> bool:
        """True if repeated tokens, or parameters beyond the data, have diminishing value."""
        return self.repeats or (self.law.form == REPETITION and "pretrain" in self.fixed_choices)

    @cached_property
    def terms(self) -> Terms:
        """The law at this sparsity."""
        return law_terms(self.law, self.sparsity)

    @property
    def constant_cost(self) -> float:
        """Cost independent of the choices: arithmetic for a reward [USD or flop]."""
        return self.rl_flop * self.phases["rl"].weight(self.in_usd) if self.rl_flop else 0.0

    def loss(self, n: float, d: float, d_rl: float | None = None) -> float:
        """Loss [nat] by the law's own equation, not by its monomials."""
        unique = self.unique if self.repeats else None
        return float(self.law.loss(n, d, sparsity=self.sparsity, unique=unique, d_rl=d_rl))

    @property
    def smooth(self) -> BudgetTask:
        """Budget with the trend of the training cost by size, for draws and other laws."""
        return replace(self, phases={name: x.smooth() for name, x in self.phases.items()})

    def weights(self) -> dict[str, float]:
        """Cost per parameter and token of each phase, in the unit of the objective."""
        return {
            name: phase.arithmetic * phase.weight(self.in_usd)
            for name, phase in self.phases.items()
        }


def law_terms(law: ScalingLaw, sparsity: float) -> Terms:
    """The law's floor and monomials; raises FieldError for a law that gives no loss."""
    terms = law.terms(sparsity)
    if terms is None:
        raise FieldError(
            ("law", f"{law.name} gives no loss for a size and tokens (it is of the form "
             f"{law.form}); besiroglu-2024 and muennighoff-2023 do")
        )  # fmt: skip
    if any(term.size > 0 or term.tokens > 0 for term in terms.terms):
        raise FieldError(
            ("law", f"{law.name} says that at {sparsity:g} total for each active parameter more "
             "parameters, or more tokens, raise the loss: it is asked beyond its reach")
        )  # fmt: skip
    return terms


def compute_optimal_tokens(terms: Terms, n: float) -> float | None:
    """Compute-optimal tokens of a model of `n` active parameters, without repeated data.

    There one percent more size lowers the loss as much as one percent more tokens. None for a law
    in which no number of tokens does that.
    """
    trading = [t for t in terms.terms if t.size or t.tokens]
    sizes = [t for t in trading if not t.tokens]
    tokens = [t for t in trading if not t.size]
    if len(tokens) == 1 and len(sizes) + 1 == len(trading):
        (term,) = tokens
        wanted = sum(-t.size * t.coefficient * n**t.size for t in sizes)
        return (wanted / (-term.tokens * term.coefficient)) ** (1 / term.tokens)

    def surplus(log_d: float) -> float:
        parts = [(t, math.log(t.coefficient) + t.size * math.log(n) + t.tokens * log_d)
                 for t in trading]  # fmt: skip
        return sum((t.tokens - t.size) * math.exp(height) for t, height in parts)

    low, high = LOG_SEARCH_RANGE
    if not surplus(low) * surplus(high) < 0:
        return None
    return math.exp(brentq(surplus, low, high, xtol=1e-14, rtol=1e-14))


def stack_budgets(tasks: Sequence[BudgetTask]) -> Budgets:
    """Questions of one shape as arrays; every choice is still there, the held ones too."""
    first = tasks[0]
    terms = [each.terms for each in tasks]
    losses, powers = zip(
        *(_loss_rows(each, law) for each, law in zip(tasks, terms, strict=True)), strict=True
    )
    limits = [_limit(each, law) for each, law in zip(tasks, terms, strict=True)]
    # Exponents of the choices in the cost of each phase.
    rl = [1.0, 0.0, 1.0] if first.reinforced else [0.0 if first.rl_flop else 1.0, 0.0, 0.0]
    rows = [[first.phases["pretrain"].size_power(), 1.0, 0.0], rl, [1.0, 0.0, 0.0]]
    return Budgets(
        cost=np.array([_cost_row(each) for each in tasks]),
        cost_powers=np.array(rows)[:, : len(first.choices)],
        loss=np.array(losses),
        loss_powers=np.array(powers),
        limit=np.array(limits),
        aim=first.aim,
        choices=first.choices,
        curved=_curved(tasks) if first.curved else {},
    )


def _limit(task: BudgetTask, terms: Terms) -> float:
    if task.required is None:
        return math.log(task.limit or math.nan)
    room = terms.limit(task.required.value(task.law))
    return math.log(room) if room > 0 else -math.inf


def _loss_rows(task: BudgetTask, terms: Terms) -> tuple[list[float], list[list[float]]]:
    rows = [(t.coefficient, [t.size, t.tokens, t.rl]) for t in terms.terms if t.coefficient > 0]
    if task.rl_term is not None:
        rows.append((task.rl_term.coefficient, [0.0, 0.0, -task.rl_term.exponent]))
    count = len(task.choices)
    return [math.log(each) for each, _ in rows], [powers[:count] for _, powers in rows]


def _cost_row(task: BudgetTask) -> list[float]:
    """Logarithms of the coefficients of pre-training, reinforcement learning and serving."""
    weights = task.weights()
    rl = weights.get("rl", 0.0) * (1.0 if task.reinforced else task.rl_tokens)
    if task.rl_flop:  # fixed RL cost: no part of a cost objective, but part of a cost limit
        rl = 0.0 if task.aim == "cost" else task.constant_cost
    amounts = (weights["pretrain"], rl, weights.get("inference", 0.0) * task.served)
    row = [math.log(each) if each > 0 else MISSING for each in amounts]
    row[0] += task.phases["pretrain"].at_one()
    return row


def _curved(tasks: Sequence[BudgetTask]) -> dict[str, Saturation]:
    """The knees of tokens and of parameters, for a law that knows repetition.

    Parameters are fed by the distinct tokens that are seen: all of them, unless fewer tokens than
    that are given. Where tokens are free an optimum is never larger than what they feed.
    """
    knees, fed, half, excess = [], [], [], []
    for task in tasks:
        x, unique = task.law.values, task.unique or math.inf
        seen = min(unique, task.fixed_choices.get("pretrain", math.inf))
        knees.append(math.log(unique))
        fed.append(math.log(task.law.fed(seen)))
        half.append(x["R_half"])
        excess.append(x["R_excess"])
    return {
        "pretrain": Saturation(np.array(knees), np.array(half)),
        "n_active": Saturation(np.array(fed), np.array(excess)),
    }


def with_rl(task: BudgetTask, rl: Reinforcement) -> BudgetTask:
    """Budget with the reinforcement learning of a scenario, in numbers."""
    return replace(
        task,
        rl_tokens=0.0 if "rl" in task.fixed_choices else rl.tokens or 0.0,
        rl_flop=rl_flop_needed(rl.reward) if rl.reward else 0.0,
        rl_term=rl.loss,
    )


def required_loss(quality: Quality) -> LossTarget:
    """The loss to reach: given, or that of another model."""
    if quality.like is None:
        return LossTarget(loss=quality.loss)
    like, size = quality.like, quality.like.n_active
    if like.model is not None:
        from planner.architecture.counts import model_sizes

        size = float(model_sizes(models.load(like.model)).n_active["all"])
    return LossTarget(n_active=size, tokens=like.tokens, sparsity=like.sparsity)
