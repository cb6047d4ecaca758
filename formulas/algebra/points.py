"""Points at which expressions are compared: drawn, solved for inside conditions, beside each break.

A third are spread over eighteen decades, a third are of like magnitude, a third lie anywhere in 120
decades; some are whole, some halves, most are real numbers of 53 bits. What no draw meets (a narrow
window, a step, a spike) lies at a break: where a margin is zero along one symbol.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import islice, pairwise

import mpmath
import sympy as sp

from formulas.numerics import digits
from formulas.numerics.digits import RUN, SEARCHING, UNDETERMINED_RELATION

QUICK_POINTS, THOROUGH = 4, 36  # points when a step is made, and when a derivation is checked
MIN_POINTS = 12  # distinct points below which nothing counts as tested
TRIES = 1200
BRANCHES = (sp.Max, sp.Min, sp.Piecewise, sp.ceiling, sp.floor)
DECADES, FAR_DECADES = range(-9, 9), range(-60, 60)
STEP_NUMBERS = (1, 2, 3, 10, 1001, 10**9 + 7, sp.Rational(1, 2))  # tested arguments of ceilings
OFFSETS = tuple(Fraction(1, n) for n in (2**60, 10**6, 50))
GRID = tuple(Fraction(10) ** step for step in FAR_DECADES[::2])
PASSES, CLIMBS = 4, 24  # over all symbols, to get inside conditions; starts that are tried
DEGREE, NODES = 8, 120  # of polynomials whose roots are isolated, and their size in nodes
MAX_BISECTIONS, SHORT_RATIO, CLOSE_RATIO, MAX_NAME_LENGTH = 700, 1000, 10**20, 8000
FINER, VALLEYS = 1.13, 6  # a step of the finer grid; how many are searched for their floor
MAX_AXES, MAX_VISITS = 4, 300  # symbols along which points are visited, and how many of these
MAX_DRAWS = 12  # draws per feasible draw; if feasible ones are rarer, draws are moved inside

Point = dict[sp.Symbol, Fraction]


class NoPointError(ValueError):
    """No point satisfies the relations and lets both sides exist, or decides between them."""


def sorted_symbols(parts: Iterable[sp.Basic]) -> list[sp.Symbol]:
    """Every symbol of some expressions, by name."""
    return sorted(set().union(*(part.free_symbols for part in parts)), key=lambda x: x.name)


def sample_points(symbols: list[sp.Symbol], seed: int) -> Iterator[Point]:
    """Without end: one that spans the decades, one of like magnitudes, one far out, and so on."""
    names = ",".join(x.name for x in symbols)
    generator = random.Random(f"{seed} {names}")  # apart for every set of symbols
    while True:
        decades = {x: generator.sample(DECADES, len(DECADES)) for x in symbols}
        for number in range(len(DECADES)):
            base = generator.randint(0, 4)
            yield _drawn(generator, {x: decades[x][number] for x in symbols})
            yield _drawn(generator, {x: base - generator.randint(0, 1) for x in symbols})
            yield _drawn(generator, {x: generator.choice(FAR_DECADES) for x in symbols})


def _drawn(generator: random.Random, decades: dict[sp.Symbol, int]) -> Point:
    """Numbers of given decades: all real, all whole, all halves, or each of its own kind."""
    kind = generator.choice(("real", "real", "whole", "half", "any"))
    point = {RUN: Fraction(generator.getrandbits(40))}
    for x, decade in decades.items():
        size = Fraction(generator.uniform(1, 10)) * Fraction(10) ** decade
        spread = generator.choice(("real", "whole", "half")) if kind == "any" else kind
        if size >= 1 and spread != "real":
            size = Fraction(int(size)) + (Fraction(1, 2) if spread == "half" else 0)
        point[x] = size
    return point


def all_true(relations: Iterable[sp.Basic], point: Point) -> bool:
    """True if all relations hold at a point; False if a relation cannot be evaluated there."""
    try:
        return all(digits.real_value(relation, point) for relation in relations)
    except UNDETERMINED_RELATION:
        return False


def samples(
    relations: tuple[sp.Basic, ...], symbols: list[sp.Symbol], seed: int
) -> Iterator[Point]:
    """Points that satisfy the relations: as drawn, or moved inside where few draws are."""
    met = failed = 0
    for number, start in enumerate(islice(sample_points(symbols, seed), TRIES)):
        if all_true(relations, start):
            met += 1
            yield start
        elif failed < CLIMBS and number >= MAX_DRAWS and met < number / MAX_DRAWS:
            moved = feasible_point(relations, start)
            failed += moved is None
            if moved is not None:
                failed -= 1 if failed else 0
                yield moved


def feasible_point(relations: tuple[sp.Basic, ...], start: Point) -> Point | None:
    """A point that satisfies all relations, found by moving one symbol after the other.

    Each goes to the cell between its breaks in which most relations hold. None if that ends
    outside.
    """
    parts = [part for relation in relations for part in conjuncts(relation)]
    about = margins(*parts)
    generator, point = random.Random(repr(sorted(start.values()))), start
    best = sum(all_true((part,), point) for part in parts)
    for _ in range(PASSES):
        for x in sorted_symbols(parts):
            if best == len(parts):
                return point
            reached: dict[int, list[Point]] = {}
            for value in cells(x, point, about, generator):
                moved = {**point, x: value}
                count = sum(all_true((part,), moved) for part in parts)
                reached.setdefault(count, []).append(moved)
            if reached and max(reached) >= best:  # ties too: a move may help another relation
                best = max(reached)
                point = generator.choice(reached[best])
    return point if best == len(parts) else None


def conjuncts(relation: sp.Basic) -> Iterator[sp.Basic]:
    """The relations that must all hold for a relation to hold."""
    if isinstance(relation, sp.And):
        for part in relation.args:
            yield from conjuncts(part)
    else:
        yield relation


def regions(*sides: sp.Basic) -> Iterator[tuple[sp.Basic, ...]]:
    """The relations of each branch of each maximum, minimum and piece in some expressions."""
    nodes = dict.fromkeys(node for side in sides for node in sp.preorder_traversal(side))
    for node in nodes:
        if isinstance(node, sp.Max | sp.Min):
            above = sp.Gt if isinstance(node, sp.Max) else sp.Lt
            for part in node.args:
                yield tuple(above(part, other) for other in node.args if other is not part)
        elif isinstance(node, sp.Piecewise):
            before: list[sp.Basic] = []
            for _, condition in node.args:
                yield (*before, condition)
                before.append(sp.Not(condition))


def margins(*sides: sp.Basic) -> tuple[sp.Expr, ...]:
    """Expressions that are zero at the breaks of `sides`: changes of a branch, root or scale."""
    seen: dict[sp.Expr, None] = {}
    for node in (node for side in sides for node in sp.preorder_traversal(side)):
        breaks = (m for m in _margins(node) if m.free_symbols)
        seen.update((-m if m.could_extract_minus_sign() else m, None) for m in breaks)
    return tuple(seen)


def _margins(node: sp.Basic) -> Iterator[sp.Expr]:
    if isinstance(node, sp.Max | sp.Min):
        yield from (one - other for one, other in pairwise((*node.args, node.args[0])))
    elif isinstance(node, sp.ceiling | sp.floor):
        yield from (node.args[0] - number for number in STEP_NUMBERS)
    elif isinstance(node, sp.core.relational.Relational):
        yield node.lhs - node.rhs
    elif isinstance(node, sp.Abs | sp.log):
        yield node.args[0] - (1 if isinstance(node, sp.log) else 0)
    elif isinstance(node, sp.exp):
        yield from (node.args[0] - 1, node.args[0] + 1)
    elif isinstance(node, sp.Add):
        if any(term.as_coeff_Mul()[0] < 0 for term in node.args):
            yield node
        if len(node.args) <= 3:  # scale where two successive terms are equal
            yield from (
                positive_term(one) - positive_term(other) for one, other in pairwise(node.args)
            )


def positive_term(term: sp.Expr) -> sp.Expr:
    """A term with a positive coefficient."""
    return -term if term.as_coeff_Mul()[0] < 0 else term


def axis_points(point: Point, *sides: sp.Basic) -> Iterator[Point]:
    """Yield points along each symbol: at each break, close to it, and between two breaks.

    Of a great many symbols, and of a great many such points, some are drawn.
    """
    about, symbols = margins(*sides), sorted_symbols(sides)
    generator = random.Random(repr(sorted(point.values())))
    along = generator.sample(symbols, min(MAX_AXES, len(symbols)))
    moves = [(x, v) for x in along for v in cells(x, point, about, generator)]
    for x, value in moves if len(moves) <= MAX_VISITS else generator.sample(moves, MAX_VISITS):
        yield {**point, x: value}


def cells(
    x: sp.Symbol, point: Point, about: Iterable[sp.Expr], generator: random.Random
) -> Iterator[Fraction]:
    """Yield values of a symbol in each cell between breaks, at each break and close to it."""
    breaks = sorted({at for margin in about if margin.has(x) for at in crossings(margin, x, point)})
    if not breaks:
        return
    yield breaks[0] * Fraction(generator.random())
    for low, high in pairwise((*breaks, breaks[-1] * 10**3)):
        yield low + (high - low) * Fraction(generator.uniform(0.05, 0.95))
        if high > 100 * low:
            yield low * Fraction(generator.uniform(2, 50))
    for at in breaks:
        yield at
        yield from (at * (1 + sign * part) for part in OFFSETS for sign in (1, -1))


def crossings(margin: sp.Expr, x: sp.Symbol, point: Point, touching: bool = True) -> list[Fraction]:
    """Positive values of a symbol where a margin is zero, or comes nearest to zero.

    Roots of a polynomial are isolated exactly; of anything else they are looked for on a grid over
    120 decades. Without `touching`, only those at which the sign changes, or the value is zero.
    """
    try:
        if (coefficients := _coefficients(margin, x)) is not None:
            numbers = [to_fraction(digits.real_value(c, point, 60)) for c in coefficients]
            return _polynomial_roots(numbers)
        if margin.has(sp.ceiling, sp.floor) or (touching and _nodes(margin) > NODES / 2):
            return []  # its steps are margins of their own; so are the parts of a large one
        return list(_scanned(margin, x, point, touching))
    except (*UNDETERMINED_RELATION, OverflowError):
        return []


@cache
def _nodes(margin: sp.Expr) -> int:
    return sum(1 for _ in sp.preorder_traversal(margin))


@cache
def _coefficients(margin: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, ...] | None:
    if not margin.is_rational_function(x) or _nodes(margin) > NODES:
        return None
    over, _ = sp.fraction(sp.together(margin))
    if not over.is_polynomial(x) or sp.degree(over, x) > DEGREE:
        return None
    return tuple(sp.Poly(over, x).all_coeffs())


def to_fraction(number: digits.Number) -> Fraction:
    """A number with digits as the fraction that it is; raises LostDigitsError if that is long."""
    if isinstance(number, Fraction):
        return number
    mantissa, exponent = number.man_exp
    if abs(exponent) > MAX_NAME_LENGTH:
        raise digits.LostDigitsError(f"a fraction of {abs(exponent)} bits is not worked with")
    return Fraction(mantissa) * Fraction(2) ** exponent


def _polynomial_roots(coefficients: list[Fraction]) -> list[Fraction]:
    """The positive real roots, to thirty digits or exactly."""
    if len(coefficients) == 2 and coefficients[0]:
        root = -coefficients[1] / coefficients[0]
        return [root] if root > 0 else []
    rationals = [sp.Rational(c.numerator, c.denominator) for c in coefficients]
    poly = sp.Poly.from_list(rationals, sp.Dummy("t"), domain="QQ")
    if poly.degree() < 1:
        return []
    poly = poly.sqf_part()
    exact = [Fraction(int(c.p), int(c.q)) for c in poly.all_coeffs()]

    def value(at: Fraction) -> Fraction:
        total = Fraction(0)
        for coefficient in exact:
            total = total * at + coefficient
        return total

    roots = []
    for (low, high), _ in poly.intervals():
        a, b = (Fraction(int(end.p), int(end.q)) for end in (low, high))
        if b > 0:
            roots.append(_closed_in(value, max(a, Fraction(0)), b))
    return [root for root in roots if root > 0]


def _closed_in(
    value: Callable[[Fraction], digits.Number], low: Fraction, high: Fraction
) -> Fraction:
    """Bisect a sign change between two ends; the root is exact if it is a short fraction."""
    below = value(low)
    if not below or low == high:
        return low
    for _ in range(MAX_BISECTIONS):
        if high - low <= high / 2**100:
            break
        middle = (low + high) / 2
        if low and high > 2 * low:
            middle = Fraction(math.sqrt(low * high)) if 1e-150 < low < 1e150 else middle
        here = value(middle)
        if not here:
            short = middle.limit_denominator(SHORT_RATIO)
            return short if low <= short <= high and not value(short) else middle
        low, high = (middle, high) if (here > 0) == (below > 0) else (low, middle)
    short = ((low + high) / 2).limit_denominator(CLOSE_RATIO)
    return short if low <= short <= high and not value(short) else high


def _scanned(margin: sp.Expr, x: sp.Symbol, point: Point, touching: bool) -> Iterator[Fraction]:
    """On a grid over all decades, finer around the breaks of its parts."""
    values = dict(point)
    along = _fixed_parts_evaluated(margin, x, values)

    def value(at: Fraction) -> digits.Number | None:
        try:
            here = digits.real_value(along, {**values, x: at}, SEARCHING)
            return digits.in_digits(here, SEARCHING)  # fractions compare with no other number
        except UNDETERMINED_RELATION:
            return None

    # A break in a part may cause a spike of the whole: sample around it.
    parts = (part for part in margins(*margin.args) if part.has(x) and part != margin)
    inner = {c for p in parts if _coefficients(p, x) is not None for c in crossings(p, x, point)}
    near = {c * (1 + sign * part) for c in inner for part in OFFSETS for sign in (1, -1, 0)}
    start = point.get(x, Fraction(1))
    grid = sorted({start, *near, *(start * at for at in _SHORT), *GRID})
    signed = [(at, here) for at in grid if (here := value(at)) is not None]
    coarse = [low for (low, a), (_, b) in pairwise(signed) if (a > 0) != (b > 0)]
    # Three roots in one step of the grid are one change of sign: its neighbourhood again, finer.
    finer = (Fraction(float(low) * FINER**step) for low in coarse for step in range(-19, 57, 2))
    signed = sorted({*signed, *((at, here) for at in finer if (here := value(at)) is not None)})
    yield from (at for at, here in signed if not here)
    for (low, before), (high, after) in pairwise(signed):
        if before and after and (before > 0) != (after > 0):
            yield _closed_in(lambda at: value(at) or 0, low, high)
    if touching:
        valleys = [
            (abs(b), low, high)
            for (low, a), (_, b), (high, c) in zip(signed, signed[1:], signed[2:], strict=False)
            if abs(b) < min(abs(a), abs(c)) and (a > 0) == (b > 0) == (c > 0)
        ]
        yield from (_nearest(value, *ends) for _, *ends in sorted(valleys)[:VALLEYS])


_SHORT = tuple(Fraction(10 ** (step / 4)) for step in range(-8, 9))


def _nearest(
    value: Callable[[Fraction], digits.Number | None], low: Fraction, high: Fraction
) -> Fraction:
    """Find the minimum of |value| between two ends by golden-section search."""
    golden, ends = (math.sqrt(5) - 1) / 2, (float(low), float(high))
    for _ in range(40):
        a, b = (ends[0] + (ends[1] - ends[0]) * share for share in (1 - golden, golden))
        left, right = value(Fraction(a)), value(Fraction(b))
        if left is None or right is None:
            break
        ends = (ends[0], b) if abs(left) < abs(right) else (a, ends[1])
    return Fraction(sum(ends) / 2)


def _fixed_parts_evaluated(expression: sp.Expr, x: sp.Symbol, values: Point) -> sp.Expr:
    """The expression with a symbol for each term and factor without `x`; `values` gains theirs."""
    if not expression.has(x):
        if expression.is_Symbol or expression.is_Rational:
            return expression
        fixed = sp.Dummy("fixed")
        values[fixed] = digits.real_value(expression, values, SEARCHING)
        return fixed
    if not isinstance(expression, sp.Add | sp.Mul | sp.Pow):
        return expression
    parts = expression.args
    if isinstance(expression, sp.Mul):
        constant, varying = expression.as_independent(x, as_Add=False)
        parts = (constant, *sp.Mul.make_args(varying))
    within = (_fixed_parts_evaluated(part, x, values) for part in parts)
    return expression.func(*within, evaluate=False)


def has_branches(*sides: sp.Basic) -> bool:
    """True if any side has branches."""
    return any(side.has(*BRANCHES) for side in sides)


def brief(value: digits.Number) -> str:
    """A fraction as it is while it is short, else twelve digits."""
    if isinstance(value, Fraction):
        if value.denominator < 10**6 and abs(value.numerator) < 10**9:
            return str(value)
        value = mpmath.mpf(value.numerator) / value.denominator
    return str(mpmath.nstr(value, 12))


def point_text(point: Point) -> str:
    """`{N_total: 17/33, ...}`."""
    named = (f"{x.name}: {brief(value)}" for x, value in point.items() if x is not RUN)
    return "{" + ", ".join(named) + "}"
