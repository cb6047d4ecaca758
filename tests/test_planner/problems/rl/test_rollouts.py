"""The tail of the longest answer, against draws and a simulation of every token."""

import math

import numpy as np
import pytest

from planner.problems.rl.question import RlWork
from planner.problems.rl.rollouts import AnswerLengths
from tests.sizes import sized

COUNT = 16
WORK = {"rollouts": COUNT, "prompt": 100, "answer": 900, "most": 3000}


@pytest.fixture(scope="module")
def lengths():
    """Answers of 900 tokens on average, cut off at 3,000."""
    return AnswerLengths.of(RlWork.model_validate(WORK))


@pytest.fixture(scope="module")
def drawn(lengths):
    """Lengths of many steps of 16 answers."""
    draws = np.random.default_rng(7).exponential(lengths.scale, (sized(4000, 100_000), COUNT))
    return np.minimum(draws, lengths.most)


def test_the_mean_is_that_asked_for(lengths, drawn):
    """The scale of the lengths is found so that answers cut off have the mean given."""
    assert lengths.mean == pytest.approx(900, rel=1e-12)
    assert drawn.mean() == pytest.approx(900, rel=0.01)


@pytest.mark.sized
def test_the_longest_is_the_mean_of_the_largest_drawn(lengths, drawn):
    """The sum of U^j/j is the mean of the largest of so many draws."""
    for count in (1, 3, COUNT):
        largest = drawn[:, :count].max(axis=1)
        error = largest.std() / math.sqrt(len(largest))
        assert abs(lengths.longest(count) - largest.mean()) < 4 * error


@pytest.mark.sized
def test_decoding_steps_with_j_left_are_those_of_draws(lengths, drawn):
    """Time with so many alive, by order statistics: gaps between sorted draws."""
    ends = np.sort(drawn, axis=1)
    gaps = np.diff(ends, axis=1, prepend=0.0)[:, ::-1]  # column j - 1: with j left
    alive = lengths.alive(COUNT)
    error = gaps.std(axis=0) / math.sqrt(len(gaps))
    assert np.all(np.abs(alive - gaps.mean(axis=0)) < 5 * error + 1e-6)


def test_parts_add_up(lengths):
    """All times with j left are the longest answer; weighed by j, all tokens."""
    alive = lengths.alive(COUNT)
    assert alive.sum() == pytest.approx(lengths.longest(COUNT), rel=1e-9)
    assert alive @ np.arange(1, COUNT + 1) == pytest.approx(COUNT * lengths.mean, rel=1e-9)


def test_without_a_limit_it_is_the_harmonic_number():
    """Answers that are never cut off: the longest of n is H_n times the mean."""
    free = AnswerLengths.of(RlWork.model_validate({**WORK, "most": 1e6}))
    harmonic = sum(1 / j for j in range(1, COUNT + 1))
    assert free.longest(COUNT) == pytest.approx(900 * harmonic, rel=1e-6)


def test_answers_that_are_all_cut_off_end_together():
    """A mean at the limit leaves no spread."""
    full = AnswerLengths.of(RlWork.model_validate({**WORK, "answer": 3000}))
    assert full.longest(COUNT) == pytest.approx(3000, rel=1e-6)
    assert full.alive(COUNT)[-1] == pytest.approx(3000, rel=1e-4)


@pytest.mark.parametrize("most", [1000, 3000, 60_000])
@pytest.mark.parametrize("count", [1 << 20, (1 << 20) + 1, 3_000_000])
def test_the_longest_of_millions_is_the_whole_sum(count, most):
    """Beyond a million terms an integral stands for them: the same as every term added."""
    lengths = AnswerLengths.of(RlWork.model_validate({**WORK, "most": most}))
    terms = np.arange(count, 0, -1.0)
    order = float(np.sum(np.exp(terms * math.log(lengths.ended)) / terms))
    assert lengths.longest(count) == pytest.approx(lengths.scale * order, rel=1e-11)


def test_the_longest_of_a_billion_is_at_most_the_cut(lengths):
    """It needs no array of a billion numbers; where hardly any is cut it grows as a logarithm."""
    assert lengths.longest(10**9) == pytest.approx(lengths.most, rel=1e-9)
    free = AnswerLengths.of(RlWork.model_validate({**WORK, "most": 10**9}))
    more = free.longest(10**9) - free.longest(10**6)
    assert more == pytest.approx(free.scale * math.log(1000), rel=1e-6)
