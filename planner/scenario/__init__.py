"""What was asked? The scenario file: text with positions, checked into a frozen question.

Names are loaded when they are first used, so that a problem kind may import the keys it shares
with others while its own question is being loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.scenario.keys.model_keys import ModelDescription
    from planner.scenario.keys.references import File
    from planner.scenario.keys.system_keys import SystemDescription
    from planner.scenario.keys.workload import (
        Choose,
        Current,
        Demand,
        Distribution,
        PoolChoice,
        Promises,
        Speculation,
        Workload,
    )
    from planner.scenario.kinds import PROBLEMS, Document
    from planner.scenario.loading import checked, load, opened, read
    from planner.scenario.schema_document import json_schema, resolved
    from planner.scenario.tree import ALIASES, Position, Tree, changed

__all__ = [
    "ALIASES",
    "PROBLEMS",
    "Choose",
    "Current",
    "Demand",
    "Distribution",
    "Document",
    "File",
    "ModelDescription",
    "PoolChoice",
    "Position",
    "Promises",
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
    "planner.scenario.keys.system_keys": ("SystemDescription",),
    "planner.scenario.keys.model_keys": ("ModelDescription",),
    "planner.scenario.keys.references": ("File",),
    "planner.scenario.keys.workload": (
        *("Choose", "Current", "Demand", "Distribution", "PoolChoice", "Promises"),
        *("Speculation", "Workload"),
    ),
    "planner.scenario.kinds": ("PROBLEMS", "Document"),
    "planner.scenario.loading": ("checked", "load", "opened", "read"),
    "planner.scenario.schema_document": ("json_schema", "resolved"),
    "planner.scenario.tree": ("ALIASES", "Position", "Tree", "changed"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value
