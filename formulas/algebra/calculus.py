"""Optima, bounds and means: what a step of calculus claims, and how that is shown."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice

import sympy as sp

from formulas.algebra.identity import EQUAL, Difference, Identity
from formulas.algebra.points import (
    MIN_POINTS,
    THOROUGH,
    NoPointError,
    Point,
    all_true,
    brief,
    cells,
    crossings,
    margins,
    samples,
    sorted_symbols,
)
from formulas.algebra.steps import sampled_sign
from formulas.numerics import digits as evaluation
from formulas.numerics.expressions import least_points, sstr, within_time

WITH_ROOTS = 8  # number of slope roots after which a check of the curvature ends
TIE = Fraction(1, 10**15)  # relative: a kink is met no better
WIDE_RATIO = Fraction(10) ** 10
COUNTED_POINTS = 4  # sample points whose roots are counted


class OneSided(Identity):
    """left <= right wherever the relations hold."""

    @property
    def broken(self) -> tuple[sp.Expr, ...]:
        """The sides, and where they are equal or come nearest."""
        return self.left, self.right, self.left - self.right

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | str | None:
        """A point where the left side is larger; looked for as well where the gap is least."""
        drawn = super().difference(thorough, seed)
        if drawn or not thorough or self.proven:
            return drawn
        starts = [dict(zip(self.symbols, values, strict=True)) for values in self.met]
        for point in least_points(self.right - self.left, self.relations, starts):
            if all_true(self.relations, point):
                verdict = self.verdict(point)
                if isinstance(verdict, Difference):
                    return self._in_need(verdict, seed)
        return None

    def weighed(self, verdict: Difference | str) -> Difference | str:
        """Return the difference if the left side is the larger; EQUAL if it is the smaller."""
        if isinstance(verdict, Difference) and not verdict.domain and verdict.gap.startswith("-"):
            return EQUAL
        return verdict

    @cached_property
    def proven(self) -> bool:
        """True if SymPy proves that the right side minus the left is nonnegative."""
        gap = self.right - self.left
        forms = (lambda: gap, lambda: sp.expand(gap), lambda: sp.factor(sp.together(gap)))
        return within_time(lambda: any(form().is_nonnegative for form in forms)) is True

    def proof(self) -> str:
        """Describe the proof of the bound: sign of every term, or number of distinct points."""
        where = f" with {', '.join(map(sstr, self.relations))}" if self.relations else ""
        points = f"at {self.distinct} distinct points over 120 decades"
        return f"bound, {'sign of every term' if self.proven else points}{where}"


@dataclass(frozen=True)
class Optimum:
    """Claim that the roots of a slope are minima, or maxima, by the curvature there."""

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
        """The optimum of an objective in a symbol; see `log_derivative`.

        Raises NoPointError where the objective has several kinks.
        """
        kinks = [each for each in objective.atoms(sp.Max, sp.Min) if each.has(x)]
        if kinks and traded:
            raise NoPointError(f"undecided: how {traded.name} moves beside a kink in {x.name}")
        if kinks:
            return Kink.of(objective, x, kinks, least, relations)
        slope = log_derivative(objective, x, traded, constant)
        return cls(x, slope, log_derivative(slope, x, traded, constant), least, relations)

    @property
    def sides(self) -> tuple[sp.Expr, sp.Expr]:
        """Sums of the rising and of the falling terms of the slope; an empty sum is 0."""
        terms = sp.Add.make_args(sp.expand(self.slope, power_base=False, power_exp=False))
        rising = [term for term in terms if term.as_coeff_Mul()[0] > 0]
        falling = [-term for term in terms if term.as_coeff_Mul()[0] < 0]
        if not falling:  # a logarithm may have either sign
            rising = [term for term in terms if sampled_sign(term, self.relations) > 0]
            falling = [-term for term in terms if term not in rising]
        return sp.Add(*rising), sp.Add(*falling)

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | None:
        """Return a root with the wrong sign of the curvature; None if not found or not `thorough`.

        The roots are looked for by a check, not while the step is made. Raises NoPointError if none
        lies within the relations.
        """
        if not thorough:
            return None
        met = 0
        for roots in self._roots(seed):
            for root in roots:
                bend = second_derivative_value(self.curvature, root)
                if bend is None:
                    continue
                if (bend > 0) != self.least or bend == 0:
                    side = "least" if self.least else "largest"
                    return Difference(
                        root, f"curvature {brief(bend)}", f"that of a {side} value", brief(bend)
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
        """Yield, for each sampled point, the roots of the slope that satisfy the relations."""
        about = tuple(relation for relation in self.relations if not relation.has(self.x))
        symbols = sorted_symbols((self.slope, self.curvature, *self.relations))
        for point in islice(samples(about, symbols, seed), WITH_ROOTS * COUNTED_POINTS):
            # Far out the second order is lost in the digits: there only if conditions ask for it.
            if not about and any(
                not 1 / WIDE_RATIO < v < WIDE_RATIO
                for x, v in point.items()
                if x is not evaluation.RUN
            ):
                continue
            at = crossings(self.slope, self.x, point, touching=False)
            roots = [{**point, self.x: value} for value in at]
            yield [root for root in roots if all_true(self.relations, root)]

    distinct = THOROUGH  # at least MIN_POINTS, so that a checked optimum counts as tested

    @cached_property
    def roots(self) -> tuple[list[Point], ...]:
        """The roots over 120 orders of magnitude at each of a few points that have any."""
        several = (roots for roots in self._roots(0) if roots)
        return tuple(islice(several, 1 if self.proven else COUNTED_POINTS))

    def _listed(self) -> str:
        if not self.roots:
            return ""
        first = self.roots[0]
        values = ", ".join(f"{float(root[self.x]):.4g}" for root in first)
        rest = sorted((y for y in first[0] if y not in (self.x, evaluation.RUN)), key=str)
        where = ", ".join(f"{y.name} = {float(first[0][y]):.4g}" for y in rest)
        return f"; {self.x.name} = {values}" + (f" at {where}" if where else "")

    @cached_property
    def proven(self) -> bool:
        """True if SymPy finds the curvature of one sign everywhere, hence a unique root."""
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
            raise NoPointError(f"undecided: {sstr(objective)} has several kinks in {x.name}")
        left, right = kinks[0].args
        return cls(left, right, relations, objective, x, least)

    @property
    def sides(self) -> tuple[sp.Expr, sp.Expr]:
        """The branches that are equal there."""
        return self.left, self.right

    proven = False

    @cached_property
    def symbols(self) -> list[sp.Symbol]:
        """Those of the objective too."""
        return sorted_symbols((self.objective, *self.relations))

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | None:
        """Return a point with a better objective than at the kink; None if not found."""
        met = 0
        for point in samples(self.relations, self.symbols, seed):
            for at in crossings(self.left - self.right, self.x, point, touching=False):
                kink = {**point, self.x: at}
                if all_true(self.relations, kink):
                    self.met.add(tuple(point[x] for x in self.symbols))
                    met += 1
                    if better := self._better(kink):
                        return better
            if met >= (MIN_POINTS if thorough else 1):
                return None
        if not met:
            raise NoPointError(f"no kink in {self.x.name} satisfies the conditions")
        return None

    def _better(self, kink: Point) -> Difference | None:
        """Return a point along `x` with a better objective, tried in the cells of its breaks."""
        about = (*margins(self.objective), sp.diff(self.left, self.x), sp.diff(self.right, self.x))
        best = evaluation.real_value(self.objective, kink)
        for value in cells(self.x, kink, about, random.Random(0)):
            point = {**kink, self.x: value}
            try:
                a, b = evaluation.comparable(evaluation.real_value(self.objective, point), best)
            except evaluation.UNDETERMINED_RELATION:
                continue
            if abs(a - b) <= abs(b) * TIE or not all_true(self.relations, point):
                continue
            if (a < b) == self.least:
                return Difference(point, brief(a), f"{brief(b)} at the kink", brief(a - b))
        return None

    def proof(self) -> str:
        """Describe the comparison: branches that meet in a kink, optimal at MIN_POINTS points."""
        kind = "least" if self.least else "largest"
        return f"the branches meet in a kink, the {kind} along {self.x.name} at {MIN_POINTS} points"


def second_derivative_value(curvature: sp.Expr, root: Point) -> evaluation.Number | None:
    """The curvature at a root; None where no number of digits decides it, or it does not exist."""
    for digits in (2 * evaluation.SEARCHING, 8 * evaluation.SEARCHING, 32 * evaluation.SEARCHING):
        try:
            return evaluation.real_value(curvature, root, digits)
        except evaluation.LostDigitsError:
            continue
        except evaluation.UNDETERMINED_RELATION:
            break
    return None


def log_derivative(
    objective: sp.Expr, x: sp.Symbol, traded: sp.Symbol | None, constant: sp.Expr | None
) -> sp.Expr:
    """x d/dx of an objective; the traded symbol moves so that `constant` stays."""
    slope = x * sp.diff(objective, x)
    if traded is None and constant is None:
        return slope
    rate = -traded_response({x: sp.Integer(1)}, traded, constant)
    return slope - rate * traded * sp.diff(objective, traded)


def traded_response(
    rates: Mapping[sp.Symbol, sp.Expr], traded: sp.Symbol | None, constant: sp.Expr | None
) -> sp.Expr:
    """Percent by which a traded symbol moves to leave a constant as it is while others move so.

    Raises NoPointError where there is no constant that depends on it.
    """
    if traded is None or constant is None or not constant.has(traded):
        raise NoPointError("what is traded leaves a constant as it is, which depends on it")
    moved = sum(rate * x * sp.diff(constant, x) for x, rate in rates.items())
    return -moved / (traded * sp.diff(constant, traded))


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
    rates = {driver: sp.Integer(1), x: named}
    rates[traded] = traded_response(rates, traded, constant)
    return _path_elasticity(sides[0], rates), _path_elasticity(sides[1], rates)


def _path_elasticity(side: sp.Expr, rates: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
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
        """Lower and upper end of the support."""
        return self.low, self.high

    def density(self, _: sp.Symbol) -> sp.Expr:
        """Of probability."""
        return 1 / (self.high - self.low)

    def scale(self) -> sp.Expr:
        """A length over which the density changes."""
        return self.high - self.low


@dataclass(frozen=True)
class Exponential:
    """Exponential distribution of a waiting time (Poisson arrivals), given its mean."""

    average: sp.Expr

    def ends(self) -> tuple[sp.Expr, sp.Expr]:
        """Lower and upper end of the support: 0 and infinity."""
        return sp.S.Zero, sp.oo

    def density(self, x: sp.Symbol) -> sp.Expr:
        """Of probability."""
        return sp.exp(-x / self.average) / self.average

    def scale(self) -> sp.Expr:
        """A length over which the density changes."""
        return self.average


Distribution = Uniform | Exponential
