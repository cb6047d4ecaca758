"""The table of a scenario: every given quantity, what it does to one output, what it switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from planner.problems.serving.parameters import Given
from planner.protocol.output import UNITS, output_named
from planner.protocol.parameter import at_path, folder_of
from planner.scenario import BudgetScenario, LifecycleScenario, Scenario, Tree, opened, resolved
from planner.sensitivity.elasticities import Elasticities, Row
from planner.sensitivity.re_solve import Exact, exact, swung
from planner.sensitivity.switches import switched
from planner.text.errors import Infeasible, InputError

__all__ = ["Looked", "local", "looked"]

Looked = tuple[Exact, list[Given], list[Row]]
"""The best plan, what was given for it, and what each given is worth."""


def local(
    source: Any,
    output: str | None = None,
    sets: Sequence[str] = (),
    *,
    switches: bool | None = None,
    swing: float | None = None,
    shown: bool = False,
) -> Elasticities:
    """Elasticities of one output to every given of a scenario, with its choices held.

    With `switches` the next switches of the choice are sought, which a lifecycle does only when
    told to, since each of its answers takes a second or two; with `swing` the document has the
    `bars` of a tornado, every quantity less and more by that share.
    `shown` draws a bar on standard error while switches are sought.
    """
    tree, scenario = opened(source, sets)
    name = output_named(_problem(scenario), output or "cost", in_usd=_in_usd(scenario))
    best, givens, rows = looked(scenario, name, tree, folder_of(source))
    if switches or (switches is None and not isinstance(scenario, LifecycleScenario)):
        found = switched(best, givens, rows, shown=shown)
        rows = [replace(row, switches=found.get(row.path)) for row in rows]
    document: dict[str, Any] = {
        "problem": _problem(scenario),
        "status": "optimal",
        "scenario": resolved(scenario),
        "of": name,
        "value": best.values[name],
        "unit": UNITS[name],
        "choice": best.choice,
        "counts": best.few,
        "rows": [],
        "bars": None,
        "provenance": {"version": version("token-planner")},
    }
    table = Elasticities.of(rows, document)
    document["rows"] = [row.document() for row in table.rows]
    if swing is not None:
        document["bars"] = swung(givens, rows, document, swing)
    return table


def looked(scenario: Any, name: str, tree: Tree, folder: Path) -> Looked:
    """The best plan, its givens, and a row for each.

    Raises
    ------
    Infeasible
        If nothing keeps the promises.
    InputError
        If the plan has no such output.
    """
    best = exact(scenario)
    if not best.plan:
        raise Infeasible(
            "nothing keeps the promises, so there is no answer to vary; planner solve says which "
            "fall short, and by how much"
        )
    if name not in best.values:
        known = ", ".join(best.values)
        raise InputError(f"--of: this plan has no {name} (it has {known})")
    if isinstance(scenario, Scenario):
        from planner.problems.serving.slopes.serving import serving_rows

        return best, *serving_rows(scenario, name)
    if isinstance(scenario, BudgetScenario):
        from planner.sensitivity.apart import budget_rows

        rows = budget_rows(scenario, name)
    else:
        from planner.problems.lifecycle.parameters import lifecycle_rows

        rows = lifecycle_rows(scenario, name)
    return best, [each for row in rows if (each := at_path(tree, folder, row)) is not None], rows


def _problem(scenario: Any) -> str:
    if not isinstance(scenario, Scenario | BudgetScenario | LifecycleScenario):
        raise InputError(f"problem: {scenario.problem} is not answered by this version")
    return scenario.problem


def _in_usd(scenario: Any) -> bool:
    return scenario.in_usd if isinstance(scenario, BudgetScenario) else True
