"""How well a budget is known: the same question by laws drawn from the standard errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.problems.budget.best import Answer, solve_many
from planner.problems.budget.comparisons import overtraining

__all__ = ["interval"]

FEWEST = 0.5  # share of the draws that must have an answer, for ends to mean something


def interval(answer: Answer, count: int, coverage: float, seed: int = 0) -> dict[str, Any] | None:
    """Ends that hold `coverage` of the draws, of size, tokens, cost, loss and over-training.

    None where the law has no standard errors or nothing is drawn. `answered` is the share of the
    drawn laws in which the question has an answer: a fixed loss may lie below a drawn floor.
    """
    question = answer.question
    if not count or "interval" in question.law.lacks:
        return None
    laws = question.law.draws(count, seed)
    solved = solve_many([replace(question, law=law) for law in laws])
    answers = [each for each in solved if isinstance(each, Answer)]
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


def _ratio(answer: Answer) -> float:
    told = overtraining(answer)
    return float("nan") if told is None else told.ratio
