"""Linear attention and state-space layers: weights, and a state of constant size per sequence.

FLOP of one token's update and read of a d_k by d_v state, per head: decay 1, write 2, read 2 for
each element, and 2 more where a delta rule first reads what it is about to overwrite.
"""

from __future__ import annotations

from planner.architecture.dtypes import DTYPES, Precision
from planner.architecture.layers import Mixer, State, matrix, vector

__all__ = ["gated_delta", "kimi_delta", "lightning", "mamba2"]


def gated_delta(
    hidden: int,
    *,
    key_heads: int,
    key_width: int,
    value_heads: int,
    value_width: int,
    kernel: int,
    precision: Precision = DTYPES["fp32"],
) -> Mixer:
    """Gated delta network of Qwen3-Next and Qwen3.5 (arXiv 2412.06464)."""
    keys, values = key_heads * key_width, value_heads * value_width
    mixed = 2 * keys + values
    path = "linear_attn"
    weights = (
        matrix(f"{path}.in_proj_qkv", "attention", hidden, mixed),
        matrix(f"{path}.in_proj_z", "attention", hidden, values),
        matrix(f"{path}.in_proj_b", "attention", hidden, value_heads),
        matrix(f"{path}.in_proj_a", "attention", hidden, value_heads),
        vector(f"{path}.conv1d", "attention", mixed * kernel),
        vector(f"{path}.dt_bias_and_decay", "attention", 2 * value_heads),
        vector(f"{path}.norm", "attention", value_width),
        matrix(f"{path}.out_proj", "attention", values, hidden),
    )
    recurrent = value_heads * key_width * value_width
    state = State(recurrent, mixed * kernel, 7 * recurrent, precision)
    return Mixer("gated_delta", weights, state=state)


def kimi_delta(hidden: int, heads: int, width: int, kernel: int, full_gate: bool) -> Mixer:
    """Kimi delta attention (arXiv 2510.26692); the output gate is low-rank or full."""
    inner, path = heads * width, "self_attn"
    weights = [
        matrix(f"{path}.{name}_proj", "attention", hidden, inner) for name in ("q", "k", "v")
    ]
    weights += [
        vector(f"{path}.conv1d", "attention", 3 * inner * kernel),
        matrix(f"{path}.f_a_proj", "attention", hidden, width),
        matrix(f"{path}.f_b_proj", "attention", width, inner),
        vector(f"{path}.dt_bias_and_decay", "attention", inner + heads),
        matrix(f"{path}.b_proj", "attention", hidden, heads),
        vector(f"{path}.o_norm", "attention", width),
        matrix(f"{path}.o_proj", "attention", inner, hidden),
    ]
    if full_gate:
        weights.append(matrix(f"{path}.g_proj", "attention", hidden, inner))
    else:
        weights.append(matrix(f"{path}.g_a_proj", "attention", hidden, width))
        weights.append(matrix(f"{path}.g_b_proj", "attention", width, inner))
    recurrent = heads * width * width
    state = State(recurrent, 3 * inner * kernel, 7 * recurrent)
    return Mixer("kimi_delta", tuple(weights), state=state)


def lightning(hidden: int, heads: int, width: int) -> Mixer:
    """Lightning attention of MiniMax-01 and M1 (arXiv 2501.08313), with its output gate."""
    inner, path = heads * width, "self_attn"
    weights = (
        matrix(f"{path}.qkv_proj", "attention", hidden, 3 * inner),
        matrix(f"{path}.output_gate", "attention", hidden, inner),
        vector(f"{path}.norm", "attention", inner),
        matrix(f"{path}.out_proj", "attention", inner, hidden),
    )
    recurrent = heads * width * width
    return Mixer("lightning", weights, state=State(recurrent, 0, 5 * recurrent))


def mamba2(
    hidden: int,
    heads: int,
    width: int,
    *,
    groups: int,
    state_size: int,
    kernel: int,
    bias: bool = False,
    conv_bias: bool = True,
    precision: Precision = DTYPES["fp32"],
) -> Mixer:
    """Mamba-2 state-space layer (arXiv 2405.21060): heads of `width` with `state_size` states."""
    inner, path = heads * width, "mixer"
    mixed = inner + 2 * groups * state_size
    projected = inner + mixed + heads
    loose = (projected + hidden) if bias else 0
    weights = (
        matrix(f"{path}.in_proj", "attention", hidden, projected),
        vector(f"{path}.conv1d", "attention", mixed * (kernel + (1 if conv_bias else 0))),
        vector(f"{path}.dt_decay_skip", "attention", 3 * heads + loose),
        vector(f"{path}.norm", "attention", inner),
        matrix(f"{path}.out_proj", "attention", inner, hidden),
    )
    recurrent = inner * state_size
    state = State(recurrent, mixed * kernel, 5 * recurrent, precision)
    return Mixer("mamba2", weights, state=state)
