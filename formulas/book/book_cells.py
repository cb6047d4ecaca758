"""Cells of the tables of a chapter: symbols, numbers, conditions, sizes; the line of a claim."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.book.blocks import Formula, Prose, ProseWords
from formulas.book.book_chapter import BookChapter
from formulas.book.book_values import CASES, MissingValueError, condition, equation_of, worth
from formulas.book.prose import formula, number
from formulas.claims.claim import Claim, shown
from formulas.nomenclature.symbols import SYMBOLS, meaning, unit_of_symbol
from formulas.numerics.closeness import NOT_SMALL
from formulas.registry import by_name


def condition_cell(relation: str, case: str, chapter: BookChapter) -> Prose:
    """Whether a relation holds in a set of values, with both its sides."""
    try:
        met = condition(relation, case, chapter.sets[case])
    except MissingValueError:
        return (ProseWords("not stated"),)
    word = ProseWords("holds: " if met.holds else "outside: ")
    return (word, *number(met.left), ProseWords(" against "), *number(met.right))


def worked(expression: str, case: Mapping[str, Fraction], scale: float) -> float | None:
    """The value, or None where the set leaves a symbol open, as the lecture often does."""
    try:
        return worth(expression, case) / scale
    except MissingValueError:
        return None


def symbol_row(x: sp.Symbol, chapter: BookChapter, *, computed: bool) -> tuple[Prose, ...]:
    """A symbol, its meaning and unit, and its values unless the chapter computes it."""
    unit = str(unit_of_symbol(x))
    values = [None if computed else chapter.sets[case].get(x.name) for case in CASES]
    cells = (() if value is None else number(float(value)) for value in values)
    return (
        (formula(x.name),),
        (ProseWords(meaning(x)),),
        (ProseWords("" if unit == "1" else unit),),
        *cells,
    )


def condition_words(relation: str) -> ProseWords | Formula:
    """The relation as a formula, with what the catalogue gives under its symbol."""
    names = {x.name for x in formula(relation).symbols if SYMBOLS.get(x.name) != x}
    symbols = {name: equation_of(name).symbol.name for name in names}
    if len(set(symbols.values())) < len(symbols):  # two of them would read alike
        for name in names:
            relation = relation.replace(name, by_name()[name].name)
        return ProseWords(relation)
    for name, symbol in symbols.items():
        relation = relation.replace(name, symbol)
    return formula(relation)


def unsolved(item: Derivation, case: object) -> dict[str, float]:
    """The set of values without what the derivation finds."""
    solved = {step.solved for step in item.steps if step.solved} | {item.lhs}
    names = {x.name for x in solved if not item.rhs.has(x)}
    return {x: float(v) for x, v in dict(case).items() if x not in names}  # type: ignore[call-overload]


def size_words(size: float) -> str:
    remark = ": not small" if size >= NOT_SMALL else ""
    return f"{shown(size)} of what is kept{remark}"


def claim_line(claim: Claim, verdict: str) -> Prose:
    """What the lecture claims, the verdict on it, and our numbers."""
    ours = f" Ours: {claim.ours}." if claim.worked else ""
    remark = f"Verdict: {verdict}.{ours}" if verdict else ours.strip()
    words = ProseWords(f"{claim.statement} "), ProseWords(remark)
    return (ProseWords(f"{claim.id}. ", strong=True), *words)
