"""False steps, written as a user writes them: every one must be refused by its verb or by `check`.

Each is a function that makes the derivation. `mutated` draws more of them: a true step whose claim
is changed by a factor or an addend so small, or so far out, that few points show it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import sympy as sp

from formulas.algebra.calculus import Exponential, Uniform
from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.equation import Equation
from formulas.algebra.identity import Identity, NoPointError
from formulas.nomenclature.dimensions import UnitError
from formulas.nomenclature.lecture import B, T_comp, T_mem, T_step, n_layers
from formulas.nomenclature.training import q_pull as z
from formulas.nomenclature.training import r_all as k
from formulas.nomenclature.training import x_1, x_2, x_back, y_1
from formulas.nomenclature.training import x_over as n
from formulas.nomenclature.training import x_shift as y
from formulas.numerics.expressions import maximum, minimum, when
from formulas.registry import all_derivations

Made = Callable[[], Derivation]
REFUSALS = (DerivationError, UnitError)
FAR = sp.Integer(10)
F_ANY, G_ANY = sp.Function("f"), sp.Function("g")


def _rewritten(before: sp.Expr, claim: sp.Expr, *relations: sp.Basic) -> Made:
    return lambda: Derivation("false").begin(y, before).rewrite(claim, relations=relations)


def _tends(before: sp.Expr, to: sp.Expr, claim: sp.Expr) -> Made:
    return lambda: Derivation("false").begin(y, before).limit(n, to, claim)


def _solved(left: sp.Expr, right: sp.Expr, claim: sp.Expr) -> Made:
    return lambda: Derivation("false").begin(left, right).solve(n, claim)


def _begun(left: sp.Expr, right: sp.Expr) -> Made:
    return lambda: Derivation("false").begin(left, right)


def vanishing_polynomial() -> sp.Expr:
    """Zero at the sixty points that the comparison of 2026 drew for one symbol."""
    generator = random.Random("x_over")
    drawn = [sp.Rational(generator.randint(1, 60), generator.randint(1, 40)) for _ in range(60)]
    return sp.Mul(*(n - point for point in dict.fromkeys(drawn)))


_PIECES = sp.Piecewise((n, n < 10**6), (n**2, True))
FALSE_STEPS: dict[str, Made] = {
    "a root of a square": _rewritten(sp.sqrt((n - 100) ** 2), 100 - n),
    "the other root of a square": _rewritten(sp.sqrt((n - 100) ** 2), n - 100),
    "a modulus": _rewritten(sp.Abs(n - 100), 100 - n),
    "a modulus far out": _rewritten(sp.Abs(n - 10**7), 10**7 - n),
    "an exponential that has died": _rewritten(1 + sp.exp(-2000 * n), sp.Integer(1)),
    "an exponential of a large number": _rewritten(1 + sp.exp(-n / 10**7), 1 + 1 / (1 + n / 10**7)),
    "a small branch of a maximum": _rewritten(maximum(n, k / 10**12), n),
    "a branch beyond the decades": _rewritten(maximum(n, k / 10**30), n),
    "a large branch of a minimum": _rewritten(minimum(n, k * 10**12), n),
    "one branch of three": _rewritten(maximum(n, k, n * k / 10**9), maximum(n, k)),
    "a branch that a relation leaves": _rewritten(maximum(n, k), n, k < 2 * n),
    "a ceiling": _rewritten(sp.ceiling(n / 10**7), sp.Integer(1)),
    "a floor": _rewritten(sp.floor(n / 10**7), sp.Integer(0)),
    "a ceiling for a floor": _rewritten(sp.ceiling(n), sp.floor(n) + 1),
    "a ceiling left out": _rewritten(sp.ceiling(n * 10**6) / 10**6, n),
    "the first piece": _rewritten(_PIECES, n),
    "the second piece": _rewritten(_PIECES, n**2),
    "a piece with its edge": _rewritten(
        sp.Piecewise((n, n < 4), (n**2, True)), sp.Piecewise((n, n <= 4), (n**2, True))
    ),
    "a factor in the eleventh digit": _rewritten(sp.sqrt(n), (1 + 1 / FAR**10) * sp.sqrt(n)),
    "a factor in the thirtieth digit": _rewritten(sp.log(1 + n), (1 + 1 / FAR**30) * sp.log(1 + n)),
    "an addend in the twentieth digit": _rewritten(sp.exp(n), sp.exp(n) + 1 / FAR**20),
    "a logarithm of a square": _rewritten(n + sp.log((1 - n) ** 2) / 2, n + sp.log(1 - n)),
    "a root split up": _rewritten(sp.sqrt((1 - n) * (1 - k)), sp.sqrt(1 - n) * sp.sqrt(1 - k)),
    "a power of a power": _rewritten(((1 - n) ** 2) ** k, (1 - n) ** (2 * k)),
    "a polynomial at its zeros": _rewritten(n + vanishing_polynomial(), n),
    "a linear term": _rewritten((1 + n) ** k, 1 + n * k),
    "a series": _rewritten(sp.exp(n / 10**9), 1 + n / 10**9),
    "a quotient": _rewritten(n / (1 + n), n),
    "an exponent a little off": _rewritten(n**k, n ** (k * (1 + 1 / FAR**15))),
    "a limit of 2001/2000": _tends(1 - 1 / n, sp.oo, sp.Rational(2001, 2000)),
    "a limit a millionth off": _tends(1 - 1 / n, sp.oo, 1 + 1 / FAR**6),
    "a limit a trillionth off": _tends(k * n / (1 + n), sp.oo, k * (1 - 1 / FAR**12)),
    "a limit of one branch": _tends(maximum(k / 10**9, 1 / n + 1), sp.oo, sp.Integer(1)),
    "a limit from one side": _tends(sp.Abs(n - 1) / (n - 1), sp.Integer(1), sp.Integer(1)),
    "a limit that is not there": _tends(n / (1 + k), sp.oo, k),
    "a limit at zero": _tends(n**2 + k, sp.S.Zero, k + 1 / FAR**9),
    "a solution a little off": _solved(n**2, k, sp.sqrt(k) * (1 + 1 / FAR**12)),
    "a solution of the wrong sign": _solved(n**2, k, -sp.sqrt(k)),
    "a solution of one branch": _solved(maximum(n, k), y, y),
    "a solution at the old points": _solved(n, k, k + vanishing_polynomial().xreplace({n: k})),
    "a number and the next": _begun(n, n + 1),
    "a number and twice it": _begun(n, 2 * n),
    "a number and a little more": _begun(n, n + k / 10**9),
    "layers for seconds": lambda: (
        Derivation("false").begin(T_step, maximum(T_comp, T_mem)).at({T_mem: n_layers})
    ),
    "a batch for seconds": lambda: (
        Derivation("false").begin(T_step, T_comp + T_mem).at({T_comp: B})
    ),
    "a layer fed its own half": lambda: (
        Derivation("false").begin(y_1, x_1 + F_ANY(x_1)).solve(x_1, y_1 - F_ANY(x_1))
    ),
    "a layer fed its own output": lambda: (
        Derivation("false").begin(y_1, x_1 + F_ANY(x_1)).solve(x_1, y_1 - F_ANY(y_1))
    ),
    "a round trip with another function": lambda: (
        Derivation("false")
        .begin(x_back, y_1 - F_ANY(x_2))
        .substitute(Equation("layer", y_1, x_1 + G_ANY(x_2)))
        .rewrite(x_1)
    ),
    "the largest where it is the least": lambda: (
        Derivation("false").begin(y, n + k / n).stationary(n, least=False)
    ),
    "an optimum of what only rises": lambda: Derivation("false").begin(y, n + k).stationary(n),
    "a least value with a largest one between two": lambda: (
        Derivation("false").begin(y, (n - k) ** 2 * (n - 3 * k) ** 2 / k**4).stationary(n)
    ),
    "percent per percent on another path": lambda: (
        Derivation("false").begin(y**2 * n, k).respond(y, k, z, n, y * n).solve(z, sp.Integer(2))
    ),
    "percent per percent of a square": lambda: (
        Derivation("false").begin(y**2 * n, k).respond(y, k**2, z, n, y * n)
    ),
    "a bound that is broken far out": lambda: (
        Derivation("false").begin(y, n / (1 + n / 10**7)).bound(sp.Integer(10) ** 6, "<=")
    ),
    "a bound the wrong way": lambda: Derivation("false").begin(y, n / (1 + n)).bound(1, ">="),
    "a bound that turns round": lambda: (
        Derivation("false").begin(y, n / (1 + n)).bound(1, "<=").bound(sp.Rational(1, 2), ">=")
    ),
    "the mean of a square as the square of the mean": lambda: (
        Derivation("false")
        .begin(y, n**2)
        .mean(n, Uniform(sp.Integer(0), sp.Integer(1)), sp.Rational(1, 4))
    ),
    "the mean wait of another distribution": lambda: (
        Derivation("false").begin(y, k * n).mean(n, Exponential(sp.Integer(1)), k / 2)
    ),
    "conditions that exclude each other": _rewritten(n, n, k < 1, k > 2),
    "conditions of a premise that exclude each other": lambda: Derivation(
        "false", assumes=(when(k < 1), when(k > 2))
    ).begin(y, n),
    "a condition that the values break": lambda: _rewritten(maximum(n, k), n, k <= n)().at(
        {n: sp.Integer(1), k: sp.Integer(2)}
    ),
}


def refused(make: Made, seed: int | None = None) -> bool:
    """Whether a verb, or the check at points of this seed, refuses a derivation."""
    try:
        return not make().check(seed)
    except REFUSALS:
        return True


def mutated(seed: int, count: int) -> Iterator[tuple[str, Made]]:
    """So many true derivations, each with a last claim that is changed at a scale of 1e-9 ... 1e9.

    A factor 1 + s, an addend s times the claim and a symbol, or a branch that decides from s on;
    those that leave the claim equal are left out.
    """
    generator = random.Random(seed)
    claims = [
        (d, i)
        for d in all_derivations()
        for i, s in enumerate(d.steps, 1)
        if s.verb in ("rewrite", "solve", "limit")
    ]
    while count:
        derivation, number = generator.choice(claims)
        step = derivation.steps[number - 1]
        scale, claim = FAR ** generator.randint(-9, 9), step.arguments["claim"]
        changed = generator.choice(_changes(claim, scale, generator))
        try:
            equal = Identity(claim, changed, step.identity.relations).difference(True) is None
        except NoPointError:
            equal = True
        if not equal:
            count -= 1
            name = f"{derivation.name}, step {number}: {changed}"
            yield name, _replayed(derivation, number, changed)


def _replayed(derivation: Derivation, number: int, claim: sp.Expr) -> Made:
    return lambda: derivation.replayed({number: {"claim": claim}})


def _changes(claim: sp.Expr, scale: sp.Expr, generator: random.Random) -> list[sp.Expr]:
    symbols = sorted(claim.free_symbols, key=str)
    factor = [claim * (1 + scale)]
    if not symbols:
        return factor
    x = generator.choice(symbols)
    ratio = claim / claim.xreplace({x: 2 * x})  # a number that depends on the symbol
    return [*factor, maximum(claim, claim * scale * ratio), claim * (1 + scale * ratio)]
