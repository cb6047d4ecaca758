"""What is true: equations, their units, their sources, their derivations."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from formulas.algebra.derivation import Derivation
    from formulas.algebra.equation import Equation
    from formulas.economics.prices import token_cost
    from formulas.nomenclature.dimensions import UnitError
    from formulas.nomenclature.symbols import SYMBOLS
    from formulas.numerics.evaluate import kernel, scalar
    from formulas.registry import all_derivations, all_equations, find
    from formulas.roofline.batching import critical_batch
    from formulas.roofline.roofline import step_time

_HOMES = {
    "SYMBOLS": "registry",
    "Derivation": "algebra.derivation",
    "Equation": "algebra.equation",
    "UnitError": "nomenclature.dimensions",
    "all_derivations": "registry",
    "all_equations": "registry",
    "critical_batch": "roofline.batching",
    "find": "registry",
    "kernel": "numerics.evaluate",
    "scalar": "numerics.evaluate",
    "step_time": "roofline.roofline",
    "token_cost": "economics.prices",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    """Load a public name where it lives, so that importing the package loads no SymPy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'formulas' has no attribute {name!r}")
    return getattr(import_module(f"formulas.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
