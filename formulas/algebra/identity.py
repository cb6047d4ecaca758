"""Whether two expressions are equal: symbolically, or at points whose coordinates are fractions.

And the closed form of one symbol of an equation, put back before it is believed.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from formulas.nomenclature.symbols import describe
from formulas.numerics.closeness import AS_NEAR, DIGITS, NEAR_LIMIT, VANISHING
from formulas.numerics.expressions import (
    InexactError,
    as_expression,
    exact_value,
    holds,
    put,
    text,
    value_of,
)

QUICK, THOROUGH = 3, 12  # points when a step is made, and when a derivation is checked
PER_BRANCHES = 4  # times as many where a Max or a ceiling has branches to be met
TRIES = 4000
BRANCHES = (sp.Max, sp.Min, sp.Piecewise, sp.ceiling, sp.floor)

Point = dict[sp.Symbol, Fraction]


class NoPointError(ValueError):
    """No point satisfies the relations and lets both sides exist: nothing can be compared."""


@dataclass(frozen=True)
class Identity:
    """left = right for all positive symbols, or for those that satisfy `relations`."""

    left: sp.Expr
    right: sp.Expr
    relations: tuple[sp.Basic, ...] = ()

    def difference(self, thorough: bool = False) -> tuple[Point, str] | None:
        """A point where the sides differ, with the difference; None if all points agree.

        Raises NoPointError if no point satisfies the relations and lets both sides exist.
        """
        checked, count = 0, _count(self.left, self.right, thorough=thorough)
        for point in _points(self._symbols(), _branched(self.left, self.right)):
            try:
                if not all(holds(condition, point) for condition in self.relations):
                    continue
                gap = _gap(self.left, self.right, point)
            except (ZeroDivisionError, ValueError):
                continue  # one side does not exist here
            if gap:
                return point, gap
            checked += 1
            if checked == count:
                return None
        raise NoPointError(f"no point to compare {text(self.left)} and {text(self.right)} at")

    def proof(self) -> str:
        """The method of proof: `symbolically`, or the number and kind of points compared."""
        if not self.relations and _cancels(self.left - self.right):
            return "symbolically"
        exact = self._rational()
        where = f" with {', '.join(map(text, self.relations))}" if self.relations else ""
        kind = "exact rational points" if exact else "points, to nine digits"
        return f"at {_count(self.left, self.right, thorough=True)} {kind}{where}"

    def _rational(self) -> bool:
        for point in _points(self._symbols()):
            try:
                if all(holds(condition, point) for condition in self.relations):
                    exact_value(self.left, point)
                    exact_value(self.right, point)
                    return True
            except ZeroDivisionError:
                continue
            except InexactError:
                return False
        return False

    def _symbols(self) -> list[sp.Symbol]:
        parts: Iterable[sp.Basic] = (self.left, self.right, *self.relations)
        symbols: set[sp.Symbol] = set().union(*(part.free_symbols for part in parts))
        return sorted(symbols, key=lambda x: x.name)


def limit_differs(before: sp.Expr, after: sp.Expr, x: sp.Symbol, to: sp.Expr) -> str | None:
    """Counterexample to before → after as x → to, from a few points; None if they converge."""
    symbols = sorted((before.free_symbols | after.free_symbols) - {x}, key=lambda y: y.name)
    checked, count = 0, limit_points(before, after)
    for point in _points(symbols, _branched(before, after)):
        gaps = []
        try:
            for power in (6, 9, 12):
                step = Fraction(10**power)
                near = step if to == sp.oo else exact_value(as_expression(to), point) + 1 / step
                here = {y: float(v) for y, v in {**point, x: near}.items()}
                limit = value_of(after, here)
                gaps.append(abs(value_of(before, here) - limit) / max(abs(limit), VANISHING))
        except (ZeroDivisionError, ValueError):
            continue  # one side does not exist here
        converges = gaps[-1] <= NEAR_LIMIT and gaps[-1] <= gaps[0] + AS_NEAR
        if not converges:  # also where it is not a number
            return f"at {shown(point)} they still differ by {gaps[-1]:.2g} of the claim"
        checked += 1
        if checked == count:
            return None
    return "there is no point near the limit at which both exist"


def limit_points(before: sp.Expr, after: sp.Expr) -> int:
    """At how many points a limit is compared."""
    return _count(before, after, thorough=False)


def never_positive(expression: sp.Expr) -> bool:
    """True if an expression is positive at no sample point; False if undefined at all of them."""
    symbols = sorted(expression.free_symbols, key=lambda y: y.name)
    positive = []
    for _, point in zip(range(TRIES), _points(symbols, branched=True), strict=False):
        try:
            positive.append(value_of(expression, {y: float(v) for y, v in point.items()}) > 0)
        except ValueError:
            continue  # it does not exist here
        if positive[-1] or len(positive) == THOROUGH * PER_BRANCHES:
            break
    return bool(positive) and not any(positive)


def shown(point: Point) -> str:
    """`{N_total: 17/33, ...}`."""
    return "{" + ", ".join(f"{x.name}: {value}" for x, value in point.items()) + "}"


def _branched(*sides: sp.Basic) -> bool:
    return any(side.has(*BRANCHES) for side in sides)


def _count(*sides: sp.Basic, thorough: bool) -> int:
    """At how many points two sides are compared."""
    return (THOROUGH if thorough else QUICK) * (PER_BRANCHES if _branched(*sides) else 1)


def _cancels(gap: sp.Expr) -> bool:
    """True if SymPy simplifies an expression to zero."""
    if _branched(gap):
        return False
    return bool(gap == 0 or sp.cancel(sp.together(gap)) == 0 or sp.simplify(gap) == 0)


def _gap(left: sp.Expr, right: sp.Expr, point: Point) -> str:
    """The difference at a point, in words; empty when there is none."""
    try:
        exact = exact_value(left, point) - exact_value(right, point)
        return str(exact) if exact else ""
    except InexactError:
        floats = {x: float(value) for x, value in point.items()}
        a, b = value_of(left, floats), value_of(right, floats)
        return f"{a - b:.3g}" if abs(a - b) > DIGITS * max(abs(a), abs(b)) else ""


def _points(symbols: list[sp.Symbol], branched: bool = False) -> Iterator[Point]:
    """Always the same sequence of points with small positive fractions as coordinates.

    Where there are branches, every second point spans twelve binary orders on either side of 1,
    so that a branch which is small at like magnitudes is the largest now and then.
    """
    generator = random.Random(",".join(x.name for x in symbols))
    for number in range(TRIES):
        point = {x: Fraction(generator.randint(1, 60), generator.randint(1, 40)) for x in symbols}
        if branched and number % 2:
            point = {x: y * Fraction(2) ** generator.randint(-12, 12) for x, y in point.items()}
        yield point


def inverse(
    name: str, lhs: sp.Symbol, rhs: sp.Expr, x: sp.Symbol, branches: Mapping[str, sp.Expr] | None
) -> sp.Expr:
    """The one expression for `x` that makes `lhs = rhs` true.

    Raises ValueError if there is none in closed form, or several; with the solutions, or those of
    each branch.
    """
    if rhs.has(*BRANCHES):
        raise ValueError(_by_branch(name, lhs, x, branches))
    solutions = _solutions(lhs, rhs, x)
    if len(solutions) > 1:
        several = ", ".join(map(text, solutions))
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
    back = {short: ratio for ratio, short in ratios.items()}
    try:
        candidates = sp.solve(sp.Eq(lhs, put(put(rhs, {x: in_unknown}), ratios)), unknown)
    except NotImplementedError:  # SymPy's way of saying that it knows no closed form
        return []
    plain = [each for each in candidates if isinstance(each, sp.Expr)]
    whole = [put(put(in_unknown, {unknown: each}), back) for each in plain]
    return [each for each in whole if _plain(each, others) and _satisfies(lhs, rhs, x, each)]


def _peeled(left: sp.Expr, right: sp.Expr, x: sp.Symbol) -> sp.Expr | None:
    """`x` where it occurs once: what stands around it is undone from the outside in.

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


