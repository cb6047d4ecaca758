"""Whether two expressions are equal: symbolically, or at points whose coordinates are fractions."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from formulas.numerics.exact_value import InexactError, exact_value, holds, value_of
from formulas.numerics.expressions import as_expression, text

QUICK, THOROUGH = 3, 12  # points when a step is made, and when a derivation is checked
PER_BRANCHES = 4  # times as many where a Max or a ceiling has branches to be met
TRIES = 4000
DIGITS = 1e-9

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

        Raises
        ------
        NoPointError
            If no point satisfies the relations and lets both sides exist.
        """
        checked, count = 0, self._count(thorough)
        for point in _points(self._symbols(), _branched(self.left) or _branched(self.right)):
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
        return f"at {self._count(True)} {kind}{where}"

    def _count(self, thorough: bool) -> int:
        count = THOROUGH if thorough else QUICK
        return count * PER_BRANCHES if _branched(self.left) or _branched(self.right) else count

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
    for point in _points(symbols, _branched(before) or _branched(after)):
        gaps = []
        try:
            for power in (6, 9, 12):
                step = Fraction(10**power)
                near = step if to == sp.oo else exact_value(as_expression(to), point) + 1 / step
                here = {y: float(v) for y, v in {**point, x: near}.items()}
                limit = value_of(after, here)
                gaps.append(abs(value_of(before, here) - limit) / max(abs(limit), 1e-300))
        except (ZeroDivisionError, ValueError):
            continue  # one side does not exist here
        if not (gaps[-1] <= 1e-3 and gaps[-1] <= gaps[0] + 1e-12):  # also when it is not a number
            return f"at {shown(point)} they still differ by {gaps[-1]:.2g} of the claim"
        checked += 1
        if checked == count:
            return None
    return "there is no point near the limit at which both exist"


def limit_points(before: sp.Expr, after: sp.Expr) -> int:
    """At how many points a limit is compared."""
    return QUICK * PER_BRANCHES if _branched(before) or _branched(after) else QUICK


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


def _branched(expression: sp.Basic) -> bool:
    return bool(expression.has(sp.Max, sp.Min, sp.ceiling, sp.floor, sp.Piecewise))


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
