"""Operations on SymPy trees that SymPy does slowly or not at all; their values at one point.

Max and Min are built and rebuilt without evaluation: comparing their branches is what takes the
time, and a branch that SymPy absorbs is a branch that can no longer be named.

A value is in Python floats. The tree is walked node by node; no array code and no SymPy arithmetic
takes part. A condition is a relation that can be evaluated, beside words.
"""

from __future__ import annotations

import ast
import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import add, mul, sub, truediv
from typing import Any, TypeAlias

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.str import StrPrinter

from formulas.nomenclature.symbols import SYMBOLS, latex_names
from formulas.numerics.trees import Tree, tree_value

NEAR_TIGHT, SHORT = 0.01, 1000  # share of a gap in its terms that is looked at; largest denominator
LEAST_STARTS, MAX_LOGARITHM = 3, 280.0  # descents beside that from ones; of a symbol
DESCENT_STEPS, FLAT, LEVEL_DIGITS = 150, 1e-9, 24  # steps a symbol; width at which a simplex ends
Corner: TypeAlias = tuple[float, list[float]]  # of a simplex: the value there, and where


def as_expression(value: object) -> sp.Expr:
    """A number or expression as an expression; text is refused with a SympifyError, never run."""
    return sp.sympify(value, strict=True)


def maximum(*branches: sp.Expr) -> sp.Expr:
    """The largest of the branches, kept as they were written."""
    return sp.Max(*map(as_expression, branches), evaluate=False)


def minimum(*branches: sp.Expr) -> sp.Expr:
    """The smallest of the branches, kept as they were written."""
    return sp.Min(*map(as_expression, branches), evaluate=False)


def in_turn(n: sp.Expr | int, late: sp.Expr, *law: sp.Expr) -> sp.Expr:
    """Time [s] of `n` collectives, each `late`: floor, all bytes, rate, root and slowness."""
    floor, size, rate, root, slowness = law
    return n * late + (n * floor + size / rate + root * sp.sqrt(n * size)) / slowness


def put(expression: sp.Basic, values: Mapping[sp.Basic, sp.Basic]) -> sp.Basic:
    """The expression with each key replaced by its value, all at once."""
    if expression in values:
        return values[expression]
    if not expression.args:
        return expression
    parts = [put(part, values) for part in expression.args]
    if all(new is old for new, old in zip(parts, expression.args, strict=True)):
        return expression
    if isinstance(expression, sp.Max | sp.Min):
        return type(expression)(*parts, evaluate=False)
    return expression.func(*parts)


def complement_power(expression: sp.Add) -> tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr] | None:
    """(c, x, n, rest) when the sum is c·(1 − (1 − x)^n) + rest, else None.

    Written out, it loses all digits at small x; −c·expm1(n·log1p(−x)) does not.
    """
    if not expression.args[0].is_Number or expression.args[0] <= 0:
        return None
    constant = expression.args[0]
    for term in expression.args[1:]:
        coefficient, power = term.as_coeff_Mul()
        if coefficient != -constant or not isinstance(power, sp.Pow):
            continue
        base, exponent = power.args
        if isinstance(base, sp.Add) and base.args[0] == 1 and not exponent.is_Number:
            rest = sp.Add(*(t for t in expression.args[1:] if t is not term))
            return constant, sp.Add(*(-t for t in base.args[1:])), exponent, rest
    return None


class _OutOfTime(BaseException):  # beneath Exception, so that SymPy does not catch it
    """The processor time given to a call is over."""


def within_time(call: Callable[[], Any], seconds: float = 1.5) -> Any:
    """Return the result of a SymPy call; None if it takes over `seconds` of processor time [s].

    Only the main thread can be interrupted: elsewhere, and where there is no such timer, it runs to
    its end.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        return call()

    def stop(*_: object) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return call()
    except _OutOfTime:
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def sstr(expression: sp.Basic) -> str:
    """One readable line: `max(T_comp, T_mem)`."""
    return _Printer({"order": "none"}).doprint(expression)


def tex(expression: sp.Basic) -> str:
    """LaTeX, with the letters of the nomenclature."""
    return sp.latex(expression, symbol_names=latex_names(), order="none")


class _Printer(StrPrinter):
    """SymPy's own text, with Max, Min and ceiling in lower case."""

    def _print_Max(self, expression: sp.Max) -> str:
        return f"max({self.stringify(expression.args, ', ')})"

    def _print_Min(self, expression: sp.Min) -> str:
        return f"min({self.stringify(expression.args, ', ')})"

    def _print_ceiling(self, expression: sp.ceiling) -> str:
        return f"ceil({self.stringify(expression.args, ', ')})"


