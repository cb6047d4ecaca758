"""Mixtures built unlike the others: DBRX (nested keys), JetMoE (experts in attention), LongCat."""

from __future__ import annotations

from dataclasses import replace

from planner.architecture.attention import Latent, grouped_attention, latent_attention
from planner.architecture.config_reader import Reader
from planner.architecture.families.common import (
    EXPERTS,
    HEADS,
    MTP,
    PER_TOKEN,
    assemble,
    check_experts,
    predict,
    shape,
)
from planner.architecture.families.deepseek import latent_shape
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import FeedForward, Layer, Model, Weight, matrix, vector


def dbrx(reader: Reader, name: str) -> Model:
    """DBRX: sixteen experts of four; what other families say flat stands in two sections."""
    attention, experts = reader.section("attn_config"), reader.section("ffn_config")
    if attention is None or experts is None:
        missing = "attn_config" if attention is None else "ffn_config"
        raise reader.fail(missing, "is missing; expected a mapping")
    heads = reader.whole(HEADS)
    cached = attention.whole("kv_n_heads", heads)
    reader.ignore("num_key_value_heads")
    if heads % cached:
        raise attention.fail("kv_n_heads", f"is {cached}, does not divide {heads} heads")
    form = replace(shape(reader), kv_heads=cached)
    mixer = grouped_attention(form.hidden, heads, cached, form.width)
    routed, active = experts.whole("moe_num_experts", 4), experts.whole("moe_top_k", 1)
    if active > routed:
        raise experts.fail("moe_top_k", f"is {active}, more than the {routed} routed experts")
    part = mixture(form.hidden, experts.whole("ffn_hidden_size", 3584), routed, active, path="ffn")
    layer = Layer(mixer, part, form.norms())
    return assemble(name, "dbrx", form, [layer] * form.layers)


def jetmoe(reader: Reader, name: str) -> Model:
    """JetMoE: query and output projections are experts too; one key-value set for all of them."""
    cached, width = reader.whole("num_key_value_heads"), reader.whole("kv_channels")
    experts, active = reader.whole(EXPERTS, 8), reader.whole(PER_TOKEN, 2)
    check_experts(reader, experts, active)
    heads = reader.whole(HEADS, cached * active)
    if heads != cached * active:
        raise reader.fail(HEADS[0], f"is {heads}, expected {active} for each of {cached}")
    form = replace(
        shape(reader, heads=heads, tied=True, head_dim=("kv_channels",)), kv_heads=cached
    )
    hidden, inner, path = form.hidden, cached * width, "self_attention"
    plain = grouped_attention(hidden, heads, cached, width)
    share = (experts * hidden * inner, active * hidden * inner, True)
    params = (
        Weight(f"{path}.experts.q", "attention", *share),
        Weight(f"{path}.experts.o", "attention", *share),
        matrix(f"{path}.kv_proj", "attention", hidden, 2 * inner),
        matrix(f"{path}.experts.router", "router", hidden, experts),
        vector(f"{path}.experts.bias", "attention", hidden),
    )
    part = mixture(hidden, reader.whole("intermediate_size"), experts, active)
    bias = vector("mlp.bias", "routed", hidden)
    part = FeedForward(part.kind, (*part.weights, bias), part.experts)
    norms = (vector("norms", "other", 2 * hidden),)
    layer = Layer(replace(plain, weights=params), part, norms)
    return assemble(name, "jetmoe", form, [layer] * form.layers)


def longcat(reader: Reader, name: str) -> Model:
    """LongCat Flash: each published layer is two here, experts beside the first of them.

    Experts without weights (`zero_expert_num`) are chosen among the others, so that a token
    passes through at most the active parameters counted, and fewer on average.
    """
    reader.ignore("head_dim", "num_key_value_heads", "qk_head_dim", "mla_scale_q_lora")
    reader.ignore("mla_scale_kv_lora", "zero_expert_type", "attention_method")
    form = latent_shape(reader)
    hidden = form.hidden
    latent = Latent(
        reader.optional("q_lora_rank"),
        reader.whole("kv_lora_rank"),
        reader.whole("qk_nope_head_dim"),
        reader.whole("qk_rope_head_dim"),
        reader.whole("v_head_dim"),
    )
    bias = reader.flag("attention_bias", False)
    if reader.flag("router_bias", False):
        raise reader.fail("router_bias", "is true; no published checkpoint has it")
    mixer = latent_attention(hidden, form.heads, latent, bias=bias)
    experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
    check_experts(reader, experts, active)
    plain = dense(hidden, reader.whole(("ffn_hidden_size", "intermediate_size")))
    mixed = mixture(
        hidden,
        reader.whole(("expert_ffn_hidden_size", "moe_intermediate_size")),
        experts,
        active,
        router_bias=True,
        idle=reader.whole("zero_expert_num", 0, least=0),
    )
    both = FeedForward(mixed.kind, (*mixed.weights, *plain.weights), mixed.experts)
    norms = (vector("norms", "other", 2 * hidden),)
    pair = [Layer(mixer, both, norms), Layer(mixer, plain, norms)]
    blocks = predict(reader, MTP, pair[1], hidden)
    return assemble(name, "longcat_flash", form, pair * form.layers, prediction=blocks)
