"""Exercises: every answer worked, most of them once more by hand."""

import math

import pytest

from formulas.book.book_values import BookError, FalseStep, answer_value, answer_words, refusal
from formulas.book.prose import chapters
from tests.loops import for_all

EXERCISES = {
    f"{n}.{m}": (chapter, exercise)
    for n, chapter in enumerate(chapters(), 1)
    for m, exercise in enumerate(chapter.exercises, 1)
}
# Worked by hand from the teaching set, in the unit of the answer.
BY_HAND = {
    "1.1": 1500,
    "1.2": 250,
    "1.3": 100 * 3.75 / 8.4375,
    "1.4": 2,
    "2.1": 7.500625e-3 / 2.5e-6,
    "2.2": 100 * 7 / 23,
    "2.3": 5,
    "2.4": 31.25,
    "2.5": 3,
    "3.1": 84 * (1 - (80 / 84) ** 20),
    "3.2": 6,
    "3.3": 2,
    "3.4": 1500 * 4096 * 4 * 7 / 8 * 2 * 40 / (8 * 450e9) * 1e3,
    "3.5": 0.9,
    "4.1": 22.5,
    "4.2": 700 / 39,
    "4.3": 63,
    "4.4": 3,
    "5.1": 1 + 2.5 / (3 * 4 * 0.25) + 0.5 * 3 / (3 * 4 * 2 * 0.2),
    "5.2": 3e12 / 1e6 / 86400,
    "5.3": math.log(2) / math.log(10),
    "5.4": 25,
    "6.1": 10_000,
    "6.2": 5000,
    "6.3": 800,
    "6.4": 1920,
    "6.5": 44_000,
    "7.1": 20,
    "7.2": 100 * (1 - 1 / 6) / 3,
    "7.3": 25,
    "7.4": 1920,
    "7.5": 48,
}


@for_all("number", BY_HAND)
def test_an_answer_is_what_it_is_by_hand(number):
    """To every digit that floats have."""
    chapter, exercise = EXERCISES[number]
    value = answer_value(exercise, chapter.sets["teaching"])
    assert value == pytest.approx(BY_HAND[number], rel=1e-9)


@for_all("number", EXERCISES)
def test_every_exercise_has_an_answer_in_words(number):
    """A finite number, or what the checker says to a false step."""
    chapter, exercise = EXERCISES[number]
    words = answer_words(exercise, chapter.sets["teaching"])
    if exercise.refused is None:
        assert number in BY_HAND
        assert not {"nan", "inf"} & set(words.split())
    else:
        assert exercise.refused.of in chapter.taken
        assert "is not equal to" in words or "does not satisfy" in words


def test_a_false_step_that_follows_is_a_fault():
    """The exercise would be wrong, and says so."""
    sound = {"claim": "R_hw*sigma"}
    with pytest.raises(BookError, match="step 2 of rule_of_thumb follows"):
        refusal(FalseStep("rule_of_thumb", 2, sound))
    with pytest.raises(BookError, match="step_time is no derivation"):
        refusal(FalseStep("step_time", 1, {}))
