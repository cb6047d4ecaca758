"""Stages of two pools in scale-up domains: counting against laying them out domain by domain."""

import random
from itertools import product

import numpy as np
import pytest

from planner.problems.serving.step.packing import (
    ChipSplit,
    distinct,
    fits,
    max_replicas,
    min_chips,
    replicas_left,
)
from tests.cases.packing import laid_out
from tests.loops import for_all


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
    most = int(max_replicas(np.array([chips]), rooms[1])[0])
    assert most == laid_out(chips, domain, second, 0, second) // others
    for held in (count, count + 1):
        least = int(min_chips(np.array([held]), rooms[0])[0])
        enough = int(max_replicas(np.array([least]), rooms[0])[0])
        assert enough >= held
        assert held == 0 or int(max_replicas(np.array([least - 1]), rooms[0])[0]) < held


@pytest.mark.parametrize("domain", [1, 2, 3, 4, 5])
def test_all_small_systems_are_laid_out(domain):
    """Every stage, number of stages and number of chips up to two domains and a part."""
    sizes = [*range(1, domain + 1), *(2 * domain, 3 * domain)[: 1 + (domain < 4)]]
    systems = [
        (chips, first, count, second)
        for chips in range(0, 3 * domain + 1)
        for first, second in product(sizes, sizes)
        for count in range(chips // first + 2)
    ]
    chips, first, count, second = np.array(systems).T
    ones, domains = np.ones(len(systems), int), np.full(len(systems), domain)
    rooms = ChipSplit(first, ones, domains), ChipSplit(second, ones, domains)
    left = replicas_left(chips, rooms[0], count, rooms[1])
    best = [laid_out(n, domain, a, i, b) for n, a, i, b in systems]
    assert left.tolist() == best
    most = max_replicas(chips, rooms[1])
    assert most.dtype.kind == left.dtype.kind == "i"
    assert most.tolist() == [laid_out(n, domain, b, 0, b) for n, _, _, b in systems]
    least = min_chips(count, rooms[0])
    for (_, a, i, _), enough in zip(systems, least.tolist(), strict=True):
        assert laid_out(enough, domain, a, i, a) >= 0
        assert i == 0 or laid_out(enough - 1, domain, a, i, a) < 0
    for (n, a, i, b), others in list(zip(systems, best, strict=True))[:: domain * domain]:
        assert fits(n, domain, [(i, a)]) == (others >= 0)
        for more in (0, 1):
            assert fits(n, domain, [(i, a), (max(others, 0) + more, b)]) == (others >= 0 == more)


def test_stages_that_share_a_machine_of_seventeen_chips():
    """Small stages of two pools: what fits is bounded by a polygon of three sides and more."""
    systems = [
        (chips, first, count, second)
        for chips in (34, 43)
        for first, second in product((2, 3, 4, 5), (2, 3, 5, 7))
        for count in range(chips // first + 1)
    ]
    chips, first, count, second = np.array(systems).T
    ones, domains = np.ones(len(systems), int), np.full(len(systems), 17)
    rooms = ChipSplit(first, ones, domains), ChipSplit(second, ones, domains)
    left = replicas_left(chips, rooms[0], count, rooms[1]).tolist()
    assert left == [laid_out(n, 17, a, i, b) for n, a, i, b in systems]


def test_a_pool_of_several_stages_takes_them_all():
    """Two machines of 8: five stages of 3 chips are not six, so two replicas of two stages fit."""
    room = ChipSplit(np.array([3]), np.array([2]), np.array([8]))
    assert room.chips.tolist() == [6]
    # Two stages to a machine, and the second of two replicas' four fills the second machine.
    assert max_replicas(np.array([16]), room).tolist() == [2]
    assert min_chips(np.array([2]), room).tolist() == [8 + 6]
    assert min_chips(np.array([0]), room).tolist() == [0]
    # Beside one replica, a full machine but two, stand two stages of 3 or four of 2 and one more.
    pair = ChipSplit(np.array([2]), np.array([2]), np.array([8]))
    assert replicas_left(np.array([16]), room, np.array([1]), pair).tolist() == [2]
    assert replicas_left(np.array([16]), room, np.array([3]), pair).tolist() == [-1]


@for_all("seed", range(40))
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


@pytest.mark.parametrize("largest", [4, 2**31, 2**45])
def test_distinct_rows_are_those_of_the_table(largest):
    """However large its numbers are: a key of five of them would overflow."""
    values = np.array([0, 1, largest - 1])  # digits of a power of two: too many drop the first
    numbers = values[np.random.default_rng(0).integers(0, 3, (200, 5))]
    at, back = distinct(*numbers.T)
    assert len(at) == len(np.unique(numbers, axis=0))
    assert (numbers[at][back] == numbers).all()
