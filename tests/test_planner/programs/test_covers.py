"""The cheapest whole covers, against every cover tried."""

from itertools import product

import numpy as np
import pytest

from planner.programs.integer import minimum_covers


def cheapest(target: float, firm: float, rates: np.ndarray, costs: np.ndarray) -> float:
    """The least cost of counts below 7 of two firm and two other items that cover both targets."""
    best = np.inf
    for counts in product(range(7), repeat=4):
        if np.dot(counts, rates) >= target and np.dot(counts[:2], rates[:2]) >= firm:
            best = min(best, float(np.dot(counts, costs)))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_a_bound_and_a_cover_enclose_the_cheapest(seed):
    """Rounded up none is below, rounded down none above; counts cover and cost what is said."""
    draw = np.random.default_rng(seed)
    rates, costs = draw.uniform(1, 3, 4), draw.uniform(1, 3, 4)
    target, firm = np.array([4.0, 5.5]), np.array([1.0, 4.0])
    both = (np.tile(rates[:2], (2, 1)), np.tile(rates[2:], (2, 1)))
    paid = (np.tile(costs[:2], (2, 1)), np.tile(costs[2:], (2, 1)))
    below = minimum_covers(target, firm, both, paid, 500, True)
    above = minimum_covers(target, firm, both, paid, 500, False)
    for i in range(2):
        exact = cheapest(target[i], firm[i], rates, costs)
        assert below.costs[i] <= exact * (1 + 1e-12) <= above.costs[i] * (1 + 2e-12)
        assert above.costs[i] == pytest.approx(above.counts[i] @ costs)
        assert above.counts[i] @ rates >= target[i]
        assert above.counts[i, :2] @ rates[:2] >= firm[i]
        assert below.costs[i] >= 0.9 * exact


def test_what_is_not_offered_covers_nothing():
    """Infinite costs of all of a class that must cover something."""
    one, never = np.ones((1, 1)), np.full((1, 1), np.inf)
    covers = minimum_covers(np.ones(1), np.full(1, 0.5), (one, one), (never, one), 10, True)
    assert np.isinf(covers.costs[0])
    assert not covers.counts.any()
