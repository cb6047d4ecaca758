"""Notation: every symbol, every source and the verbs of algebra, for the pages of equations.

A module of equations begins with `from formulas.algebra.notation import *` and reads as
the page of a textbook does. Here stand no equations, so that a page binds none but its own.
"""

from collections.abc import Callable as _Callable
from typing import Concatenate as _Concatenate
from typing import ParamSpec as _ParamSpec
from typing import TypeAlias as _TypeAlias

from sympy import (
    Expr,
    Function,
    Integer,
    Max,
    Min,
    Mul,
    Piecewise,
    Rational,
    Symbol,
    ceiling,
    diff,
    exp,
    floor,
    log,
    oo,
    pi,
    sqrt,
)

from formulas.algebra.calculus import Exponential, Uniform
from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation, equations_in_module
from formulas.nomenclature.layout_symbols import *
from formulas.nomenclature.lecture import *
from formulas.nomenclature.memory_symbols import *
from formulas.nomenclature.schedule_symbols import *
from formulas.nomenclature.serving_symbols import *
from formulas.nomenclature.sources import *
from formulas.nomenclature.sources import Citation as _Citation
from formulas.nomenclature.training import *
from formulas.numerics.expressions import in_turn, maximum, minimum, when

_P = _ParamSpec("_P")
Step: _TypeAlias = _Callable[[Derivation], Derivation]


def derive(
    name: str,
    *steps: Step,
    source: _Citation = derived,
    assumes: tuple[str, ...] = (),
    where: tuple[Equation, ...] = (),
) -> Derivation:
    """The derivation of these steps, as a page of equations writes it."""
    derivation = Derivation(name, source, assumes, where=where)
    for step in steps:
        derivation = step(derivation)
    return derivation


def _step(verb: _Callable[_Concatenate[Derivation, _P], Derivation]) -> _Callable[_P, Step]:
    """A verb that waits for the derivation that it carries on."""

    def waiting(*args: _P.args, **kwargs: _P.kwargs) -> Step:
        return lambda derivation: verb(derivation, *args, **kwargs)

    return waiting


begin = _step(Derivation.begin)
substitute = _step(Derivation.substitute)
rewrite = _step(Derivation.rewrite)
solve = _step(Derivation.solve)
drop = _step(Derivation.drop)
limit = _step(Derivation.limit)
stationary = _step(Derivation.stationary)
respond = _step(Derivation.respond)
bound = _step(Derivation.bound)
mean = _step(Derivation.mean)