def float_value(x: sp.Basic, values: Mapping[sp.Symbol, float]) -> float:
    """The value in floats; divisions by zero and overflows give infinities, as arrays do.

    Raises ValueError if the value is undefined (0/0, ∞ − ∞); TypeError if the expression holds a
    kind of node without a rule.
    """
    result = tree_value(expr_tree(x), {symbol.name: value for symbol, value in values.items()})
    if math.isnan(result):
        raise ValueError(f"{sstr(x)} is undefined (0/0 or ∞ − ∞) at the given point")
    return result


@lru_cache(maxsize=4096)
def expr_tree(x: sp.Basic) -> Tree:
    """The expression as a plain tree, node for node.

    Raises TypeError if it holds a kind of node without a rule.
    """
    if x in (sp.true, sp.false):
        return bool(x)
    if x.is_Symbol:
        return str(x.name)
    if x.is_number and not x.free_symbols:
        return float(x) if x.is_extended_real else math.nan
    if isinstance(x, sp.Piecewise):
        return (
            "piecewise",
            *((expr_tree(value), expr_tree(condition)) for value, condition in x.args),
        )
    complement = complement_power(x) if isinstance(x, sp.Add) else None
    if complement is not None:
        return ("complement", *map(expr_tree, complement))
    if isinstance(x, sp.Pow) and x.args[1] == sp.Rational(1, 2):
        return ("sqrt", expr_tree(x.args[0]))
    if type(x) not in OPERATIONS:
        raise TypeError(f"no scalar rule for {type(x).__name__} in {sstr(x)}")
    return (OPERATIONS[type(x)][0], *map(expr_tree, x.args))


# Tree label and array operation of each SymPy node type.
OPERATIONS: Mapping[type, tuple[str, str]] = {
    sp.Add: ("sum", "sum"),
    sp.Mul: ("product", "product"),
    sp.Pow: ("power", "power"),
    sp.Max: ("max", "maximum"),
    sp.Min: ("min", "minimum"),
    sp.exp: ("exp", "exp"),
    sp.log: ("log", "log"),
    sp.ceiling: ("ceiling", "ceil"),
    sp.floor: ("floor", "floor"),
    sp.Abs: ("abs", "absolute"),
    sp.And: ("and", "logical_and"),
    sp.Or: ("or", "logical_or"),
    sp.Not: ("not", "logical_not"),
    sp.StrictLessThan: ("<", "less"),
    sp.LessThan: ("<=", "less_equal"),
    sp.StrictGreaterThan: (">", "greater"),
    sp.GreaterThan: (">=", "greater_equal"),
    sp.Equality: ("==", "equal"),
    sp.Unequality: ("!=", "not_equal"),
}


def undefined_reason(expression: sp.Expr, values: Mapping[sp.Symbol, float]) -> str:
    """`W is 0 there, and it is divided by`, or the like; empty when no part explains it."""
    for node in sp.preorder_traversal(expression):
        if isinstance(node, sp.Pow):
            base, power = (_value(part, values) for part in node.args)
            if base == 0 and power is not None and power < 0:
                return f"{sstr(node.base)} is 0 there, and it is divided by"
            if base is not None and base < 0 and power is not None and power % 1:
                return f"{sstr(node.base)} is {base:.4g} there, and it has no real root"
        elif isinstance(node, sp.log):
            inner = _value(node.args[0], values)
            if inner is not None and inner <= 0:
                return f"{sstr(node.args[0])} is {inner:.4g} there, and it has no logarithm"
    return ""


def _value(part: sp.Basic, values: Mapping[sp.Symbol, float]) -> float | None:
    try:
        return float_value(part, values)
    except ValueError:
        return None


