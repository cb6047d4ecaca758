"""Families built unlike the others; key-value heads, positions and vectors of a few others."""

from dataclasses import replace

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families import common
from planner.architecture.families.hybrids import SCAN_KEYS, step_rank
from planner.architecture.families.standard import shape, standard
from planner.architecture.families.traits import Shape, Switch, Traits
from planner.architecture.feedforward import dense_mlp, mixture
from planner.architecture.layers import FeedForward, Layer, Model, Weight, matrix, vector
from planner.architecture.recurrent import mamba1, mamba2, mlstm, rwkv4


def _biased(switch: Switch) -> Traits:
    plain = Traits(norm_bias=True, gated=False, tied=True)
    return replace(plain, qkv_bias=switch, output_bias=switch, mlp_bias=switch)


def embedding_norm(reader: Reader, form: Shape) -> tuple[Weight, ...]:
    """BLOOM's norm of the embedding."""
    return (vector("embedding_norm", "other", 2 * form.hidden),)


def lambdas(reader: Reader, form: Shape) -> int:
    """Vectors that weigh the two halves of differential attention."""
    return 4 * form.width


def result_norm(reader: Reader, form: Shape) -> int:
    """Parameters of a norm over the concatenated outputs of the heads."""
    return form.heads * form.width


def mask(reader: Reader, form: Shape) -> int:
    """Doge's learned mask of each head's values."""
    bias = form.kv_heads if reader.flag("attention_bias", False) else 0
    return form.kv_heads * form.kv_heads * form.width + form.kv_heads + bias


def chatglm_kv_heads(reader: Reader, heads: int) -> int:
    """Key-value heads of ChatGLM: groups where `multi_query_attention` says so."""
    groups = reader.whole("multi_query_group_num", heads)
    if heads % groups:
        raise reader.fail("multi_query_group_num", f"is {groups}, does not divide {heads} heads")
    return groups if reader.flag("multi_query_attention", False) else heads


def gpt2_kv_heads(reader: Reader, heads: int) -> int:
    """KV heads of GPT-2 and GPT-3: equal to `heads`, which must divide the width; else raises."""
    hidden = reader.whole(common.HIDDEN)
    if hidden % heads:
        raise reader.fail("n_head", f"is {heads}, does not divide n_embd {hidden}")
    return heads


def bigcode_kv_heads(reader: Reader, heads: int) -> int:
    """Key-value heads of GPT-BigCode: one, unless `multi_query` is off."""
    return 1 if reader.flag("multi_query", True) else heads


def falcon_kv_heads(reader: Reader, heads: int) -> int:
    """Key-value heads of Falcon: groups in the new layout, one or all in the old."""
    groups = reader.whole(("num_kv_heads", "n_head_kv"), heads)
    if heads % groups:
        raise reader.fail("num_kv_heads", f"is {groups}, does not divide {heads} heads")
    if reader.flag("new_decoder_architecture", False):
        return groups
    return 1 if reader.flag("multi_query", True) else heads


def falcon(reader: Reader, name: str) -> Model:
    """Falcon 7B, 40B and 180B: one key-value head, or groups and two norms in the new layout."""
    new = reader.flag("new_decoder_architecture", False)
    two = reader.whole("num_ln_in_parallel_attn", 2 if new else 1, most=2) == 2
    reader.ignore("alibi", "apply_residual_connection_post_layernorm")
    traits = replace(
        _biased(("bias", False)),
        own_kv_heads=falcon_kv_heads,
        norms=3 if new and two else 2,
        parallel=reader.flag("parallel_attn", True) or new,
        inner_ratio=4,
        path="self_attention",
    )
    return standard(reader, name, "falcon", traits)


