"""Optima, bounds and means: what a step of calculus claims, and how that is shown."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice

import mpmath
import sympy as sp

from formulas.algebra.identity import SAME, Difference, Identity, sign_of
from formulas.algebra.points import (
    FEWEST,
    QUICK,
    THOROUGH,
    NoPointError,
    Point,
    allowed,
    cells,
    crossings,
    fraction_of,
    margins,
    point_text,
    satisfied,
    short,
    symbols_of,
)
from formulas.numerics.digits import (
    RUN,
    SEARCHING,
    UNDETERMINED,
    LostDigitsError,
    Number,
    comparable,
    context_of,
    in_digits,
    near,
    real_value,
)
from formulas.numerics.expressions import text, within_time

WITH_ROOTS = 8  # points at which the roots of a slope are looked for
TIE = Fraction(1, 10**15)  # relative: a kink is met no better
WIDE = Fraction(10) ** 10
LISTED = 4  # points at which they are counted
DIRECTIONS = {"<=": "≤", ">=": "≥"}
ENDS = {"≤": ("the most it can be",), "≥": ("the least it can be",)}


class OneSided(Identity):
    """left <= right wherever the relations hold."""

    @property
    def broken(self) -> tuple[sp.Expr, ...]:
        """The sides, and where they are equal or come nearest."""
        return self.left, self.right, self.left - self.right

    def verdict(self, point: Point) -> Difference | str:
        """The difference at a point at which the left side is the larger; else that it is not."""
        found = super().verdict(point)
        if isinstance(found, Difference) and not found.domain and found.gap.startswith("-"):
            return SAME
        return found

    @cached_property
    def proven(self) -> bool:
        """Whether SymPy sees that the right side less the left is not negative."""
        gap = self.right - self.left
        forms = (lambda: gap, lambda: sp.expand(gap), lambda: sp.factor(sp.together(gap)))
        return within_time(lambda: any(form().is_nonnegative for form in forms)) is True

    def proof(self) -> str:
        """How it was shown."""
        where = f" with {', '.join(map(text, self.relations))}" if self.relations else ""
        points = f"at {self.distinct} distinct points over 120 decades"
        return f"bound, {'sign of every term' if self.proven else points}{where}"


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
    ) -> Optimum | Kink:
        """The optimum of an objective in a symbol; see `slope_along`.

        Raises NoPointError where the objective has several kinks.
        """
        kinks = [each for each in objective.atoms(sp.Max, sp.Min) if each.has(x)]
        if kinks:
            return Kink.of(objective, x, kinks, least, relations)
        slope = slope_along(objective, x, traded, constant)
        return cls(x, slope, slope_along(slope, x, traded, constant), least, relations)

    @property
    def sides(self) -> tuple[sp.Expr, sp.Expr]:
        """The terms of the slope that rise and those that fall; 0 where there are none."""
        terms = sp.Add.make_args(sp.expand(self.slope, power_base=False, power_exp=False))
        rising = [term for term in terms if term.as_coeff_Mul()[0] > 0]
        falling = [-term for term in terms if term.as_coeff_Mul()[0] < 0]
        if not falling:  # a logarithm may have either sign
            rising = [term for term in terms if sign_of(term, self.relations) > 0]
            falling = [-term for term in terms if term not in rising]
        return sp.Add(*rising), sp.Add(*falling)

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | None:
        """A root at which the curvature has the wrong sign; None if none is met.

        The roots are looked for by a check, not while the step is made. Raises NoPointError if none
        lies within the relations.
        """
        if not thorough:
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
            if met >= (1 if self.proven else WITH_ROOTS):
                return None
        if not met:
            raise NoPointError(
                f"the slope by {self.x.name} has no root within the conditions at any point tried"
            )
        return None

    def _roots(self, seed: int) -> Iterator[list[Point]]:
        """The roots at every point tried, as far as they satisfy the relations."""
        about = tuple(relation for relation in self.relations if not relation.has(self.x))
        symbols = symbols_of((self.slope, self.curvature, *self.relations))
        for point in islice(allowed(about, symbols, seed), WITH_ROOTS * LISTED):
            # Far out the second order is lost in the digits: there only if conditions ask for it.
            if not about and any(not 1 / WIDE < v < WIDE for x, v in point.items() if x is not RUN):
                continue
            at = crossings(self.slope, self.x, point, touching=False)
            roots = [{**point, self.x: value} for value in at]
            yield [root for root in roots if satisfied(self.relations, root)]

    @cached_property
    def distinct(self) -> int:
        """At how many points the roots were looked for."""
        return THOROUGH

    @cached_property
    def roots(self) -> tuple[list[Point], ...]:
        """The roots over 120 orders of magnitude at each of a few points that have any."""
        several = (roots for roots in self._roots(0) if roots)
        return tuple(islice(several, 1 if self.proven else LISTED))

    def _listed(self) -> str:
        """The roots at the first of the points, and where that is."""
        if not self.roots:
            return ""
        first = self.roots[0]
        values = ", ".join(f"{float(root[self.x]):.4g}" for root in first)
        rest = sorted((y for y in first[0] if y not in (self.x, RUN)), key=str)
        where = ", ".join(f"{y.name} = {float(first[0][y]):.4g}" for y in rest)
        return f"; {self.x.name} = {values}" + (f" at {where}" if where else "")

    @cached_property
    def proven(self) -> bool:
        """Whether the curvature has one sign everywhere, term by term: then there is one root."""
        signed = self.curvature if self.least else -self.curvature
        forms = (lambda: signed, lambda: sp.expand(signed), lambda: sp.factor(signed))
        return within_time(lambda: any(form().is_positive for form in forms)) is True

    def proof(self) -> str:
        """First and second order, and how many roots there are."""
        sign, kind = ("positive", "least") if self.least else ("negative", "largest")
        if self.proven:
            only = f"second order {sign} everywhere: the only root, and the {kind}"
            return f"first order; {only}{self._listed()}"
        most = max(map(len, self.roots), default=0)
        listed = "one root" if most == 1 else f"up to {most} roots"
        return (
            f"first order; {listed} at each of {len(self.roots)} points over 120 orders, "
            f"second order {sign} at every root met{self._listed()}"
        )


@dataclass(frozen=True)
class Kink(Identity):
    """An objective is least, or largest, where the branches of its one maximum are equal.

    `left` and `right` are these branches.
    """

    objective: sp.Expr = sp.S.Zero
    x: sp.Symbol = sp.S.Zero
    least: bool = True

    @classmethod
    def of(
        cls,
        objective: sp.Expr,
        x: sp.Symbol,
        kinks: list[sp.Expr],
        least: bool,
        relations: tuple[sp.Basic, ...],
    ) -> Kink:
        """The kink of an objective. Raises NoPointError unless it has one, of two branches."""
        if len(kinks) > 1 or len(kinks[0].args) != 2:
            raise NoPointError(f"undecided: {text(objective)} has several kinks in {x.name}")
        left, right = kinks[0].args
        return cls(left, right, relations, objective, x, least)

    @property
    def sides(self) -> tuple[sp.Expr, sp.Expr]:
        """The branches that are equal there."""
        return self.left, self.right

    proven = False

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | None:
        """A point at which the objective is better than at the kink; None if none is met."""
        met = 0
        for point in allowed(self.relations, self.symbols, seed):
            for at in crossings(self.left - self.right, self.x, point, touching=False):
                kink = {**point, self.x: at}
                if satisfied(self.relations, kink):
                    self.met.add(tuple(point[x] for x in self.symbols))
                    met += 1
                    if better := self._better(kink):
                        return better
            if met >= (FEWEST if thorough else 1):
                return None
        if not met:
            raise NoPointError(f"no kink in {self.x.name} lies within the conditions")
        return None

    def _better(self, kink: Point) -> Difference | None:
        """A point along the symbol at which the objective is better, in the cells of its breaks."""
        about = (*margins(self.objective), sp.diff(self.left, self.x), sp.diff(self.right, self.x))
        best = real_value(self.objective, kink)
        for value in cells(self.x, kink, about, random.Random(0)):
            point = {**kink, self.x: value}
            try:
                a, b = comparable(real_value(self.objective, point), best)
            except UNDETERMINED:
                continue
            if abs(a - b) <= abs(b) * TIE or not satisfied(self.relations, point):
                continue
            if (a < b) == self.least:
                return Difference(point, short(a), f"{short(b)} at the kink", short(a - b))
        return None

    def proof(self) -> str:
        """What was compared."""
        kind = "least" if self.least else "largest"
        return f"the branches meet in a kink, the {kind} along {self.x.name} at {FEWEST} points"


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

    def ends(self) -> tuple[sp.Expr, sp.Expr]:
        """Where the support begins and ends."""
        return self.low, self.high

    def density(self, _: sp.Symbol) -> sp.Expr:
        """Of probability."""
        return 1 / (self.high - self.low)

    def scale(self) -> sp.Expr:
        """A length over which the density changes."""
        return self.high - self.low


@dataclass(frozen=True)
class Exponential:
    """A wait for what may come at any moment alike, of a given mean."""

    average: sp.Expr

    def ends(self) -> tuple[sp.Expr, sp.Expr]:
        """Where the support begins and ends."""
        return sp.S.Zero, sp.oo

    def density(self, x: sp.Symbol) -> sp.Expr:
        """Of probability."""
        return sp.exp(-x / self.average) / self.average

    def scale(self) -> sp.Expr:
        """A length over which the density changes."""
        return self.average


Distribution = Uniform | Exponential
DIGITS = 18  # of a quadrature, which must agree to a third of them
INSIDE = tuple(Fraction(n, d) for n, d in ((1, 10**9), (1, 100), (1, 2), (99, 100), (30, 1)))
SPREAD = 10**4  # between the symbols of a point, so that a quadrature sees all scales


@dataclass(frozen=True)
class Mean:
    """The mean of an expression over a distribution of a symbol is what is claimed.

    By quadrature at points, and by SymPy's integral where it finds one. Whatever the conditions say
    of the symbol must hold over the whole support, which is positive and free of poles.
    """

    before: sp.Expr
    after: sp.Expr
    x: sp.Symbol
    over: Distribution
    relations: tuple[sp.Basic, ...] = ()

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | str | None:
        """A counterexample; None if there is none. Raises NoPointError if no point decides."""
        count = QUICK if self._closed else FEWEST
        checked, count = 0, count if thorough else 1
        for point in islice(allowed(self._about, self._others, seed), 400):
            sizes = [value for x, value in point.items() if x is not RUN]
            if sizes and max(sizes) > SPREAD * min(sizes) and not self._about:
                continue
            if against := self._support(point) or self._against(point):
                return against
            checked += against is not None
            if checked == count:
                break
        if not checked:
            raise NoPointError(f"undecided: the mean of {text(self.before)} at no point tried")
        return self._closed.difference(thorough, seed) if self._closed else None

    @cached_property
    def proven(self) -> bool:
        """Whether SymPy's integral is what is claimed."""
        return self._closed is not None and self._closed.proven

    distinct = FEWEST

    def proof(self) -> str:
        """How it was shown."""
        if self._closed is not None:
            return self._closed.proof()
        where = f" with {', '.join(map(text, self.relations))}" if self.relations else ""
        return f"by quadrature at {FEWEST} points{where}"

    @cached_property
    def _closed(self) -> Identity | None:
        """SymPy's mean beside the claim; None where it finds no closed form, or not in time."""
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
        return [y for y in symbols_of(parts) if y != self.x]

    def _range(self, point: Point) -> tuple[Fraction, Fraction | float, Fraction]:
        """Where the support begins and ends at a point, and its scale."""
        low, high = self.over.ends()
        first, scale = (fraction_of(real_value(part, point)) for part in (low, self.over.scale()))
        return first, math.inf if high == sp.oo else first + scale, scale

    def _support(self, point: Point) -> str:
        """What is wrong with the support at a point: its sign, a condition, a pole; else empty."""
        low, high, scale = self._range(point)
        if low < 0 or scale <= 0:
            return f"from {low} to {high} at {point_text(point)} is no positive range"
        on_symbol = [relation for relation in self.relations if relation.has(self.x)]
        values = [low + scale * part for part in INSIDE]
        values += cells(self.x, point, margins(*on_symbol), random.Random(0))
        for value in values:
            here = {**point, self.x: value}
            for relation in on_symbol if low < value < high else ():
                if not satisfied((relation,), here):
                    return f"{text(relation)} does not hold over the range: at {point_text(here)}"
        for part in _lines_below(self.before, self.x):
            for pole in crossings(part, self.x, point, touching=False):
                if low < pole < high:
                    return f"{text(part)} = 0 within the range: {self.x.name} = {short(pole)}"
        return ""

    def _against(self, point: Point) -> Difference | str | None:
        """The difference from a quadrature at a point, empty if none; None if undecided."""
        low, high, scale = self._range(point)
        whole = self.before * self.over.density(self.x)
        breaks = {at for part in margins(self.before) for at in crossings(part, self.x, point)}
        breaks |= {low + scale * part for part in (2, 20)}
        inner = sorted(at for at in breaks if low < at < high)
        last = mpmath.inf if high == math.inf else in_digits(high, DIGITS)
        ends = [*(in_digits(at, DIGITS) for at in (low, *inner)), last]

        def height(at: Number) -> Number:
            here = {**point, self.x: fraction_of(at)}
            return in_digits(real_value(whole, here, 2 * DIGITS), DIGITS)

        try:
            claim = real_value(self.after, point, DIGITS)
            found, error = context_of(DIGITS).quad(height, ends, error=True)
        except UNDETERMINED:
            return None
        if not error <= abs(found) * mpmath.mpf(10) ** (-DIGITS // 2):
            return None
        if near(found, claim, DIGITS, mpmath.mpf(10) ** (-DIGITS // 3)):
            return ""
        a, b = comparable(found, claim, digits=DIGITS)
        return Difference(point, short(a), short(b), short(a - b))


def _lines_below(expression: sp.Expr, x: sp.Symbol) -> Iterator[sp.Expr]:
    """What stands below a line, or under a logarithm, and has a symbol."""
    for node in sp.preorder_traversal(expression):
        below = isinstance(node, sp.Pow) and node.exp.could_extract_minus_sign()
        if (below or isinstance(node, sp.log)) and node.args[0].has(x):
            yield node.args[0]