def top_extreme(expression: sp.Expr) -> sp.Expr | None:
    """Return the only Max or Min factor of an expression with positive other factors; else None."""
    factors = sp.Mul.make_args(expression)
    extremes = [f for f in factors if isinstance(f, sp.Max | sp.Min)]
    others = [f for f in factors if not isinstance(f, sp.Max | sp.Min)]
    if len(extremes) != 1 or any(f.has(sp.Max, sp.Min) for f in others):
        return None
    return extremes[0] if sp.Mul(*others).is_positive else None


def extreme_branches(expression: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """{branch of the Max or Min at the top: the expression with that alone}; empty without one."""
    extreme = top_extreme(expression)
    if extreme is None:
        return {}
    outer = sp.Mul(*(f for f in sp.Mul.make_args(expression) if f is not extreme))
    return {part: outer * part for part in extreme.args}


class Condition(str):
    """A relation that reads as the sentence of an assumption: `L_ctx < L_star*m_pos: why`."""

    __slots__ = ("relation", "why")
    relation: sp.Basic
    why: str

    def __new__(cls, relation: sp.Basic, why: str = "") -> Condition:
        """The condition; raises TypeError if it is not a relation."""
        if not isinstance(relation, sp.core.relational.Relational | sp.logic.boolalg.Boolean):
            raise TypeError(f"a condition is a relation, not {relation!r}")
        condition = super().__new__(cls, sstr(relation) + (f": {why}" if why else ""))
        condition.relation, condition.why = relation, why
        return condition

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.relation, self.why


def when(*relations: sp.Basic, why: str = "") -> Condition:
    """The condition that all of some relations hold."""
    return Condition(relations[0] if len(relations) == 1 else sp.And(*relations), why)


def sentences(name: str, assumes: Iterable[str]) -> tuple[str, ...]:
    """Assumptions without duplicates; raises TypeError if any is not a sentence or a condition."""
    listed = tuple(assumes)
    odd = [assumption for assumption in listed if not isinstance(assumption, str)]
    if odd:
        raise TypeError(f"{name}: conditions are sentences, or made with `when`, not {odd[0]!r}")
    return tuple(dict.fromkeys(listed))


_OPERATIONS: Mapping[type, Callable[[Any, Any], sp.Expr]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.Pow: pow,
}  # fmt: skip
_RELATIONS = {ast.Lt: sp.Lt, ast.LtE: sp.Le, ast.Gt: sp.Gt, ast.GtE: sp.Ge, ast.Eq: sp.Eq}
FUNCTIONS = {
    "sqrt": sp.sqrt, "exp": sp.exp, "log": sp.log, "max": maximum, "min": minimum,
    "ceiling": sp.ceiling, "floor": sp.floor,
}  # fmt: skip


def build_expr(node: ast.expr, named: Callable[[str], sp.Basic] = SYMBOLS.__getitem__) -> sp.Basic:
    """The expression of a syntax tree, which is read and never run.

    Raises ValueError for anything that is no formula; KeyError, or what `named` does, for a name.
    """
    match node:
        case ast.Constant(int() | float() as value):
            return sp.Rational(str(value))
        case ast.Name(name):
            return named(name)
        case ast.BinOp(left, kind, right) if type(kind) in _OPERATIONS:
            return _OPERATIONS[type(kind)](build_expr(left, named), build_expr(right, named))
        case ast.UnaryOp(ast.USub(), inner):
            return -build_expr(inner, named)
        case ast.Call(ast.Name(name), arguments, []) if name in FUNCTIONS:
            return FUNCTIONS[name](*(build_expr(argument, named) for argument in arguments))
        case ast.Compare(left, kinds, others) if all(type(kind) in _RELATIONS for kind in kinds):
            sides = [build_expr(side, named) for side in (left, *others)]
            relations = [
                _RELATIONS[type(kind)](*pair, evaluate=False)
                for kind, pair in zip(kinds, pairwise(sides), strict=True)
            ]
            return relations[0] if len(relations) == 1 else sp.And(*relations, evaluate=False)
    raise ValueError(f"{ast.unparse(node)} is no formula")


def least_points(
    gap: sp.Expr, relations: tuple[sp.Basic, ...], starts: Sequence[Mapping[sp.Symbol, Fraction]]
) -> Iterator[dict[sp.Symbol, Fraction]]:
    """Yield points where a gap is least in all symbols at once, and small beside its terms.

    From ones and from the starts of the least shares, by Nelder and Mead over logarithms; then at
    fractions close by, and where the slopes of the gap are zero.
    """
    symbols = sorted(set().union(*(x.free_symbols for x in (gap, *relations))), key=str)
    if not symbols or gap.has(sp.Sum, sp.Integral, sp.ceiling, sp.floor, AppliedUndef):
        return
    terms = sp.lambdify(symbols, sp.Add.make_args(gap), "math")
    holds = sp.lambdify(symbols, relations, "math")

    def share(logarithms: Any) -> float:
        try:
            at = [math.exp(x) for x in logarithms]
            parts = terms(*at)
            return float(sum(parts) / sum(map(abs, parts))) if all(holds(*at)) else math.inf
        except (ValueError, TypeError, ArithmeticError):  # not real there, or beyond a float
            return math.inf

    logs = [[math.log(point[x]) for x in symbols] for point in starts]
    starting = ([0.0] * len(symbols), *sorted(logs, key=share)[:LEAST_STARTS])
    lowest = sorted(_simplex_descent(share, start) for start in starting)
    for rank, (least, floor) in enumerate(lowest):
        if least < NEAR_TIGHT and max(map(abs, floor)) < MAX_LOGARITHM:
            near = {x: Fraction(math.exp(at)) for x, at in zip(symbols, floor, strict=True)}
            short = {x: at.limit_denominator(SHORT) for x, at in near.items()}
            close = [point for point in (near, short) if min(point.values()) > 0]
            yield from close
            level = (_level(gap, x, fixed) for x in close[: 2 * (rank == 0)] for fixed in (0, 1))
            yield from (point for point in level if min(point.values()) > 0)


def _simplex_descent(value: Callable[[Sequence[float]], float], start: Sequence[float]) -> Corner:
    """The least value found from a start, and where, by the method of Nelder and Mead."""
    corners = [[x + (i == k) for i, x in enumerate(start)] for k in range(-1, len(start))]
    simplex = sorted((value(corner), corner) for corner in corners)
    for _ in range(DESCENT_STEPS * len(start)):
        others, (worst, last) = simplex[:-1], simplex[-1]
        centre = [
            sum(at) / len(others) for at in zip(*(corner for _, corner in others), strict=True)
        ]

        def moved(by: float, centre: list[float] = centre, last: list[float] = last) -> Corner:
            corner = [c + by * (c - x) for c, x in zip(centre, last, strict=True)]
            return value(corner), corner

        tried = moved(1.0)
        if tried < simplex[0]:
            tried = min(tried, moved(2.0))
        elif tried[0] >= others[-1][0]:
            tried = min(moved(0.5), moved(-0.5))
        if tried[0] < worst:
            simplex = sorted([*others, tried])
        else:
            best = simplex[0][1]
            halves = ([(x + b) / 2 for x, b in zip(at, best, strict=True)] for _, at in others[1:])
            nearer = [*halves, [(x + b) / 2 for x, b in zip(last, best, strict=True)]]
            simplex = sorted([simplex[0], *((value(corner), corner) for corner in nearer)])
        if max(abs(x - y) for x, y in zip(simplex[0][1], simplex[-1][1], strict=True)) < FLAT:
            break
    return simplex[0]


def _level(gap: sp.Expr, start: dict[sp.Symbol, Fraction], fixed: int) -> dict[sp.Symbol, Fraction]:
    """The point close by where slopes are zero, so many symbols fixed; the start where none is."""
    numbers = {x: sp.Rational(at.numerator, at.denominator) for x, at in start.items()}
    free = [x for x in start if gap.has(x)][fixed:]
    slopes = [gap.diff(x).subs({y: at for y, at in numbers.items() if y not in free}) for x in free]
    if not free or gap.has(sp.Max, sp.Min, sp.Piecewise, sp.Abs):
        return start
    try:
        roots = sp.nsolve(slopes, free, [numbers[x] for x in free], prec=LEVEL_DIGITS, verify=False)
        real = [sp.Rational(at).as_numer_denom() for at in roots]
    except (ValueError, TypeError, ArithmeticError):  # no real root close by, or no slope there
        return start
    return start | {x: Fraction(*at) for x, at in zip(free, real, strict=True)}