def _ratios(rhs: sp.Expr, x: sp.Symbol) -> tuple[sp.Symbol, sp.Expr, dict[sp.Expr, sp.Symbol]]:
    """Ratios raised to symbols, under short names, so that SymPy does not take them apart.

    Where `x` over a scale is such a ratio, that ratio is the unknown to solve for: it comes first,
    then `x` in terms of it. A part of a ratio, raised alone, would have no unit.
    """
    powers = [each for each in rhs.atoms(sp.Pow) if each.exp.free_symbols and each.base.is_Mul]
    bases = sorted({each.base for each in powers}, key=text)
    named = {base: sp.Dummy("ratio", positive=True) for base in bases if not base.has(x)}
    ratio = sp.Dummy("ratio", positive=True)
    for base in (base for base in bases if base.has(x)):
        for scale, in_ratio in ((x / base, ratio), (x * base, 1 / ratio)):
            if not scale.has(x):
                return ratio, scale * in_ratio, named
    return x, x, named


def _plain(solution: sp.Expr, symbols: set[sp.Symbol]) -> bool:
    """True if only the equation's own symbols and the functions of this package occur."""
    if solution.has(sp.I) or solution.free_symbols - symbols:
        return False
    return all(isinstance(each, sp.exp | sp.log) for each in solution.atoms(sp.Function))


def _satisfies(lhs: sp.Symbol, rhs: sp.Expr, x: sp.Symbol, solution: sp.Expr) -> bool:
    try:
        return Identity(lhs, put(rhs, {x: solution})).difference() is None
    except NoPointError:
        return False


def _by_branch(
    name: str, lhs: sp.Symbol, x: sp.Symbol, branches: Mapping[str, sp.Expr] | None
) -> str:
    """Why there is no one solution, with that of every branch that has one."""
    if not branches:
        return (
            f"{name} has steps or pieces inside: no solution in closed form for {describe(x.name)}"
        )
    parts = []
    for branch, expression in branches.items():
        if not expression.has(x):
            parts.append(f"where {branch} decides, {x.name} does not occur")
        elif expression.has(*BRANCHES) or len(solutions := _solutions(lhs, expression, x)) != 1:
            parts.append(f"where {branch} decides, there is no closed form")
        else:
            parts.append(f"where {branch} decides, {x.name} = {text(solutions[0])}")
    head = f"{name} has branches, so no one solution for {describe(x.name)}"
    return "\n  ".join([f"{head}:", *parts])
