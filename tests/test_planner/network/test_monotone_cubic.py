"""The monotone cubic is SciPy's PCHIP."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from planner.network.measured_curves import monotone_cubic
from tests.loops import for_all


@for_all("count", [2, 3, 4, 17])
@for_all("rising", [False, True])
def test_the_cubic_is_scipys(count: int, rising: bool) -> None:
    """Values at the points, between them and at both ends agree, also where the points turn."""
    random = np.random.default_rng(count)
    x = np.cumsum(random.uniform(0.1, 2.0, count))
    y = random.normal(size=count).round(1)
    y = np.cumsum(np.abs(y)) if rising else y
    at = np.concatenate([x, np.linspace(x[0], x[-1], 101)])
    expected = PchipInterpolator(x, y)(at)
    assert monotone_cubic(x, y)(at) == pytest.approx(expected, rel=1e-13, abs=1e-14)
