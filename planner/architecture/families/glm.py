"""GLM-4.5 to 4.7: grouped-query attention, dense first layers, then mixtures."""

from __future__ import annotations

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import Reader
from planner.architecture.families.common import (
    EXPERTS,
    MTP,
    PER_TOKEN,
    SHARED,
    assemble,
    check_experts,
    expert_groups,
    predict,
    shape,
    sparse_layers,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import Layer, Model, vector

__all__ = ["glm4_moe"]


def glm4_moe(reader: Reader, name: str) -> Model:
    """GLM-4.5, 4.6, 4.7 and 4.5-Air; biases on query, key and value, none on the output."""
    form = shape(reader, kv_heads=8)
    mixer = grouped_attention(
        form.hidden,
        form.heads,
        form.kv_heads,
        form.width,
        bias=reader.flag("attention_bias", False),
        norm=2 * form.width if reader.flag("use_qk_norm", False) else 0,
    )
    sparse = sparse_layers(reader, form.layers, 1)
    experts, active = reader.whole(EXPERTS, 128), reader.whole(PER_TOKEN, 8)
    check_experts(reader, experts, active)
    mixed = mixture(
        form.hidden,
        reader.whole("moe_intermediate_size"),
        experts,
        active,
        shared=reader.whole(SHARED, 1, least=0),
        router_bias=True,
        groups=expert_groups(reader, experts, active),
    )
    plain = dense(form.hidden, reader.whole("intermediate_size"))
    norms = (vector("norms", "other", 2 * form.hidden),)
    layers = [Layer(mixer, mixed if chosen else plain, norms) for chosen in sparse]
    blocks = predict(reader, MTP, Layer(mixer, mixed, norms), form.hidden)
    return assemble(name, "glm4_moe", form, layers, prediction=blocks)
