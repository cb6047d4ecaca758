"""Notation: every symbol, every source and the verbs of algebra, for the pages of equations.

A module of equations begins with `from formulas.algebra.notation import *` and reads as
the page of a textbook does. Here stand no equations, so that a page binds none but its own.
"""

from sympy import (
    Expr,
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
    sqrt,
)

from formulas.algebra.derivation import (
    Derivation,
    Step,
    begin,
    derive,
    drop,
    limit,
    rewrite,
    solve,
    substitute,
)
from formulas.algebra.equation import Equation, equations_of
from formulas.nomenclature.lecture import *
from formulas.nomenclature.network import *
from formulas.nomenclature.schedule_symbols import *
from formulas.nomenclature.serving_symbols import *
from formulas.nomenclature.sources import *
from formulas.nomenclature.training import *
from formulas.numerics.expressions import maximum, minimum
