"""Routed experts: coverage against simulation, its bounds, and what one position reads."""

import numpy as np
import pytest
import sympy as sp

from formulas.nomenclature.lecture import B, coverage
from formulas.numerics.evaluate import expand_all, kernel
from formulas.roofline.experts import (
    active_parameters,
    expert_coverage,
    least_coverage,
    sparse_latency_floor,
    touched_parameters,
)
from formulas.serving.speculation import popular_share


def of(item, case, **more):
    """The value of an equation at a case that may hold more than it needs."""
    run = item.numpy()
    return run(**{name: (case | more)[name] for name in run.kernel.names})


def test_coverage_against_drawing_experts():
    """Result 9: 8 of 64 experts for 12 positions, drawn 4000 times."""
    rng = np.random.default_rng(3)
    draws = rng.random((4000, 12, 64)).argsort(axis=2)[:, :, :8]
    touched = np.zeros((4000, 64), dtype=bool)
    np.put_along_axis(touched, draws.reshape(4000, -1), True, axis=1)
    found = of(expert_coverage, {"k_experts": 8, "n_experts": 64, "B": 12, "m_pos": 1})
    assert found == pytest.approx(touched.mean(), abs=5e-3)


def test_uniform_routing_reads_the_most():
    """Result 9: any skewed choice of single experts reads fewer, and never less than k/E."""
    rng = np.random.default_rng(4)
    uniform = of(expert_coverage, {"k_experts": 1, "n_experts": 32, "B": 40, "m_pos": 1})
    for sharpness in (0.5, 1.0, 2.0):
        shares = rng.dirichlet(np.full(32, 1 / sharpness))
        skewed = np.mean(1 - (1 - shares) ** 40)
        assert skewed < uniform
        assert skewed >= of(least_coverage, {"k_experts": 1, "n_experts": 32})


@pytest.mark.parametrize("positions", [1, 12, 300])
def test_experts_in_unlike_demand_read_fewer(positions):
    """Rates of exponential size, their Gini coefficient 1/2, one position picking k of E."""
    rates = np.random.default_rng(5).exponential(8 / (64 - 8), 400_000)
    share = float(popular_share(sp.Integer(8), sp.Integer(64), sp.Integer(positions)))
    assert share == pytest.approx(np.mean(-np.expm1(-positions * rates)), rel=5e-3)
    uniform = of(expert_coverage, {"k_experts": 8, "n_experts": 64, "B": positions, "m_pos": 1})
    assert 8 / 64 <= share <= uniform * (1 + 1e-12)
    ranks = (np.arange(rates.size) + 0.5) / rates.size
    assert np.sort(rates) @ (2 * ranks - 1) / rates.sum() == pytest.approx(0.5, abs=0.01)


def test_one_position_reads_the_active_parameters():
    """C4 at batch one of a sparse model: k of E experts and the dense part."""
    case = {"N_dense": 20e9, "N_routed": 650e9, "k_experts": 8, "n_experts": 256}
    one = of(touched_parameters, case, B=1, m_pos=1)
    assert one == pytest.approx(of(active_parameters, case))
    assert of(sparse_latency_floor, case, b_w=1, W=1e12) == pytest.approx(one / 1e12)
    assert of(touched_parameters, case, B=1e6, m_pos=1) == pytest.approx(670e9)


def test_with_coverage_the_weight_term_depends_on_the_batch():
    """Result 3, where it changes: below full coverage the fixed part is not fixed."""
    whole = expand_all(touched_parameters.rhs, (expert_coverage,))
    assert sp.diff(whole, B) != 0
    run = kernel([touched_parameters], [coverage])
    shares = run(B=np.array([1, 10, 100]), m_pos=1, k_experts=8, n_experts=256)["coverage"]
    assert (np.diff(shares) > 0).all()
