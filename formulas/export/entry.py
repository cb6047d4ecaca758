"""What every format says about an equation or derivation, before it is put into its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation, slug
from formulas.algebra.steps import DerivationStep
from formulas.nomenclature.sources import Citation
from formulas.nomenclature.symbols import SymbolError, unit_of_symbol
from formulas.numerics.evaluate import collect, ordered, scalar
from formulas.registry import by_name, subject

NOT_SMALL = 0.5

Case = Mapping[str, float]
Cases = Mapping[str, Case]


@dataclass(frozen=True)
class NeglectedSize:
    """How large a neglected term is in one case over what is kept, or why that cannot be said."""

    case: str
    neglected: str
    size: float | None
    missing: str = ""

    @property
    def remark(self) -> str:
        """What a size of a half or more means."""
        large = self.size is not None and self.size >= NOT_SMALL
        return ", which is not small: the approximation fails here" if large else ""


@dataclass(frozen=True)
class FormulaEntry:
    """One object: its steps with their proofs, or its single line.

    `home` is the module of the catalogue that holds it and `python` its name there; both are empty
    for an object from elsewhere. `values` are those of the left side, for the cases that give
    every symbol it takes.
    """

    name: str
    steps: tuple[tuple[DerivationStep, str], ...]
    assumes: tuple[str, ...]
    where: tuple[Equation, ...]
    source: Citation
    tags: tuple[str, ...]
    derived: bool
    exact: bool
    home: str
    python: str
    unit: str
    values: tuple[tuple[str, float], ...]
    sizes: tuple[NeglectedSize, ...]
    solved: tuple[str, ...] = ()  # symbols that the derivation solves for

    @property
    def title(self) -> str:
        """The name with a capital."""
        return self.name[:1].upper() + self.name[1:]

    @property
    def anchor(self) -> str:
        """What a link to it ends with."""
        return self.python or slug(self.name)

    @property
    def kind(self) -> str:
        """`equation`, or whether the derivation is exact."""
        if not self.derived:
            return "equation"
        return "derivation, exact" if self.exact else "derivation, approximate"


def entries(objects: Iterable[Equation | Derivation], cases: Cases) -> tuple[FormulaEntry, ...]:
    """The objects, checked.

    Raises
    ------
    DerivationError
        If a step does not follow.
    """
    homes = {id(value): (subject(name), name) for name, value in by_name().items()}
    return tuple(_entry(item, cases, *homes.get(id(item), ("", ""))) for item in objects)


def _entry(item: Equation | Derivation, cases: Cases, home: str, python: str) -> FormulaEntry:
    item.check()
    numeric = False
    sizes: tuple[NeglectedSize, ...] = ()
    if isinstance(item, Derivation):
        steps = tuple(zip(item.steps, item.proofs, strict=True))
        exact, numeric = item.exact, item.numeric
        sizes = tuple(size for case in cases for size in _sizes(item, case, cases[case]))
    else:
        steps = ((DerivationStep("state", item.symbol, item.rhs, ""), ""),)
        exact = True
    named = item.lhs.is_Symbol
    numbers = [(case, _value(item, values)) for case, values in cases.items()] if named else []
    return FormulaEntry(
        item.name, steps, item.assumes, item.where, item.source, item.tags,
        isinstance(item, Derivation), exact, home, python,
        str(unit_of_symbol(item.lhs)) if named and not numeric else "",
        tuple((case, value) for case, value in numbers if value is not None), sizes,
        tuple(sorted(x.name for x in _solved_symbols(item))),
    )  # fmt: skip


def _sizes(item: Derivation, name: str, case: Case) -> tuple[NeglectedSize, ...]:
    """What each approximate step neglects, in a case; what the case lacks is named."""
    if item.exact:
        return ()
    # A limit is taken at the value that the case gives; a solved symbol is what came out.
    solved = {x.name for x in _solved_symbols(item)}
    try:
        strain = item.strain({x: v for x, v in case.items() if x not in solved})
    except SymbolError as error:
        return (NeglectedSize(name, "", None, str(error)),)
    return tuple(NeglectedSize(name, term, size) for term, size in strain.items())


def _solved_symbols(item: Equation | Derivation) -> set[sp.Symbol]:
    """Symbols whose value is what a derivation finds."""
    if isinstance(item, Equation) or item.numeric or not item.lhs.is_Symbol:
        return set()
    solved = {step.solved for step in item.steps if step.solved} | {item.lhs}
    return {x for x in solved if not item.rhs.has(x)}


def _value(item: Equation | Derivation, case: Case) -> float | None:
    """The left side in a case that gives every symbol it takes, else nothing."""
    definitions = {x: e for x, e in collect(item.where).items() if x.name not in case}
    needed = ordered(definitions, [item.rhs])
    free = item.rhs.free_symbols.union(*(e.free_symbols for e in needed.values())) - set(needed)
    if any(x.name not in case for x in free):
        return None
    return scalar(item.where, {"value": item.rhs}, case)["value"]
