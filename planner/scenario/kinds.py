"""The problem kinds and their rooms. This is the only place that names a kind outside its room.

A room is a module with `QUESTION`, the frozen record that a scenario is read as, and `PROBLEM`,
what `planner.protocol.problem.Problem` describes. It is imported when the kind is first met.
"""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from types import ModuleType
from typing import TYPE_CHECKING

from planner.text.errors import CatalogueError, InputError

if TYPE_CHECKING:
    from planner.scenario.keys.fields import QuestionRecord

PROBLEM_PACKAGES = {
    "serving": "planner.problems.serving",
    "budget": "planner.problems.budget",
    "lifecycle": "planner.problems.lifecycle",
    "training": "planner.problems.training",
    "prices": "planner.problems.prices",
    "cache": "planner.problems.cache",
    "schedule": "planner.problems.schedule",
    "rl": "planner.problems.rl",
    "fleet": "planner.problems.fleet",
}
PROBLEMS = tuple(PROBLEM_PACKAGES)


def problem_package(kind: str) -> ModuleType:
    """The room of a kind.

    Raises InputError for a kind without a room.
    """
    if kind not in PROBLEM_PACKAGES:
        raise InputError(f"problem: {kind} is not answered by this version")
    return import_module(PROBLEM_PACKAGES[kind])


def question_type(kind: str) -> type[QuestionRecord]:
    """The record that scenarios of a kind are read as."""
    record: type[QuestionRecord] = problem_package(kind).QUESTION
    return record


def question_types() -> tuple[type[QuestionRecord], ...]:
    """The records of all kinds, in the order of the table."""
    return tuple(question_type(kind) for kind in PROBLEM_PACKAGES)


def starter(kind: str = "serving") -> str:
    """The text of a starter scenario, `starter.yaml` of the kind's room.

    Raises CatalogueError for an unknown kind.
    """
    if kind not in PROBLEM_PACKAGES:
        raise CatalogueError.unknown("kind of scenario", kind, PROBLEM_PACKAGES)
    module = problem_package(kind)
    file = files(module).joinpath("starter.yaml") if hasattr(module, "__path__") else None
    if file is None or not file.is_file():
        words = f"the kind {kind} has no starter: it is starter.yaml in the folder of a room"
        raise InputError(f"{words}; planner schema has its keys")
    return file.read_text(encoding="utf-8")
