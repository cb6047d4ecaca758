"""Softmax attention: weights of one layer, its KV cache and the FLOP per cached token.

FLOP of one (query, cached entry) pair, all heads together: 4·H·d where every head keeps its own
or a grouped key and value of width d; latent attention scores against the latent itself in
decode, 2·H·(2·r_kv + r_rope) (DeepSeek-V2, arXiv 2405.04434, section 2.1.2), and against expanded
keys and values in prefill, 2·H·(d_nope + d_rope + d_v).
"""

from dataclasses import dataclass

from planner.architecture.layers import Cache, Mixer, Weight, matrix, vector


@dataclass(frozen=True, slots=True)
class Latent:
    """Widths of latent attention: ranks of query (None: full) and cache, and widths per head."""

    query_rank: int | None
    cache_rank: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True, slots=True)
class Indexer:
    """The small scorer of sparse attention: heads, width per head, entries kept per query.

    `own` is False in a layer that reuses the choice of an earlier layer.
    """

    heads: int
    width: int
    top: int
    has_weights: bool = True


def grouped_attention(
    hidden: int,
    heads: int,
    kv_heads: int,
    width: int,
    *,
    bias: bool = False,
    output_bias: bool = False,
    norm: int = 0,
    gate: bool = False,
    gate_width: int = 0,
    sinks: bool = False,
    loose: int = 0,
    value_width: int | None = None,
    keys: str = "own",
    window: int | None = None,
    kind: str = "full",
    path: str = "self_attn",
) -> Mixer:
    """Grouped-query attention (multi-head where kv_heads = heads, multi-query where it is 1).

    `norm` counts the parameters of query and key norms, `gate` makes the query projection an
    output gate too, `gate_width` is that of a gate with a matrix of its own, `sinks` adds one
    learned logit per head, `loose` any other vectors; `value_width` is the width of a value where
    it differs from a key's. `window` bounds what is attended and stored; `kind` then says `window`
    or `chunked`. `keys` is `own`, `as values` (one projection makes both, and both are cached), or
    `borrowed`: an earlier layer's cache is read, which is counted as stored once and read once.
    """
    value = width if value_width is None else value_width
    inner, result, cached = heads * width, heads * value, kv_heads * (width + value)
    projected = {"own": cached, "as values": kv_heads * width, "borrowed": 0}[keys]
    query_width = inner * (2 if gate else 1)
    weights = [matrix(f"{path}.q_proj", "attention", hidden, query_width)]
    if projected:
        weights.append(matrix(f"{path}.k_proj", "attention", hidden, kv_heads * width))
    if projected > kv_heads * width:
        weights.append(matrix(f"{path}.v_proj", "attention", hidden, kv_heads * value))
    weights.append(matrix(f"{path}.o_proj", "attention", result, hidden))
    if gate_width:
        weights.append(matrix(f"{path}.g_proj", "attention", hidden, gate_width))
    loose += norm + (heads if sinks else 0)
    loose += query_width + projected if bias else 0
    loose += hidden if output_bias else 0
    if loose:
        weights.append(vector(f"{path}.bias_and_norm", "attention", loose))
    pair = 2 * (inner + result)
    elements = 0 if keys == "borrowed" else cached
    cache = Cache(kind, elements, kv_heads, pair, pair, window, window is None)
    return Mixer(kind, tuple(weights), (cache,), window=window)


def latent_attention(
    hidden: int,
    heads: int,
    latent: Latent,
    indexer: Indexer | None = None,
    *,
    bias: bool = False,
    gate: bool = False,
    head_gate: bool = False,
    sinks: bool = False,
) -> Mixer:
    """Multi-head latent attention; with an indexer it attends to the top entries only.

    One latent of cache_rank + rope elements per token is cached for all heads, so tensor
    parallelism copies it. Sparse attention runs on the latent itself in prefill too.
    """
    weights = list(_latent_weights(hidden, heads, latent, bias, gate))
    if head_gate:
        weights.append(matrix("self_attn.g_proj", "attention", hidden, heads))
    if sinks:
        weights.append(vector("self_attn.sinks", "attention", heads))
    decode = 2 * heads * (2 * latent.cache_rank + latent.rope)
    prefill = 2 * heads * (latent.nope + latent.rope + latent.value)
    elements = latent.cache_rank + latent.rope
    if indexer is None:
        full = Cache("latent", elements, 1, decode, prefill)
        return Mixer("mla", tuple(weights), (full,))
    caches = [Cache("sparse", elements, 1, decode, decode, indexer.top, True)]
    if indexer.has_weights:
        rank = latent.query_rank if latent.query_rank is not None else hidden
        inner, path = indexer.heads * indexer.width, "self_attn.indexer"
        weights += [
            matrix(f"{path}.wq_b", "attention", rank, inner),
            matrix(f"{path}.wk", "attention", hidden, indexer.width),
            matrix(f"{path}.weights_proj", "attention", hidden, indexer.heads),
            vector(f"{path}.k_norm", "attention", 2 * indexer.width),
        ]
        caches.append(Cache("index", indexer.width, 1, 2 * inner, 2 * inner))
    return Mixer("mla_sparse", tuple(weights), tuple(caches))


