"""Numbers out of equations: on arrays (`kernel`), and one point at a time (`scalar`).

`kernel` lowers definitions once to a tape of array operations, in which each subexpression stands
once and sums and products stay n-ary; `scalar` walks the expression trees with Python floats and
shares nothing with it but the definitions, so that one checks the other. `source_code` writes the
same definitions as a function of another language, by SymPy's printers.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Protocol

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from formulas.nomenclature.symbols import SymbolError, describe, did_you_mean
from formulas.numerics.block_executor import BLOCK
from formulas.numerics.expressions import OPERATIONS, complement_power, expr_tree, put, sstr
from formulas.numerics.kernel import Kernel
from formulas.numerics.tape import Node, Tape
from formulas.numerics.trees import ScalarProgram


class Definition(Protocol):
    """Anything that says a symbol equals an expression, such as an Equation."""

    @property
    def symbol(self) -> sp.Symbol:
        """The defined symbol."""

    @property
    def rhs(self) -> sp.Expr:
        """Expression of the symbol in other symbols."""


@dataclass(frozen=True)
class Assignment:
    """A symbol and its defining expression: an equation without units, source or checks."""

    symbol: sp.Symbol
    rhs: sp.Expr


def kernel(
    equations: Iterable[Definition],
    outputs: Iterable[sp.Symbol | str] | Mapping[str, sp.Expr],
    arguments: Iterable[sp.Symbol | str] | None = None,
    *,
    block: int = BLOCK,
) -> Kernel:
    """Compile definitions, in any order, into one function of arrays.

    Raises SymbolError if two definitions of a symbol differ, definitions form a circle, an output
    is neither defined nor given, or a symbol is needed that `arguments` leaves out.

    Args:
        equations: Definitions; only those that the outputs need are computed, each once.
        outputs: Symbols to compute, or named expressions.
        arguments: Symbols to be given, in this order; one of them that also has a definition is
            taken as given. By default every symbol without a definition.
        block: Points computed at a time.
    """
    definitions = collect(equations)
    names = None if arguments is None else [_name(x) for x in arguments]
    for x in [x for x in definitions if names is not None and x.name in names]:
        del definitions[x]
    wanted = _wanted(outputs, definitions, names)
    needed = topo_order(definitions, wanted.values())
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

    Raises SymbolError as `kernel` and its call do.
    """
    return scalar_program(equations, outputs, values)(values)


def scalar_program(
    equations: Iterable[Definition],
    outputs: Iterable[sp.Symbol | str] | Mapping[str, sp.Expr],
    names: Iterable[str],
) -> ScalarProgram:
    """Build the program that computes the outputs from the symbols `names` and the equations."""
    arguments = list(names)
    definitions = {x: e for x, e in collect(equations).items() if x.name not in arguments}
    wanted = _wanted(outputs, definitions, arguments)
    return _program(tuple(definitions.items()), tuple(wanted.items()))


@lru_cache(maxsize=64)
def _program(
    definitions: tuple[tuple[sp.Symbol, sp.Expr], ...], wanted: tuple[tuple[str, sp.Expr], ...]
) -> ScalarProgram:
    needed = topo_order(dict(definitions), [expression for _, expression in wanted])
    used = set().union(*(e.free_symbols for e in (*dict(wanted).values(), *needed.values())))
    return ScalarProgram(
        tuple(sorted(x.name for x in used - set(needed))),
        tuple((x.name, expr_tree(expression)) for x, expression in needed.items()),
        tuple((name, expr_tree(expression)) for name, expression in wanted),
    )


def collect(equations: Iterable[Definition]) -> dict[sp.Symbol, sp.Expr]:
    """{symbol: expression}, including the `where` equations of each.

    Raises SymbolError if a symbol is defined twice, differently.
    """
    definitions: dict[sp.Symbol, sp.Expr] = {}
    for equation in equations:
        nested = collect(getattr(equation, "where", ()))
        for x, expression in {equation.symbol: equation.rhs, **nested}.items():
            if definitions.setdefault(x, expression) != expression:
                raise SymbolError(f"{describe(x.name)} is defined twice, differently")
    return definitions


