"""Rooms by hand: what an engine's log prints as terms adds up to what it prints as room."""

import pytest

from formulas.memory.cache_room import (
    default_share,
    expert_workspace,
    kept_out_of_the_pool,
    largest_share,
    pool_room,
    room_of_the_free,
    sampler_peak,
)
from formulas.numerics.evaluate import scalar

GIB, MIB = 2**30, 2**20


def value(equation, **values):
    return scalar([equation], [equation.symbol], values)[equation.symbol.name]


def test_a_sampler_holds_the_whole_vocabulary():
    """Llama 3.1 8B prints an activation of 1.89 GiB at 1,024 sequences, whatever its ranks."""
    peak = value(sampler_peak, k_smp=3.73, b_logit=4, n_seats=1024, vocab=128256, b_val=2,
                 n_budget=8192, h_hid=4096, one_seq=1, one_token=1)  # fmt: skip
    assert peak / GIB == pytest.approx(1.89, abs=0.01)


def test_a_pool_leaves_activations_outside():
    """Qwen3-30B-A3B on one MI355X: 287.18 free, 56.98 of weights, a share of 0.911."""
    room = value(
        pool_room, x_mem=0.911, M_vis=287.18, M_ctx=0, M_weights=56.98, f_format=1, M_more=0
    )
    assert room == pytest.approx(204.63, abs=0.02)


def test_the_third_share_is_of_what_the_peak_leaves():
    """Llama 3.1 8B in TensorRT-LLM on H200: (139.80 - 15.06 - 2.55 - 0.14 + 0.13) x 0.9."""
    room = value(room_of_the_free, x_mem=0.9, M_vis=139.80, M_ctx=2.55, M_weights=15.06,
                 f_format=1, M_smp=0.01, M_fwd=0.005, M_moe=0, M_else=0, M_more=0)  # fmt: skip
    assert room == pytest.approx(109.96, abs=0.03)


def test_a_default_share_follows_from_chunk_graphs_and_ranks():
    """SGLang reports 0.828 for Qwen3-32B on one H100 (sglang#29092)."""
    values = {"M_base_gr": 512 * MIB, "b_chunk": 1.5 * MIB, "n_budget": 8192, "b_run": 2 * MIB,
              "n_seats": 512, "M_rank": 128 * MIB, "tp": 1, "pp": 1}  # fmt: skip
    static = value(kept_out_of_the_pool, **values)
    assert value(default_share, M_static=static, M_cap=81559 * MIB) == pytest.approx(
        0.829, abs=1e-3
    )


@pytest.mark.parametrize(("outside", "share"), [(0.51, 0.993), (2.01, 0.974), (1.51, 0.981)])
def test_no_larger_share_starts(outside, share):
    """H100: 0.993 starts on one rank; more with buffers of several."""
    assert value(largest_share, M_ctx=outside, M_vis=79.19) == pytest.approx(share, abs=1e-3)


def test_experts_take_gate_and_up_or_the_width():
    """The larger of twice an expert's width and the model's, and the width again."""
    values = {"k_moe": 1, "b_val": 2, "n_budget": 10, "n_pick": 2}
    assert value(expert_workspace, h_one=3, h_hid=5, **values) == 2 * 10 * 2 * (6 + 3)
    assert value(expert_workspace, h_one=2, h_hid=5, **values) == 2 * 10 * 2 * (5 + 2)
