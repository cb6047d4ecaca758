"""A model known only by a few numbers: weights, cache per token, perhaps its depth and width."""

from __future__ import annotations

from typing import Protocol

from planner.architecture.caches import CacheKind
from planner.architecture.counts import Sizes
from planner.architecture.dtypes import dtype
from planner.architecture.layers import GROUPS
from planner.errors import ModelError

__all__ = ["abstract_sizes"]

# With nothing said of heads, attention divides over any number of chips up to this.
HEADS = 5040  # 2^4 * 3^2 * 5 * 7: divisible by every small group size


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
    given: Description,
    weights: str | None = None,
    kv: str | None = None,
    activations: str | None = None,
) -> Sizes:
    """Sizes of a model described by totals: every weight of one dtype, one unbounded cache.

    Every step is taken to read all weights, and a token to pass through the active ones: nothing
    is known of experts. Raises ModelError when another dtype of the cache is asked for than the
    one its bytes per token are given in.
    """
    total = float(given.total_params or 0.0)
    active = float(given.active_params or total)
    name = weights or given.weights or "bf16"
    each = given.bytes_per_weight if weights is None and given.bytes_per_weight else None
    each = float(dtype(name).bytes) if each is None else each
    if kv is not None and kv != given.kv:
        raise ModelError(
            "choose.kv: the model is described by kv_bytes_per_token, which has a dtype already; "
            "give other bytes per token instead"
        )
    counts = dict.fromkeys(GROUPS, 0) | {"dense_ffn": round(total)}
    stored = {group: count * each for group, count in counts.items()}
    cache = CacheKind(
        kind="full",
        layers=given.layers or 1,
        elements_per_token=float(given.kv_bytes_per_token or 0.0),
        bytes_per_token=float(given.kv_bytes_per_token or 0.0),
        limit=None,
        grows=True,
        flop_per_cached_token=float(given.attention_flops_per_cached_token or 0.0),
        flop_per_pair_prefill=float(given.attention_flops_per_cached_token or 0.0),
        heads=HEADS,
    )
    return Sizes(
        name="described model",
        family="abstract",
        source="described in the scenario",
        n_layers=given.layers or 1,
        n_moe_layers=0,
        n_dense_ffn_layers=given.layers or 1,
        n_attention_layers=given.layers or 1,
        hidden=given.hidden or 0,
        vocab=0,
        tied=False,
        n_q_heads=HEADS,
        n_kv_heads=HEADS,
        n_experts=0,
        n_experts_active=0,
        n_shared_experts=0,
        expert_width=given.hidden or 0,
        max_context=None,
        n_total=round(total),
        n_active=dict.fromkeys(
            ("all", "no_input_embedding", "no_embedding_no_head"), round(active)
        ),
        params=counts,
        active=dict.fromkeys(GROUPS, 0) | {"dense_ffn": round(active)},
        weight_bytes=stored,
        streamed_bytes=dict(stored),
        weight_dtype=dict.fromkeys(GROUPS, name),
        weight_mix={group: {name: count} for group, count in counts.items() if count},
        activation_dtype=activations or given.activations or _activation(name),
        kv_dtype=given.kv or name,
        caches=(cache,),
        kv_elements_per_token=cache.elements_per_token,
        index_elements_per_token=0.0,
        window_elements_per_sequence=0,
        kv_bytes_per_token=cache.bytes_per_token,
        index_bytes_per_token=0.0,
        window_bytes_per_sequence=0.0,
        state_bytes_per_sequence=float(given.state_bytes_per_sequence or 0.0),
        attention_flop_per_cached_token=cache.flop_per_cached_token,
        state_flop_per_token=0,
        mtp_blocks=0,
        mtp_params=None,
        excluded=(),
    )


def _activation(weights: str) -> str:
    return "bf16" if weights in ("int8", "int4", "fp32") else weights
