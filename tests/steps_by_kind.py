"""False steps and true ones, by the kind of fault that would let a false one pass.

At least three false ones and two true ones of each kind; all by verbs, as a user writes them.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from formulas.algebra.calculus import Exponential, Uniform
from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.nomenclature.schedule_symbols import x_cliff
from formulas.nomenclature.sources import definition
from formulas.nomenclature.training import q_pull as z
from formulas.nomenclature.training import r_all as k
from formulas.nomenclature.training import x_back
from formulas.nomenclature.training import x_over as n
from formulas.nomenclature.training import x_shift as y
from formulas.numerics.expressions import maximum, minimum, when
from tests.false_steps import Made

FAR, ONE = sp.Integer(10), sp.Integer(1)
UNIT = Uniform(sp.S.Zero, ONE)
F_ANY, G_ANY = sp.Function("f"), sp.Function("g")
INDEX = sp.Dummy("i", positive=True)


def _begun(rhs: sp.Expr, *assumes: sp.Basic) -> Derivation:
    return Derivation("by kind", assumes=tuple(when(each) for each in assumes)).begin(y, rhs)


def _same(before: sp.Expr, claim: sp.Expr, *relations: sp.Basic) -> Made:
    return lambda: _begun(before).rewrite(claim, relations=relations)


def _tends(before: sp.Expr, to: sp.Expr, claim: sp.Expr, *assumes: sp.Basic) -> Made:
    return lambda: _begun(before, *assumes).limit(n, to, claim)


def _mean(before: sp.Expr, over: Uniform | Exponential, claim: sp.Expr, *assumes: sp.Basic) -> Made:
    return lambda: _begun(before, *assumes).mean(n, over, claim)


def _below(before: sp.Expr, claim: sp.Expr, *assumes: sp.Basic) -> Made:
    return lambda: _begun(before, *assumes).bound(claim, "<=")


def _half() -> Derivation:
    """Y is at most half of k."""
    return _begun(k * n / (1 + 2 * n)).bound(k / 2, "<=")


def _hidden(rhs: sp.Expr, claim: sp.Expr) -> Derivation:
    """The claim has z for n."""
    return _begun(rhs).rewrite(claim, where=(Equation("h", z, n),))


def _numbers() -> Derivation:
    """Twice n, for two of k."""
    return _begun(n * k).at({k: sp.Integer(2)})


FALSE: dict[str, Made] = {
    "points: tiles of 4096 far out": _same(4096 * sp.ceiling(n / 4096), n, n > 10**13),
    "points: a floor at halves": _same(sp.floor(n + sp.Rational(1, 2)), sp.floor(n)),
    "points: a ceiling below whole numbers": _same(sp.ceiling(n) - 1, sp.floor(n)),
    "points: a square in a window": _same(
        n**2, sp.Integer(49), n > sp.Rational(6999, 1000), n < sp.Rational(7001, 1000)
    ),
    "points: an exponential of many FLOP": _same(1 - sp.exp(-(FAR**30) / n), ONE),
    "points: an addend far below": _same(n + FAR**-40, n),
    "windows: a sliver beside k": _same(
        sp.Piecewise((3 * n, sp.And(n > k, n < k * (1 + 1 / FAR**7))), (n, True)), n
    ),
    "windows: two symbols in slivers": _same(
        sp.Piecewise(
            (k, sp.And(n > 3, n < sp.Rational(3001, 1000), k > 5, k < sp.Rational(5001, 1000))),
            (n, True),
        ),
        n,
    ),
    "windows: an edge alone": _same(
        sp.Piecewise((2 * k, sp.Eq(n, sp.Rational(7, 13))), (k, True)), k
    ),
    "directions: a quotient keeps its sign": lambda: _half().solve(k, 2 * y),
    "directions: a bound in a power": lambda: (
        Derivation("by kind").begin(z, 1 / y**2).substitute(_half())
    ),
    "directions: a bound begun as an equation": lambda: (
        Derivation("by kind").begin(x_back, _half()).rewrite(k / 2).bound(k / 3, ">=")
    ),
    "directions: a limit after a bound": lambda: _half().limit(k, 0, sp.Integer(0)),
    "directions: the optimum of a bound": lambda: (
        _begun(n / (1 + z) + k / n).bound(n + k / n, "<=").stationary(n)
    ),
    "conditions: a solution outside": lambda: (
        Derivation("by kind", assumes=(when(n < 1),)).begin(n**2, 4 + k).solve(n, sp.sqrt(4 + k))
    ),
    "conditions: a limit out of its range": _tends(minimum(n, k), sp.oo, k, n < 10),
    "conditions: a mean beyond its range": lambda: (
        _begun(minimum(n, k)).rewrite(n, relations=(n <= k,)).mean(n, Uniform(k, 3 * k), 2 * k)
    ),
    "conditions: an optimum beyond its range": lambda: _begun(n / k + k / n, n > 3 * k).stationary(
        n
    ),
    "conditions: what is put in breaks one": lambda: (
        _begun(n, k < 1).substitute(Equation("more", n, z)).at({k: sp.Integer(2)})
    ),
    "numbers: less than nothing is left": lambda: _begun(n - k).at({n: ONE, k: sp.Integer(2)}),
    "numbers: both sides given": lambda: (
        Derivation("by kind").begin(y**2, n).at({y: sp.Integer(3), n: sp.Integer(8)})
    ),
    "numbers: infinitely many": lambda: _begun(1 / (n - 1)).at({n: ONE}),
    "names: a root called by a given": lambda: _begun(n * k + z).solve(n, (y - z) / k, named=z),
    "names: a mean called by its range": lambda: _begun(n).mean(
        n, Uniform(sp.Integer(0), k), k / 2, named=k
    ),
    "names: a definition that redefines": lambda: _begun(n + k).rewrite(
        n + z, where=(Equation("other", k, z),)
    ),
    "functions: even": _same(F_ANY(n - k), F_ANY(k - n)),
    "functions: symmetric": _same(F_ANY(n, k), F_ANY(k, n)),
    "functions: bounded": _below(F_ANY(n), FAR**9 * (1 + n)),
    "functions: one for another": _same(F_ANY(n) + G_ANY(k), G_ANY(n) + F_ANY(k)),
    "limits: a sawtooth": _tends(k + n / 3 - sp.floor(n / 3), sp.oo, k),
    "limits: a minimum that comes late": _tends(k + minimum(2, sp.log(n) / FAR**300), sp.oo, k),
    "limits: from one side of two": _tends(maximum(n, 1) / n + sp.floor(n), ONE, sp.Integer(2)),
    "bounds: touching is not below": _below(2 * sp.sqrt(n * k), (n + k) * (1 - 1 / FAR**9)),
    "bounds: a narrow peak": _below(sp.exp(-(FAR**14) * (n - sp.Rational(31, 17)) ** 2), ONE / 3),
    "bounds: a logarithm": _below(sp.log(n) / n, 1 / sp.E - 1 / FAR**8),
    "bounds: an entropy": _below(-n * sp.log(n), 1 / sp.E - 1 / FAR**9),
    "bounds: three means": _below(3 + 1 / FAR**8, n + k + 1 / (n * k)),
    "bounds: three squares": _below(n * k + k * z + z * n + n * k / FAR**7, n**2 + k**2 + z**2),
    "bounds: a root of three": _below(
        3 * (k / 4) ** sp.Rational(1, 3) * (1 + 1 / FAR**9), n + k / n**2
    ),
    "bounds: a convex power": _below(3 * n + 1 / FAR**7, 2 * n ** sp.Rational(3, 2) + 1),
    "roots: one of three": lambda: (
        Derivation("by kind").begin(n**3 + 11 * n * k**2, 6 * k**3 + 6 * n**2 * k).solve(n, 2 * k)
    ),
    "roots: of a modulus": lambda: Derivation("by kind").begin(sp.Abs(n - k), 1).solve(n, k + 1),
    "roots: any below a step": lambda: (
        Derivation("by kind").begin(sp.ceiling(n), sp.ceiling(k)).solve(n, k)
    ),
    "integrals: through a pole": _mean(
        1 / (n - 1), Uniform(sp.Integer(0), sp.Integer(3)), sp.log(2) / 3
    ),
    "integrals: of a range that is not positive": _mean(n**2, Uniform(-k, k), k**2 / 3),
    "integrals: that do not converge": _mean(sp.exp(2 * n), Exponential(ONE), -ONE),
    "optima: a well beside": lambda: _begun(
        n + 1 / n + 9 - 5 / (1 + FAR**10 * (n - 4) ** 2)
    ).stationary(n),
    "optima: a kink that is a peak": lambda: _begun(minimum(n, k / n)).stationary(n),
    "optima: only rises": lambda: _begun(n + sp.log(1 + n)).stationary(n),
    "definitions: a mean over what hides": lambda: (
        _begun(n**2).rewrite(z, where=(Equation("h", z, n**2),)).mean(n, UNIT, z)
    ),
    "definitions: a limit of what hides": lambda: _hidden(k + n / (1 + n), k + z / (1 + n)).limit(
        n, sp.oo, k
    ),
    "definitions: an optimum of what hides": lambda: (
        _begun(n + k / n + 1 / n)
        .rewrite(n + k / n + z, where=(Equation("h", z, 1 / n),))
        .stationary(n)
        .solve(n, sp.sqrt(k))
    ),
    "definitions: an elasticity of what hides": lambda: (
        _hidden(k * n, k * z).respond(y, k, x_cliff, n, k * n).solve(x_cliff, ONE)
    ),
    "definitions: a constant that hides": lambda: (
        _hidden(n + k, z + k).stationary(n, traded=k, constant=k * z).solve(n, k / 2)
    ),
    "definitions: a claim that hides": lambda: _hidden(n + k, z + k).limit(n, sp.S.Zero, k + z),
    "definitions: another number": lambda: _hidden(n + n, n + z).at(
        {n: sp.Integer(2), z: sp.Integer(5)}
    ),
    "definitions: of what is begun": lambda: Derivation(
        "by kind", where=(Equation("a", y, n),)
    ).begin(y, 2 * n),
    "facts: numbers taken for all": lambda: Derivation("by kind").begin(_numbers()),
    "facts: numbers put into another": lambda: (
        Derivation("by kind").begin(z, y + k).substitute(_numbers())
    ),
    "facts: a number that comes back": lambda: (
        _begun(n * k).at({n: sp.Integer(3)}).substitute(Equation("q", k, n)).at({n: FAR})
    ),
    "facts: more than itself": lambda: _begun(z).substitute(Equation("q", z, z + 1)),
    "facts: there and back by halves": lambda: (
        _begun(n).substitute(Equation("q", n, k)).substitute(Equation("p", k, n / 2))
    ),
    "premises: less than nothing": lambda: _begun(-n - k),
    "premises: the smaller less the larger": lambda: _begun(n - k, n < k),
    "premises: above what it may be": lambda: _begun(n + 2, y < 1),
    "premises: a sum that is never one": lambda: Derivation("by kind").begin(n + 1 / n, ONE),
    "premises: half of itself": _same(maximum(n, y / 2), y / 2, y > 2 * n),
    "premises: nothing is left": lambda: _begun(n - k).substitute(Equation("q", k, n + z)),
    "premises: the kept term is negative": lambda: _begun(n - k).drop(n, -k),
    "edges: a tree of two": _same(
        sp.ceiling(sp.log(n) / sp.log(2)),
        sp.floor(sp.log(n) / sp.log(2)) + 1,
        n > 1,
        sp.Eq(sp.floor(n), n),
    ),
    "edges: a root of a square": _same(sp.ceiling(sp.sqrt(n)), sp.floor(sp.sqrt(n)) + 1),
    "edges: below or at a root": _same(
        sp.Piecewise((k, sp.sqrt(n) < 2), (n, True)), sp.Piecewise((k, sp.sqrt(n) <= 2), (n, True))
    ),
    "edges: of tiles": lambda: (
        Derivation("by kind", assumes=(when(sp.Eq(sp.floor(y / 64), y / 64)),))
        .begin(y, 64 * sp.ceiling(n / 64))
        .solve(n, y)
    ),
    "edges: a factor that may be nothing": lambda: (
        Derivation("by kind").begin(y * maximum(0, n - k), z * maximum(0, n - k)).solve(y, z)
    ),
    "inside: the index of a sum": lambda: (
        _begun(sp.Sum(n * k, (n, 1, 3))).at({k: n}).rewrite(sp.Integer(14))
    ),
    "inside: what a slope is by": lambda: (
        _begun(sp.Derivative(n**2 * k, n)).substitute(Equation("q", k, n)).rewrite(3 * n**2)
    ),
    "inside: a sum to an end": lambda: _begun(sp.Sum(n * k, (n, 1, z))).substitute(
        Equation("q", k, n)
    ),
    "traded: at a kink": lambda: _begun(maximum(n, k / n)).stationary(
        n, traded=k, constant=k / n**4
    ),
    "traded: for nothing": lambda: _begun(n * k + 1 / n).stationary(n, traded=k),
    "traded: what drives": lambda: (
        Derivation("by kind").begin(y**2 * n, k).respond(y, y, z, n, y * n)
    ),
    "traded: what is not in the constant": lambda: (
        Derivation("by kind").begin(y**2 * n, k).respond(y, k, z, n, y)
    ),
    "traded: a step has no slope": lambda: _begun(sp.floor(n) * k).respond(y, k, z, n, n * k),
    "digits: a factor near one": _same(sp.sqrt(n) * (1 + FAR**-90), sp.sqrt(n)),
    "digits: a bound near one": _below(sp.exp(n) * (1 + FAR**-90), sp.exp(n)),
    "digits: an exponential of a root": _same(1 + sp.exp(-1000 - 1 / (1 + n)), ONE),
    "records: without its condition": lambda: replace(
        _begun(maximum(n, k), n < k).rewrite(k), assumes=()
    ),
    "records: with another definition": lambda: replace(
        _hidden(n + n, n + z), where=(Equation("h", z, n**3),)
    ),
    "records: without its numbers": lambda: replace(_numbers(), numeric=False),
}

TRUE: dict[str, Made] = {
    "points: whole numbers": _same(sp.floor(2 * n), 2 * n, sp.Eq(sp.floor(n), n)),
    "points: halves up": _same(sp.floor(n) + sp.floor(n + sp.Rational(1, 2)), sp.floor(2 * n)),
    "points: far out": _same(minimum(n, FAR**24), n, n < FAR**20),
    "windows: a chain": _same(maximum(n, k, z), z, n < k, k < z, z < n * (1 + 1 / FAR**4)),
    "windows: an equality": _same(sp.Piecewise((2 * k, sp.Eq(n, k)), (n + k, True)), n + k),
    "directions: a bound that turns": lambda: _half().solve(k, 2 * y, direction=">="),
    "directions: a bound put in": lambda: (
        Derivation("by kind").begin(z, 1 / y**2).substitute(_half(), direction=">=")
    ),
    "conditions: a solution inside": lambda: (
        Derivation("by kind", assumes=(when(n > 1),)).begin(n**2, 4 + k).solve(n, sp.sqrt(4 + k))
    ),
    "conditions: the root that they leave": lambda: (
        Derivation("by kind", assumes=(when(2 * n > 5 * k),))
        .begin(n**2 + 6 * k**2, 5 * n * k)
        .solve(n, 3 * k)
    ),
    "conditions: a mean in its range": lambda: (
        _begun(minimum(n, k)).rewrite(n, relations=(n <= k,)).mean(n, Uniform(sp.S.Zero, k), k / 2)
    ),
    "numbers: what is left": lambda: _begun(n - k).at({n: sp.Integer(3), k: sp.Integer(2)}),
    "numbers: both sides agree": lambda: (
        Derivation("by kind").begin(y**2, n).at({y: sp.Integer(3), n: sp.Integer(9)})
    ),
    "names: a new one": lambda: _begun(n * k + z).solve(n, (y - z) / k, named=x_cliff),
    "names: a definition of a new one": lambda: _begun(n + k).rewrite(
        x_cliff, where=(Equation("sum", x_cliff, n + k),)
    ),
    "functions: of equal arguments": _same(F_ANY(sp.log(n * k)), F_ANY(sp.log(n) + sp.log(k))),
    "functions: a maximum of two": _same(
        maximum(F_ANY(n), G_ANY(n)), (F_ANY(n) + G_ANY(n) + sp.Abs(F_ANY(n) - G_ANY(n))) / 2
    ),
    "limits: a rounded ratio": _tends(sp.ceiling(n / k) / n, sp.oo, 1 / k),
    "limits: a slow one": _tends(k + 1 / sp.log(n), sp.oo, k),
    "bounds: equal at one point": _below(sp.log(n) / n, 1 / sp.E),
    "bounds: steps": _below(sp.ceiling(n), n + 1),
    "bounds: three means": _below(sp.Integer(3), n + k + 1 / (n * k)),
    "bounds: a root of three": _below(3 * (k / 4) ** sp.Rational(1, 3), n + k / n**2),
    "bounds: a divergence": _below(n, n * sp.log(n / k) + k),
    "roots: the one of a cubic": lambda: Derivation("by kind").begin(n**3, k**3).solve(n, k),
    "roots: of an exponential": lambda: (
        Derivation("by kind").begin(sp.exp(n), 1 + k).solve(n, sp.log(1 + k))
    ),
    "integrals: a root at the end": _mean(1 / sp.sqrt(n), Uniform(sp.S.Zero, ONE), sp.Integer(2)),
    "integrals: no closed form needed": _mean(sp.Max(n, 1), Exponential(ONE), 1 + sp.exp(-1)),
    "integrals: written out": _same(sp.Integral(1 / INDEX, (INDEX, 1, 1 + n)), sp.log(1 + n)),
    "sums: of squares": _same(sp.Sum(INDEX**2, (INDEX, 1, n)), n * (n + 1) * (2 * n + 1) / 6),
    "optima: of a logarithm": lambda: _begun(n - k * sp.log(n) + 100 * k).stationary(n).solve(n, k),
    "optima: a kink that is a peak": lambda: (
        _begun(minimum(n, k / n)).stationary(n, least=False).solve(n, sp.sqrt(k))
    ),
    "definitions: a mean of what moves": lambda: _hidden(n + n, n + z).mean(n, UNIT, ONE),
    "definitions: a limit of what moves": lambda: _hidden(k + n / (1 + n), k + z / (1 + n)).limit(
        n, sp.oo, k + 1
    ),
    "definitions: a constant of what moves": lambda: (
        _hidden(n + k, z + k).stationary(n, traded=k, constant=k * z).solve(n, k)
    ),
    "definitions: its own number": lambda: _hidden(n + n, n + z).at(
        {n: sp.Integer(2), z: sp.Integer(2)}
    ),
    "facts: a chain of equations": lambda: (
        _begun(n).substitute(Equation("q", n, 2 * k)).substitute(Equation("p", k, z / 2)).rewrite(z)
    ),
    "facts: numbers at the end": lambda: _numbers().rewrite(2 * n),
    "premises: the larger less the smaller": lambda: _begun(n - k, n > k).substitute(
        Equation("q", n, k + z)
    ),
    "premises: the kept term is positive": lambda: _begun(n + k).drop(n, k),
    "edges: a root by the other step": _same(sp.ceiling(sp.sqrt(n)), -sp.floor(-sp.sqrt(n))),
    "edges: beside tiles": lambda: _begun(64 * sp.ceiling(n / 64) * k).solve(
        k, y / (64 * sp.ceiling(n / 64))
    ),
    "inside: beside the index": lambda: (
        _begun(sp.Sum(INDEX * k, (INDEX, 1, 3))).at({k: n}).rewrite(6 * n)
    ),
    "inside: a slope, taken": lambda: (
        _begun(sp.Derivative(n**2 * k, n)).rewrite(2 * n * k).substitute(Equation("q", k, n))
    ),
    "traded: at the same product": lambda: (
        _begun(k * n).respond(y, k, x_cliff, n, k * n).rewrite(sp.S.Zero)
    ),
    "traded: two for one": lambda: (
        _begun(n + k).stationary(n, traded=k, constant=n * k).solve(n, k)
    ),
    "digits: a root of a power": _same(sp.sqrt(n**2 * FAR**-180), n * FAR**-90),
    "digits: less than an exponential": _below(sp.exp(n) * (1 - FAR**-90), sp.exp(n)),
    "records: as they are": lambda: replace(_hidden(n + n, n + z), source=definition),
    "records: with the condition": lambda: _begun(maximum(n, k), n < k).rewrite(k),
    "optima: a kink of a product": lambda: (
        _begun(k * maximum(n, z / n)).stationary(n).solve(n, sp.sqrt(z))
    ),
}
