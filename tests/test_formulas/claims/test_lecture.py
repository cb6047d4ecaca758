"""The numbers of the lecture, identities between the equations, and their limits."""

from fractions import Fraction

import numpy as np
import pytest

from formulas.economics.prices import (
    crossover_pass,
    fast_batch,
    fast_price,
    fastest_speed,
    fixed_share,
    pass_time_per_position,
    price_ratio,
    token_cost,
)
from formulas.roofline.batching import (
    batch_penalty,
    cliff_context,
    cliff_readings,
    critical_batch,
    critical_batch_anywhere,
    critical_batch_attention,
    critical_batch_with_kv,
    never_context,
)
from formulas.roofline.kvcache import (
    cache_bytes_from_cliff,
    cliff_by_arithmetic,
    grouped_cache_bytes,
    latent_cache_bytes,
    longest_context,
    memory_per_chip,
    pipeline_memory,
)
from formulas.roofline.roofline import (
    compute_time,
    compute_time_attention,
    drain_time,
    latency_floor,
    memory_time,
    step_time,
    step_time_attained,
    step_time_sum,
    time_per_sequence,
    weight_time,
)

# The lecture's machine: 300 multiply-accumulates (600 FLOP) per byte, one byte per weight, 20 ms.
BOARD = {"F": 600 * 1e12, "W": 1e12, "b_w": 1, "c_fwd": 2, "m_pos": 1}
SPARSE = BOARD | {"N_total": 8e11, "N_active": 1e11}


def of(item, case, **more):
    """The value of an equation at a case that may hold more than it needs."""
    run = item.numpy()
    return run(**{name: (case | more)[name] for name in run.kernel.names})


def test_critical_batch_is_three_hundred_times_sparsity():
    """C8: 600 FLOP per byte, one byte per weight, 2 FLOP per weight, sparsity 8: 2400."""
    assert of(critical_batch, SPARSE) == pytest.approx(300 * 8)


def test_critical_batch_of_deepseek_v3():
    """C10: 671.026e9 of 37.55e9 weights give 5361, not 2400."""
    case = BOARD | {"N_total": 671.026e9, "N_active": 37.55e9}
    assert of(critical_batch, case) == pytest.approx(5361, abs=1)


@pytest.mark.parametrize(
    ("ratio", "active", "cache", "expected"),
    [(300, 37.55e9, 35136, 3562), (300, 70.55e9, 163840, 1435), (300, 9.8e9 * 1.1255, 126976, 290)],
    ids=["V3", "Llama-70B", "MiniMax-M2"],
)
def test_contexts_beyond_which_no_batch_is_arithmetic_bound(ratio, active, cache, expected):
    """C13: L* at ratio 300 and one byte per cached number."""
    case = {"N_active": active, "c_fwd": 2, "F": 2 * ratio, "W": 1, "b_kv": cache, "m_pos": 1}
    assert of(cliff_by_arithmetic, case) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("L", [0, 10, 100, 1000, 3000])
def test_at_the_critical_batch_the_branches_meet(L):
    """Result 1: with caches, arithmetic and memory take equal time there."""
    case = SPARSE | {"b_kv": 35136, "L_ctx": L, "a_kv": 3e5}
    for batch, arithmetic in (
        (critical_batch_with_kv, compute_time),
        (critical_batch_attention, compute_time_attention),
    ):
        here = case | {"B": of(batch, case)}
        if here["B"] > 0:
            assert of(arithmetic, here) == pytest.approx(of(memory_time, here))


def test_the_critical_batch_grows_without_bound():
    """C13: it doubles at half L*, and has no value beyond L*."""
    case = SPARSE | {"b_kv": 35136}
    edge = of(cliff_by_arithmetic, case)
    assert of(critical_batch_with_kv, case, L_ctx=edge / 2) == pytest.approx(4800)
    assert of(critical_batch_with_kv, case, L_ctx=edge * (1 - 1e-6)) > 1e9
    assert of(critical_batch_with_kv, case, L_ctx=edge * 1.1) < 0


def test_attention_arithmetic_can_make_every_context_arithmetic_bound():
    """Result 1: without a never-context where attention outruns its own cache reads."""
    case = SPARSE | {"b_kv": 35136}
    light, heavy = (case | {"a_kv": ratio * 600 * 35136} for ratio in (0.5, 1.5))
    edge = of(never_context, light)
    assert edge == pytest.approx(2 * of(cliff_by_arithmetic, case))
    assert of(critical_batch_attention, light, L_ctx=edge * 0.999) > 1e6
    assert of(never_context, heavy) < 0
    assert 0 < of(critical_batch_attention, heavy, L_ctx=1e7) < 2400


