"""What stands beside the optimum: the compute-optimal model, equal pools, and over-training.

How well a budget is known: the same question by laws drawn from the standard errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.problems.budget.budget_task import BudgetTask, compute_optimal_tokens
from planner.problems.budget.optimum import BudgetOptimum, NoBudget, solve_many, solve_one
from planner.text.errors import FieldError, SolverError

SAME = 1e-6  # of the ratio, by its definition and by the identity


@dataclass(frozen=True)
class Overtraining:
    """Tokens over those that are compute-optimal for the size.

    `from_pools` is (sum of eps_i * C_i / C_pretrain)**(1/exponent), eps_i = d ln C_i / d ln N,
    which equals the ratio at an interior optimum of an additive law; None elsewhere.
    """

    ratio: float
    from_pools: float | None
    exponent: float | None


def overtraining(answer: BudgetOptimum) -> Overtraining | None:
    """How far beyond its compute-optimal tokens the model is trained; None without such tokens.

    Raises SolverError where the identity should hold and does not.
    """
    question, terms = answer.question, answer.question.terms
    try:
        tokens = compute_optimal_tokens(terms, answer.n_active)
    except FieldError:
        return None  # a law without a term in tokens has no compute-optimal ones
    ratio = answer.pretrain / tokens
    of_tokens = [each for each in terms.terms if each.tokens]
    given = question.fixed_choices.keys() & {"n_active", "pretrain"}
    interior = not given and not answer.data_bound and not _worn(answer)
    if not interior or len(of_tokens) != 1 or of_tokens[0].size:
        return Overtraining(ratio, None, None)
    pretrain, rl, inference = answer.cost
    grows = pretrain + inference + (0.0 if question.rl_flop else rl)
    exponent = -of_tokens[0].tokens
    found = (grows / pretrain) ** (1 / exponent)
    if abs(found / ratio - 1) > SAME:
        raise SolverError(
            f"over-training is {ratio:.8g} by its definition and {found:.8g} from the pools"
        )
    return Overtraining(ratio, found, exponent)


def _worn(answer: BudgetOptimum) -> bool:
    """Whether tokens repeat, or parameters are more than the data feeds."""
    question = answer.question
    return question.repeats and answer.pretrain > (question.unique or math.inf)


def compute_optimal(answer: BudgetOptimum) -> dict[str, Any] | None:
    """The model of the same loss that is cheapest to pre-train, and what its life costs."""
    question = answer.question
    if question.required is None or question.fixed_choices or question.reinforced:
        return None
    training = {"pretrain": question.phases["pretrain"]}
    found = solve_one(replace(question, phases=training, served=0.0, rl_tokens=0.0, rl_flop=0.0))
    if isinstance(found, NoBudget):
        return None
    return _compared(answer, found.n_active, found.pretrain)


def equal_pools(answer: BudgetOptimum) -> dict[str, Any] | None:
    """The lecture's heuristic: pre-training costs what serving does; None where nothing is served.

    Without served tokens it is what reinforcement learning does. Given tokens stay as they are.
    """
    question = answer.question
    weights = question.weights()
    if question.reinforced or question.rl_flop or "pretrain" in question.fixed_choices:
        return None
    beside = weights.get("inference", 0.0) * question.served
    beside = beside or weights.get("rl", 0.0) * question.rl_tokens
    if not beside:
        return None
    tokens = beside / weights["pretrain"]
    found = solve_one(
        replace(question, fixed_choices={**question.fixed_choices, "pretrain": tokens})
    )
    if isinstance(found, NoBudget):
        given = {"pretrain": tokens, "rl": question.rl_tokens, "inference": question.served}
        lacking = dict.fromkeys(("n_active", "cost", "loss", "worse_by", "saving"))
        return {**lacking, "tokens": given, "why_not": found.reason}
    told = _compared(answer, found.n_active, tokens)
    return {**told, "why_not": None}


def _compared(answer: BudgetOptimum, n_active: float, tokens: float) -> dict[str, Any]:
    """Another size and tokens beside the answer: its cost or loss, and by how much it is worse."""
    question = answer.question
    total = life_cost(question, n_active, tokens)
    loss = answer.loss
    if question.aim == "quality":
        terms = question.terms
        loss = float(terms.loss(n_active, tokens))
        if question.repeats:
            loss = float(question.law.loss(n_active, tokens, sparsity=question.sparsity,
                                           unique=question.unique))  # fmt: skip
    score = total if question.aim == "cost" else loss
    return {
        "n_active": n_active,
        "tokens": {"pretrain": tokens, "rl": answer.rl, "inference": question.served},
        "cost": total,
        "loss": loss,
        "worse_by": score / answer.score - 1,
        "saving": 1 - answer.score / score,
    }


def life_cost(question: BudgetTask, n_active: float, tokens: float) -> float:
    """Cost of a life [USD or flop] at a size and tokens, given pools as they are given."""
    weights = question.weights()
    given = weights.get("rl", 0.0) * question.rl_tokens
    given += weights.get("inference", 0.0) * question.served
    return n_active * (weights["pretrain"] * tokens + given) + question.constant_cost


FEWEST = 0.5  # share of the draws that must have an answer, for ends to mean something


def interval(
    answer: BudgetOptimum, count: int, coverage: float, seed: int = 0
) -> dict[str, Any] | None:
    """Ends that hold `coverage` of the draws, of size, tokens, cost, loss and over-training.

    None where the law has no standard errors or nothing is drawn. `answered` is the share of the
    drawn laws in which the question has an answer: a fixed loss may lie below a drawn floor.
    """
    question = answer.question
    if not count or "interval" in question.law.lacks:
        return None
    laws = question.law.draws(count, seed)
    solved = solve_many([replace(question, law=law) for law in laws])
    answers = [each for each in solved if isinstance(each, BudgetOptimum)]
    found: dict[str, Any] = {
        "coverage": coverage,
        "from": f"{count} draws from the standard errors of {question.law.name}",
        "answered": len(answers) / count,
    }
    columns = {
        "n_active": [each.n_active for each in answers],
        "pretrain": [each.pretrain for each in answers],
        "cost": [each.total for each in answers],
        "loss": [each.loss for each in answers],
        "over_training": [_ratio(each) for each in answers],
    }
    ends = ((1 - coverage) / 2, (1 + coverage) / 2)
    enough = len(answers) >= max(2, FEWEST * count)
    for name, values in columns.items():
        known = enough and not np.isnan(values).any()
        found[name] = np.quantile(values, ends).tolist() if known else None
    return found


def _ratio(answer: BudgetOptimum) -> float:
    told = overtraining(answer)
    return float("nan") if told is None else told.ratio
