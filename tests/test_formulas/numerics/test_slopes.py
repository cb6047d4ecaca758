"""Elasticities of compiled outputs: against differences, against SymPy, and at kinks."""

import pytest
import sympy as sp

from formulas.economics.prices import token_cost
from formulas.nomenclature.lecture import B, C_tok, L_ctx, N_touched, T_step, e_c, e_kv, e_w, sigma
from formulas.nomenclature.symbols import SymbolError
from formulas.numerics.evaluate import kernel
from formulas.numerics.expressions import maximum, minimum
from formulas.numerics.slopes import elasticities, tape_derivatives
from formulas.numerics.tape import Tape
from formulas.roofline.experts import touched_parameters
from tests.loops import for_all

CASE = {
    "B": 64, "L_ctx": 1e4, "m_pos": 1, "g": 1, "N_active": 37e9, "c_fwd": 2, "F": 2e15,
    "N_total": 671e9, "b_w": 1, "b_kv": 70e3, "W": 3.3e12, "n_chips": 8, "p_chip": 2 / 3600,
}  # fmt: skip


def slope(run, output, values, name, step=1e-6):
    """Central difference of the logarithms."""
    up, down = (run(**values | {name: values[name] * f})[output] for f in (1 + step, 1 - step))
    return (up - down) / (2 * step) / run(**values)[output]


@for_all(
    "expression",
    [
        e_w * e_kv / e_c**3 + sp.sqrt(sigma),
        maximum(e_w, 3 * e_kv) / e_c,
        minimum(e_w, 3 * e_kv) - e_c / 9,
        sp.exp(-e_w) * sp.log(1 + sigma) + e_c ** sp.Rational(-3, 2),
        1 - (1 - e_w) ** sigma,
        (1 + e_w) ** sigma,
        sp.Piecewise((e_w, e_w > e_kv), (e_c**2, True)),
        sp.ceiling(sigma) * e_w,
    ],
    ids=str,
)
def test_slopes_agree_with_differences(expression):
    """Every operation of the tape."""
    run = kernel([], {"x": expression})
    values = {"e_w": 0.37, "e_kv": 0.61, "e_c": 0.83, "sigma": 2.6}
    values = {name: values[name] for name in run.names}
    for name, (left, right) in elasticities(run, "x", values).items():
        assert left == right
        assert left == pytest.approx(slope(run, "x", values, name), rel=1e-6, abs=1e-8)


def test_the_cost_of_a_token_responds_as_its_bottleneck_does():
    """Bound by memory: price +1, bandwidth −1, arithmetic 0; weights and caches share the rest."""
    run = kernel([token_cost], [C_tok])
    found = {n: right for n, (_, right) in elasticities(run, "C_tok", CASE).items()}
    assert found["p_chip"] == pytest.approx(1)
    assert found["W"] == pytest.approx(-1)
    assert found["F"] == 0
    assert found["N_total"] + found["b_kv"] == pytest.approx(1)
    assert found["b_kv"] == pytest.approx(64 * 1e4 * 70e3 / (64 * 1e4 * 70e3 + 671e9))


def test_at_a_kink_both_sides_are_given():
    """Where two branches tie, more of one raises the Max and less of it does not lower it."""
    run = kernel([], {"x": maximum(e_w, e_kv), "y": minimum(e_w, e_kv)})
    assert elasticities(run, "x", {"e_w": 0.5, "e_kv": 0.5}) == {"e_w": (0, 1), "e_kv": (0, 1)}
    assert elasticities(run, "y", {"e_w": 0.5, "e_kv": 0.5}) == {"e_w": (1, 0), "e_kv": (1, 0)}


def test_a_value_of_zero_has_no_influence():
    """No context: caches cost nothing, and one percent more of nothing is nothing."""
    run = kernel([token_cost], [C_tok, T_step])
    found = elasticities(run, "T_step", CASE | {"L_ctx": 0})
    assert found["L_ctx"] == found["b_kv"] == (0, 0)


def test_a_root_of_nothing_has_no_influence():
    """However steep it is where it begins; what does not move has no slope."""
    run = kernel([], {"x": e_w + e_c * sp.sqrt(e_kv * sigma)})
    for nothing in ({"e_kv": 0.0}, {"e_c": 0.0, "e_kv": 0.0}):
        case = {"e_w": 0.5, "e_c": 0.7, "e_kv": 1.0, "sigma": 2.0} | nothing
        found = elasticities(run, "x", {name: case[name] for name in run.names})
        assert found["e_w"] == (1, 1)
        assert found["e_c"] == found["sigma"] == found["e_kv"] == (0, 0)


@pytest.mark.parametrize("order", [(0, 2), (2, 0)])
def test_a_factor_of_zero_stops_a_slope_without_bound(order):
    """g sqrt(h) at g = h = 0, whichever factor comes first: the root is infinitely steep there."""
    nodes = [("argument", "g"), ("argument", "h"), ("sqrt", 1), ("product", order, ())]
    slopes = tape_derivatives(Tape(nodes), ["g", "h"], {"g": 0.0, "h": 0.0})
    assert slopes[3].tolist() == [[0, 0], [0, 0]]


def test_coverage_saturates():
    """At one position the touched experts follow the batch; at thousands they do not."""
    run = kernel([touched_parameters], [N_touched])
    case = {"N_dense": 1e-3, "N_routed": 1e9, "k_experts": 1, "n_experts": 1e6, "m_pos": 1}
    assert elasticities(run, "N_touched", case | {"B": 1})["B"][1] == pytest.approx(1, abs=1e-5)
    assert elasticities(run, "N_touched", case | {"B": 1e8})["B"][1] == pytest.approx(0, abs=1e-9)


def test_what_has_no_elasticity_is_refused():
    """Unknown outputs, zero outputs, missing values."""
    run = kernel([], {"x": B * L_ctx})
    with pytest.raises(SymbolError, match="no output"):
        elasticities(run, "y", {"B": 1, "L_ctx": 1})
    with pytest.raises(SymbolError, match=r"no elasticity where it is 0\.0"):
        elasticities(run, "x", {"B": 0, "L_ctx": 1})
    with pytest.raises(SymbolError, match="missing 'L_ctx'"):
        elasticities(run, "x", {"B": 1})
