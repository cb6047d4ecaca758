"""What was asked? The scenario file: text with positions, checked into a frozen question.

Names are loaded when they are first used, so that a problem kind may import the keys it shares
with others while its own question is being loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.problems.budget.question import BudgetScenario
    from planner.problems.lifecycle.question import LifecycleScenario
    from planner.problems.serving.question import Scenario
    from planner.scenario.changes import ALIASES, changed
    from planner.scenario.keys.choices import Choose, Current, PoolChoice, Speculation
    from planner.scenario.keys.machines import SystemDescription
    from planner.scenario.keys.models import ModelDescription
    from planner.scenario.keys.references import File
    from planner.scenario.keys.workload import Demand, Distribution, Promises, Workload
    from planner.scenario.kinds import PROBLEMS, Document
    from planner.scenario.loading import checked, load, opened, read
    from planner.scenario.schema_document import json_schema, resolved
    from planner.scenario.tree import Position, Tree

__all__ = [
    "ALIASES",
    "PROBLEMS",
    "BudgetScenario",
    "Choose",
    "Current",
    "Demand",
    "Distribution",
    "Document",
    "File",
    "LifecycleScenario",
    "ModelDescription",
    "PoolChoice",
    "Position",
    "Promises",
    "Scenario",
    "Speculation",
    "SystemDescription",
    "Tree",
    "Workload",
    "changed",
    "checked",
    "json_schema",
    "load",
    "opened",
    "read",
    "resolved",
]

_HOMES = {
    "ALIASES": "planner.scenario.changes",
    "BudgetScenario": "planner.problems.budget.question",
    "Choose": "planner.scenario.keys.choices",
    "Current": "planner.scenario.keys.choices",
    "Demand": "planner.scenario.keys.workload",
    "Distribution": "planner.scenario.keys.workload",
    "Document": "planner.scenario.kinds",
    "File": "planner.scenario.keys.references",
    "LifecycleScenario": "planner.problems.lifecycle.question",
    "ModelDescription": "planner.scenario.keys.models",
    "PROBLEMS": "planner.scenario.kinds",
    "Position": "planner.scenario.tree",
    "PoolChoice": "planner.scenario.keys.choices",
    "Promises": "planner.scenario.keys.workload",
    "Scenario": "planner.problems.serving.question",
    "Speculation": "planner.scenario.keys.choices",
    "SystemDescription": "planner.scenario.keys.machines",
    "Tree": "planner.scenario.tree",
    "Workload": "planner.scenario.keys.workload",
    "changed": "planner.scenario.changes",
    "checked": "planner.scenario.loading",
    "json_schema": "planner.scenario.schema_document",
    "load": "planner.scenario.loading",
    "opened": "planner.scenario.loading",
    "read": "planner.scenario.loading",
    "resolved": "planner.scenario.schema_document",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
