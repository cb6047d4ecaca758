"""Linear attention and state-space layers: weights, and a state of constant size per sequence.

FLOP of one token's update and read of a d_k by d_v state, per head: decay 1, write 2, read 2 for
each element, and 2 more where a delta rule first reads what it is about to overwrite.
"""

from dataclasses import dataclass

from planner.architecture.layers import Mixer, State, matrix, vector
from planner.architecture.quantization import DTYPES, Precision


@dataclass(frozen=True, slots=True)
class Scan:
    """Sizes of a selective scan: of its states, of the convolution before it, and their biases."""

    state_size: int
    kernel: int
    bias: bool
    conv_bias: bool
    groups: int

    @property
    def columns(self) -> int:
        """Weights of the convolution for each of its channels."""
        return self.kernel + (1 if self.conv_bias else 0)


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


def kimi_delta(
    hidden: int, heads: int, width: int, kernel: int, full_gate: bool, full_decay: bool = False
) -> Mixer:
    """Kimi delta attention (arXiv 2510.26692); output gate and decay are low-rank or full."""
    inner, path = heads * width, "self_attn"
    weights = [
        matrix(f"{path}.{name}_proj", "attention", hidden, inner) for name in ("q", "k", "v")
    ]
    weights += [
        vector(f"{path}.conv1d", "attention", 3 * inner * kernel),
        vector(f"{path}.dt_bias_and_decay", "attention", inner + heads),
        matrix(f"{path}.b_proj", "attention", hidden, heads),
        vector(f"{path}.o_norm", "attention", width),
        matrix(f"{path}.o_proj", "attention", inner, hidden),
    ]
    for name, full in (("f", full_decay), ("g", full_gate)):
        if full:
            weights.append(matrix(f"{path}.{name}_proj", "attention", hidden, inner))
        else:
            weights.append(matrix(f"{path}.{name}_a_proj", "attention", hidden, width))
            weights.append(matrix(f"{path}.{name}_b_proj", "attention", width, inner))
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


def mamba1(hidden: int, inner: int, rank: int, scan: Scan, *, norms: bool = False) -> Mixer:
    """Mamba's selective state space (arXiv 2312.00752); `norms` are Jamba's, of step and states."""
    path = "mixer"
    loose = (2 * inner + hidden) if scan.bias else 0
    loose += rank + 2 * scan.state_size if norms else 0
    weights = (
        matrix(f"{path}.in_proj", "attention", hidden, 2 * inner),
        vector(f"{path}.conv1d", "attention", inner * scan.columns),
        matrix(f"{path}.x_proj", "attention", inner, rank + 2 * scan.state_size),
        matrix(f"{path}.dt_proj", "attention", rank, inner),
        vector(f"{path}.decay_skip_bias", "attention", inner * (scan.state_size + 2) + loose),
        matrix(f"{path}.out_proj", "attention", inner, hidden),
    )
    recurrent = inner * scan.state_size
    return Mixer("mamba", weights, state=State(recurrent, inner * scan.kernel, 5 * recurrent))


def short_convolution(hidden: int, kernel: int, bias: bool) -> Mixer:
    """The gated short convolution of LFM2: its state is the last `kernel` inputs."""
    loose = 5 * hidden if bias else 0
    weights = (
        matrix("conv.in_proj", "attention", hidden, 3 * hidden),
        vector("conv.conv", "attention", hidden * kernel + loose),
        matrix("conv.out_proj", "attention", hidden, hidden),
    )
    return Mixer("short_conv", weights, state=State(0, hidden * kernel, 2 * hidden * kernel))


def recurrent_unit(hidden: int, width: int, heads: int, kernel: int) -> Mixer:
    """The real-gated linear recurrent unit of Griffin (arXiv 2402.19427), gates by head."""
    path = "temporal_block"
    gates = 2 * (width * (width // heads) + width)
    weights = (
        matrix(f"{path}.linear_x", "attention", hidden, width),
        matrix(f"{path}.linear_y", "attention", hidden, width),
        vector(f"{path}.conv_1d", "attention", width * (kernel + 1)),
        vector(f"{path}.rg_lru", "attention", gates + width),
        vector(f"{path}.biases", "attention", 2 * width + hidden),
        matrix(f"{path}.linear_out", "attention", width, hidden),
    )
    return Mixer("rg_lru", weights, state=State(width, width * (kernel - 1), 5 * width))


def rwkv4(hidden: int, width: int) -> Mixer:
    """Time mixing of RWKV-4 (arXiv 2305.13048): numerator, denominator, maximum, last inputs."""
    path = "attention"
    weights = (
        *(matrix(f"{path}.{name}", "attention", hidden, width) for name in ("k", "v", "r")),
        vector(f"{path}.time", "attention", 2 * width + 3 * hidden),
        matrix(f"{path}.output", "attention", width, hidden),
    )
    return Mixer("rwkv", weights, state=State(3 * width + 2 * hidden, 0, 9 * width))


def mlstm(hidden: int, heads: int, keys: int, values: int, bias: bool) -> Mixer:
    """The matrix-memory LSTM of xLSTM (arXiv 2405.04517), with its output gate."""
    path = "mlstm_layer"
    loose = (2 * keys + 2 * values + hidden) if bias else 0
    weights = (
        matrix(f"{path}.q", "attention", hidden, keys),
        matrix(f"{path}.k", "attention", hidden, keys),
        matrix(f"{path}.v", "attention", hidden, values),
        matrix(f"{path}.ogate_preact", "attention", hidden, values),
        matrix(f"{path}.gates", "attention", hidden, 2 * heads),
        vector(f"{path}.norm", "attention", values + 2 * heads + loose),
        matrix(f"{path}.out_proj", "attention", values, hidden),
    )
    memory = keys * values // heads
    return Mixer("mlstm", weights, state=State(memory + keys + heads, 0, 5 * memory))


def mamba2(
    hidden: int,
    heads: int,
    width: int,
    scan: Scan,
    *,
    output_bias: bool | None = None,
    norm: bool = True,
    precision: Precision = DTYPES["fp32"],
) -> Mixer:
    """Mamba-2 state-space layer (arXiv 2405.21060): heads of `width` with `state_size` states."""
    inner, path = heads * width, "mixer"
    mixed = inner + 2 * scan.groups * scan.state_size
    projected = inner + mixed + heads
    loose = projected if scan.bias else 0
    loose += hidden if (scan.bias if output_bias is None else output_bias) else 0
    weights = (
        matrix(f"{path}.in_proj", "attention", hidden, projected),
        vector(f"{path}.conv1d", "attention", mixed * scan.columns),
        vector(f"{path}.dt_decay_skip", "attention", 3 * heads + loose),
        vector(f"{path}.norm", "attention", inner if norm else 0),
        matrix(f"{path}.out_proj", "attention", inner, hidden),
    )
    recurrent = inner * scan.state_size
    state = State(recurrent, mixed * scan.kernel, 5 * recurrent, precision)
    return Mixer("mamba2", weights, state=state)
