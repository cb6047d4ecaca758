"""A difference split over changes: against the mean over every order, written out."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from planner.comparison.attribution import in_order, shapley


def over_orders(count: int, values: dict[int, list[float] | None]) -> tuple[list[float], int]:
    """The mean of what each change adds over all orders of which every step has a value."""
    sums, orders = [0.0] * count, 0
    for order in permutations(range(count)):
        have, steps = 0, []
        for change in order:
            first, second = values[have], values[have | 1 << change]
            if first is None or second is None:
                break
            steps.append((change, second[0] - first[0]))
            have |= 1 << change
        else:
            orders += 1
            for change, step in steps:
                sums[change] += step
    return [each / orders for each in sums] if orders else [], orders


@pytest.mark.parametrize("seed", range(30))
def test_the_mean_is_that_over_every_order(seed):
    """Random games of up to five changes, some sets of which have no value."""
    rng = random.Random(seed)
    count = rng.randint(1, 5)
    holes = rng.choice([0.0, 0.2, 0.4])
    values: dict[int, list[float] | None] = {
        one: None if rng.random() < holes else [rng.uniform(-5, 5), rng.uniform(0, 1e6)]
        for one in range(1 << count)
    }
    values[0], values[(1 << count) - 1] = [1.0, 2.0], [rng.uniform(0, 9), 7.0]
    expected, orders = over_orders(count, values)
    split = shapley(count, values)
    if not orders:
        assert split is None
        return
    assert split is not None
    assert split.orders == orders
    assert [part[0] for part in split.parts] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for number in range(2):
        whole = values[(1 << count) - 1][number] - values[0][number]  # type: ignore[index]
        assert sum(part[number] for part in split.parts) == pytest.approx(whole, rel=1e-9, abs=1e-9)


def test_changes_that_multiply_share_alike():
    """A price times a rate: both doubled, three more, one and a half each."""
    split = shapley(2, {0: [1.0], 1: [2.0], 2: [2.0], 3: [4.0]})
    assert split is not None
    assert split.parts == ((1.5,), (1.5,))


def test_in_order_takes_together_what_has_no_value_alone():
    """The second change leaves no plan until the third is made."""
    values = {0: [1.0], 1: [3.0], 3: None, 7: [4.0]}
    split = in_order(3, values.__getitem__)
    assert split.groups == ((0,), (1, 2))
    assert split.parts == ((2.0,), (1.0,))