def test_without_a_critical_batch_it_is_infinite():
    """Result 1: the number a planner compares with, on both sides of the edge."""
    case = SPARSE | {"b_kv": 35136, "a_kv": 0}
    edge = of(cliff_by_arithmetic, case)
    found = of(critical_batch_anywhere, case, L_ctx=np.array([0, 0.5, 1.001, 50]) * edge)
    assert found == pytest.approx([2400, 4800, np.inf, np.inf])


def test_several_positions_per_sequence_divide_the_critical_batch():
    """Result 1: speculation with m positions reaches the roof at a batch m times smaller."""
    case = SPARSE | {"m_pos": 4}
    assert of(critical_batch, case) == pytest.approx(600)


def test_the_two_readings_of_the_cliff_coincide_at_the_critical_batch():
    """Result 2: 800 GB of weights against 800 GB of caches at B = 2400."""
    case = SPARSE | {"b_kv": Fraction(10**11, 300 * 200_000)}
    assert of(cliff_readings, case) == pytest.approx(2400)
    by_weights = 8e11 / (2400 * float(case["b_kv"]))
    assert of(cliff_by_arithmetic, case) == pytest.approx(by_weights)


def test_the_kink_lies_before_the_balance_context():
    """Result 2: at 2.5 times the critical batch, 1000 byte per token put it at 200 000 tokens."""
    case = SPARSE | {"b_kv": 1000, "B": 6000}
    kink = of(cliff_context, case)
    assert kink == pytest.approx(200_000)
    case |= {"L_ctx": kink}
    assert of(compute_time, case) == pytest.approx(of(memory_time, case))


@pytest.mark.parametrize(("b_weight", "expected"), [(1, 1667), (0.5, 833), (2, 3333)])
def test_bytes_per_token_from_the_cliff(b_weight, expected):
    """C38: 300 weights per weight read; at FP4 and BF16 half and twice the bytes."""
    case = {"N_active": 1e11, "c_fwd": 2, "F": 600 / b_weight, "W": 1, "L_ctx": 2e5, "m_pos": 1}
    assert of(cache_bytes_from_cliff, case) == pytest.approx(expected, abs=0.5)


def test_cache_bytes_of_known_models():
    """C39: Llama-3.1-70B holds 320 KiB per token in BF16, DeepSeek-V3 68.6 KiB."""
    llama = {"n_layers": 80, "n_kv": 8, "d_head": 128, "b_el": 2}
    assert of(grouped_cache_bytes, llama) == 320 * 1024
    assert of(latent_cache_bytes, {"n_layers": 61, "r_kv": 512, "r_rope": 64, "b_el": 1}) == 35136


@pytest.mark.parametrize(("memory", "rate", "expected"), [(288, 20, 14.4), (80, 3.35, 23.9)])
def test_drain_times(memory, rate, expected):
    """C14: Rubin 14.4 ms, H100 23.9 ms."""
    time = of(drain_time, {"M": memory * 1e9, "W": rate * 1e12})
    assert time * 1e3 == pytest.approx(expected, abs=0.05)


def test_weight_fetch_and_latency_floor():
    """C4: 671 GB at 8 × 3.35 TB/s cannot be read in less than 25 ms; more chips, less time."""
    floor = of(latency_floor, {"N_total": 671e9, "b_w": 1, "W": 8 * 3.35e12})
    assert floor == pytest.approx(25.04e-3, rel=1e-3)
    assert of(weight_time, {"N_total": 671e9, "b_w": 1, "W": 72 * 3.35e12}) == pytest.approx(
        floor / 9
    )


def test_a_single_sequence_costs_the_critical_batch_times_its_floor():
    """C5: 300 dense, 2400 at sparsity 8."""
    assert of(batch_penalty, SPARSE, B=1) == pytest.approx(2400)
    assert of(batch_penalty, BOARD | {"N_total": 1, "N_active": 1}, B=1) == pytest.approx(300)
    case = SPARSE | {"B": 1, "L_ctx": 0, "b_kv": 1}
    assert of(time_per_sequence, case) == pytest.approx(2400 * 1e11 * 2 / 600e12)


