"""Numbers out of equations: on arrays (`kernel`), and one point at a time (`scalar`).

`kernel` lowers definitions once into array operations; `scalar` walks the expression trees with
Python floats and shares nothing with it but the definitions, so that one checks the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import sympy as sp

from formulas.nomenclature.symbols import SymbolError, describe, did_you_mean
from formulas.numerics.block_executor import BLOCK
from formulas.numerics.exact_value import value_of
from formulas.numerics.expressions import put
from formulas.numerics.kernel import Kernel, refuse_missing
from formulas.numerics.lowering import record


class Definition(Protocol):
    """Anything that says a symbol equals an expression, such as an Equation."""

    @property
    def symbol(self) -> sp.Symbol: ...
    @property
    def rhs(self) -> sp.Expr: ...


def kernel(
    equations: Iterable[Definition],
    outputs: Iterable[sp.Symbol | str] | Mapping[str, sp.Expr],
    arguments: Iterable[sp.Symbol | str] | None = None,
    *,
    block: int = BLOCK,
) -> Kernel:
    """Compile definitions, in any order, into one function of arrays.

    Parameters
    ----------
    equations
        Definitions; only those that the outputs need are computed, each once.
    outputs
        Symbols to compute, or named expressions.
    arguments
        Symbols to be given, in this order; one of them that also has a definition is taken as
        given. By default every symbol without a definition.
    block
        Points computed at a time.

    Raises
    ------
    SymbolError
        If two definitions of a symbol differ, definitions form a circle, an output is neither
        defined nor given, or a symbol is needed that `arguments` leaves out.
    """
    definitions = collect(equations)
    names = None if arguments is None else [_name(x) for x in arguments]
    for x in [x for x in definitions if names is not None and x.name in names]:
        del definitions[x]
    wanted = _wanted(outputs, definitions, names)
    needed = ordered(definitions, wanted.values())
    tape = record(wanted, needed)
    if names is None:
        return Kernel(tape, tape.arguments, block)
    for name in tape.arguments:
        if name not in names:
            raise SymbolError(f"no equation defines {describe(name)}, and it is not an argument")
    return Kernel(tape, names, block)


def scalar(
    equations: Iterable[Definition],
    outputs: Iterable[sp.Symbol | str] | Mapping[str, sp.Expr],
    values: Mapping[str, float],
) -> dict[str, float]:
    """The outputs at one point, by walking the expressions with Python floats.

    Raises
    ------
    SymbolError
        As `kernel` and its call do.
    """
    definitions = {x: e for x, e in collect(equations).items() if x.name not in values}
    wanted = _wanted(outputs, definitions, list(values))
    needed, free = _order(tuple(definitions.items()), tuple(wanted.values()))
    numbers: dict[sp.Symbol, float] = {}
    refuse_missing(values, sorted(x.name for x in free))
    for x in free:
        numbers[x] = float(values[x.name])
        if not numbers[x] >= 0:
            raise SymbolError(f"{describe(x.name)} is negative or not a number")
    for x, expression in needed.items():
        numbers[x] = value_of(expression, numbers)
    return {name: value_of(expression, numbers) for name, expression in wanted.items()}


@lru_cache(maxsize=64)
def _order(
    definitions: tuple[tuple[sp.Symbol, sp.Expr], ...], wanted: tuple[sp.Expr, ...]
) -> tuple[Mapping[sp.Symbol, sp.Expr], frozenset[sp.Symbol]]:
    """What `ordered` gives, and the symbols that nothing defines."""
    needed = ordered(dict(definitions), wanted)
    used = set().union(*(e.free_symbols for e in (*wanted, *needed.values())))
    return needed, frozenset(used - set(needed))


def collect(equations: Iterable[Definition]) -> dict[sp.Symbol, sp.Expr]:
    """{symbol: expression}, including the `where` equations of each.

    Raises
    ------
    SymbolError
        If a symbol is defined twice, differently.
    """
    definitions: dict[sp.Symbol, sp.Expr] = {}
    for equation in equations:
        nested = collect(getattr(equation, "where", ()))
        for x, expression in {equation.symbol: equation.rhs, **nested}.items():
            if definitions.setdefault(x, expression) != expression:
                raise SymbolError(f"{describe(x.name)} is defined twice, differently")
    return definitions


def ordered(
    definitions: Mapping[sp.Symbol, sp.Expr], wanted: Iterable[sp.Expr]
) -> dict[sp.Symbol, sp.Expr]:
    """The definitions that the wanted expressions need, each after those it needs itself.

    Raises
    ------
    SymbolError
        If they form a circle; the message shows it.
    """
    done: dict[sp.Symbol, sp.Expr] = {}
    path: list[sp.Symbol] = []

    def visit(x: sp.Symbol) -> None:
        if x in done or x not in definitions:
            return
        if x in path:
            circle = " -> ".join(y.name for y in [*path[path.index(x) :], x])
            raise SymbolError(f"the definitions go round in a circle: {circle}")
        path.append(x)
        for inner in sorted(definitions[x].free_symbols, key=lambda y: y.name):
            visit(inner)
        path.pop()
        done[x] = definitions[x]

    for expression in wanted:
        for x in sorted(expression.free_symbols, key=lambda y: y.name):
            visit(x)
    return done


def unfolded(expression: sp.Basic, equations: Iterable[Definition]) -> sp.Basic:
    """The expression with definitions put in, innermost first."""
    inner: dict[sp.Basic, sp.Basic] = {}
    for x, rhs in ordered(collect(equations), [expression]).items():
        inner[x] = put(rhs, inner)
    return put(expression, inner)


def _name(x: sp.Symbol | str) -> str:
    return x if isinstance(x, str) else x.name


def _wanted(
    outputs: Iterable[sp.Symbol | str] | Mapping[str, sp.Expr],
    definitions: Mapping[sp.Symbol, sp.Expr],
    names: Sequence[str] | None,
) -> dict[str, sp.Expr]:
    """Outputs as named expressions."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    symbols = {x.name: x for x in definitions}
    for expression in definitions.values():
        symbols.update({x.name: x for x in expression.free_symbols})
    wanted = {}
    for name in map(_name, outputs):
        if name not in symbols or (symbols[name] not in definitions and name not in (names or ())):
            hint = did_you_mean(name, [x.name for x in definitions])
            raise SymbolError(f"no equation defines the output {describe(name)}{hint}")
        wanted[name] = symbols[name]
    return wanted
