"""Results 1, 2, 3, 9 and 11: critical batches, cliffs, menus, coverage, price ratios."""

import itertools
import math

import numpy as np
import pytest

from formulas.registry import find

BOARD = {"F": 6e15, "W": 20e12, "b_w": 1.0, "c_fwd": 1.0, "m_pos": 1.0}
SPARSE = BOARD | {"N_total": 8e11, "N_active": 1e11}
FAST = {"s_fast": 2.5, "x_price": 6.0}


def of(name, case, **more):
    """The value of an equation at a case that may hold more than it needs."""
    run = find(name).numpy()
    return run(**{key: (case | more)[key] for key in run.kernel.names})


# -- result 1 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", [1, 2, 4])
def test_the_edge_without_a_critical_batch_with_attention(positions):
    """Result 1: infinite iff 1/(m L*) > 1/L_a and the context reaches the inverse difference."""
    case = SPARSE | {"b_kv": 2000.0, "a_kv": 3e5, "m_pos": float(positions)}
    balance, attention = of("balance_context", case), of("attention_context", case)
    exists = 1 / (positions * balance) > 1 / attention
    assert exists == (positions < 2)
    if not exists:
        assert np.isfinite(of("critical_batch_anywhere", case, L_ctx=1e9))
        return
    edge = 1 / (1 / (positions * balance) - 1 / attention)
    assert of("never_context", case) == pytest.approx(edge)
    assert np.isfinite(of("critical_batch_anywhere", case, L_ctx=edge * 0.999))
    assert np.isinf(of("critical_batch_anywhere", case, L_ctx=edge * 1.001))


def test_beyond_the_edge_no_batch_is_arithmetic_bound():
    """Result 1: memory takes longer at every batch tried, up to a billion sequences."""
    case = SPARSE | {"b_kv": 2000.0, "a_kv": 1e5}
    beyond = case | {"L_ctx": 1.01 * of("never_context", case)}
    for batch in (1.0, 1e3, 1e6, 1e9):
        here = beyond | {"B": batch}
        assert of("memory_time", here) > of("compute_time_attention", here)


# -- result 2 --------------------------------------------------------------------------------------


def test_away_from_the_critical_batch_the_two_readings_part():
    """Result 2 fails off B_0: at twice that batch KV equals weights at half the context."""
    case = SPARSE | {"b_kv": 5000 / 3}
    by_arithmetic = of("cliff_by_arithmetic", case)
    by_weights = {batch: 8e11 / (batch * 5000 / 3) for batch in (2400, 4800)}
    assert by_weights[2400] == pytest.approx(by_arithmetic)
    assert by_weights[4800] == pytest.approx(by_arithmetic / 2)


def test_below_the_critical_batch_there_is_no_kink():
    """Result 2 needs B > B_0: below, the formula gives a negative context."""
    case = SPARSE | {"b_kv": 5000 / 3}
    assert of("cliff_context", case, B=2000.0) < 0 < of("cliff_context", case, B=3000.0)


# -- result 3 --------------------------------------------------------------------------------------


def coverage(batch, experts=256, picked=8):
    return 1 - (1 - picked / experts) ** batch


def test_the_fast_menu_is_unique():
    """Result 3: 6 times at 2.5 times forces 5/14, 1/15 and 2.8."""
    share = of("fixed_share", FAST)
    assert share == pytest.approx(5 / 14)
    assert of("fast_batch", FAST, w_fix=share) == pytest.approx(1 / 15)
    assert of("fastest_speed", {"w_fix": share}) == pytest.approx(2.8)


def test_with_every_expert_read_the_covered_menu_is_the_plain_one():
    """Result 3: coverage that does not fall changes nothing."""
    share = of("covered_share", FAST, r_cov=1.0)
    assert share == pytest.approx(of("fixed_share", FAST))
    parts = {"w_fix": 0.0, "w_cov": share, "r_cov": 1.0, "beta_B": 1 / 15}
    assert of("covered_speed", parts) == pytest.approx(2.5)
    assert of("covered_price", parts) == pytest.approx(6)


@pytest.mark.parametrize("normal", [256, 1024, 2400])
def test_falling_coverage_raises_the_share_and_the_fastest_speed(normal):
    """Result 3: the same price and speed then need a larger share, and 2.8 is no limit."""
    ratio = of(
        "coverage_ratio",
        {"k_experts": 8, "n_experts": 256, "m_pos": 1, "B": normal, "beta_B": 1 / 15},
    )
    assert ratio == pytest.approx(coverage(normal / 15) / coverage(normal))
    share = of("covered_share", FAST, r_cov=ratio)
    assert share > 5 / 14
    parts = {"w_fix": 0.0, "w_cov": share, "r_cov": ratio, "beta_B": 1 / 15}
    assert of("covered_speed", parts) == pytest.approx(2.5)
    assert of("covered_price", parts) == pytest.approx(6)
    alone = {"w_fix": 0.0, "w_cov": share, "r_cov": coverage(1) / coverage(normal)}
    assert of("covered_fastest_speed", alone) > 2.8


def test_a_menu_that_small_batches_make_too_cheap_to_explain():
    """Result 3 has no solution at a normal batch of 64: no share below one explains the price."""
    ratio = coverage(64 / 15) / coverage(64)
    assert of("covered_share", FAST, r_cov=ratio) > 1


# -- result 9 --------------------------------------------------------------------------------------


