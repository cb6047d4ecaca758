"""Qwen families: 2, 2-MoE, 3, 3-MoE, and the linear-attention hybrids 3-Next and 3.5."""

from __future__ import annotations

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    PER_TOKEN,
    Shape,
    assemble,
    attention_kinds,
    check_experts,
    shape,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, Prediction, vector
from planner.architecture.recurrent import gated_delta

__all__ = ["qwen2", "qwen2_moe", "qwen3", "qwen3_hybrid", "qwen3_moe"]


def qwen2(reader: Reader, name: str) -> Model:
    """Qwen 1.5 to 2.5: Llama with biases on query, key and value."""
    form = shape(reader)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    mixers = _mixers(reader, form, bias=True, output_bias=False, norm=0)
    return _stack(name, "qwen2", form, mixers, [part] * form.layers)


def qwen3(reader: Reader, name: str) -> Model:
    """Qwen 3 dense: a norm per head on queries and keys, head width 128 unless given."""
    form = shape(reader, width=128, kv_heads=32)
    bias = reader.flag("attention_bias", False)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    mixers = _mixers(reader, form, bias=bias, output_bias=bias, norm=2 * form.width)
    return _stack(name, "qwen3", form, mixers, [part] * form.layers)


def qwen2_moe(reader: Reader, name: str) -> Model:
    """Qwen 1.5/2 mixtures: one gated shared expert beside the routed ones."""
    form = shape(reader, kv_heads=16)
    bias = reader.flag("qkv_bias", True)
    mixers = _mixers(reader, form, bias=bias, output_bias=False, norm=0, alternate=True)
    parts = _parts(reader, form, shared=True)
    return _stack(name, "qwen2_moe", form, mixers, parts)


def qwen3_moe(reader: Reader, name: str) -> Model:
    """Qwen 3 mixtures: Qwen 3 attention, routed experts without a shared one."""
    form = shape(reader, width=None, kv_heads=4)
    bias = reader.flag("attention_bias", False)
    mixers = _mixers(reader, form, bias=bias, output_bias=bias, norm=2 * form.width, every=True)
    return _stack(name, "qwen3_moe", form, mixers, _parts(reader, form, shared=False))


def qwen3_hybrid(reader: Reader, name: str) -> Model:
    """Qwen 3-Next and 3.5: three gated-delta layers to one full, output-gated one."""
    family = reader.text("model_type").removesuffix("_text")
    form = shape(reader, width=256, kv_heads=4 if family == "qwen3_5" else 2)
    bias = reader.flag("attention_bias", False)
    full = grouped_attention(
        form.hidden,
        form.heads,
        form.kv_heads,
        form.width,
        bias=bias,
        output_bias=bias,
        norm=2 * form.width,
        gate=reader.flag("attn_output_gate", True),
    )
    linear = _linear(reader, form)
    mixers = [linear if is_linear else full for is_linear in _linear_layers(reader, form.layers)]
    if family == "qwen3_5":
        parts = [dense(form.hidden, reader.whole("intermediate_size"))] * form.layers
    else:
        parts = _parts(reader, form, shared=True, always=family == "qwen3_5_moe")
    blocks = reader.whole("mtp_num_hidden_layers", 0, least=0, most=MAX_LAYERS)
    model = _stack(name, family, form, mixers, parts)
    if not blocks:
        return model
    layer = Layer(full, parts[-1], model.layers[0].weights)
    each = sum(weight.count for weight in layer.all_weights())
    parameters = blocks * each + 2 * form.hidden * form.hidden + 3 * form.hidden
    return assemble(name, family, form, model.layers, prediction=Prediction(blocks, parameters))


def _mixers(
    reader: Reader,
    form: Shape,
    *,
    bias: bool,
    output_bias: bool,
    norm: int,
    alternate: bool = False,
    every: bool = False,
) -> list[Mixer]:
    """Attention per layer; `use_sliding_window: false` overrides a window that is given."""
    enabled = reader.flag("use_sliding_window", False)
    window = reader.optional("sliding_window", least=0)
    start = reader.whole("max_window_layers", 28, least=0, most=MAX_LAYERS)
    if enabled and window is None and not reader.given("sliding_window"):
        window = 4096
    bounded = bool(window) and enabled
    default = [bounded and (every or index >= start) for index in range(form.layers)]
    if alternate:
        default = [bounded and index % 2 == 0 and index < start for index in range(form.layers)]
    mixers = []
    for windowed in attention_kinds(reader, form.layers, default):
        if windowed and not window:
            raise reader.fail("sliding_window", "is missing; layer_types names windowed layers")
        mixers.append(
            grouped_attention(
                form.hidden,
                form.heads,
                form.kv_heads,
                form.width,
                bias=bias,
                output_bias=output_bias,
                norm=norm,
                window=window if windowed else None,
                kind="window" if windowed else "full",
            )
        )
    return mixers


def _parts(reader: Reader, form: Shape, *, shared: bool, always: bool = False) -> list[FeedForward]:
    experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
    check_experts(reader, experts, active)
    inner = reader.whole("moe_intermediate_size")
    mixed = mixture(
        form.hidden,
        inner,
        experts,
        active,
        shared=1 if shared else 0,
        shared_inner=reader.whole("shared_expert_intermediate_size") if shared else None,
        shared_gate=shared,
        shared_path="shared_expert",
    )
    step = reader.whole("decoder_sparse_step", 1, most=MAX_LAYERS)
    only = set(reader.wholes("mlp_only_layers", most=form.layers - 1) or ())
    sparse = [
        always or (index not in only and (index + 1) % step == 0) for index in range(form.layers)
    ]
    if all(sparse):
        reader.ignore("intermediate_size")
        return [mixed] * form.layers
    plain = dense(form.hidden, reader.whole("intermediate_size"))
    return [mixed if is_sparse else plain for is_sparse in sparse]


def _linear(reader: Reader, form: Shape) -> Mixer:
    keys = reader.whole("linear_num_key_heads", 16)
    values = reader.whole("linear_num_value_heads", 32)
    if values % keys:
        raise reader.fail("linear_num_value_heads", f"is {values}, not a multiple of {keys}")
    return gated_delta(
        form.hidden,
        key_heads=keys,
        key_width=reader.whole("linear_key_head_dim", 128),
        value_heads=values,
        value_width=reader.whole("linear_value_head_dim", 128),
        kernel=reader.whole("linear_conv_kernel_dim", 4),
        precision=reader.precision("mamba_ssm_dtype", "float32"),
    )


def _linear_layers(reader: Reader, count: int) -> list[bool]:
    named = reader.words("layer_types", count, ("full_attention", "linear_attention"))
    every = reader.whole("full_attention_interval", 4, most=MAX_LAYERS)
    if named is not None:
        return [word == "linear_attention" for word in named]
    return [(index + 1) % every != 0 for index in range(count)]


def _stack(
    name: str, family: str, form: Shape, mixers: list[Mixer], parts: list[FeedForward]
) -> Model:
    norms = (vector("norms", "other", 2 * form.hidden),)
    layers = [Layer(mixer, part, norms) for mixer, part in zip(mixers, parts, strict=True)]
    return assemble(name, family, form, layers)
