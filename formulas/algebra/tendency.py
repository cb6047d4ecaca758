"""Whether an expression tends to what is claimed, or has it as its mean over one symbol."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

import mpmath
import sympy as sp

from formulas.algebra import points
from formulas.algebra.identity import Difference, Identity
from formulas.numerics.digits import (
    AGREE,
    RUN,
    UNDETERMINED_RELATION,
    WORKING,
    Number,
    agree_to_digits,
    comparable,
    in_digits,
    precision,
    real_value,
)
from formulas.numerics.expressions import put, sstr, within_time


@dataclass(frozen=True)
class LimitClaim:
    """`before` → `after` as `x` → `to`, in the words of an Identity."""

    before: sp.Expr
    after: sp.Expr
    x: sp.Symbol
    to: sp.Expr
    relations: tuple[sp.Basic, ...] = ()

    def difference(self, thorough: bool = False, seed: int = 0) -> str | None:
        """Return a counterexample, from points or from SymPy's own limit; None if not found.

        The symbol comes so near that the sides agree to fifty digits, through even, odd and broken
        numbers, from every side that the conditions leave; each branch that can be met is met.
        """
        thorough = thorough or points.has_branches(self.before, self.after)
        checked, count = 0, points.MIN_POINTS if thorough else points.QUICK_POINTS
        for point in points.samples(self._about, self._others, seed):
            gap = self._gap(point)
            if gap:
                return gap
            checked += gap is not None
            if checked == count:
                break
        if not checked:
            return "there is no point near the limit at which both exist"
        scale = sp.Integer(10) ** LIMIT_DECADES[0]
        nearest = {self.x: scale if self.to == sp.oo else self.to + 1 / scale}
        sides = self.before.atoms(sp.Max, sp.Min, sp.Piecewise)
        for region in points.regions(*(put(side, nearest) for side in sides), self.after):
            for point in islice(points.samples((*self._about, *region), self._others, seed), 1):
                if gap := self._gap(point):
                    return gap
        if not thorough or self._decided is None or self.proven:
            return None
        if Identity(self._decided, self.after, self._about).difference() is None:
            return None
        return f"SymPy finds that it tends to {sstr(self._decided)}"

    @cached_property
    def proven(self) -> bool:
        """True if the limit that SymPy finds equals the claim."""
        decided = self._decided
        return decided is not None and Identity(decided, self.after, self._about).proven

    @cached_property
    def distinct(self) -> int:
        """At how many different points the limit was compared."""
        drawn = islice(points.samples(self._about, self._others, 0), points.MIN_POINTS)
        met = {tuple(point[x] for x in self._others) for point in drawn}
        return len(met) if self._others else points.THOROUGH

    def proof(self) -> str:
        """Describe the proof of the limit: symbolic, or 50 digits at distinct points."""
        if self.proven:
            return "limit, symbolically"
        return f"limit, to 50 digits at {self.distinct} distinct points over 120 decades"

    @cached_property
    def _about(self) -> tuple[sp.Basic, ...]:
        return tuple(relation for relation in self.relations if not relation.has(self.x))

    @cached_property
    def _others(self) -> list[sp.Symbol]:
        parts = (self.before, self.after, self.to, *self.relations)
        return [y for y in points.sorted_symbols(parts) if y != self.x]

    @cached_property
    def _decided(self) -> sp.Expr | None:
        """SymPy's limit, where it decides; of a maximum, where each of its branches tends."""
        before = self.before
        for node in before.atoms(sp.Max, sp.Min):
            ends = [_sympy_limit(part, self.x, self.to) for part in node.args]
            if None in ends:
                return None
            before = put(before, {node: node.func(*ends)})
        if before != self.before and (before.has(self.x) or before.has(*INFINITE)):
            return None
        return None if before.has(*points.BRANCHES) else _sympy_limit(before, self.x, self.to)

    def _gap(self, point: points.Point) -> str | None:
        """Gap between a limit and its claim as text; empty string if zero, None if undefined.

        A gap that still shrinks decides nothing where SymPy finds the limit itself.
        """
        sides = self._approaches(point, LIMIT_DECADES[-1])
        on_symbol = tuple(relation for relation in self.relations if relation.has(self.x))
        open_sides = [
            side
            for side, values in enumerate(sides)
            if all(points.all_true(on_symbol, {**point, self.x: value}) for value in values)
        ]
        if not open_sides:
            broken = ", ".join(map(sstr, on_symbol))
            where = points.point_text(point)
            return f"{broken} does not hold at {where} as {self.x.name} -> {self.to}"
        try:
            gaps = [
                [max(self._distances(point, near, side)) for near in reversed(LIMIT_DECADES)]
                if max(self._distances(point, LIMIT_DECADES[-1], side)) > AGREE
                else [mpmath.mpf(0)]
                for side in open_sides
            ]
        except UNDETERMINED_RELATION:
            return None
        for side_gaps in gaps:
            shrinking = all(near < far for near, far in pairwise(side_gaps))
            if side_gaps[0] and not (shrinking and self.proven):
                left = mpmath.nstr(side_gaps[0], 2)
                return f"at {points.point_text(point)} they still differ by {left} of the claim"
        return ""

    def _approaches(self, point: points.Point, decades: int) -> list[list[Fraction]]:
        scale = Fraction(10) ** decades
        far = [scale, scale + 1, scale + Fraction(1, 2), 3 * scale + Fraction(37, 113)]
        if self.to == sp.oo:
            return [far]
        to = points.to_fraction(real_value(self.to, point, 2 * decades + WORKING))
        return [[to + sign / each for each in far] for sign in ((1,) if to == 0 else (1, -1))]

    def _distances(self, point: points.Point, decades: int, side: int) -> list[Number]:
        digits = 2 * decades + WORKING
        claim, distances = real_value(self.after, point, digits), []
        for value in self._approaches(point, decades)[side]:
            here = real_value(self.before, {**point, self.x: value}, digits)
            a, b = comparable(here, claim, digits=digits)
            distances.append(mpmath.mpf(0) if a == b else _relative(a - b, b))
        return distances


