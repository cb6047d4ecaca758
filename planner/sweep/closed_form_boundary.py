"""Boundary of two parts of a step: their equality solved for the varied symbol.

Only what moves with the varied symbol is written out; what does not keeps its symbol, so that the
closed form is short. It holds at one point and around it: of a maximum the branch that decides
there is taken, symbols that are zero there are left out, and so are counts that are one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import sympy as sp

from formulas.algebra.identity import inverse
from formulas.numerics.evaluate import Assignment, Definition, Kernel, collect, kernel, scalar
from formulas.numerics.expressions import float_value, put
from planner.text.tolerances import AGREE

COUNTS = ("cp", "pp", "tp", "dp", "ep", "xtp", "one_seq", "m_pos", "g", "x_pf")
MAX_OCCURRENCES = 2  # that a symbol may occur; SymPy is not asked to isolate what occurs more often


@dataclass(frozen=True)
class SolvedBoundary:
    """`symbol = expression` where two parts are equal, and its value in base units."""

    symbol: str
    expression: sp.Expr
    value: float


def solved_boundary(
    first: Sequence[str],
    second: Sequence[str],
    values: Mapping[str, float],
    moving: Collection[str],
    *,
    shown: Collection[str] = (),
    equations: tuple[Definition, ...],
    even: bool = False,
) -> SolvedBoundary | str:
    """Closed form of the symbol that makes two sums of symbols equal, or the reason it has none.

    Args:
        first, second: names of the symbols that add up to either side.
        values: what is bound at the crossing, by symbol name.
        moving: names of those that change with what is varied.
        shown: names of other symbols that are written out too, not hidden in what follows from
            them.
        equations: what defines the symbols.
        even: leave ceilings out, where they are known to do nothing.
    """
    definitions = _relaxed(equations) if even else _definitions(equations)
    local = _Definitions(definitions, dict(values), {*moving, *shown})
    left, right = (local.written(names) for names in (first, second))
    varied = sorted((x for x in (left / right).free_symbols if x.name in moving), key=str)
    if not varied:
        return "no symbol of the two moves"
    if len(varied) > 1:
        return f"{' and '.join(x.name for x in varied)} move together"
    (x,) = varied
    quotient = right / left
    if quotient.has(sp.ceiling, sp.floor):
        return "ceilings"
    short: dict[sp.Basic, sp.Basic] = {}
    shape = _simplified(quotient, x, short)
    if sum(each == x for each in sp.preorder_traversal(shape)) > MAX_OCCURRENCES:
        return f"{x.name} cannot be isolated"
    unity = sp.Dummy("one", positive=True)
    try:
        solution = inverse(f"{' + '.join(first)}", unity, shape, x, None)
    except ValueError:
        return f"{x.name} cannot be isolated"
    solution = put(solution, {unity: sp.Integer(1), **short})
    value = local.value(solution)
    if not abs(value - values[x.name]) <= AGREE * abs(values[x.name]):
        return "several roots"
    return SolvedBoundary(x.name, solution, value)


def relaxed_times(
    first: Sequence[str],
    second: Sequence[str],
    values: Mapping[str, float | np.ndarray],
    equations: tuple[Definition, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Both sums [s] without ceilings, of the broadcast shape of the values."""
    compiled = _relaxed_kernel(tuple(first), tuple(second), equations)
    sums = compiled(**{name: values[name] for name in compiled.names})
    shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    return np.broadcast_to(sums["first"], shape), np.broadcast_to(sums["second"], shape)


@cache
def _relaxed_kernel(
    first: tuple[str, ...], second: tuple[str, ...], equations: tuple[Definition, ...]
) -> Kernel:
    definitions = _relaxed(equations)
    sums = {
        name: sp.Add(*(x for x in definitions if x.name in names))
        for name, names in (("first", first), ("second", second))
    }
    return kernel([Assignment(x, e) for x, e in definitions.items()], sums)


@cache
def _relaxed(equations: tuple[Definition, ...]) -> dict[sp.Symbol, sp.Expr]:
    """Definitions without ceilings of batches: exact if the divisions are even."""
    definitions = _definitions(equations)
    local = _Definitions(definitions, {}, {"B"})

    def without(expression: sp.Basic) -> sp.Basic:
        steps = {
            each: without(each.args[0])
            for each in expression.atoms(sp.ceiling)
            if any(map(local.moves, each.free_symbols))
        }
        return put(expression, steps) if steps else expression

    return {x: without(expression) for x, expression in definitions.items()}


def _simplified(expression: sp.Basic, x: sp.Symbol, short: dict[sp.Basic, sp.Basic]) -> sp.Basic:
    """The expression with one symbol for whatever `x` is not in, which `short` explains."""
    if not expression.has(x):
        if expression.is_Number:
            return expression
        symbol = sp.Dummy("rest", positive=True)
        short[symbol] = expression
        return symbol
    if expression == x:
        return expression
    apart = [part for part in expression.args if not part.has(x)]
    within = [_simplified(part, x, short) for part in expression.args if part.has(x)]
    if isinstance(expression, sp.Add | sp.Mul):
        rest = [_simplified(expression.func(*apart), x, short)] if apart else []
        return expression.func(*rest, *within)
    return expression.func(*(_simplified(part, x, short) for part in expression.args))


_definitions = cache(collect)


@dataclass(frozen=True)
class _Definitions:
    """Definitions at one point and the moving symbols; values and moves are cached."""

    definitions: Mapping[sp.Symbol, sp.Expr]
    values: dict[str, float]
    moving: Collection[str]
    _moves: dict[sp.Symbol, bool] = field(default_factory=dict)

    def written(self, names: Sequence[str]) -> sp.Expr:
        """Sum of the named symbols, expanded in the moving symbols."""
        symbols = [x for x in self.definitions if x.name in names]
        total = sp.Add(*symbols)
        if len(symbols) == 1 and not self.moves(symbols[0]):
            plain = self.definitions[symbols[0]]
            total = plain if plain.is_Mul else total
        # Zeros and counts of one left out, and of every maximum the branch that decides.
        expression = self._unfolded(total)
        settled: dict[sp.Basic, sp.Basic] = {}
        for x in expression.free_symbols:
            number = self._number(x)
            if number == 0 or (number == 1 and x.name in COUNTS):
                settled[x] = sp.Integer(int(number))
        expression = put(expression, settled)
        while extremes := expression.atoms(sp.Max, sp.Min):
            extreme = min(extremes, key=lambda node: node.count_ops())
            pick = max if isinstance(extreme, sp.Max) else min
            expression = put(expression, {extreme: pick(extreme.args, key=self.value)})
        return expression

    def moves(self, x: sp.Symbol) -> bool:
        """True if a symbol changes with the varied parameter."""
        if x not in self._moves:
            inner = self.definitions[x].free_symbols if x in self.definitions else ()
            self._moves[x] = x.name in self.moving or any(map(self.moves, inner))
        return self._moves[x]

    def value(self, expression: sp.Expr) -> float:
        """The expression at the point."""
        return float(float_value(expression, {x: self._number(x) for x in expression.free_symbols}))

    def _number(self, x: sp.Symbol) -> float:
        if x.name not in self.values:
            rest = [Assignment(y, e) for y, e in self.definitions.items()]
            self.values[x.name] = scalar(rest, [x], self.values)[x.name]
        return self.values[x.name]

    def _unfolded(self, expression: sp.Expr) -> sp.Expr:
        inner = {
            x: self._unfolded(self.definitions[x])
            for x in expression.free_symbols
            if x in self.definitions and self.moves(x) and x.name not in self.moving
        }
        return put(expression, inner) if inner else expression