def opt(reader: Reader, name: str) -> Model:
    """OPT: learned positions, a switch for every bias and norm."""
    hidden = reader.whole("hidden_size")
    if reader.whole("word_embed_proj_dim", hidden) != hidden:
        raise reader.fail(
            "word_embed_proj_dim", f"is not hidden_size {hidden}; projections are not counted"
        )
    affine = reader.flag("layer_norm_elementwise_affine", True)
    final = reader.flag("do_layer_norm_before", True)
    final = final and not reader.flag("_remove_final_layer_norm", False)
    traits = replace(
        _biased(("enable_bias", True)),
        norms=2 if affine else 0,
        final_norm=final and affine,
        positions=2,
    )
    return standard(reader, name, "opt", traits)


def mpt(reader: Reader, name: str) -> Model:
    """MPT: no bias anywhere, ALiBi in place of positions."""
    inner = reader.section("attn_config")
    if inner is not None:
        kind = inner.text("attn_type", "multihead_attention")
        if kind != "multihead_attention" or inner.flag("qk_ln", False):
            raise inner.fail("attn_type", "only plain multihead_attention is counted")
    if not reader.flag("no_bias", True):
        raise reader.fail("no_bias", "is false; no published checkpoint has these biases")
    reader.ignore("learned_pos_emb", "embedding_fraction", "norm_type", "resid_pdrop")
    ratio = reader.whole("expansion_ratio", 4)
    traits = Traits(tied=True, gated=False, inner_ratio=ratio, path="attn")
    return standard(reader, name, "mpt", traits)


def dbrx(reader: Reader, name: str) -> Model:
    """DBRX: sixteen experts, four active; two sections hold keys that are flat elsewhere."""
    attention, experts = reader.section("attn_config"), reader.section("ffn_config")
    if attention is None or experts is None:
        missing = "attn_config" if attention is None else "ffn_config"
        raise reader.fail(missing, "is missing; expected a mapping")
    heads = reader.whole(common.HEADS)
    cached = attention.whole("kv_n_heads", heads)
    reader.ignore("num_key_value_heads")
    if heads % cached:
        raise attention.fail("kv_n_heads", f"is {cached}, does not divide {heads} heads")
    form = replace(shape(reader, Traits()), kv_heads=cached)
    mixer = grouped_attention(form.hidden, heads, cached, form.width)
    routed, active = experts.whole("moe_num_experts", 4), experts.whole("moe_top_k", 1)
    if active > routed:
        raise experts.fail("moe_top_k", f"is {active}, more than the {routed} routed experts")
    part = mixture(form.hidden, experts.whole("ffn_hidden_size", 3584), routed, active, path="ffn")
    layer = Layer(mixer, part, form.norms())
    return common.assemble(name, "dbrx", form, [layer] * form.layers)


def jetmoe(reader: Reader, name: str) -> Model:
    """JetMoE: query and output projections are experts too; one key-value set for all of them."""
    cached, width = reader.whole("num_key_value_heads"), reader.whole("kv_channels")
    experts, active = reader.whole(common.EXPERTS, 8), reader.whole(common.PER_TOKEN, 2)
    common.check_experts(reader, experts, active)
    heads = reader.whole(common.HEADS, cached * active)
    if heads != cached * active:
        raise reader.fail(common.HEADS[0], f"is {heads}, expected {active} for each of {cached}")
    form = shape(reader, Traits(heads=heads, tied=True, head_dim=("kv_channels",)))
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
    layer = Layer(replace(plain, weights=params), part, form.norms())
    return common.assemble(name, "jetmoe", form, [layer] * form.layers)


def _attention_free(reader: Reader, heads: int, *, tied: bool = False) -> Shape:
    """The outer shape of a decoder without attention, whose state `heads` shards may cut."""
    hidden = reader.whole((*common.HIDDEN, "embedding_dim"))
    layers = reader.whole((*common.LAYERS, "num_blocks"), most=MAX_LAYERS)
    vocab, tied = reader.whole("vocab_size"), reader.flag("tie_word_embeddings", tied)
    return Shape(hidden, layers, heads, 1, 0, vocab, tied, common.context(reader))


