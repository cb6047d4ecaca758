"""The problem kinds and their rooms. This is the only place that names a kind outside its room.

A room is a module with `QUESTION`, the frozen record that a scenario is read as, and `PROBLEM`,
what `planner.protocol.problem.Problem` describes. It is imported when the kind is first met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

from planner.text.errors import InputError

ROOMS = {
    "serving": "planner.problems.serving",
    "budget": "planner.problems.budget",
    "lifecycle": "planner.problems.lifecycle",
}
# Kinds whose scenarios are accepted unread: a later version answers them.
PLANNED = ("training", "cache", "prices")
PROBLEMS = (*ROOMS, *PLANNED)


@dataclass(frozen=True)
class Document:
    """A well-formed scenario of a planned kind: its tree as it is written, unread."""

    problem: str
    file: str
    data: Mapping[str, Any] = field(hash=False)


def room(kind: str) -> ModuleType:
    """The room of a kind.

    Raises
    ------
    InputError
        For a kind without a room.
    """
    if kind not in ROOMS:
        raise InputError(f"problem: {kind} is not answered by this version")
    return import_module(ROOMS[kind])


def question_type(kind: str) -> Any:
    """The record that scenarios of a kind are read as."""
    return room(kind).QUESTION


def question_types() -> tuple[Any, ...]:
    """The records of all kinds, in the order of the table."""
    return tuple(question_type(kind) for kind in ROOMS)
