"""Fits of a collective's three coefficients."""

import numpy as np
import pytest
from scipy.optimize import nnls

from planner.network.collective_times import non_negative


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_non_negative_least_squares_are_those_of_scipy(columns):
    generator = np.random.default_rng(columns)
    for _ in range(200):
        matrix = generator.normal(size=(25, columns)) * 10 ** generator.uniform(-2, 2, columns)
        target = generator.normal(size=25)
        np.testing.assert_allclose(
            non_negative(matrix, target), nnls(matrix, target)[0], rtol=1e-9, atol=1e-12
        )


def test_no_column_helps_a_target_that_points_away():
    assert not non_negative(np.ones((4, 2)), -np.ones(4)).any()
