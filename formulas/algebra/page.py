"""What a page of equations is written with: every symbol, every source, and the verbs of algebra.

A module of equations begins with `from formulas.algebra.page import *` and reads as the page of a
textbook does. Here stand no equations, so that a page binds none but its own.
"""

from sympy import (
    Expr,
    Integer,
    Max,
    Min,
    Mul,
    Piecewise,
    Rational,
    ceiling,
    diff,
    exp,
    floor,
    log,
    oo,
    sqrt,
)

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.nomenclature.lecture import *
from formulas.nomenclature.network import *
from formulas.nomenclature.pools import *
from formulas.nomenclature.schedule import *
from formulas.nomenclature.serving import *
from formulas.nomenclature.sources import *
from formulas.nomenclature.training import *
from formulas.numerics.expressions import maximum, minimum
