"""Sizes fitted on open models: what ships is what the fit gives, with its leave-one-out errors."""

import math
from itertools import combinations

import numpy as np
import pytest

from planner.problems.prices.price_regression import LAWS, laws
from tests.cases.price_law_fit import fit_price_law, observations


@pytest.fixture(scope="module")
def rows():
    """One observation for each architecture."""
    return observations()


@pytest.mark.parametrize("of", LAWS)
def test_the_shipped_laws_are_the_fit(of, rows):
    """Coefficients and errors of the file, computed anew."""
    shipped, anew = laws()[of], fit_price_law(of, rows)
    assert shipped.reference == pytest.approx(anew.reference, rel=1e-4)
    assert shipped.powers == pytest.approx(anew.powers, rel=1e-4)
    assert (shipped.factor, shipped.guess) == pytest.approx((anew.factor, anew.guess), rel=1e-3)
    for name, ends in anew.range.items():
        assert shipped.range[name] == pytest.approx(ends, rel=1e-4)


def test_sizes_beat_the_mean_and_caches_do_not(rows):
    """Left out: sizes and the output price far better than guessing; caches worse, so refused."""
    assert len(rows) == 15
    errors = {of: fit_price_law(of, rows) for of in LAWS}
    assert errors["n_total"].factor < 2.3 < errors["n_total"].guess
    assert errors["n_active"].factor <= 2.5 < errors["n_active"].guess
    assert errors["p_out"].factor < 1.7 < errors["p_out"].guess
    assert errors["kv_bytes_per_token"].factor > errors["kv_bytes_per_token"].guess


def test_a_size_in_proportion_to_the_input_price_is_nearer_than_a_fitted_power(rows):
    """Left out, one constant beats a constant and a power: 2.4 against 2.6, of 15; 2.5 is asked."""
    points = [(math.log(row.p_in / 1e-6), math.log(row.n_active)) for row in rows]

    def left_out(predict):
        errors = []
        for i, (x, y) in enumerate(points):
            errors.append(abs(y - predict([*points[:i], *points[i + 1 :]], x)))
        return math.exp(np.quantile(errors, 0.8))

    def constant(others, x):
        return x + float(np.median([b - a for a, b in others]))

    def line(others, x):
        lines = [
            (b1 - k * a1, k)
            for i, (a1, b1) in enumerate(others) for a2, b2 in others[:i] if abs(a1 - a2) > 1e-9
            for k in [(b1 - b2) / (a1 - a2)]
        ]  # fmt: skip
        c, k = min(lines, key=lambda each: sum(abs(b - each[0] - each[1] * a) for a, b in others))
        return c + k * x

    assert left_out(constant) == pytest.approx(fit_price_law("n_active", rows).factor)
    assert left_out(constant) <= 2.5 < left_out(line)


def test_no_other_plane_has_less_absolute_error(rows):
    """The fit of two prices: no plane through three observations is better, by exhaustion."""
    law = fit_price_law("n_total", rows)
    design = np.array(
        [[1.0, math.log(row.p_in / 1e-6), math.log(row.p_out / 1e-6)] for row in rows]
    )
    target = np.array([math.log(row.n_total) for row in rows])

    def error(plane):
        return np.abs(target - design @ plane).sum()

    best = error(np.array([math.log(law.reference), *law.powers]))
    for three in combinations(range(len(rows)), 3):
        chosen = list(three)
        if abs(np.linalg.det(design[chosen])) > 1e-9:
            assert best <= error(np.linalg.solve(design[chosen], target[chosen])) + 1e-9
