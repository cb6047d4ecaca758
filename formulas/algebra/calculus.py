"""Optima, bounds and means: what a step of calculus claims, and how that is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import islice

import sympy as sp

from formulas.algebra.identity import Difference, Identity, NoPointError
from formulas.algebra.points import (
    QUICK,
    THOROUGH,
    TRIES,
    UNDETERMINED,
    Point,
    margins,
    point_with,
    points,
    satisfied,
    short,
    symbols_of,
)
from formulas.numerics.digits import (
    SEARCHING,
    LostDigitsError,
    Number,
    comparable,
    near,
    real_value,
)
from formulas.numerics.expressions import text

WITH_ROOTS = 12  # points at which the roots of a slope are looked for
LISTED = 4  # points at which they are counted
ORDERS = 20  # orders of magnitude on either side in which they are
HALVINGS = 60
FINER, NEIGHBOURS = 1.13, 19  # a step and how many of them make a decade on either side
DIRECTIONS = {"<=": "≤", ">=": "≥"}
ENDS = {"≤": ("the most it can be",), "≥": ("the least it can be",)}


@dataclass(frozen=True)
class OneSided:
    """left <= right wherever the relations hold."""

    left: sp.Expr
    right: sp.Expr
    relations: tuple[sp.Basic, ...] = ()

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | None:
        """A point at which the left side is the larger; None if none is met."""
        symbols, checked = symbols_of((self.left, self.right, *self.relations)), 0
        drawn = zip(range(TRIES), points(symbols, seed), strict=False)
        allowed = (point for _, point in drawn if satisfied(self.relations, point))
        candidates = list(islice(allowed, THOROUGH if thorough else QUICK))
        if thorough:
            deciding = (self.left - self.right, *margins(self.left, self.right))
            steered = (point_with(m, self.relations, symbols, seed) for m in deciding)
            candidates += [point for point in steered if point is not None]
        for point in candidates:
            try:
                a, b = comparable(real_value(self.left, point), real_value(self.right, point))
            except UNDETERMINED:
                continue
            if a > b and not near(a, b):
                return Difference(point, short(a), short(b), short(a - b))
            checked += 1
        if not checked:
            raise NoPointError(f"no point to compare {text(self.left)} and {text(self.right)} at")
        return None

    @cached_property
    def proven(self) -> bool:
        """Whether SymPy sees that the right side less the left is not negative."""
        gap = self.right - self.left
        forms = (gap, sp.factor(sp.together(gap)), sp.expand(gap))
        return any(form.is_nonnegative for form in forms)

    def proof(self) -> str:
        """How it was shown."""
        where = f" with {', '.join(map(text, self.relations))}" if self.relations else ""
        how = "sign of every term" if self.proven else f"at {THOROUGH} points over 18 decades"
        return f"bound, {how}{where}"


@dataclass(frozen=True)
class Optimum:
    """The roots of a slope are minima, or maxima: what the curvature says there."""

    x: sp.Symbol
    slope: sp.Expr
    curvature: sp.Expr
    least: bool
    relations: tuple[sp.Basic, ...] = ()

    @classmethod
    def of(
        cls,
        objective: sp.Expr,
        x: sp.Symbol,
        traded: sp.Symbol | None,
        constant: sp.Expr | None,
        least: bool,
        relations: tuple[sp.Basic, ...],
    ) -> Optimum:
        """The optimum of an objective in a symbol; see `slope_along`."""
        slope = slope_along(objective, x, traded, constant)
        return cls(x, slope, slope_along(slope, x, traded, constant), least, relations)

    @property
    def sides(self) -> tuple[sp.Expr, sp.Expr]:
        """The terms of the slope that rise and those that fall; 0 where there are none."""
        terms = sp.Add.make_args(sp.expand(self.slope, power_base=False, power_exp=False))
        rising = [term for term in terms if term.as_coeff_Mul()[0] > 0]
        falling = [-term for term in terms if term.as_coeff_Mul()[0] < 0]
        return sp.Add(*rising), sp.Add(*falling)

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | None:
        """A root at which the curvature has the wrong sign; None if none is met.

        The roots are looked for by a check, not while the step is made.
        """
        if not thorough or self.proven:
            return None
        met = 0
        for roots in self._roots(seed):
            for root in roots:
                bend = curvature_at(self.curvature, root)
                if bend is None:
                    continue
                if (bend > 0) != self.least or bend == 0:
                    side = "least" if self.least else "largest"
                    return Difference(
                        root, f"curvature {short(bend)}", f"that of a {side} value", short(bend)
                    )
                met += 1
            if met >= WITH_ROOTS:
                return None
        if not met:
            raise NoPointError(f"the slope by {self.x.name} has no root at any point tried")
        return None

    def _roots(self, seed: int) -> Iterator[tuple[Point, ...]]:
        """The roots at every point tried that satisfies the relations."""
        symbols = symbols_of((self.slope, self.curvature, *self.relations))
        for _, point in zip(range(TRIES), points(symbols, seed), strict=False):
            if satisfied(self.relations, point):
                yield _roots(self.slope, self.x, tuple(point.items()))

    @cached_property
    def roots(self) -> tuple[tuple[Point, ...], ...]:
        """The roots over 40 orders of magnitude at each of a few points that have any."""
        several = (roots for roots in self._roots(0) if roots)
        return tuple(islice(several, 1 if self.proven else LISTED))

    def _listed(self) -> str:
        """The roots at the first of the points, and where that is."""
        if not self.roots:
            return ""
        first = self.roots[0]
        values = ", ".join(f"{float(root[self.x]):.4g}" for root in first)
        rest = sorted((y for y in first[0] if y != self.x), key=str)
        where = ", ".join(f"{y.name} = {float(first[0][y]):.4g}" for y in rest)
        return f"; {self.x.name} = {values}" + (f" at {where}" if where else "")

    @cached_property
    def proven(self) -> bool:
        """Whether the curvature has one sign everywhere, term by term: then there is one root."""
        signed = self.curvature if self.least else -self.curvature
        return any(form.is_positive for form in (signed, sp.expand(signed), sp.factor(signed)))

    def proof(self) -> str:
        """First and second order, and how many roots there are."""
        sign, kind = ("positive", "least") if self.least else ("negative", "largest")
        if self.proven:
            only = f"second order {sign} everywhere: the only root, and the {kind}"
            return f"first order; {only}{self._listed()}"
        most = max(map(len, self.roots), default=0)
        listed = "one root" if most == 1 else f"up to {most} roots"
        return (
            f"first order; {listed} at each of {len(self.roots)} points over {2 * ORDERS} orders, "
            f"second order {sign} at every root met{self._listed()}"
        )


def curvature_at(curvature: sp.Expr, root: Point) -> Number | None:
    """The curvature at a root; None where no number of digits decides it, or it does not exist."""
    for digits in (2 * SEARCHING, 8 * SEARCHING, 32 * SEARCHING):
        try:
            return real_value(curvature, root, digits)
        except LostDigitsError:
            continue
        except UNDETERMINED:
            break
    return None


@cache  # counted for the proof after the check has looked at each
def _roots(
    slope: sp.Expr, x: sp.Symbol, at: tuple[tuple[sp.Symbol, Fraction], ...]
) -> tuple[Point, ...]:
    """Where the slope changes sign as one symbol runs over many orders of magnitude."""
    point, values = dict(at), dict(at)
    try:
        along = _fixed_parts_evaluated(slope, x, values)
    except UNDETERMINED:
        return ()

    def sign(at: Fraction) -> int | None:
        try:
            value = real_value(along, {**values, x: at}, SEARCHING)
        except UNDETERMINED:
            return None
        return (value > 0) - (value < 0)

    decades = [point[x] * Fraction(10) ** order for order in range(-ORDERS, ORDERS + 1)]
    roots: list[Fraction] = []
    for near_root in _changes(sign, decades):
        # Three roots in one decade are one change of sign: the neighbourhood again, finer.
        steps = range(-NEIGHBOURS, NEIGHBOURS)
        around = [Fraction(float(near_root) * FINER ** (step + 0.5)) for step in steps]
        roots += _changes(sign, around)
    return tuple({**point, x: root} for root in roots)


def _fixed_parts_evaluated(expression: sp.Expr, x: sp.Symbol, values: Point) -> sp.Expr:
    """The expression with a symbol for each term and factor without `x`; `values` gains theirs."""
    if not expression.has(x):
        if expression.is_Symbol or expression.is_Rational:
            return expression
        fixed = sp.Dummy("fixed")
        values[fixed] = real_value(expression, values, SEARCHING)
        return fixed
    if not isinstance(expression, sp.Add | sp.Mul | sp.Pow):
        return expression
    parts = expression.args
    if isinstance(expression, sp.Mul):
        constant, varying = expression.as_independent(x, as_Add=False)
        parts = (constant, *sp.Mul.make_args(varying))
    within = (_fixed_parts_evaluated(part, x, values) for part in parts)
    return expression.func(*within, evaluate=False)


def _changes(sign: Callable[[Fraction], int | None], grid: list[Fraction]) -> Iterator[Fraction]:
    """Where the sign changes between neighbours of a grid, closed in on."""
    signs = [sign(at) for at in grid]
    for low, high, before, after in zip(grid, grid[1:], signs, signs[1:], strict=False):
        if before and after and before != after:
            yield _bisected(sign, low, high, before)


def _bisected(
    sign: Callable[[Fraction], int | None], low: Fraction, high: Fraction, before: int
) -> Fraction:
    for _ in range(HALVINGS):
        middle = ((low + high) / 2).limit_denominator(10**60)
        if sign(middle) == before:
            low = middle
        else:
            high = middle
    return high


def slope_along(
    objective: sp.Expr, x: sp.Symbol, traded: sp.Symbol | None, constant: sp.Expr | None
) -> sp.Expr:
    """x d/dx of an objective; the traded symbol moves so that `constant` stays."""
    slope = x * sp.diff(objective, x)
    if traded is None or constant is None:
        return slope
    rate = x * sp.diff(constant, x) / (traded * sp.diff(constant, traded))
    return slope - rate * traded * sp.diff(objective, traded)


def response_sides(
    sides: tuple[sp.Expr, sp.Expr],
    x: sp.Symbol,
    driver: sp.Symbol,
    named: sp.Symbol,
    traded: sp.Symbol,
    constant: sp.Expr,
) -> tuple[sp.Expr, sp.Expr]:
    """Elasticities of both sides of an equation while one symbol drives two others, [-].

    `x` moves by `named` percent for one percent of the one that drives, the traded symbol so
    that `constant` stays. An equation that holds all along the path has one elasticity on both
    sides.
    """
    back = -named * x * sp.diff(constant, x) / (traded * sp.diff(constant, traded))
    rates = {driver: sp.Integer(1), x: named, traded: back}
    return _path_elasticity(sides[0], rates), _path_elasticity(sides[1], rates)


def _path_elasticity(side: sp.Expr, rates: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    """Each term's elasticity, weighted with its share of the side."""
    total: sp.Expr = sp.Integer(0)
    for term in sp.Add.make_args(side):
        factors = sp.Mul.make_args(term)
        move = sum(r * x * sp.diff(f, x) / f for f in factors for x, r in rates.items())
        total += move * sp.cancel(term / side)
    return total


@dataclass(frozen=True)
class Uniform:
    """Every value between two ends is as likely as another."""

    low: sp.Expr
    high: sp.Expr

    def mean(self, expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
        """The mean of an expression in a variable of this distribution."""
        whole = sp.integrate(expression, (x, self.low, self.high))
        return whole / (self.high - self.low)


@dataclass(frozen=True)
class Exponential:
    """A wait for what may come at any moment alike, of a given mean."""

    average: sp.Expr

    def mean(self, expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
        """The mean of an expression in a variable of this distribution."""
        density = sp.exp(-x / self.average) / self.average
        return sp.integrate(expression * density, (x, 0, sp.oo))


Distribution = Uniform | Exponential


def mean_of(
    expression: sp.Expr,
    x: sp.Symbol,
    distribution: Distribution,
    claim: sp.Expr,
    relations: tuple[sp.Basic, ...],
) -> Identity:
    """That the mean of an expression over a distribution is what is claimed.

    Raises NoPointError if SymPy does not find the integral.
    """
    average = distribution.mean(expression, x)
    if average.has(sp.Integral):
        raise NoPointError(f"the mean of {text(expression)} has no closed form")
    return Identity(average, claim, tuple(r for r in relations if not r.has(x)))