def drawn(probabilities, positions):
    """Expected share of the experts read when all positions draw from one distribution."""
    return np.mean(1 - (1 - np.asarray(probabilities)) ** positions)


def test_uniform_routing_reads_most_among_equal_distributions():
    """Result 9: of random routings with the same experts per token, none reads more."""
    generator = np.random.default_rng(9)
    for positions in (1, 2, 7, 40):
        uniform = of(
            "expert_coverage", {"k_experts": 4, "n_experts": 32, "m_pos": 1, "B": positions}
        )
        for _ in range(50):
            weights = generator.dirichlet(np.full(32, generator.uniform(0.3, 5)))
            probabilities = np.minimum(1, 4 * weights)
            probabilities *= 4 / probabilities.sum()
            if probabilities.max() <= 1:
                assert drawn(probabilities, positions) <= uniform + 1e-12


def test_coverage_by_counting_every_outcome():
    """Result 9: three tokens that each pick one of four experts, all 64 outcomes alike."""
    outcomes = [len(set(o)) / 4 for o in itertools.product(range(4), repeat=3)]
    case = {"k_experts": 1, "n_experts": 4, "m_pos": 1, "B": 3}
    assert of("expert_coverage", case) == pytest.approx(np.mean(outcomes))


def test_positions_that_avoid_each_other_read_more_than_uniform_routing():
    """Result 9 fails where positions are not drawn alike: in turn, they read every expert."""
    case = {"k_experts": 8, "n_experts": 256, "m_pos": 1, "B": 32, "one_position": 1}
    assert of("most_coverage", case) == 1
    assert of("expert_coverage", case) < 0.65


def test_positions_that_agree_read_the_least():
    """Result 9: so a true lower bound takes k/E, whatever the batch."""
    case = {"k_experts": 8, "n_experts": 256, "m_pos": 1, "B": 500}
    assert of("least_coverage", case) == 8 / 256 < of("expert_coverage", case)
    always = np.r_[np.ones(8), np.zeros(248)]
    assert drawn(always, 500) == 8 / 256


def test_the_bend_of_coverage_is_its_second_difference():
    """Result 9: minus the numerical second derivative of 1 - (1 - q)^n; none for one position."""
    step, q, n = 1e-4, 0.1, 12
    read = [1 - (1 - q + d) ** n for d in (-step, 0, step)]
    second = (read[0] - 2 * read[1] + read[2]) / step**2
    assert of("coverage_concavity", {"q_pick": q, "n_pos": n}) == pytest.approx(-second, rel=1e-4)
    assert of("coverage_concavity", {"q_pick": q, "n_pos": 1}) == 0


def test_a_sparse_model_alone_reads_its_active_parameters():
    """Result 9: the floor at batch one is lower than the dense one by the sparsity."""
    routed = 7e11 * 32 / 31
    parts = {"N_routed": routed, "N_dense": 8e11 - routed, "k_experts": 8, "n_experts": 256}
    floors = of("latency_floor", SPARSE), of("sparse_latency_floor", SPARSE | parts)
    assert floors[0] / floors[1] == pytest.approx(8)


# -- result 11 -------------------------------------------------------------------------------------


def ratio(batches, contexts):
    """Price ratio at multiples of the critical batch and of the balance context."""
    return find("price_ratio").numpy("B", "L_ctx")(
        np.asarray(batches) * 2400.0, np.asarray(contexts) * 2e5, g=1.0, **SPARSE, b_kv=5000 / 3
    )


def test_at_twice_the_critical_batch_short_contexts_cost_at_most_half_more():
    """Result 11: no ratio above 1.5 in the whole region B >= 2 B_0, L <= L*."""
    batches, contexts = np.meshgrid(np.geomspace(2, 100, 40), np.linspace(0, 1, 41))
    assert ratio(batches, contexts).max() == pytest.approx(1.5)
    assert find("ratio_at_twice_critical").equation().numpy()(m_pos=1.0, g=1.0) == 1.5


@pytest.mark.parametrize(("batch", "context"), [(1, 4), (2, 4.5), (3, 14 / 3), (math.inf, 5)])
def test_where_a_ratio_of_five_is_possible(batch, context):
    """Result 11: it needs four to 4.7 balance contexts at one to three critical batches."""
    case = SPARSE | {"b_kv": 5000 / 3, "rho_price": 5.0, "g": 1.0}
    if math.isfinite(batch):
        case |= {"B": batch * 2400.0}
        assert of("context_for_ratio", case) == pytest.approx(context * 2e5)
        assert ratio(batch, context) == pytest.approx(5)
    else:
        assert ratio(1e9, context) == pytest.approx(5)


def test_the_region_of_a_ratio_of_five():
    """Result 11: the map's edge is the line that the two inverses give."""
    case = SPARSE | {"b_kv": 5000 / 3, "rho_price": 5.0, "g": 1.0}
    for context in (0.0, 1.0, 3.0, 4.9):
        edge = of("batch_for_ratio", case, L_ctx=context * 2e5) / 2400
        assert edge == pytest.approx(1 / (5 - context))
        assert ratio(edge * 0.99, context) > 5 > ratio(edge * 1.01, context)


def test_no_batch_gives_five_once_caches_alone_cost_more():
    """Result 11: beyond five balance contexts the ratio is above five at every batch."""
    case = SPARSE | {"b_kv": 5000 / 3, "rho_price": 5.0, "g": 1.0}
    assert of("batch_for_ratio", case, L_ctx=6 * 2e5) < 0
    assert ratio(1e9, 6) > 5