def _latent_weights(
    hidden: int, heads: int, latent: Latent, bias: bool, gate: bool
) -> tuple[Weight, ...]:
    path, rank = "self_attn", latent.query_rank
    queries = heads * (latent.nope + latent.rope)
    compressed, values = latent.cache_rank + latent.rope, heads * latent.value
    expanded = heads * (latent.nope + latent.value)
    if rank is None:
        weights = [matrix(f"{path}.q_proj", "attention", hidden, queries)]
    else:
        weights = [
            matrix(f"{path}.q_a_proj", "attention", hidden, rank),
            vector(f"{path}.q_a_layernorm", "attention", rank),
            matrix(f"{path}.q_b_proj", "attention", rank, queries),
        ]
    weights += [
        matrix(f"{path}.kv_a_proj_with_mqa", "attention", hidden, compressed),
        vector(f"{path}.kv_a_layernorm", "attention", latent.cache_rank),
        matrix(f"{path}.kv_b_proj", "attention", latent.cache_rank, expanded),
        matrix(f"{path}.o_proj", "attention", values, hidden),
    ]
    if gate:
        weights.append(matrix(f"{path}.g_proj", "attention", hidden, values))
    if bias:
        loose = (0 if rank is None else rank) + compressed + hidden
        weights.append(vector(f"{path}.bias", "attention", loose))
    return tuple(weights)


def compressed_attention(
    hidden: int,
    heads: int,
    width: int,
    *,
    query_rank: int,
    groups: int,
    output_rank: int,
    window: int,
    ratio: int,
    indexer: Indexer | None,
) -> Mixer:
    """DeepSeek-V4 attention: a window of raw entries plus entries that pool `ratio` tokens.

    Key and value are one shared vector of `width`. Ratio 0 is the window alone; with an indexer
    (compressed sparse attention) windows overlap, which doubles the compressor, and only the top
    entries are read. Source: DeepSeek-V4, arXiv 2606.19348, section 2.3.
    """
    path = "attn"
    weights = [
        matrix(f"{path}.q_a_proj", "attention", hidden, query_rank),
        vector(f"{path}.q_a_norm", "attention", query_rank),
        matrix(f"{path}.q_b_proj", "attention", query_rank, heads * width),
        matrix(f"{path}.kv_proj", "attention", hidden, width),
        vector(f"{path}.kv_norm", "attention", width),
        matrix(f"{path}.o_a_proj", "attention", heads * width // groups, groups * output_rank),
        matrix(f"{path}.o_b_proj", "attention", groups * output_rank, hidden),
        vector(f"{path}.sinks", "attention", heads),
    ]
    pair = 4 * heads * width
    caches = [Cache("window", width, 1, pair, pair, window, False)]
    if ratio == 0:
        return Mixer("window", tuple(weights), tuple(caches), window=window)
    overlap = 2 if indexer is not None else 1
    weights += _compressor(f"{path}.compressor", hidden, width, overlap, ratio)
    if indexer is None:
        caches.append(Cache("compressed", width, 1, pair, pair, ratio=ratio))
        return Mixer("compressed", tuple(weights), tuple(caches), window=window)
    inner, nested = indexer.heads * indexer.width, f"{path}.compressor.indexer"
    weights += _compressor(nested, hidden, indexer.width, overlap, ratio)
    weights += [
        matrix(f"{nested}.q_b_proj", "attention", query_rank, inner),
        matrix(f"{nested}.weights_proj", "attention", hidden, indexer.heads),
    ]
    limit = indexer.top * ratio
    caches += [
        Cache("compressed_sparse", width, 1, pair, pair, limit, True, ratio),
        Cache("index", indexer.width, 1, 2 * inner, 2 * inner, ratio=ratio),
    ]
    return Mixer("compressed_sparse", tuple(weights), tuple(caches), window=window)


def _compressor(path: str, hidden: int, width: int, overlap: int, ratio: int) -> list[Weight]:
    return [
        matrix(f"{path}.kv_proj", "attention", hidden, overlap * width),
        matrix(f"{path}.gate_proj", "attention", hidden, overlap * width),
        vector(f"{path}.position_bias", "attention", ratio * overlap * width),
        vector(f"{path}.kv_norm", "attention", width),
    ]
