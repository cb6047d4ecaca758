"""A scenario in, a plan out, or a frontier of them, whatever its problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.protocol.plan import Plan
from planner.scenario import BudgetScenario, Document, LifecycleScenario, Scenario, Tree, opened
from planner.text.errors import FieldError, InputError

if TYPE_CHECKING:
    from planner.problems.serving.deployment.frontier import Frontier

__all__ = ["frontier", "solve"]

# Where each problem is answered; the module is imported when it is asked.
ANSWERS = {
    "serving": "planner.problems.serving.answer",
    "budget": "planner.problems.budget.answer",
    "lifecycle": "planner.problems.lifecycle.answer",
}
Asked = Scenario | BudgetScenario | LifecycleScenario | Document
Source = str | Path | Mapping[str, Any] | Asked


def solve(source: Source, sets: Sequence[str] = ()) -> Plan:
    """Answer a scenario: a file's path, a mapping of the same shape, or a scenario that was read.

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
    with _asked(source, sets) as scenario:
        plan: Plan = import_module(ANSWERS[scenario.problem]).answer(scenario)
        return plan


def frontier(source: Source, sets: Sequence[str] = (), points: int | None = None) -> Frontier:
    """The cheapest plan at each speed; `points` speeds are looked at, as many as usual if None.

    Raises
    ------
    InputError
        With every mistake in the input.
    SolverError
        When a plan does not survive its own checks.
    """
    with _asked(source, sets) as scenario:
        if not isinstance(scenario, Scenario):
            told = f"a frontier of price and speed is of serving, not of {scenario.problem}"
            raise FieldError(("problem", told))
        from planner.problems.serving.deployment.frontier import POINTS, frontier

        return frontier(scenario, POINTS if points is None else points)


@contextmanager
def _asked(source: Source, sets: Sequence[str]) -> Iterator[Asked]:
    """The scenario of a source; what is refused while it is answered gets its place there."""
    tree, scenario = opened(source, sets)
    try:
        if isinstance(scenario, Document):
            known = ", ".join(ANSWERS)
            told = f"this version answers {known}, not {scenario.problem}"
            raise FieldError(("problem", told))
        yield scenario
    except InputError as error:
        raise _placed(error, tree) from error


def _placed(error: InputError, tree: Tree) -> InputError:
    """The same with its places in the file; what concerns no single value names the file."""
    if isinstance(error, FieldError):
        return InputError(tree.mistake(tuple(p.split(".")), told) for p, told in error.faults)
    return error if error.mistakes else InputError(tree.mistake((), str(error)))
