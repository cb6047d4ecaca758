"""Declaring a problem: choose, define, roof, subject, minimise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import sympy as sp

from planner.programs.geometric.lowering import Inequality, Lowering, structure
from planner.programs.geometric.posynomial import truncate
from planner.programs.geometric.solver import Program
from planner.programs.geometric.structure import BOUND, LIMIT, PROMISE, ROOF, ProblemError

if TYPE_CHECKING:
    from formulas.algebra.equation import Equation


class GeometricProgram:
    """A geometric program in the making, over SymPy expressions.

    Every symbol is a choice, defined, or a given. Givens may enter in any way; choices only so
    that each constraint is a sum of positive monomials below one monomial, or can be brought to it
    (maxima, minima, powers of sums, 1/(1 - x)).

    >>> x, y, area = sp.symbols("x y area", positive=True)
    >>> field = GeometricProgram("field")
    >>> field.choose(x, within=(1e-3, 1e3))
    >>> field.choose(y, within=(1e-3, 1e3))
    >>> field.subject("large enough", sp.Ge(x * y, area))
    >>> field.minimise(2 * x + 2 * y)
    >>> round(field.compile().solve({area: 4.0}).value, 6)
    8.0
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._bounds: dict[sp.Symbol, tuple[sp.Expr, sp.Expr]] = {}
        self._definitions: dict[sp.Symbol, sp.Expr] = {}
        self._relax: dict[sp.Expr, sp.Expr] = {}
        self._constraints: dict[str, Inequality] = {}
        self._objective: sp.Expr | None = None

    def choose(self, symbol: sp.Symbol, *, within: tuple[float | sp.Expr, float | sp.Expr]) -> None:
        """A positive variable and its bounds, numbers or expressions of the givens."""
        if not (isinstance(symbol, sp.Symbol) and symbol.is_positive):
            raise ProblemError(f"{self.title}: {symbol} is not a positive symbol")
        self._fresh(symbol)
        low, high = (sp.sympify(each, strict=True) for each in within)
        self._bounds[symbol] = (low, high)
        least, most = f"{symbol} >= {truncate(low)}", f"{symbol} <= {truncate(high)}"
        self._add(Inequality(least, BOUND, low, symbol, least))
        self._add(Inequality(most, BOUND, symbol, high, most))

    def define(
        self, *equations: Equation | sp.Eq, relax: Mapping[sp.Expr, float | sp.Expr] | None = None
    ) -> None:
        """Define symbols as expressions.

        An equation is anything with `.lhs` and `.rhs`: an Equation of `formulas` or a SymPy Eq.
        `relax` maps a defined symbol, or any expression, to an under-estimate that is used in its
        place; it is refused where it would not make the problem easier. That it lies below is the
        caller's promise.
        """
        for equation in equations:
            symbol = equation.lhs
            if not isinstance(symbol, sp.Symbol):
                raise ProblemError(f"{self.title}: {symbol} is not a symbol, so cannot be defined")
            self._fresh(symbol)
            self._definitions[symbol] = sp.sympify(equation.rhs, strict=True)
        for expression, lower in (relax or {}).items():
            estimate = sp.sympify(lower, strict=True)
            if estimate.has(expression):
                raise ProblemError(f"{self.title}: the under-estimate of {expression} contains it")
            self._relax[expression] = estimate

    def roof(self, symbol: sp.Symbol, **branches: sp.Expr) -> None:
        """A choice that is at least every branch: a law of nature, never relaxed.

        A branch called `memory` of the roof T makes the constraint "T: memory".
        """
        if symbol not in self._bounds:
            raise ProblemError(f"{self.title}: choose {symbol} before giving it a roof")
        for branch, expression in branches.items():
            text = f"{symbol} >= {truncate(expression)}"
            name = f"{symbol}: {branch}"
            self._add(Inequality(name, ROOF, expression, symbol, text, (symbol, branch)))

    def subject(
        self, name: str, relation: sp.logic.boolalg.Boolean, *, promise: bool = False
    ) -> None:
        """Add a named inequality; a `promise` may be eased if the problem is infeasible."""
        if not isinstance(relation, (sp.Le, sp.Ge)):
            shown = "is always true" if relation == sp.true else "is no Le or Ge"
            raise ProblemError(f"{self.title}: {name}: {relation} {shown}")
        kind = PROMISE if promise else LIMIT
        self._add(Inequality(name, kind, relation.lts, relation.gts, truncate(relation)))

    def minimise(self, objective: sp.Expr) -> None:
        """The expression to make small; replaces an earlier one."""
        self._objective = sp.sympify(objective, strict=True)

    def compile(self, givens: Iterable[sp.Symbol] | None = None) -> Program:
        """Lower the problem once, for any numbers.

        Without `givens` they are all symbols that are neither chosen nor defined, by name. Raises
        ProblemError for what is no geometric program, naming the constraint and the expression.
        """
        if self._objective is None:
            raise ProblemError(f"{self.title}: nothing to minimise")
        lowering = Lowering(self.title, frozenset(self._bounds), self._definitions, self._relax)
        for x in self._constraints.values():
            lowering.hold(x)
        epigraph = sp.Dummy("objective", positive=True)
        lowering.minimise(self._objective, epigraph)
        symbols: set[sp.Symbol] = set()
        for row in lowering.rows:
            symbols |= row.divisor.free_symbols
            for powers, coefficient in row.terms:
                symbols |= coefficient.free_symbols
                symbols.update(*(exponent.free_symbols for _, exponent in powers))
        used = symbols
        listed = tuple(givens) if givens is not None else tuple(sorted(used, key=str))
        if missing := used - set(listed):
            names = ", ".join(sorted(map(str, missing)))
            raise ProblemError(f"{self.title}: neither chosen, defined nor given: {names}")
        others = (*lowering.auxiliaries, epigraph)
        return Program(structure(self.title, lowering.rows, tuple(self._bounds), others, listed))

    def _fresh(self, symbol: sp.Symbol) -> None:
        if symbol in self._bounds or symbol in self._definitions:
            raise ProblemError(f"{self.title}: {symbol} is chosen or defined twice")

    def _add(self, constraint: Inequality) -> None:
        if constraint.name in self._constraints:
            raise ProblemError(f"{self.title}: two constraints are called {constraint.name!r}")
        self._constraints[constraint.name] = constraint
