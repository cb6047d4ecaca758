"""MiniMax families: 01 and M1 (lightning attention, some layers full), and M2 (all full)."""

from __future__ import annotations

from planner.architecture.attention import grouped_attention
from planner.architecture.families.common import (
    EXPERTS,
    PER_TOKEN,
    Shape,
    assemble,
    check_experts,
    shape,
)
from planner.architecture.feedforward import mixture
from planner.architecture.layers import FeedForward, Layer, Model, Prediction, vector
from planner.architecture.reading import MAX_LAYERS, Reader
from planner.architecture.recurrent import lightning

__all__ = ["minimax_m1", "minimax_m2"]


def minimax_m1(reader: Reader, name: str) -> Model:
    """MiniMax-01 and M1: lightning attention with a full layer where `attn_type_list` says 1."""
    form = shape(reader, kv_heads=8)
    full = grouped_attention(form.hidden, form.heads, form.kv_heads, form.width)
    linear = lightning(form.hidden, form.heads, form.width)
    part = _mixture(reader, form, router_bias=False)
    norms = (vector("norms", "other", 2 * form.hidden),)
    layers = [
        Layer(full if is_full else linear, part, norms) for is_full in _full(reader, form.layers)
    ]
    return assemble(name, "minimax_m1", form, layers)


def minimax_m2(reader: Reader, name: str) -> Model:
    """MiniMax-M2, M2.5 and M2.7: full attention with norms over all heads, biased router."""
    form = shape(reader, width=128, kv_heads=8)
    norm = (form.heads + form.kv_heads) * form.width if reader.flag("use_qk_norm", True) else 0
    windowed = reader.wholes("attn_type_list", most=1)
    if windowed is not None and (len(windowed) != form.layers or 0 in windowed):
        raise reader.fail("attn_type_list", f"expected 1 (full) for each of {form.layers} layers")
    mixer = grouped_attention(form.hidden, form.heads, form.kv_heads, form.width, norm=norm)
    part = _mixture(reader, form, router_bias=reader.flag("use_routing_bias", True))
    layer = Layer(mixer, part, (vector("norms", "other", 2 * form.hidden),))
    return assemble(name, "minimax_m2", form, [layer] * form.layers, prediction=_prediction(reader))


def _prediction(reader: Reader) -> Prediction | None:
    modules = reader.whole("num_mtp_modules", 0, least=0, most=MAX_LAYERS)
    depth = reader.whole("mtp_transformer_layers", 1, least=0, most=MAX_LAYERS)
    if not reader.flag("use_mtp", True) or not modules * depth:
        return None
    return Prediction(modules * depth, None)


def _mixture(reader: Reader, form: Shape, *, router_bias: bool) -> FeedForward:
    if reader.whole("shared_intermediate_size", 0, least=0):
        raise reader.fail(
            "shared_intermediate_size", "is not 0; no published checkpoint has a shared expert"
        )
    # Published beside the keys that are used; neither changes a layer without shared experts.
    reader.ignore("shared_moe_mode", "mlp_intermediate_size", "block_size")
    experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
    check_experts(reader, experts, active)
    return mixture(
        form.hidden,
        reader.whole("intermediate_size"),
        experts,
        active,
        router_bias=router_bias,
        path="block_sparse_moe",
    )


def _full(reader: Reader, count: int) -> list[bool]:
    named = reader.words("layer_types", count, ("full_attention", "linear_attention"))
    listed = reader.wholes("attn_type_list", most=1)
    if listed is not None:
        if len(listed) != count:
            raise reader.fail("attn_type_list", f"has {len(listed)} entries for {count} layers")
        full = [bool(item) for item in listed]
        if named is not None and full != [word == "full_attention" for word in named]:
            raise reader.fail("attn_type_list", "and layer_types disagree")
        return full
    if named is None:
        raise reader.fail("attn_type_list", "is missing; expected 0 (lightning) or 1 (full)")
    return [word == "full_attention" for word in named]
