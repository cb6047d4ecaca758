"""Optima on the pages are where a numerical search of their objectives finds them."""

import math

import pytest
from scipy.optimize import brentq, minimize_scalar

from formulas.algebra.notation import N_active, N_total, c_block, n_seg, t_hold, tau_tier
from formulas.economics.tiers import best_drain_time, byte_price_by_drain_time
from formulas.registry import find
from formulas.roofline.sparse_attention import block_reads, block_size
from formulas.scaling.kaplan_law import kaplan_loss, kaplan_optimal_tokens
from formulas.scaling.power_laws import chinchilla_loss, optimal_tokens
from formulas.scaling.routed_laws import (
    fine_grained_loss,
    fine_grained_optimal_tokens,
    joint_loss,
    joint_optimal_tokens,
    sparse_loss,
    sparse_optimal_tokens,
)
from formulas.training.reversible import activations_checkpointed, checkpoint_interval

VALUES = {
    "A_N": 406.4, "B_D": 410.7, "alpha_N": 0.34, "beta_D": 0.28, "loss_min": 1.69,
    "one_param": 1.0, "one_token": 1.0, "N_c": 8.8e13, "D_c": 5.4e13, "alpha_D": 0.095,
    "A_fine": 2.1, "G_fine": 8.0, "gamma_G": 0.58, "sigma": 0.3, "A_sigma": 0.2, "lambda_S": 0.4,
    "A_mix": 9.0, "delta_S": 0.15, "gamma_S": 0.12, "E_hat": 6.0, "gamma_E": 0.01, "zeta_E": 0.02,
    "delta_E": 0.1, "omega_E": 0.05, "L_ctx": 65536.0, "k_block": 16.0, "A_layer": 3.0,
    "n_blocks": 96.0, "one_price": 2.0, "one_second": 1.0, "n_fall": 0.3, "t_hold": 500.0,
}  # fmt: skip
LAWS = {
    "chinchilla": (chinchilla_loss, optimal_tokens, N_active),
    "kaplan": (kaplan_loss, kaplan_optimal_tokens, N_active),
    "fine-grained": (fine_grained_loss, fine_grained_optimal_tokens, N_total),
    "sparse": (sparse_loss, sparse_optimal_tokens, N_total),
    "joint": (joint_loss, joint_optimal_tokens, N_active),
}
SINGLE = {
    "checkpoints": (activations_checkpointed.rhs, checkpoint_interval, n_seg),
    "blocks": (block_reads.rhs, block_size, c_block),
    "drain time": (byte_price_by_drain_time.rhs * (t_hold + tau_tier), best_drain_time, tau_tier),
}


def value(expression, **more):
    """An expression at the values above."""
    names = {x: {**VALUES, **more}[x.name] for x in expression.free_symbols}
    return float(expression.subs(names))


@pytest.mark.parametrize("law", LAWS)
def test_laws_are_least_where_a_search_finds_them(law):
    """Along a fixed size times tokens, SciPy's least loss has the tokens that the page derives."""
    loss_of, tokens, size = LAWS[law]
    arithmetic = 1e21

    def along(x):
        n = math.exp(x)
        return value(loss_of.rhs, **{size.name: n, "D_pt": arithmetic / n})

    best = math.exp(minimize_scalar(along, bounds=(15, 35), options={"xatol": 1e-9}).x)

    def excess(x):
        size_times = value(tokens.rhs, **{size.name: math.exp(x)}) * math.exp(x)
        return math.log(size_times / arithmetic)

    claimed = brentq(excess, 10, 40)
    assert best == pytest.approx(math.exp(claimed), rel=1e-3)


@pytest.mark.parametrize("case", SINGLE)
def test_single_variables_are_best_where_a_search_finds_them(case):
    """The same for checkpoints, blocks and tiers."""
    objective, derivation, x = SINGLE[case]
    best = minimize_scalar(
        lambda u: value(objective, **{x.name: math.exp(u)}), bounds=(-5, 15), method="bounded"
    )
    assert math.exp(best.x) == pytest.approx(value(derivation.rhs), rel=1e-3)


def test_no_optimum_starts_from_a_typed_condition():
    """Whatever derives an optimum begins with its objective and differentiates it."""
    names = ("overtraining", "optimal_serving", "equalisation", "falling_cost", "fed_parameters")
    pages = [derivation for _, derivation, _ in (*LAWS.values(), *SINGLE.values())]
    for derivation in (*pages, *map(find, names)):
        assert "stationary" in [step.verb for step in derivation.steps[:3]]
