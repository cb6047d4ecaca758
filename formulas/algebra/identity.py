"""Whether two expressions are equal: symbolically, or at points over many decades.

And the closed form of one symbol of an equation, put back before it is believed.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice

import sympy as sp

from formulas.algebra.points import (
    BRANCHES,
    MIN_POINTS,
    QUICK_POINTS,
    THOROUGH,
    NoPointError,
    Point,
    all_true,
    axis_points,
    brief,
    has_branches,
    margins,
    point_text,
    regions,
    sample_points,
    samples,
    sorted_symbols,
)
from formulas.nomenclature.symbols import describe
from formulas.numerics import digits as evaluation
from formulas.numerics.expressions import put, sstr, within_time

PRECISIONS = (evaluation.WORKING, 4 * evaluation.WORKING, evaluation.DECISIVE)
QUADRATURE = (75, 80)  # more would take seconds a point
READABLE = 3  # degree: the roots of a quartic fill pages, and there are none beyond in general
EQUAL, UNDEFINED_AT_POINT, NOT_DECIDED = "the same", "nothing to compare", "undecided"
STARTS = 3  # sample points, per identity to visit its breaks, and per region


@dataclass(frozen=True)
class Difference:
    """Point where two sides differ, with the value of each side and the missing domain."""

    point: Point
    left: str
    right: str
    gap: str = ""
    domain: str = ""
    exact: bool = True  # not rounded

    def __str__(self) -> str:
        needs = f"; it would need {self.domain}" if self.domain else ""
        gap = f"the two sides differ by {self.gap}" if self.gap else "only one side is real"
        return f"at {point_text(self.point)} {gap}: {self.left} against {self.right}{needs}"


@dataclass(frozen=True)
class Identity:
    """left = right for all positive symbols, or for those that satisfy `relations`."""

    left: sp.Expr
    right: sp.Expr
    relations: tuple[sp.Basic, ...] = ()
    met: set[tuple[Fraction, ...]] = field(
        default_factory=set, compare=False, repr=False, kw_only=True
    )

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | str | None:
        """A point where the sides differ; None if all points agree.

        Every branch and break that can be met is met if `thorough`. Raises NoPointError if no point
        satisfies the relations and lets both sides exist, or if none decides in a branch.
        """
        whole, agreeing = thorough or has_branches(self.left, self.right), list[Point]()
        count = self._count if whole else QUICK_POINTS
        for point in samples(self.relations, self.symbols, seed):
            verdict = self.verdict(point)
            if isinstance(verdict, Difference):
                return self._in_need(verdict, seed)
            if verdict == EQUAL:
                agreeing.append(point)
            if len(agreeing) == count:
                break
        self.met.clear()
        self.met.update(tuple(point[x] for x in self.symbols) for point in agreeing)
        if not agreeing:
            raise NoPointError(f"no point to compare {sstr(self.left)} and {sstr(self.right)} at")
        if not whole or self.proven:
            return None
        at_breaks = self._at_breaks(agreeing, seed) if thorough else None
        return (
            at_breaks
            or self._in_regions(agreeing, seed)
            or self._deeper(agreeing[: STARTS * thorough])
        )

    @property
    def broken(self) -> tuple[sp.Expr, ...]:
        """Expressions with the breaks to test: both sides."""
        return self.left, self.right

    def verdict(self, point: Point) -> Difference | str:
        """Return the Difference at a point; else EQUAL, UNDEFINED_AT_POINT or NOT_DECIDED."""
        return self.weighed(compare_at_point(self.left, self.right, point))

    def weighed(self, verdict: Difference | str) -> Difference | str:
        """A verdict about equality as one about this claim."""
        return verdict

    @cached_property
    def proven(self) -> bool:
        """True if SymPy simplifies the difference to zero, with each branching part as a symbol."""
        parts: dict[sp.Basic, sp.Basic] = {}
        for node in chain(*map(sp.preorder_traversal, (self.left, self.right))):
            if isinstance(node, (*BRANCHES, sp.Sum, sp.Integral)):
                parts.setdefault(node, sp.Dummy("part", real=True))
        gap = put(self.left, parts) - put(self.right, parts)
        forms = (lambda: gap, lambda: sp.cancel(sp.together(gap)), lambda: sp.simplify(gap))
        return any(within_time(form) == 0 for form in forms)

    @property
    def distinct(self) -> int:
        """At how many different points the sides were compared when they were last."""
        return len(self.met) if self.symbols else THOROUGH  # a number has no other point

    def proof(self) -> str:
        """The method of proof: `symbolically`, or the number and kind of points compared."""
        where = f" with {', '.join(map(sstr, self.relations))}" if self.relations else ""
        if self.proven:
            return f"symbolically{where}"
        kind = "exactly" if self._rational() else "to 50 digits"
        return f"at {self.distinct} distinct points over 120 decades, {kind}{where}"

    def _at_breaks(self, agreeing: list[Point], seed: int) -> Difference | None:
        for start in agreeing[:STARTS] if self._count == THOROUGH else ():
            for point in axis_points(start, *self.broken, *self.relations):
                if all_true(self.relations, point):
                    verdict = self.verdict(point)
                    if isinstance(verdict, Difference):
                        return self._in_need(verdict, seed)
        return None

    def _in_regions(self, agreeing: list[Point], seed: int) -> Difference | None:
        """Compare the sides in every branch without an agreeing point; a difference or None.

        Raises NoPointError if no number of digits decides in one.
        """
        for region in regions(self.left, self.right):
            if any(all_true(region, point) for point in agreeing):
                continue
            met = islice(samples((*self.relations, *region), self.symbols, seed), STARTS)
            verdicts = [self.verdict(point) for point in met]
            for verdict in verdicts:
                if isinstance(verdict, Difference):
                    return self._in_need(verdict, seed)
            if verdicts and set(verdicts) == {NOT_DECIDED}:
                raise NoPointError(f"undecided where {', '.join(map(sstr, region))}")
        return None

    def _deeper(self, agreeing: list[Point]) -> Difference | None:
        """Compare the sides with the most digits: what is small beside the rest shows there."""
        for point in agreeing if self._count == THOROUGH else ():
            with suppress(evaluation.LostDigitsError):
                verdict = _compared(self.left, self.right, point, evaluation.DECISIVE)
                if isinstance(verdict := self.weighed(verdict), Difference):
                    return verdict
        return None

    def _in_need(self, difference: Difference, seed: int) -> Difference:
        """With the condition that separates the points that agree from the point that does not."""
        if difference.domain:
            return difference
        deciding = [
            m for m in margins(self.left, self.right) if all_true((m > 0,), difference.point)
        ]
        agreed = 0
        for point in islice(sample_points(self.symbols, seed), THOROUGH if deciding else 0):
            if (
                all_true(self.relations, point)
                and compare_at_point(self.left, self.right, point) == EQUAL
            ):
                deciding = [m for m in deciding if not all_true((m > 0,), point)]
                agreed += 1
        if not (deciding and agreed):
            return difference
        return replace(difference, domain=f"{sstr(deciding[0])} <= 0")

    def _rational(self) -> bool:
        for point in islice(samples(self.relations, self.symbols, 0), THOROUGH):
            try:
                sides = (
                    evaluation.real_value(self.left, point),
                    evaluation.real_value(self.right, point),
                )
                return all(isinstance(side, Fraction) for side in sides)
            except (ZeroDivisionError, ValueError):
                continue
        return False

    @cached_property
    def symbols(self) -> list[sp.Symbol]:
        """Every symbol of the sides and the relations, by name."""
        return sorted_symbols((self.left, self.right, *self.relations))

    @property
    def _count(self) -> int:
        slow = (sp.Sum, sp.Integral, *evaluation.SPECIAL)
        return 2 * MIN_POINTS if self.left.has(*slow) or self.right.has(*slow) else THOROUGH


def compare_at_point(left: sp.Expr, right: sp.Expr, point: Point) -> Difference | str:
    """EQUAL, UNDEFINED_AT_POINT, NOT_DECIDED, or the difference of two expressions at a point.

    Rounded sides are the same if two thirds of the digits carried agree; they differ if they do so
    with more digits as well.
    """
    differed = False
    integrals = left.has(sp.Integral) or right.has(sp.Integral)
    for digits in QUADRATURE if integrals else PRECISIONS:
        try:
            verdict = _compared(left, right, point, digits)
        except evaluation.LostDigitsError:
            continue
        if differed or not isinstance(verdict, Difference) or verdict.exact:
            return verdict
        differed = True
    return NOT_DECIDED


def _compared(left: sp.Expr, right: sp.Expr, point: Point, digits: int) -> Difference | str:
    sides: list[evaluation.Number] = []
    unreal: list[evaluation.NotRealError] = []
    for side in (left, right):
        try:
            sides.append(evaluation.real_value(side, point, digits))
        except evaluation.NotRealError as error:
            unreal.append(error)
            sides.append(None)
        except ZeroDivisionError:
            return UNDEFINED_AT_POINT
    if unreal:
        needs = f"{sstr(unreal[0].part)} > 0"
        why = f"{sstr(unreal[0].part)} {unreal[0].reason}"
        a, b = (why if side is None else brief(side) for side in sides)
        return Difference(point, a, b, domain=needs) if len(unreal) == 1 else UNDEFINED_AT_POINT
    a, b = evaluation.comparable(*sides, digits=digits)
    if evaluation.agree_to_digits(a, b, digits, evaluation.AGREE ** (digits / 75)):
        return EQUAL
    if digits < evaluation.DECISIVE and evaluation.agree_to_digits(a, b, digits):
        raise evaluation.LostDigitsError(
            "they agree to fifty digits, but not to all that are carried"
        )
    return Difference(point, brief(a), brief(b), brief(a - b), exact=isinstance(a, Fraction))


def under_roots(claim: sp.Expr) -> Iterator[sp.Expr]:
    """Yield arguments of roots and logarithms that must be positive for a real value."""
    for node in sp.preorder_traversal(claim):
        rooted = isinstance(node, sp.Pow) and not node.exp.is_integer
        if (rooted or isinstance(node, sp.log)) and not node.args[0].is_positive:
            yield node.args[0]


def inverse(
    name: str, lhs: sp.Symbol, rhs: sp.Expr, x: sp.Symbol, branches: Mapping[str, sp.Expr] | None
) -> sp.Expr:
    """Solve `lhs = rhs` for `x` in closed form; return the unique solution.

    Raises ValueError if there is none in closed form, or several; with the solutions, or those of
    each branch.
    """
    if rhs.has(*BRANCHES):
        if not branches:
            inside = f"{name} has steps or pieces inside"
            raise ValueError(f"{inside}: no solution in closed form for {describe(x.name)}")
        parts = [f"{name} has branches, so no one solution for {describe(x.name)}:"]
        for branch, expression in branches.items():
            if not expression.has(x):
                parts.append(f"where {branch} decides, {x.name} does not occur")
            elif expression.has(*BRANCHES) or len(solutions := _solutions(lhs, expression, x)) != 1:
                parts.append(f"where {branch} decides, there is no closed form")
            else:
                parts.append(f"where {branch} decides, {x.name} = {sstr(solutions[0])}")
        raise ValueError("\n  ".join(parts))
    solutions = _solutions(lhs, rhs, x)
    if len(solutions) > 1:
        several = ", ".join(map(sstr, solutions))
        raise ValueError(f"{name}: {len(solutions)} solutions for {describe(x.name)}: {several}")
    if not solutions:
        raise ValueError(f"{name}: no solution in closed form for {describe(x.name)}")
    return solutions[0]


def _solutions(lhs: sp.Symbol, rhs: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """By peeling if that can be done, else what SymPy finds; only what satisfies the equation."""
    others = {lhs, *rhs.free_symbols} - {x}
    peeled = _peeled(lhs, rhs, x)
    if peeled is not None and _plain(peeled, others) and _satisfies(lhs, rhs, x, peeled):
        return [peeled]
    unknown, in_unknown, ratios = _ratios(rhs, x)
    if _degree(rhs, x) > READABLE:
        return []
    back = {short: ratio for ratio, short in ratios.items()}
    try:
        candidates = sp.solve(sp.Eq(lhs, put(put(rhs, {x: in_unknown}), ratios)), unknown)
    except NotImplementedError:  # SymPy's way of saying that it knows no closed form
        return []
    plain = [each for each in candidates if isinstance(each, sp.Expr)]
    whole = [put(put(in_unknown, {unknown: each}), back) for each in plain]
    return [each for each in whole if _plain(each, others) and _satisfies(lhs, rhs, x, each)]


def _degree(rhs: sp.Expr, x: sp.Symbol) -> int:
    """Degree in a power of `x` of a product of roots, once cleared; 0 if it is not polynomial."""
    powers = [factor.as_base_exp()[1] for factor in sp.Mul.make_args(rhs)]
    if not all(power.is_Rational for power in powers):
        return 0
    cleared = rhs ** math.lcm(*(int(power.q) for power in powers))
    if not cleared.is_polynomial(x):
        return 0
    degrees = [degree for (degree,) in sp.Poly(cleared, x).monoms()]
    return max(degrees) // max(math.gcd(*degrees), 1)


def _peeled(left: sp.Expr, right: sp.Expr, x: sp.Symbol) -> sp.Expr | None:
    """Solve for an `x` that occurs once by inverting the operations from the outside in.

    None where it occurs more often, or where an even power could have two roots.
    """
    while right != x:
        inside = [part for part in right.args if part.has(x)]
        if len(inside) != 1:
            return None
        outside = [part for part in right.args if not part.has(x)]
        if isinstance(right, sp.Add):
            left = left - sp.Add(*outside)
        elif isinstance(right, sp.Mul):
            left = left / sp.Mul(*outside)
        elif isinstance(right, sp.exp):
            left = sp.log(left)
        elif isinstance(right, sp.log):
            left = sp.exp(left)
        elif isinstance(right, sp.Pow) and right.base.has(x):
            if right.exp.is_even and not right.base.is_positive:
                return None
            left = left ** (1 / right.exp)
        elif isinstance(right, sp.Pow):
            left = sp.log(left) / sp.log(right.base)
        else:
            return None
        right = inside[0]
    return left


def has_one_solution(left: sp.Expr, right: sp.Expr, x: sp.Symbol) -> bool:
    """True if the equation is linear in `x` or invertible from outside in: at most one solution."""
    over, _ = sp.fraction(sp.together(left - right))
    if over.is_polynomial(x) and sp.degree(over, x) == 1:
        return not has_branches(sp.diff(over, x))  # which may be zero in a whole branch
    if left.has(x) and right.has(x):
        return False
    return _peeled(*((right, left) if left.has(x) else (left, right)), x) is not None


def _ratios(rhs: sp.Expr, x: sp.Symbol) -> tuple[sp.Symbol, sp.Expr, dict[sp.Expr, sp.Symbol]]:
    """Give short names to ratios raised to symbols, so that SymPy does not split them.

    Where `x` over a scale is such a ratio, that ratio is the unknown to solve for: it comes first,
    then `x` in terms of it. A part of a ratio, raised alone, would have no unit.
    """
    powers = [each for each in rhs.atoms(sp.Pow) if each.exp.free_symbols and each.base.is_Mul]
    bases = sorted({each.base for each in powers}, key=sstr)
    named = {base: sp.Dummy("ratio", positive=True) for base in bases if not base.has(x)}
    ratio = sp.Dummy("ratio", positive=True)
    for base in (base for base in bases if base.has(x)):
        for scale, in_ratio in ((x / base, ratio), (x * base, 1 / ratio)):
            if not scale.has(x):
                return ratio, scale * in_ratio, named
    return x, x, named


def _plain(solution: sp.Expr, symbols: set[sp.Symbol]) -> bool:
    if solution.has(sp.I) or solution.free_symbols - symbols:
        return False
    return all(isinstance(each, sp.exp | sp.log) for each in solution.atoms(sp.Function))


def _satisfies(lhs: sp.Symbol, rhs: sp.Expr, x: sp.Symbol, solution: sp.Expr) -> bool:
    try:
        positive = tuple(sp.Gt(part, 0) for part in (solution, *under_roots(solution)))
        back = Identity(lhs, put(rhs, {x: solution}), positive)
        return back.difference() is None
    except NoPointError:
        return False
