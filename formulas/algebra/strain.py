"""How much the approximate steps of a derivation neglect in a given case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sympy as sp

from formulas.algebra.equation import Given
from formulas.algebra.steps import approximations
from formulas.numerics.evaluate import collect, scalar

if TYPE_CHECKING:
    from formulas.algebra.derivation import Derivation

__all__ = ["strain_of"]


def strain_of(derivation: Derivation, case: Mapping[str | sp.Symbol, float]) -> dict[str, float]:
    """{what is neglected: its size over what is kept}; see `Derivation.strain`."""
    values = {x if isinstance(x, str) else x.name: float(v) for x, v in case.items()}
    sizes = {
        step.neglected: abs(step.size)
        for step in approximations(derivation)
        if step.size is not None
    }
    if not sizes:
        return {}
    known = collect(derivation.where)
    inner = [given for given in _put_in(derivation) if given.symbol not in known]
    return scalar([*derivation.where, *inner], sizes, values)


def _put_in(derivation: Derivation) -> list[Given]:
    """What solved symbols are, in this derivation and in approximate ones that it puts in."""
    found: dict[sp.Symbol, Given] = {}
    if derivation.lhs.is_Symbol and not derivation.numeric:
        roots = {s.solved for s in derivation.steps if s.solved} | {derivation.lhs}
        found = {x: Given(x, derivation.rhs) for x in roots if not derivation.rhs.has(x)}
    for step in derivation.steps:
        inner = (step.arguments.get("equation"), *step.arguments.get("where", ()))
        for each in inner if step.borrowed else ():
            for given in _put_in(each) if approximations(each) else ():
                found.setdefault(given.symbol, given)
    return list(found.values())
