"""A scenario in, a plan out, whatever its problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.plan import Plan
from planner.scenario import Document, Scenario, load

__all__ = ["solve"]


def solve(source: str | Path | Mapping[str, Any] | Scenario, sets: Sequence[str] = ()) -> Plan:
    """Answer a scenario: a file's path, a mapping of the same shape, or a `Scenario`.

    Parameters
    ----------
    sets : changes "path.in.file=value", as `--set` takes them.

    Raises
    ------
    InputError
        With every mistake in the input.
    SolverError
        When the plan does not survive its own checks.
    """
    scenario = load(source, sets)
    if isinstance(scenario, Document):
        raise InputError(
            f"{scenario.file}  problem: this version answers serving, not {scenario.problem}"
        )
    from planner.serving.answer import answer

    return answer(scenario)