LIMIT_DECADES = (60, 200, 400)  # decades to a limit, or of the value towards infinity
INFINITE = (sp.oo, -sp.oo, sp.zoo, sp.nan)


def _sympy_limit(before: sp.Expr, x: sp.Symbol, to: sp.Expr) -> sp.Expr | None:
    try:
        decided = within_time(lambda: sp.limit(before, x, to))
    except (NotImplementedError, ValueError):  # SymPy's ways of saying that it cannot decide
        return None
    if decided is None or decided.has(sp.Limit, sp.AccumBounds, sp.nan):
        return None
    return decided


def _relative(gap: Number, claim: Number) -> Number:
    size = abs(gap / claim) if claim else abs(gap)
    if not isinstance(size, Fraction):
        return size if mpmath.isfinite(size) else mpmath.inf
    return mpmath.mpf(size.numerator) / size.denominator


DIGITS = 18  # of a quadrature, which must agree to a third of them
INNER_SHARES = tuple(Fraction(n, d) for n, d in ((1, 10**9), (1, 100), (1, 2), (99, 100), (30, 1)))
SPREAD = 10**4  # between the symbols of a point, so that a quadrature sees all scales


@dataclass(frozen=True)
class Mean:
    """Claim that `after` is the mean of `before` over a distribution of `x`.

    By quadrature at points, and by SymPy's integral where it finds one. Whatever the conditions say
    of the symbol must hold over the whole support, which is positive and free of poles.
    """

    before: sp.Expr
    after: sp.Expr
    x: sp.Symbol
    over: Any  # a distribution: its ends, density and scale
    relations: tuple[sp.Basic, ...] = ()

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | str | None:
        """Return a counterexample, or None. Raises NoPointError if no point decides."""
        count = points.QUICK_POINTS if self._closed else points.MIN_POINTS
        checked, count = 0, count if thorough else 1
        for point in islice(points.samples(self._about, self._others, seed), 400):
            sizes = [value for x, value in point.items() if x is not RUN]
            if sizes and max(sizes) > SPREAD * min(sizes) and not self._about:
                continue
            if against := self._support(point) or self._against(point):
                return against
            checked += against is not None
            if checked == count:
                break
        if not checked:
            raise points.NoPointError(
                f"undecided: the mean of {sstr(self.before)} at no point tried"
            )
        return self._closed.difference(thorough, seed) if self._closed else None

    @cached_property
    def proven(self) -> bool:
        """True if SymPy's integral equals the claimed mean."""
        return self._closed is not None and self._closed.proven

    distinct = points.MIN_POINTS

    def proof(self) -> str:
        """Describe the proof of the mean: SymPy's integral, or quadrature at points."""
        if self._closed is not None:
            return self._closed.proof()
        where = f" with {', '.join(map(sstr, self.relations))}" if self.relations else ""
        return f"by quadrature at {points.MIN_POINTS} points{where}"

    @cached_property
    def _closed(self) -> Identity | None:
        whole = self.before * self.over.density(self.x)
        average = within_time(lambda: sp.integrate(whole, (self.x, *self.over.ends())), 3)
        if average is None or average.has(sp.Integral, sp.Piecewise, sp.nan, sp.zoo):
            return None
        return Identity(average, self.after, self._about)

    @cached_property
    def _about(self) -> tuple[sp.Basic, ...]:
        return tuple(relation for relation in self.relations if not relation.has(self.x))

    @cached_property
    def _others(self) -> list[sp.Symbol]:
        parts = (self.before, self.after, *self.over.ends(), self.over.scale(), *self.relations)
        return [y for y in points.sorted_symbols(parts) if y != self.x]

    def _range(self, point: points.Point) -> tuple[Fraction, Fraction | float, Fraction]:
        low, high = self.over.ends()
        first, scale = (
            points.to_fraction(real_value(part, point)) for part in (low, self.over.scale())
        )
        return first, math.inf if high == sp.oo else first + scale, scale

    def _support(self, point: points.Point) -> str:
        """Reason why the support is invalid at a point: sign, condition, pole; empty if valid."""
        low, high, scale = self._range(point)
        if low < 0 or scale <= 0:
            return f"from {low} to {high} at {points.point_text(point)} is no positive range"
        on_symbol = [relation for relation in self.relations if relation.has(self.x)]
        values = [low + scale * part for part in INNER_SHARES]
        values += points.cells(self.x, point, points.margins(*on_symbol), random.Random(0))
        for value in values:
            here = {**point, self.x: value}
            for relation in on_symbol if low < value < high else ():
                if not points.all_true((relation,), here):
                    where = points.point_text(here)
                    return f"{sstr(relation)} does not hold over the range: at {where}"
        for part in _lines_below(self.before, self.x):
            for pole in points.crossings(part, self.x, point, touching=False):
                if low < pole < high:
                    return (
                        f"{sstr(part)} = 0 within the range: {self.x.name} = {points.brief(pole)}"
                    )
        return ""

    def _against(self, point: points.Point) -> Difference | str | None:
        """Difference from a quadrature at a point; empty string if equal, None if undecided."""
        low, high, scale = self._range(point)
        whole = self.before * self.over.density(self.x)
        breaks = {
            at
            for part in points.margins(self.before)
            for at in points.crossings(part, self.x, point)
        }
        breaks |= {low + scale * part for part in (2, 20)}
        inner = sorted(at for at in breaks if low < at < high)
        last = mpmath.inf if high == math.inf else in_digits(high, DIGITS)
        ends = [*(in_digits(at, DIGITS) for at in (low, *inner)), last]

        def height(at: Number) -> Number:
            here = {**point, self.x: points.to_fraction(at)}
            return in_digits(real_value(whole, here, 2 * DIGITS), DIGITS)

        try:
            claim = real_value(self.after, point, DIGITS)
            average, error = precision(DIGITS).quad(height, ends, error=True)
        except UNDETERMINED_RELATION:
            return None
        if not error <= abs(average) * mpmath.mpf(10) ** (-DIGITS // 2):
            return None
        if agree_to_digits(average, claim, DIGITS, mpmath.mpf(10) ** (-DIGITS // 3)):
            return ""
        a, b = comparable(average, claim, digits=DIGITS)
        return Difference(point, points.brief(a), points.brief(b), points.brief(a - b))


def _lines_below(expression: sp.Expr, x: sp.Symbol) -> Iterator[sp.Expr]:
    for node in sp.preorder_traversal(expression):
        below = isinstance(node, sp.Pow) and node.exp.could_extract_minus_sign()
        if (below or isinstance(node, sp.log)) and node.args[0].has(x):
            yield node.args[0]
