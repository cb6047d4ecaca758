"""Limits of a plan: memory, promises, prefill rate, load; with the names used for each."""

from dataclasses import dataclass
from types import MappingProxyType

from planner.text.tables import table


@dataclass(frozen=True)
class PlanLimit:
    """One limit: a row of `plan_limits.toml`, where the fields are explained."""

    name: str
    step: str
    expression: str
    holds_back: str
    binds: str = ""
    title: str = ""


_ROWS = table("planner.problems.serving.task", "plan_limits.toml")["limits"]
LIMITS = MappingProxyType({row["name"]: PlanLimit(**row) for row in _ROWS})
# The step's name for a promised quantity, and the promise's own.
PROMISES = MappingProxyType({limit.step: limit.name for limit in LIMITS.values()})


def limit_title(promise: str) -> str:
    """Title of a promise in texts; any other limit by its name."""
    limit = LIMITS.get(promise)
    return limit.title if limit and limit.title else promise
