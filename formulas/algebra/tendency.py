"""Whether an expression tends to what is claimed, where one symbol comes near a value."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import mpmath
import sympy as sp

from formulas.algebra.identity import Identity
from formulas.algebra.points import (
    QUICK,
    THOROUGH,
    TRIES,
    Point,
    branched,
    margins,
    point_text,
    point_with,
    points,
    satisfied,
    symbols_of,
)
from formulas.numerics.digits import (
    AGREE,
    WORKING,
    LostDigitsError,
    NotRealError,
    Number,
    comparable,
    real_value,
)
from formulas.numerics.expressions import put, text


@dataclass(frozen=True)
class Tendency:
    """`before` → `after` as `x` → `to`, in the words of an Identity."""

    before: sp.Expr
    after: sp.Expr
    x: sp.Symbol
    to: sp.Expr
    relations: tuple[sp.Basic, ...] = ()

    def difference(self, thorough: bool = False, seed: int = 0) -> str | None:
        """A counterexample, at points or by SymPy's own limit; None if there is none."""
        against = limit_differs(
            self.before, self.after, self.x, self.to, self.relations, thorough, seed
        )
        if against or not thorough or self._decided is None:
            return against
        if self.proven or Identity(self._decided, self.after, self.relations).difference() is None:
            return None
        return f"SymPy finds that it tends to {text(self._decided)}"

    @cached_property
    def proven(self) -> bool:
        """Whether SymPy finds the same limit."""
        decided = self._decided
        return decided is not None and Identity(decided, self.after, self.relations).proven

    def proof(self) -> str:
        """How the limit was shown."""
        if self.proven:
            return "limit, symbolically"
        return f"limit, to 50 digits at {limit_points(thorough=True)} points over 18 decades"

    @cached_property
    def _decided(self) -> sp.Expr | None:
        """SymPy's limit, where it decides."""
        if self.before.has(sp.Max, sp.Min, sp.ceiling, sp.floor):
            return None
        try:
            decided = sp.limit(self.before, self.x, self.to)
        except (NotImplementedError, ValueError):  # SymPy's ways of saying that it cannot decide
            return None
        return None if decided.has(sp.Limit, sp.AccumBounds, sp.nan) else decided


def limit_differs(
    before: sp.Expr,
    after: sp.Expr,
    x: sp.Symbol,
    to: sp.Expr,
    relations: tuple[sp.Basic, ...] = (),
    thorough: bool = False,
    seed: int = 0,
) -> str | None:
    """Counterexample to before → after as x → to, from points; None if they converge.

    The symbol comes so near that the sides agree to fifty digits, from both sides of a value that
    is not zero; every branch that can be met there is met if `thorough`.
    """
    symbols = [y for y in symbols_of((before, after, to, *relations)) if y != x]
    about = [relation for relation in relations if not relation.has(x)]
    thorough = thorough or branched(before, after)
    checked, count = 0, limit_points(thorough)
    for _, point in zip(range(TRIES), points(symbols, seed), strict=False):
        if not satisfied(about, point):
            continue
        gap = _limit_gap(before, after, point, x, to)
        if gap:
            return gap
        checked += gap is not None
        if checked == count:
            break
    if not checked:
        return "there is no point near the limit at which both exist"
    nearest = sp.Integer(10) ** APPROACHES[0]
    close = put(before, {x: nearest if to == sp.oo else to + 1 / nearest})
    for margin in margins(close, after) if thorough else ():
        branch = point_with(margin, about, symbols, seed)
        gap = _limit_gap(before, after, branch, x, to) if branch else None
        if gap:
            return gap
    return None


def _limit_gap(
    before: sp.Expr, after: sp.Expr, point: Point, x: sp.Symbol, to: sp.Expr
) -> str | None:
    """What is left between a limit and its claim, empty if nothing; None where neither exists."""
    sides = (1,) if to in (sp.oo, 0) else (1, -1)
    try:
        gaps = [_nearest_gap(before, after, point, x, to, side) for side in sides]
    except (ZeroDivisionError, NotRealError, LostDigitsError):
        return None
    for gap in gaps:
        if not gap <= AGREE:  # also where it is not a number
            return f"at {point_text(point)} they still differ by {mpmath.nstr(gap, 2)} of the claim"
    return ""


APPROACHES = (60, 250, 1000)  # decades by which a symbol comes near its limit


def _nearest_gap(
    before: sp.Expr, after: sp.Expr, point: Point, x: sp.Symbol, to: sp.Expr, sign: int
) -> Number:
    """Relative distance from the claim at the nearest approach tried that decides."""
    gap = mpmath.inf
    for decades in APPROACHES:
        scale = Fraction(10) ** decades
        value = scale if to == sp.oo else real_value(to, point) + sign / scale
        digits = 2 * decades + WORKING
        here = {**point, x: value}
        sides = (real_value(before, here, digits), real_value(after, point, digits))
        value, claim = comparable(*sides, digits=digits)
        gap = mpmath.mpf(0) if value == claim else _relative(value - claim, claim)
        if gap <= AGREE:
            break
    return gap


def _relative(gap: Number, claim: Number) -> Number:
    size = abs(gap / claim) if claim else abs(gap)
    return mpmath.mpf(size.numerator) / size.denominator if isinstance(size, Fraction) else size


def limit_points(thorough: bool = False) -> int:
    """At how many points a limit is compared."""
    return THOROUGH if thorough else QUICK
