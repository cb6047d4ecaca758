"""What matters? Elasticities of an answer, the next switch of its choice, break-even points."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.sensitivity.elasticities import Elasticities, elasticity_table
    from planner.sensitivity.switch_point import break_even

__all__ = ["Elasticities", "break_even", "elasticity_table"]

# Loaded when they are first used: they need the solvers.
_HOMES = {
    "Elasticities": "planner.sensitivity.elasticities",
    "break_even": "planner.sensitivity.switch_point",
    "elasticity_table": "planner.sensitivity.elasticities",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
