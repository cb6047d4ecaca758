"""Points at which two expressions are compared: over eighteen decades, and in every branch.

Half of the points are spread so that each symbol visits every decade; at the other half all symbols
are of like magnitude, where relations between them hold more often. A branch that none of them
meets is looked for by changing one symbol after the other in powers of ten.
"""

import math
import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product

import mpmath
import sympy as sp

from formulas.numerics import digits

QUICK, THOROUGH = 4, 36  # points when a step is made, and when a derivation is checked
TRIES = 1200
BRANCHES = (sp.Max, sp.Min, sp.Piecewise, sp.ceiling, sp.floor)
DECADES = range(-9, 9)
POWERS = {power: Fraction(10) ** power for power in DECADES}
STEPS = tuple(Fraction(10) ** power for power in (9, -9, 3, -3, 1, -1))
FARTHEST = Fraction(10) ** 45  # from 1: branches are looked for beyond the decades, too
CLIMBS, STARTS = 12, 2
UNDETERMINED = (digits.NotRealError, ZeroDivisionError, digits.LostDigitsError)

Point = dict[sp.Symbol, Fraction]


def symbols_of(parts: Iterable[sp.Basic]) -> list[sp.Symbol]:
    """Every symbol of some expressions, by name."""
    return sorted(set().union(*(part.free_symbols for part in parts)), key=lambda x: x.name)


def points(symbols: list[sp.Symbol], seed: int) -> Iterator[Point]:
    """Without end: one that spans the decades, one of like magnitudes, and so on."""
    names = ",".join(x.name for x in symbols)
    generator = random.Random(f"{seed} {names}")  # apart for every set of symbols
    while True:
        decades = {x: generator.sample(DECADES, len(DECADES)) for x in symbols}
        for number in range(len(DECADES)):
            yield {x: _mantissa(generator) * POWERS[decades[x][number]] for x in symbols}
            yield {x: _mantissa(generator) * POWERS[-generator.randint(0, 1)] for x in symbols}


def _mantissa(generator: random.Random) -> Fraction:
    """Whole at every second call, so that what steps at whole numbers is met there."""
    if generator.random() < 1 / 2:
        return Fraction(generator.randint(1, 9))
    return Fraction(generator.randint(100, 999), 100)


def satisfied(relations: Iterable[sp.Basic], point: Point) -> bool:
    """Whether all relations hold at a point, and can be evaluated there."""
    try:
        return all(digits.real_value(relation, point) for relation in relations)
    except UNDETERMINED:
        return False


def margins(*sides: sp.Basic) -> list[sp.Expr]:
    """What decides between branches, each positive in one: of Max, pieces, steps, roots, moduli."""
    seen: dict[sp.Expr, None] = {}
    for node in (node for side in sides for node in sp.preorder_traversal(side)):
        for margin in _margins(node):
            if margin.free_symbols:
                seen.setdefault(margin)
    return list(seen)


def _margins(node: sp.Basic) -> Iterator[sp.Expr]:
    if isinstance(node, sp.Max | sp.Min):
        sign = 1 if isinstance(node, sp.Max) else -1
        for part in node.args:
            rest = [other for other in node.args if other is not part]
            yield sign * (part - (rest[0] if len(rest) == 1 else node.func(*rest, evaluate=False)))
    elif isinstance(node, sp.ceiling | sp.floor):
        yield from (node.args[0] - 1, node.args[0] - 2)
    elif isinstance(node, sp.core.relational.Relational):
        yield from (node.lhs - node.rhs, node.rhs - node.lhs)
    elif isinstance(node, sp.Abs):
        yield from (node.args[0], -node.args[0])
    elif isinstance(node, sp.log) or (isinstance(node, sp.Pow) and not node.exp.is_integer):
        for inner in node.args[0].atoms(sp.Add):
            if any(term.as_coeff_Mul()[0] < 0 for term in inner.args):
                yield from (inner, -inner)


def point_with(
    margin: sp.Expr, relations: Iterable[sp.Basic], symbols: list[sp.Symbol], seed: int
) -> Point | None:
    """A point at which a margin is positive and the relations hold; None if none is met."""
    tried = 0
    for _, start in zip(range(STARTS * 20), points(symbols, seed), strict=False):
        if satisfied(relations, start):
            point = _climbed(margin, tuple(relations), start)
            tried += 1
            if point is not None or tried == STARTS:
                return point
    return None


def _climbed(margin: sp.Expr, relations: tuple[sp.Basic, ...], point: Point) -> Point | None:
    """One symbol after the other in powers of ten, as long as the margin comes nearer to zero."""
    here = _orders(margin, point)
    for _ in range(CLIMBS):
        before = here
        for x, step in product(sorted(margin.free_symbols, key=str), STEPS):
            moved = {**point, x: point[x] * step}
            if here > 0 or not 1 / FARTHEST < moved[x] < FARTHEST:
                continue
            there = _orders(margin, moved)
            if there > here and satisfied(relations, moved):
                here, point = there, moved
        if here > 0:
            return point if satisfied((margin > 0,), point) else None
        if here == before:
            return None
    return None


def _orders(margin: sp.Expr, point: Point) -> float:
    """By how many orders of magnitude the positive terms of a margin exceed the negative ones."""
    try:
        values = [
            digits.real_value(term, point, digits.SEARCHING) for term in sp.Add.make_args(margin)
        ]
    except (*UNDETERMINED, TypeError):
        return -math.inf
    zero, *terms = digits.comparable(mpmath.mpf(0), *values, digits=digits.SEARCHING)
    above = sum((term for term in terms if term > 0), zero)
    below = sum((-term for term in terms if term < 0), zero)
    if above and below:
        return float(mpmath.log10(above / below))
    return math.inf if above else -math.inf


def boundary(margin: sp.Expr, point: Point) -> Point | None:
    """A point near a given one at which a margin is zero, where that is a fraction."""
    for x in sorted(margin.free_symbols, key=lambda y: y.name):
        try:
            here = digits.real_value(margin, point)
            there = digits.real_value(margin, {**point, x: 2 * point[x]})
            if here == there or not isinstance(here, Fraction):
                continue
            root = {**point, x: point[x] - here * point[x] / (there - here)}
            if root[x] > 0 and digits.real_value(margin, root) == 0:
                return root
        except (*UNDETERMINED, TypeError):
            continue
    return None


def branched(*sides: sp.Basic) -> bool:
    """Whether any side has branches to be met."""
    return any(side.has(*BRANCHES) for side in sides)


def short(value: digits.Number) -> str:
    """A fraction as it is while it is short, else twelve digits."""
    if isinstance(value, Fraction):
        if value.denominator < 10**6 and abs(value.numerator) < 10**9:
            return str(value)
        value = mpmath.mpf(value.numerator) / value.denominator
    return str(mpmath.nstr(value, 12))


def point_text(point: Point) -> str:
    """`{N_total: 17/33, ...}`."""
    return "{" + ", ".join(f"{x.name}: {short(value)}" for x, value in point.items()) + "}"
