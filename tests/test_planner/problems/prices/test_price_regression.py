"""Sizes fitted on open models: what ships is what the fit gives, with its leave-one-out errors."""

import math

import pytest

from planner.problems.prices.price_regression import LAWS, fitted, laws, observations


@pytest.fixture(scope="module")
def rows():
    """One observation for each architecture."""
    return observations()


@pytest.mark.parametrize("of", LAWS)
def test_the_shipped_laws_are_the_fit(of, rows):
    """Coefficients and errors of the file, computed anew."""
    shipped, anew = laws()[of], fitted(of, rows)
    assert shipped.reference == pytest.approx(anew.reference, rel=1e-4)
    assert shipped.powers == pytest.approx(anew.powers, rel=1e-4)
    assert (shipped.factor, shipped.guess) == pytest.approx((anew.factor, anew.guess), rel=1e-3)
    for name, ends in anew.range.items():
        assert shipped.range[name] == pytest.approx(ends, rel=1e-4)


def test_sizes_beat_the_mean_and_caches_do_not(rows):
    """Left out: sizes and the output price far better than guessing; caches worse, so refused."""
    assert len(rows) == 15
    errors = {of: fitted(of, rows) for of in LAWS}
    assert errors["n_total"].factor < 2.3 < errors["n_total"].guess
    assert errors["n_active"].factor < 2.7 < errors["n_active"].guess
    assert errors["p_out"].factor < 1.7 < errors["p_out"].guess
    assert errors["kv_bytes_per_token"].factor > errors["kv_bytes_per_token"].guess


def test_no_other_line_has_less_absolute_error(rows):
    """The fit of one price: no line through two observations is better, by exhaustion."""
    law = fitted("n_active", rows)
    points = [(math.log(row.p_in / 1e-6), math.log(row.n_active)) for row in rows]

    def error(constant, slope):
        return sum(abs(y - constant - slope * x) for x, y in points)

    best = error(math.log(law.reference), law.powers[0])
    for i, (x1, y1) in enumerate(points):
        for x2, y2 in points[:i]:
            if abs(x1 - x2) > 1e-9:
                slope = (y1 - y2) / (x1 - x2)
                assert best <= error(y1 - slope * x1, slope) + 1e-9