def test_time_per_sequence_never_rises_and_step_time_never_falls():
    """Result 12: what makes the largest feasible batch the cheapest."""
    batch = np.geomspace(1, 1e6, 400)
    case = SPARSE | {"L_ctx": 5000, "b_kv": 35136}
    each = of(time_per_sequence, case, B=batch)
    whole = of(step_time, case, B=batch)
    assert (np.diff(each) <= 0).all()
    assert (np.diff(whole) >= 0).all()
    assert each * batch == pytest.approx(whole)


def test_the_sum_of_the_roofs_is_at_most_twice_the_larger():
    """C1: bound and serial estimate enclose each other; attained rates only add time."""
    batch = np.geomspace(1, 1e6, 100)
    case = SPARSE | {"B": batch, "L_ctx": 5000, "b_kv": 35136, "a_kv": 0}
    bound, serial = of(step_time, case), of(step_time_sum, case)
    assert (bound <= serial).all()
    assert (serial <= 2 * bound * (1 + 1e-12)).all()
    attained = of(step_time_attained, case, e_w=1, e_kv=1, e_c=1)
    assert attained == pytest.approx(serial)


def test_fast_mode():
    """C6: six times the price at 2.5 times the speed: w = 5/14, batch 1/15, limit 2.8."""
    share = of(fixed_share, {"x_price": 6, "s_fast": 2.5})
    assert share == pytest.approx(5 / 14)
    assert of(fast_price, {"w_fix": share, "s_fast": 2.5}) == pytest.approx(6)
    assert of(fast_batch, {"w_fix": share, "s_fast": 2.5}) == pytest.approx(1 / 15)
    assert of(fastest_speed, {"w_fix": share}) == pytest.approx(2.8)


def test_price_ratio():
    """C22: a ratio of 5 needs a fifth of the critical batch, or B0 and four balance contexts."""
    case = SPARSE | {"b_kv": 35136, "g": 1}
    edge = of(cliff_by_arithmetic, case)
    assert of(price_ratio, case, B=480, L_ctx=0) == pytest.approx(5)
    assert of(price_ratio, case, B=2400, L_ctx=4 * edge) == pytest.approx(5)
    assert of(price_ratio, case, B=4800, L_ctx=edge) == pytest.approx(1.5)
    assert of(price_ratio, case, B=1e9, L_ctx=edge / 2) == pytest.approx(1)


def test_tokens_per_pass_that_reach_the_arithmetic_roof():
    """C23: B0 over B; there both branches of a pass take equal time at short context."""
    case = SPARSE | {"B": 24, "L_ctx": 0, "b_kv": 1}
    cross = of(crossover_pass, case)
    assert cross == pytest.approx(100)
    for factor, name in ((0.5, "memory"), (2, "arithmetic")):
        here = case | {"L_pass": factor * cross}
        names = {x.name for x in pass_time_per_position.givens}
        assert pass_time_per_position.bottleneck(**{k: here[k] for k in names}) == name


def test_pipelining_divides_weights_and_not_caches():
    """C24, C25: at equal microbatch, P stages leave the cache per chip as it is."""
    case = {"N_total": 1e12, "b_w": 1, "L_ctx": 1e5, "b_kv": 2000, "n_domain": 72, "B_micro": 100}
    one, four = (of(pipeline_memory, case, n_stages=p) for p in (1, 4))
    cache = 100 * 1e5 * 2000 / 72
    assert one - cache == pytest.approx(4 * (four - cache))
    plain = of(memory_per_chip, case | {"n_chips": 288, "B": 400})
    assert plain == pytest.approx(four)


def test_the_capacity_wall():
    """C47: 72 × 192 GB, 2400 sequences at 2 kB per token: 2.6 million tokens."""
    case = {"M": 72 * 192e9, "N_total": 1e12, "b_w": 1, "B": 2400, "b_kv": 2000}
    assert of(longest_context, case) == pytest.approx(2.67e6, rel=5e-3)


def test_cost_per_token():
    """Eight chips at 2 USD an hour, 64 sequences in 20 ms: 1.39 USD per million tokens."""
    f = token_cost.numpy("T_step")
    per_million = f(20e-3, n_chips=8, p_chip=2 / 3600, B=64, g=1) * 1e6
    assert per_million == pytest.approx(1.389, abs=1e-3)
    assert f(20e-3, n_chips=8, p_chip=2 / 3600, B=64, g=2) * 2e6 == pytest.approx(per_million)
