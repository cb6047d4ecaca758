"""Time of learning from the answers of a step: optimiser steps from the training planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.problems import training
from planner.problems.rl.question import RlQuestion
from planner.text.errors import FieldError

APART = ("dp_exposed", "optimizer", "offload_exposed")  # terms that a forward pass has not
WHERE = ("model", "system", "price", "chips")  # keys that the scenario has itself


@dataclass(frozen=True)
class Learning:
    """Scoring and learning on a pool: its layout as the training planner has it, and its time."""

    chips: int
    point: Any
    choice: str
    updates: int
    layers: float
    seconds: float


def learning(question: RlQuestion, chips: int) -> Learning | None:
    """The best layout of so many chips; None where none fits into memory.

    Raises FieldError for what the training planner refuses.
    """
    from formulas.training.reinforcement import learning_time

    try:
        search = training.PROBLEM.search(_training_question(question, chips))
    except FieldError as error:
        raise FieldError(*((_placed(path), text) for path, text in error.faults)) from error
    if not search.feasible:
        return None
    point = search.plan
    terms = point.time_per_step.terms
    layers = point.step_time - sum(terms.get(name, 0.0) for name in APART)
    seconds = learning_time.numpy()(
        n_upd=float(question.work.updates), T_opt=point.step_time,
        n_fwd=float(question.forwards), T_layers=layers,
    )  # fmt: skip
    return Learning(chips, point, search.choice, question.work.updates, layers, float(seconds))


def _training_question(question: RlQuestion, chips: int) -> Any:
    """One optimiser step on a pool as a training question; sequences are packed."""
    pool, work = question.training, question.work
    return training.QUESTION.model_validate({
        "problem": "training", "model": question.model, "system": question.system, "chips": chips,
        "work": {"global_batch": f"{work.batch} sequences", "sequence": work.sequence},
        "precision": pool.precision, "state": pool.state, "choose": pool.choose,
        "price": question.price, "profile": pool.profile,
    })  # fmt: skip


def _placed(path: str) -> str:
    """A path of a training question as one of this scenario."""
    key = path.partition(".")[0]
    if key == "work":
        return "work"
    return path if key in WHERE else f"training.{path}"
