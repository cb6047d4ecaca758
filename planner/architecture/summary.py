"""What `planner model --json` says of a model."""

from __future__ import annotations

from collections import Counter
from typing import Any

from planner.architecture.counts import Sizes, sizes
from planner.architecture.layers import Layer, Model

__all__ = ["layer_kinds", "summary"]


def summary(model: Model, counted: Sizes | None = None) -> dict[str, Any]:
    """The model's make-up as plain data; `counted` replaces the sizes as published.

    Bytes in byte, attention in FLOP; `kv_bytes_per_token` includes indexer keys.
    """
    counted = sizes(model) if counted is None else counted
    return {
        "name": counted.name,
        "family": counted.family,
        "layers": layer_kinds(model),
        "n_layers": counted.n_layers,
        "hidden": counted.hidden,
        "vocab": counted.vocab,
        "max_context": counted.max_context,
        "experts": {
            "routed": counted.n_experts,
            "active": counted.n_experts_active,
            "shared": counted.n_shared_experts,
        },
        "n_total": counted.n_total,
        "n_active": dict(counted.n_active),
        "params": dict(counted.params),
        "weight_bytes": dict(counted.weight_bytes),
        "weight_dtypes": dict(counted.weight_dtype),
        "weight_mix": {group: dict(mix) for group, mix in counted.weight_mix.items()},
        "activation_dtype": counted.activation_dtype,
        "kv_dtype": counted.kv_dtype,
        "kv_bytes_per_token": counted.kv_bytes_per_token,
        "index_bytes_per_token": counted.index_bytes_per_token,
        "window_bytes_per_sequence": counted.window_bytes_per_sequence,
        "state_bytes_per_sequence": counted.state_bytes_per_sequence,
        "attention_flop_per_cached_token": counted.attention_flop_per_cached_token,
        "state_flop_per_token": counted.state_flop_per_token,
        "mtp": {"blocks": counted.mtp_blocks, "params": counted.mtp_params},
        "excluded": list(counted.excluded),
        "source": counted.source,
    }


def layer_kinds(model: Model) -> list[dict[str, Any]]:
    """Layers by kind in order of first appearance: mixer, window, feed-forward part, count."""
    counted = Counter(_kind(layer) for layer in model.layers)
    return [
        {"mixer": mixer, "window": window, "ffn": part, "count": count}
        for (mixer, window, part), count in counted.items()
    ]


def _kind(layer: Layer) -> tuple[str | None, int | None, str | None]:
    mixer, part = layer.mixer, layer.feed_forward
    return (
        mixer.kind if mixer is not None else None,
        mixer.window if mixer is not None else None,
        part.kind if part is not None else None,
    )
