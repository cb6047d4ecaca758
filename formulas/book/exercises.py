"""Answers of exercises: expressions worked by the equations they name, or refused steps."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from formulas.algebra.derivation import Derivation
from formulas.algebra.steps import DerivationError
from formulas.book.book_values import BookError, exact, parsed, worth
from formulas.book.chapter_rows import Exercise, FalseStep
from formulas.claims.claim import UNITS, shown
from formulas.nomenclature.dimensions import UnitError
from formulas.registry import by_name


def answer_value(exercise: Exercise, case: Mapping[str, Fraction | float]) -> float:
    """The answer in its unit, at the teaching set with the exercise's own values on top.

    Raises BookError if a symbol has no value.
    """
    value = worth(exercise.answer, {**case, **exact(exercise.values)})
    return value / float(UNITS.get(exercise.unit, 1))


def answer_words(exercise: Exercise, case: Mapping[str, Fraction | float]) -> str:
    """The answer in one line: a number with its unit, or what the checker says to a false step."""
    if exercise.refused is not None:
        return refusal(exercise.refused)
    return shown(answer_value(exercise, case), exercise.unit)


def refusal(false: FalseStep) -> str:
    """What refuses the false step, in the checker's words.

    Raises BookError if there is no such derivation, or the step follows after all.
    """
    entry = by_name().get(false.of)
    if not isinstance(entry, Derivation):
        raise BookError(f"{false.of} is no derivation of the catalogue")
    changes = {name: parsed(words) for name, words in false.put.items()}
    try:
        entry.replayed({false.step: changes}).check()
    except (DerivationError, UnitError) as error:
        return " ".join(str(error).split())
    raise BookError(f"step {false.step} of {false.of} follows, where it should be refused")
