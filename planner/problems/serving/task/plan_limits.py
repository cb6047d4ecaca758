"""What a plan must keep: memory, promises, the flow of prompts, a load; in every word for it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True)
class PlanLimit:
    """One limit: a row of `plan_limits.toml`, where the fields are explained."""

    name: str
    step: str
    expression: str
    holds_back: str
    binds: str = ""
    title: str = ""


def _limits() -> tuple[PlanLimit, ...]:
    """The rows of `plan_limits.toml`."""
    file = files("planner.problems.serving.task").joinpath("plan_limits.toml")
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["limits"]
    return tuple(PlanLimit(**row) for row in rows)


LIMITS = MappingProxyType({limit.name: limit for limit in _limits()})
# The step's name for a promised quantity, and the promise's own.
PROMISES = MappingProxyType({limit.step: limit.name for limit in LIMITS.values()})


def title_of(promise: str) -> str:
    """How texts call a promise; any other limit by its name."""
    limit = LIMITS.get(promise)
    return limit.title if limit and limit.title else promise
