"""Where tangents settle: on a smooth price, at a kink, at the end of what is served."""

import math

import pytest

from planner.problems.lifecycle.search.tangent_search import (
    Tangent,
    bracketing_tangents,
    tangent_at_kink,
)
from planner.text.errors import SolverError
from tests.loops import for_all

FLAT, STEEP = 0.6, 4.0


def looking(price, slope, end=math.inf):
    """Tangents of a price with this slope; training's own optimum with a slope has a closed form.

    The optimum of a tangent is where the slopes of training and serving cancel.
    """

    def moved(touch, steep):
        return math.log(max(math.exp(2.0) - steep, 0.1)) - touch.at

    def look(x):
        if x > end:
            return None
        touch = Tangent(x, price(x), slope(x), 0.0)
        return Tangent(x, touch.price, touch.slope, moved(touch, touch.slope))

    return look, moved


def smooth(bend):
    """A price whose slope grows with the size."""
    return (lambda x: math.exp(FLAT * x + bend * x * x / 2)), (lambda x: FLAT + bend * x)


def kinked(place):
    """A price that is steep beyond a place."""
    return (
        lambda x: math.exp(FLAT * x + max(x - place, 0.0) * (STEEP - FLAT)),
        lambda x: STEEP if x > place else FLAT,
    )


@for_all("start", [0.5, 1.5, 1.9, 2.5])
@for_all("bend", [0.0, 0.1, 1.0, 3.0])
def test_tangents_settle_on_a_smooth_price_however_it_bends(bend, start):
    """The slopes cancel there: exp(2) - exp(x) = 0.6 + bend * x."""
    low, high = bracketing_tangents(looking(*smooth(bend))[0], start)
    assert math.exp(2) - math.exp(low.at) == pytest.approx(FLAT + bend * low.at, abs=1e-7)
    assert high is not None
    assert high.at == pytest.approx(low.at, abs=1e-8)


@pytest.mark.parametrize("start", [0.7, 1.4, 1.7, 1.95])
def test_the_optimum_at_a_kink_is_the_kink(start):
    """Between both slopes lies the one whose optimum it is, and its share is told by the slope."""
    look, moved = looking(*kinked(1.5))
    low, high = bracketing_tangents(look, start)
    at = tangent_at_kink(low, high, moved)
    assert (low.at, high.at) == pytest.approx((1.5, 1.5), abs=1e-8)
    assert (low.slope, high.slope) == (FLAT, STEEP)
    assert at.slope == pytest.approx(math.exp(2) - math.exp(1.5), abs=1e-6)
    assert at.offset == pytest.approx(0.0, abs=1e-9)


def test_few_tangents_are_asked_for_at_a_kink():
    """They are dear: where both sides cross is found in steps that square."""
    asked = []
    look, _ = looking(*kinked(1.4321))

    def counted(x):
        asked.append(x)
        return look(x)

    bracketing_tangents(counted, 1.1)
    assert len(asked) <= 25


def test_the_largest_size_that_is_served_may_be_the_best():
    """Then there is no other side."""
    low, high = bracketing_tangents(looking(*smooth(0.0), end=1.3)[0], 1.0)
    assert high is None
    assert low.at == pytest.approx(1.3, abs=1e-8)


def test_a_plan_that_no_longer_fits_is_left_for_a_smaller_one():
    """As when memory is taken away: the search begins at the nearest size that is served."""
    low, _ = bracketing_tangents(looking(*smooth(3.0), end=1.2)[0], 1.25)
    assert math.exp(2) - math.exp(low.at) == pytest.approx(FLAT + 3 * low.at, abs=1e-7)


def test_sizes_within_limits_alone_are_looked_at():
    """Where every smaller one is better the smallest is the best, and none below is looked at."""
    asked = []

    def look(x):
        asked.append(x)
        return Tangent(x, 1.0, 1.0, -3.0 * (x - 0.7))

    low, high = bracketing_tangents(look, 1.5, (0.7, 4.0))
    assert low is high
    assert low.at == 0.7
    assert min(asked) == 0.7


def test_nothing_served_is_told():
    """A search without a start ends in a sentence."""
    with pytest.raises(SolverError, match="serves no size near"):
        bracketing_tangents(lambda x: None, 1.0)
