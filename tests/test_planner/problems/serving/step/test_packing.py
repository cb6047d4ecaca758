"""Stages of two pools in scale-up domains: counting against laying them out domain by domain."""

import random

import numpy as np
import pytest

from planner.problems.serving.step.packing import (
    ChipSplit,
    chips_least,
    distinct,
    fits,
    replicas_left,
    replicas_most,
)
from tests.cases.packing import laid_out


def small_system(rng):
    """Chips, domain, and stage, stages, replicas of two pools; odd sizes among them."""
    domain = rng.choice([1, 2, 4, 6, 8, 8, 9, 12])
    stages = [
        rng.randint(1, domain) if rng.random() < 0.8 else domain * rng.randint(2, 3)
        for _ in range(2)
    ]
    parts = (rng.randint(1, 4), rng.randint(1, 4))
    return rng.randint(1, 5 * domain), domain, stages, parts, rng.randint(0, 8)


def agree(seed):
    """One small system: what counting leaves is what laying out leaves."""
    chips, domain, (first, second), (stages, others), count = small_system(random.Random(seed))
    rooms = [
        ChipSplit(np.array([stage]), np.array([parts]), np.array([domain]))
        for stage, parts in ((first, stages), (second, others))
    ]
    left = int(replicas_left(np.array([chips]), rooms[0], np.array([count]), rooms[1])[0])
    best = laid_out(chips, domain, first, count * stages, second)
    assert left == (best // others if best >= 0 else -1)
    most = int(replicas_most(np.array([chips]), rooms[1])[0])
    assert most == laid_out(chips, domain, second, 0, second) // others
    for held in (count, count + 1):
        least = int(chips_least(np.array([held]), rooms[0])[0])
        enough = int(replicas_most(np.array([least]), rooms[0])[0])
        assert enough >= held
        assert held == 0 or int(replicas_most(np.array([least - 1]), rooms[0])[0]) < held


@pytest.mark.parametrize("seed", range(40))
def test_counting_is_laying_out(seed):
    """Uneven machines, two pools, odd replicas."""
    agree(seed)


@pytest.mark.slow
def test_counting_is_laying_out_at_length():
    """Ten thousand systems more."""
    for seed in range(40, 10_040):
        agree(seed)


def test_many_systems_at_a_time_are_one_after_the_other():
    """Columns of any order and repeats give what each row alone gives."""
    rng = random.Random(3)
    systems = [small_system(rng) for _ in range(300)]
    chips, domain, sizes, parts, count = zip(*(systems * 2), strict=True)
    rooms = [
        ChipSplit(*(np.array(c) for c in ([s[k] for s in sizes], [p[k] for p in parts], domain)))
        for k in (0, 1)
    ]
    left = replicas_left(np.array(chips), rooms[0], np.array(count), rooms[1])
    for row, value in enumerate(left):
        alone = (room.take(np.array([row])) for room in rooms)
        first, second = alone
        one = np.array([chips[row]]), first, np.array([count[row]]), second
        assert replicas_left(*one)[0] == value


def test_eleven_chips_hold_what_they_hold():
    """8 + 3: three pairs on the full machine, five single chips on what is left of both."""
    assert fits(11, 8, [(5, 1), (3, 2)])
    assert not fits(10, 8, [(5, 1), (3, 2)])
    # Two of 3 beside two of 5: one of each on each machine, though two of 3 fit one.
    assert fits(16, 8, [(2, 3), (2, 5)])
    assert fits(8, 8, [(1, 8)])
    assert not fits(11, 8, [(2, 5)])


@pytest.mark.parametrize("largest", [3, 2**31, 2**45])
def test_distinct_rows_are_those_of_the_table(largest):
    """However large its numbers are: a key of five of them would overflow."""
    numbers = np.random.default_rng(0).integers(0, 3, (200, 5)) * (largest // 2)
    at, back = distinct(*numbers.T)
    assert len(at) == len(np.unique(numbers, axis=0))
    assert (numbers[at][back] == numbers).all()
