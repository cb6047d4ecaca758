"""Equation: a symbol equals an expression, of the same unit, under assumptions, from a source.

In a notebook it is a block of HTML: LaTeX between dollar signs, which is typeset, escaped words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from formulas.algebra.identity import inverse
from formulas.nomenclature.dimensions import UnitError, expression_unit
from formulas.nomenclature.sources import Citation, definition
from formulas.nomenclature.symbols import SymbolError, describe, did_you_mean, meaning, symbol_unit
from formulas.numerics.evaluate import Assignment, Kernel, collect, expand_all, kernel, topo_order
from formulas.numerics.expressions import (
    as_expression,
    extreme_branches,
    sentences,
    sstr,
    tex,
    top_extreme,
)

LEFT_STYLE = 'style="text-align:left"'
SIGNS = {"=": "=", "≈": r"\approx", "≤": r"\le", "≥": r"\ge"}


def card(
    name: str,
    rows: Iterable[str],
    where: Iterable[str],
    assumes: Iterable[str],
    symbols: Iterable[sp.Symbol],
    source: Citation,
) -> str:
    """HTML of a title, rows, definitions (LaTeX), assumptions, symbols with units, and a source."""
    notes = [*(f"where ${latex}$" for latex in where), *(f"assumes: {escape(a)}" for a in assumes)]
    listed = "".join(f"<li>{note}</li>" for note in notes)
    title = escape(name[:1].upper() + name[1:])
    words = escape(str(source))
    cited = f'<a href="{escape(source.link)}">{words}</a>' if source.link else words
    ordered = sorted(symbols, key=lambda x: (x.name.lower(), x.name))
    cells = [
        f"<tr><td {LEFT_STYLE}>${tex(x)}$</td><td {LEFT_STYLE}><code>{escape(x.name)}</code></td>"
        f"<td {LEFT_STYLE}>{escape(str(symbol_unit(x)))}</td>"
        f"<td {LEFT_STYLE}>{escape(meaning(x))}</td></tr>"
        for x in ordered
    ]
    heads = "".join(
        f"<th {LEFT_STYLE}>{word}</th>" for word in ("symbol", "name", "unit", "meaning")
    )
    parts = [
        f"<h4>{title}</h4>",
        *rows,
        f"<ul>{listed}</ul>" if listed else "",
        f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(cells)}</tbody></table>",
        f"<p><small>Source: {cited}</small></p>",
    ]
    return "<div>\n" + "\n".join(part for part in parts if part) + "\n</div>"


def display(formula: str) -> str:
    """A formula on a line of its own, LaTeX for a notebook."""
    return f"<div>$\\displaystyle {escape(formula, quote=False)}$</div>"


class Readable:
    """Views of a derivation: LaTeX, HTML for a notebook, plain text."""

    name: str
    steps: tuple[Any, ...]
    where: tuple[Equation, ...]
    assumes: tuple[str, ...]
    source: Citation

    if TYPE_CHECKING:

        @property
        def proofs(self) -> tuple[str, ...]:
            """The proof of each step."""

    def latex(self) -> str:
        """All steps, aligned."""
        lines = [f"{tex(s.lhs)} &{SIGNS[s.relation]} {tex(s.rhs)}" for s in self.steps]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        rows, symbols = [], set()
        for number, (step, proof) in enumerate(zip(self.steps, self.proofs, strict=True), 1):
            why = f": {escape(step.why)}" if step.why else ""
            form = f"{tex(step.lhs)} {SIGNS[step.relation]} {tex(step.rhs)}"
            size = "" if step.size is None else f"; neglected over kept: ${tex(step.size)}$"
            rows.append(
                f"<div>{number}. <b>{step.verb}</b>{why}</div>"
                f"{display(form)}<div><small>{escape(proof)}{size}</small></div>"
            )
            symbols |= step.lhs.free_symbols | step.rhs.free_symbols
        for inner in self.where:
            symbols |= {inner.symbol, *inner.symbols}
        where = [inner.latex() for inner in self.where]
        return card(self.name, rows, where, self.assumes, symbols, self.source)

    def text(self) -> str:
        """All steps with their reasons and proofs, one after the other."""
        numbered = enumerate(zip(self.steps, self.proofs, strict=True), 1)
        steps = [step.text(number, proof) for number, (step, proof) in numbered]
        return "\n".join([self.name, *steps])


@dataclass(frozen=True)
class Equation:
    """`symbol = rhs`, checked when it is made.

    Raises UnitError if the two sides, or two terms, are not of one unit; ValueError if `rhs` holds
    a floating-point number, or branch names do not fit the branches.

    Args:
        name: What the equation gives, in words; `of` takes those of its symbol.
        symbol, rhs: Left and right side. Numbers in `rhs` are exact; nothing measured stands in an
            equation.
        assumes: Conditions under which it holds: sentences, or relations made with `when`.
        source: Where it comes from; what cites nothing is true by definition.
        where: Equations for symbols of `rhs` that are not given but computed.
        branches: Names of the branches of a Max at the top; by default the symbols that stand alone
            there.
    """

    name: str
    symbol: sp.Symbol
    rhs: sp.Expr
    assumes: tuple[str, ...] = ()
    source: Citation = definition
    where: tuple[Equation, ...] = ()
    branches: Mapping[str, sp.Expr] | None = field(default=None, hash=False)
    _functions: dict[tuple[str, ...], Function] = field(init=False, default_factory=dict,
                                                        repr=False, compare=False)  # fmt: skip

    def __post_init__(self) -> None:
        object.__setattr__(self, "assumes", sentences(self.name, self.assumes))
        object.__setattr__(self, "rhs", as_expression(self.rhs))
        object.__setattr__(self, "branches", self._checked_branches())
        self.check()

    @classmethod
    def of(
        cls,
        symbol: sp.Symbol,
        rhs: sp.Expr,
        *assumes: str,
        source: Citation = definition,
        where: tuple[Equation, ...] = (),
        branches: Mapping[str, sp.Expr] | None = None,
    ) -> Equation:
        """Build the equation that defines a symbol, named by its meaning; the assumptions follow.

        `Equation.of(T_drain, M / W, "every byte is read once")` is a page's shortest line.
        """
        return cls(meaning(symbol), symbol, rhs, assumes, source, where, branches)

    @property
    def lhs(self) -> sp.Symbol:
        """The left side."""
        return self.symbol

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """Symbols of the right side, by name."""
        return tuple(sorted(self.rhs.free_symbols, key=lambda x: x.name))

    @property
    def givens(self) -> tuple[sp.Symbol, ...]:
        """Symbols that remain once the `where` equations are put in, by name."""
        definitions = collect(self.where)
        needed = topo_order(definitions, [self.rhs])
        free = self.rhs.free_symbols.union(*(e.free_symbols for e in needed.values()))
        return tuple(sorted(free - set(needed), key=lambda x: x.name))

    def check(self) -> bool:
        """True; raises UnitError or ValueError if the equation is not sound."""
        floats = self.rhs.atoms(sp.Float)
        if floats:
            raise ValueError(f"{self.name}: {min(floats)} is not exact; write a fraction")
        check_units(self.name, self.symbol, self.rhs)
        for equation in self.where:
            equation.check()
        return True

    def latex(self) -> str:
        """`T = ...` in LaTeX."""
        return f"{tex(self.symbol)} = {tex(self.rhs)}"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        symbols = {self.symbol, *self.symbols, *self.givens, *(e.symbol for e in self.where)}
        where = [equation.latex() for equation in self.where]
        return card(self.name, [display(self.latex())], where, self.assumes, symbols, self.source)

    def __str__(self) -> str:
        return f"{self.symbol.name} = {sstr(self.rhs)}"

    def __repr__(self) -> str:
        return f"<Equation {self.name}: {self}>"

    def substitute(self, *equations: Equation) -> Equation:
        """This equation with the symbols of others replaced by their right sides."""
        used = set(topo_order(collect(equations), [self.rhs]))
        rhs = expand_all(self.rhs, equations)
        branches = {n: expand_all(e, equations) for n, e in (self.branches or {}).items()}
        branches = branches or _inherited(rhs, equations)
        rest = tuple(e for e in self.where if e.symbol not in used)
        assumes = dict.fromkeys(a for e in (self, *equations) for a in e.assumes)
        named = branches or None
        return Equation(self.name, self.symbol, rhs, tuple(assumes), self.source, rest, named)

    @property
    def expanded(self) -> Equation:
        """This equation with its `where` equations put in."""
        return self.substitute(*self.where) if self.where else self

    def solve_for(self, x: sp.Symbol | str) -> Equation:
        """The equation turned round to give `x`.

        Raises SymbolError if `x` does not occur; ValueError if there is no solution in closed form,
        or more than one.
        """
        if self.symbol.name == (x if isinstance(x, str) else x.name):
            return self
        x = self._symbol_of(x)
        whole = self if x in self.rhs.free_symbols else self.expanded
        solution = inverse(self.name, whole.symbol, whole.rhs, x, whole.branches)
        name = f"{self.name}, solved for {x.name}"
        try:
            return Equation(name, x, solution, self.assumes, self.source, whole.where)
        except UnitError:
            reason = "no solution in closed form whose unit can be checked"
            raise ValueError(f"{self.name}: {reason}, for {describe(x.name)}") from None

    def elasticity(self, x: sp.Symbol | str) -> sp.Expr | dict[str, sp.Expr]:
        """d ln rhs / d ln x: percent of the left side per percent of `x`.

        With a Max on top there is no single answer: a mapping from the name of each branch to
        its elasticity, which holds where that branch is the bottleneck.
        """
        x = self._symbol_of(x)
        whole = self.expanded
        if not whole.branches:
            return _elasticity(whole.rhs, x)
        return {name: _elasticity(branch, x) for name, branch in whole.branches.items()}

    def numpy(self, *axes: sp.Symbol | str) -> Function:
        """`f(*axes, **others)`: the right side on floats or arrays, broadcast against each other.

        Raises SymbolError if an axis does not occur; when called, if a symbol is missing, unknown
        or negative.
        """
        key = tuple(str(x) for x in axes)
        if key not in self._functions:
            names = tuple(self._symbol_of(x).name for x in axes)
            self._functions[key] = Function(
                self._kernel({self.symbol.name: self.rhs}, names), names
            )
        return self._functions[key]

    def bottleneck(self, **values: float) -> str:
        """Name of the branch of the Max (or Min) at the top that decides, at one point."""
        which, names = self.bottlenecks(**values)
        if which.ndim:
            raise ValueError("one point has one bottleneck; for arrays use bottlenecks()")
        return names[int(which)]

    def bottlenecks(self, **values: object) -> tuple[np.ndarray, tuple[str, ...]]:
        """Index of the branch that decides at every point, and the names that the indices mean.

        Raises ValueError if the equation has no Max at the top.
        """
        whole = self if self.branches else self.expanded
        if not whole.branches:
            raise ValueError(f"{self.name} has no branches")
        candidates = np.stack(list(whole._kernel(dict(whole.branches), [])(**values).values()))
        pick = np.argmin if isinstance(top_extreme(whole.rhs), sp.Min) else np.argmax
        return pick(candidates, axis=0), tuple(whole.branches)

    def _kernel(self, outputs: dict[str, sp.Expr], arguments: Sequence[str]) -> Kernel:
        rest = {x: e for x, e in collect(self.where).items() if x.name not in arguments}
        return kernel([Assignment(x, e) for x, e in rest.items()], outputs)

    def _symbol_of(self, x: sp.Symbol | str) -> sp.Symbol:
        name = x if isinstance(x, str) else x.name
        symbols = {y.name: y for y in (*self.symbols, *self.givens)}
        if name not in symbols:
            hint = did_you_mean(name, symbols) or f"; there are {', '.join(symbols)}"
            raise SymbolError(f"{describe(name)} does not occur in {self.name}{hint}")
        return symbols[name]

    def _checked_branches(self) -> Mapping[str, sp.Expr] | None:
        branches = extreme_branches(self.rhs)
        if self.branches is None:
            return {x.name if x.is_Symbol else sstr(x): e for x, e in branches.items()} or None
        if set(self.branches.values()) != set(branches.values()):
            raise ValueError(f"{self.name}: the named branches are not those of {self.rhs}")
        return dict(self.branches)


@dataclass(frozen=True)
class Function:
    """A compiled right side: some arguments by position, the others by name."""

    kernel: Kernel
    axes: tuple[str, ...]

    def __call__(self, *values: object, **others: object) -> float | np.ndarray:
        """The value, a float when every argument is a number."""
        if len(values) > len(self.axes):
            raise TypeError(f"{len(values)} arguments by position; there are {len(self.axes)} axes")
        named = dict(zip(self.axes, values, strict=False))
        for name in others:
            if name in named:
                raise TypeError(f"{name} is given twice")
        (result,) = self.kernel(**named, **others).values()
        return result

    def at(self, values: Mapping[str, float]) -> float:
        """Evaluate at one point; values that the function does not need are ignored."""
        return float(self(**{name: values[name] for name in self.kernel.names}))


def check_units(where: str, left: sp.Expr, right: sp.Expr) -> None:
    """Raise UnitError, with both sides shown, unless two expressions are of one unit."""
    written = f"{sstr(left)} = {sstr(right)}"
    try:
        above, below = (expression_unit(side, symbol_unit) for side in (left, right))
    except UnitError as error:
        raise UnitError(f"{where}: {error}\n    {written}") from None
    if None not in (above, below) and above != below:
        raise UnitError(
            f"{sstr(left)}: {where}: left side is [{above}], right side is [{below}]\n    {written}"
        )


def equations_in_module(page: Mapping[str, object]) -> tuple[Equation, ...]:
    """Every equation under a name of a page, given as its `globals()`, in its order."""
    return tuple(value for value in page.values() if isinstance(value, Equation))


def slug(name: str) -> str:
    """`bytes read in one step` as `bytes-read-in-one-step`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _inherited(rhs: sp.Expr, equations: tuple[Equation, ...]) -> dict[str, sp.Expr]:
    """Branches of a product with a Max that an equation put in, under the names it gave them."""
    names: dict[sp.Expr, str] = {}
    pending = list(equations)
    for equation in pending:
        pending += equation.where
        inner = (*equations, *equation.where)
        names |= {expand_all(e, inner): n for n, e in (equation.branches or {}).items()}
    branches = extreme_branches(rhs)
    return {names[x]: e for x, e in branches.items()} if branches.keys() <= names.keys() else {}


def _elasticity(expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
    return sp.cancel(sp.diff(expression, x) * x / expression)