def topo_order(
    definitions: Mapping[sp.Symbol, sp.Expr], wanted: Iterable[sp.Expr]
) -> dict[sp.Symbol, sp.Expr]:
    """The definitions that the wanted expressions need, each after those it needs itself.

    Raises SymbolError if they form a circle; the message shows it.
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


def expand_all(expression: sp.Basic, equations: Iterable[Definition]) -> sp.Basic:
    """The expression with definitions put in, innermost first."""
    inner: dict[sp.Basic, sp.Basic] = {}
    for x, rhs in topo_order(collect(equations), [expression]).items():
        inner[x] = put(rhs, inner)
    return put(expression, inner)


# Forms of a file, a function and its lines, for each language.
LANGUAGES = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))


def source_code(
    name: str, equations: Iterable[Definition], output: sp.Expr, language: str, notes: Iterable[str]
) -> str:
    """Write the function of a language that computes `output` from the symbols left open.

    Its arguments are in base units and in the order of their names; each definition that is needed
    is a local name. `notes` are comments above it.
    """
    form = LANGUAGES[language]
    printed = resolve_name(form["printer"])({"user_functions": form["calls"]}).doprint
    needed = topo_order(collect(equations), [output])
    used = set().union(*(x.free_symbols for x in (output, *needed.values()))) - set(needed)
    arguments = sorted(used, key=lambda x: x.name)
    typed = ", ".join(form["argument"].format(printed(x)) for x in arguments)
    return "\n".join([
        *(f"{form['note']} {line}" for line in (*notes, *(describe(x.name) for x in arguments))),
        form["function"].format(name, typed),
        *(form["local"].format(printed(x), printed(_precise(e))) for x, e in needed.items()),
        form["end"].format(printed(_precise(output))),
    ])  # fmt: skip


def _precise(x: sp.Expr) -> sp.Basic:
    """The expression, its 1 - (1 - x)^n as the kernel has it, so that no digit is lost."""
    return put(x, {
        part: -c[0] * expm1(c[2] * log1p(-c[1])) + c[3]
        for part in x.atoms(sp.Add) if (c := complement_power(part))
    })  # fmt: skip


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


def record(outputs: Mapping[str, sp.Expr], definitions: Mapping[sp.Symbol, sp.Expr]) -> Tape:
    """The tape that computes the outputs; a symbol with a definition is computed where first met.

    Raises TypeError if an expression holds a kind of node that has no array operation.
    """
    recorder = _Recorder(definitions)
    for name, expression in outputs.items():
        recorder.tape.outputs[name] = recorder.slot(expression)
    return recorder.tape


class _Recorder:
    """Appends nodes to a tape and reuses equal nodes."""

    def __init__(self, definitions: Mapping[sp.Symbol, sp.Expr]) -> None:
        self.tape = Tape()
        self._definitions = definitions
        self._of_expression: dict[sp.Basic, int] = {}
        self._of_node: dict[Node, int] = {}

    def slot(self, expression: sp.Basic) -> int:
        """The slot that holds the value of the expression."""
        if expression not in self._of_expression:
            self._of_expression[expression] = self._slot(expression)
        return self._of_expression[expression]

    def _append(self, *node: object) -> int:
        if node not in self._of_node:
            self._of_node[node] = len(self.tape.nodes)
            self.tape.nodes.append(node)
        return self._of_node[node]

    def _slot(self, x: sp.Basic) -> int:
        if x.is_Symbol:
            defined = self._definitions.get(x)
            return self._append("argument", x.name) if defined is None else self.slot(defined)
        if x.is_number and not x.free_symbols:
            return self._append("constant", float(x))
        if isinstance(x, sp.Add):
            return self._sum(x)
        if isinstance(x, sp.Mul):
            return self._product(x)
        if isinstance(x, sp.Pow):
            return self._power(x)
        if isinstance(x, sp.Piecewise):
            *pieces, (value, condition) = x.args
            if condition == sp.true:
                result = self.slot(value)
            else:
                result = self._choice(condition, value, self._append("constant", float("nan")))
            for value, condition in reversed(pieces):
                result = self._choice(condition, value, result)
            return result
        if type(x) not in OPERATIONS:
            raise TypeError(f"no array operation for {type(x).__name__} in {sstr(x)}")
        return self._append(OPERATIONS[type(x)][1], *map(self.slot, x.args))

    def _sum(self, x: sp.Add) -> int:
        complement = complement_power(x)
        if complement is not None:
            return self._complement(*complement)
        more, less = [], []
        for term in x.args:
            coefficient, rest = term.as_coeff_Mul()
            if coefficient.is_negative:
                less.append(self.slot(-coefficient * rest))
            else:
                more.append(self.slot(term))
        return self._append("sum", tuple(more), tuple(less))

    def _complement(self, c: sp.Expr, share: sp.Expr, n: sp.Expr, rest: sp.Expr) -> int:
        minus = self._append("negative", self.slot(share))
        logarithm = self._append("log1p", minus)
        exponent = self._append("product", (self.slot(n), logarithm), ())
        value = self._append("negative", self._append("expm1", exponent))
        if c != 1:
            value = self._append("product", (self._append("constant", float(c)), value), ())
        return value if rest == 0 else self._append("sum", (value, self.slot(rest)), ())

    def _product(self, x: sp.Mul) -> int:
        over, under = [], []
        for factor in x.args:
            if isinstance(factor, sp.Pow) and factor.args[1].is_Rational and factor.args[1] < 0:
                under.append(self.slot(1 / factor))
            elif factor.is_Rational and factor.p == 1:
                under.append(self._append("constant", float(factor.q)))
            else:
                over.append(self.slot(factor))
        return self._append("product", tuple(over), tuple(under))

    def _power(self, x: sp.Pow) -> int:
        base, exponent = x.args
        if exponent.is_Rational and exponent < 0:
            return self._append("product", (), (self.slot(1 / x),))
        if exponent == sp.Rational(1, 2):
            return self._append("sqrt", self.slot(base))
        if exponent in (2, 3):
            return self._append("product", (self.slot(base),) * int(exponent), ())
        return self._append("power", self.slot(base), self.slot(exponent))

    def _choice(self, condition: sp.Basic, value: sp.Expr, otherwise: int) -> int:
        return self._append("where", self.slot(condition), self.slot(value), otherwise)
