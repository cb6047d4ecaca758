"""A model known only by a few numbers: weights, cache per token, perhaps its depth and width."""

from typing import Protocol, TypeVar

from planner.architecture.caches import CacheKind
from planner.architecture.counts import Sizes
from planner.architecture.layers import GROUPS
from planner.architecture.quantization import dtype
from planner.text.errors import ModelError

# With nothing said of heads, attention divides over any number of chips up to this.
HEADS = 5040  # 2^4 * 3^2 * 5 * 7: divisible by every small group size
Number = TypeVar("Number", int, float)


class Description(Protocol):
    """What is known of such a model; params, byte/param, byte/token, flop/token, byte."""

    total_params: float | None
    active_params: float | None
    weights: str | None
    kv: str | None
    activations: str | None
    bytes_per_weight: float | None
    kv_bytes_per_token: float | None
    attention_flops_per_cached_token: float | None
    state_bytes_per_sequence: float | None
    layers: int | None
    hidden: int | None


def abstract_sizes(
    description: Description,
    weights: str | None = None,
    kv: str | None = None,
    activations: str | None = None,
) -> Sizes:
    """Sizes of a model described by totals: every weight of one dtype, one unbounded cache.

    Every step is taken to read all weights, and a token to pass through the active ones: nothing
    is known of experts. Raises ModelError when another dtype of the cache is asked for than the
    one its bytes per token are given in.
    """
    total = round(description.total_params or 0.0)
    active = round(description.active_params or total)
    name = weights or description.weights or "bf16"
    if kv is not None and kv != description.kv:
        raise ModelError(
            "choose.kv: the model is described by kv_bytes_per_token, which has a dtype already; "
            "give other bytes per token instead"
        )
    size = float(dtype(name).bytes)
    if weights is None and description.bytes_per_weight:
        size = description.bytes_per_weight
    narrow = "bf16" if name in ("int8", "int4", "fp32") else name
    layers, stored = description.layers or 1, _all_dense(total * size)
    cached = float(description.kv_bytes_per_token or 0.0)
    flop = float(description.attention_flops_per_cached_token or 0.0)
    cache = CacheKind("full", layers, cached, cached, None, True, flop, flop, HEADS, flop / 2)
    return Sizes(
        name="described model",
        family="abstract",
        source="described in the scenario",
        hidden=description.hidden or 0,
        expert_width=description.hidden or 0,
        n_q_heads=HEADS,
        n_total=total,
        n_active=dict.fromkeys(("all", "no_input_embedding", "no_embedding_no_head"), active),
        params=_all_dense(total),
        active=_all_dense(active),
        weight_bytes=stored,
        streamed_bytes=dict(stored),
        weight_dtype=dict.fromkeys(GROUPS, name),
        weight_mix={"dense_ffn": {name: total}},
        activation_dtype=activations or description.activations or narrow,
        kv_dtype=description.kv or name,
        caches=(cache,),
        state_bytes_per_sequence=float(description.state_bytes_per_sequence or 0.0),
        n_layers=layers,
        n_dense_ffn_layers=layers,
        n_attention_layers=layers,
    )


def _all_dense(value: Number) -> dict[str, Number]:
    return dict.fromkeys(GROUPS, 0) | {"dense_ffn": value}
