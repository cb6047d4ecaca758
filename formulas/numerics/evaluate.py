"""Numbers out of equations: on arrays (`kernel`), and one point at a time (`scalar`).

`kernel` lowers definitions once into array operations; `scalar` walks the expression trees with
Python floats and shares nothing with it but the definitions, so that one checks the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import sympy as sp

from formulas.nomenclature.symbols import SymbolError, describe, did_you_mean
from formulas.numerics.block_executor import BLOCK, Programme
from formulas.numerics.exact_value import value_of
from formulas.numerics.expressions import put
from formulas.numerics.tape import Tape, record

_REMEMBERED = 32  # programmes kept per kernel, one for each pattern of argument shapes


class Definition(Protocol):
    """Anything that says a symbol equals an expression, such as an Equation."""

    @property
    def symbol(self) -> sp.Symbol: ...
    @property
    def rhs(self) -> sp.Expr: ...


class Kernel:
    """A compiled set of definitions: `kernel(B=64, L_ctx=[1e3, 1e4], ...)` -> {name: value}.

    Attributes
    ----------
    names : tuple of str
        Symbols that a call must give.
    tape : Tape
        The compiled definitions.
    outputs : tuple of str
        Names of the values that a call returns.
    """

    def __init__(self, tape: Tape, names: Sequence[str], block: int = BLOCK) -> None:
        self.names = tuple(names)
        self.outputs = tuple(tape.outputs)
        self.block = block
        self.tape = tape
        self._programmes: dict[tuple, Programme] = {}

    def __call__(self, **values: object) -> dict[str, float | np.ndarray]:
        """Values of the outputs, in float64, broadcast over all arguments.

        Floats when every argument is a number, else arrays of the common shape; an output that
        does not vary along every axis is a read-only view.

        Raises
        ------
        SymbolError
            If a symbol is missing, unknown, negative or not a number, or an output is undefined
            (0/0, ∞ − ∞) at some point.
        """
        arrays = self._checked(values)
        pattern = tuple(
            tuple(1 if size == 1 else 2 for size in array.shape) for array in arrays.values()
        )
        programme = self._programmes.get(pattern)
        if programme is None:
            if len(self._programmes) >= _REMEMBERED:
                self._programmes.pop(next(iter(self._programmes)))
            programme = Programme(self.tape, dict(zip(arrays, pattern, strict=True)), self.block)
            self._programmes[pattern] = programme
        with np.errstate(all="ignore"):
            results = programme.run(arrays)
        for name, result in results.items():
            if np.isnan(result).any():
                raise SymbolError(f"{describe(name)} is undefined (0/0 or ∞ − ∞) at a given point")
        if not any(pattern):
            return {name: float(result) for name, result in results.items()}
        return dict(results)

    def __getstate__(self) -> dict:
        return {"tape": self.tape, "names": self.names, "block": self.block}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["tape"], state["names"], state["block"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Kernel(({', '.join(self.names)}) -> ({', '.join(self.outputs)}))"

    def _checked(self, values: Mapping[str, object]) -> dict[str, np.ndarray]:
        """Arguments as float64 arrays, in the kernel's order; anything amiss is named."""
        refuse_unknown(values, self.names)
        refuse_missing(values, self.names)
        arrays = {}
        for name in self.names:
            try:
                array = np.asarray(values[name], dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise SymbolError(f"{describe(name)} must be a number or an array") from error
            if not (array >= 0).all():
                what = "is not a number (NaN)" if np.isnan(array).any() else "is negative"
                raise SymbolError(f"{describe(name)} {what}")
            arrays[name] = array
        return arrays


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
    given = None if arguments is None else [_name(x) for x in arguments]
    for x in [x for x in definitions if given is not None and x.name in given]:
        del definitions[x]
    wanted = _wanted(outputs, definitions, given)
    needed = ordered(definitions, wanted.values())
    tape = record(wanted, needed)
    if given is None:
        return Kernel(tape, tape.arguments, block)
    for name in tape.arguments:
        if name not in given:
            raise SymbolError(f"no equation defines {describe(name)}, and it is not an argument")
    return Kernel(tape, given, block)


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
    needed = ordered(definitions, wanted.values())
    known: dict[sp.Symbol, float] = {}
    free = set().union(*(e.free_symbols for e in (*wanted.values(), *needed.values()))) - set(
        needed
    )
    refuse_missing(values, sorted(x.name for x in free))
    for x in free:
        known[x] = float(values[x.name])
        if not known[x] >= 0:
            raise SymbolError(f"{describe(x.name)} is negative or not a number")
    for x, expression in needed.items():
        known[x] = value_of(expression, known)
    return {name: value_of(expression, known) for name, expression in wanted.items()}


def collect(equations: Iterable[Definition]) -> dict[sp.Symbol, sp.Expr]:
    """{symbol: expression}, including the `where` equations of each.

    Raises
    ------
    SymbolError
        If a symbol is defined twice, differently.
    """
    found: dict[sp.Symbol, sp.Expr] = {}
    for equation in equations:
        nested = collect(getattr(equation, "where", ()))
        for x, expression in {equation.symbol: equation.rhs, **nested}.items():
            if found.setdefault(x, expression) != expression:
                raise SymbolError(f"{describe(x.name)} is defined twice, differently")
    return found


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


def refuse_missing(values: Mapping[str, object], names: Iterable[str]) -> None:
    """Raise, naming every symbol that is needed and not given."""
    missing = [name for name in names if name not in values]
    if missing:
        raise SymbolError("missing " + "; ".join(map(describe, missing)))


def refuse_unknown(values: Mapping[str, object], names: Sequence[str]) -> None:
    """Raise, naming the first symbol given that nothing asks for, and the nearest that exists."""
    for name in values:
        if name not in names:
            hint = did_you_mean(name, names) or f"; it takes {', '.join(names)}"
            raise SymbolError(f"there is no argument {name!r}{hint}")


def _name(x: sp.Symbol | str) -> str:
    return x if isinstance(x, str) else x.name


def _wanted(
    outputs: Iterable[sp.Symbol | str] | Mapping[str, sp.Expr],
    definitions: Mapping[sp.Symbol, sp.Expr],
    given: Sequence[str] | None,
) -> dict[str, sp.Expr]:
    """Outputs as named expressions."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    known = {x.name: x for x in definitions}
    for expression in definitions.values():
        known.update({x.name: x for x in expression.free_symbols})
    wanted = {}
    for name in map(_name, outputs):
        if name not in known or (known[name] not in definitions and name not in (given or ())):
            hint = did_you_mean(name, [x.name for x in definitions])
            raise SymbolError(f"no equation defines the output {describe(name)}{hint}")
        wanted[name] = known[name]
    return wanted
