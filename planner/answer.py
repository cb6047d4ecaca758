"""A scenario in, a plan out, whatever its problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import FieldError, InputError
from planner.plan import Plan
from planner.scenario import Document, Scenario, Tree, opened

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
    tree, scenario = opened(source, sets)
    try:
        if isinstance(scenario, Document):
            told = f"this version answers serving, not {scenario.problem}"
            raise FieldError(("problem", told))
        from planner.serving.answer import answer

        return answer(scenario)
    except InputError as error:
        raise _placed(error, tree) from error


def _placed(error: InputError, tree: Tree) -> InputError:
    """The same with its places in the file; what concerns no single value names the file."""
    if isinstance(error, FieldError):
        return InputError(tree.mistake(tuple(p.split(".")), told) for p, told in error.faults)
    return error if error.mistakes else InputError(tree.mistake((), str(error)))
