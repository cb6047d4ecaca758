"""What is true: equations, their units, their sources, their derivations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formulas.batching import critical_batch
    from formulas.catalogue import all_derivations, all_equations, find
    from formulas.derivation import Derivation
    from formulas.equation import Equation
    from formulas.evaluate import kernel, scalar
    from formulas.prices import token_cost
    from formulas.roofline import step_time
    from formulas.symbols import SYMBOLS
    from formulas.units import UnitError

__all__ = [
    "SYMBOLS",
    "Derivation",
    "Equation",
    "UnitError",
    "all_derivations",
    "all_equations",
    "critical_batch",
    "find",
    "kernel",
    "scalar",
    "step_time",
    "token_cost",
]

_HOMES = {
    "SYMBOLS": "symbols",
    "UnitError": "units",
    "Derivation": "derivation",
    "Equation": "equation",
    "all_derivations": "catalogue",
    "all_equations": "catalogue",
    "critical_batch": "batching",
    "find": "catalogue",
    "kernel": "evaluate",
    "scalar": "evaluate",
    "step_time": "roofline",
    "token_cost": "prices",
}


def __getattr__(name: str) -> Any:
    """Load a public name where it lives, so that importing the package loads no SymPy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'formulas' has no attribute {name!r}")
    return getattr(import_module(f"formulas.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