def mamba(reader: Reader, name: str) -> Model:
    """Mamba and Falcon Mamba: one mixer and one norm a layer, no feed-forward part."""
    hidden = reader.whole(common.HIDDEN)
    inner = reader.optional(("intermediate_size", "d_inner"))
    if inner is None:
        inner = reader.whole("expand", 2) * hidden
    reader.ignore("expand", SCAN_KEYS)
    # Every channel has a state of its own, so that shards may cut anywhere.
    form = _attention_free(reader, inner, tied=True)
    rank = step_rank(reader, "time_step_rank", hidden)
    mixer = mamba1(hidden, inner, rank, common.scan(reader, "mamba"))
    layer = Layer(mixer, None, form.norms(1))
    return common.assemble(name, reader.text("model_type"), form, [layer] * form.layers)


def mamba_2(reader: Reader, name: str) -> Model:
    """Mamba-2 alone."""
    heads, width = reader.whole("num_heads"), reader.whole("head_dim")
    form = _attention_free(reader, heads)
    if heads * width != reader.whole("expand", 2) * form.hidden:
        raise reader.fail("num_heads", f"is {heads}; heads of {width} do not make up the width")
    reader.ignore("time_step_rank", SCAN_KEYS)
    mixer = mamba2(form.hidden, heads, width, common.scan(reader, "mamba2"))
    layer = Layer(mixer, None, form.norms(1))
    return common.assemble(name, "mamba2", form, [layer] * form.layers)


def rwkv(reader: Reader, name: str) -> Model:
    """RWKV-4: time mixing and channel mixing, layer norms with biases."""
    width = reader.optional("attention_hidden_size") or reader.whole("hidden_size")
    form = replace(_attention_free(reader, width), max_context=reader.optional("context_length"))
    hidden = form.hidden
    reader.ignore("rescale_every")
    inner = reader.optional(common.INNER) or 4 * hidden
    part = FeedForward(
        "dense",
        (
            matrix("feed_forward.key", "dense_ffn", hidden, inner),
            matrix("feed_forward.receptance", "dense_ffn", hidden, hidden),
            matrix("feed_forward.value", "dense_ffn", inner, hidden),
            vector("feed_forward.time", "dense_ffn", 2 * hidden),
        ),
    )
    layer = Layer(rwkv4(hidden, width), part, form.norms(4))
    first = (vector("pre_ln", "other", 2 * hidden),)
    return common.assemble(
        name, "rwkv", form, [layer] * form.layers, extra=first, final_norm=2 * hidden
    )


def xlstm(reader: Reader, name: str) -> Model:
    """xLSTM: a matrix memory per head, and a gated feed-forward part of rounded width."""
    heads = reader.whole("num_heads", 8)
    form = replace(_attention_free(reader, heads), kv_heads=heads)
    hidden = form.hidden
    bias = reader.flag("use_bias", False)
    if not reader.flag("add_out_norm", True):
        raise reader.fail("add_out_norm", "is false; no published checkpoint lacks it")
    reader.ignore("chunk_size", "weight_mode", "mode", "max_inference_chunksize", "gate_soft_cap")
    reader.ignore("chunkwise_kernel", "sequence_kernel", "step_kernel", "return_last_states")
    keys = _rounded(reader, "qk_dim_factor", 0.5, 1, hidden)
    values = _rounded(reader, "v_dim_factor", 1.0, 1, hidden)
    if keys % heads or values % heads:
        raise reader.fail("num_heads", f"is {heads}, does not divide widths {keys} and {values}")
    multiple = reader.whole("ffn_round_up_to_multiple_of", 64)
    inner = _rounded(reader, "ffn_proj_factor", 2.667, multiple, hidden)
    layer = Layer(
        mlstm(hidden, heads, keys, values, bias), dense_mlp(hidden, inner, bias=bias), form.norms()
    )
    return common.assemble(name, "xlstm", form, [layer] * form.layers)


def _rounded(reader: Reader, key: str, default: float, multiple: int, hidden: int) -> int:
    factor = reader.number(key) if reader.has(key) else default
    return -(-int(hidden * factor) // multiple) * multiple
