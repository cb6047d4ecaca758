"""A pool of which everything that engines' rules ask is a round number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.architecture.counts import InnerWidth
from planner.architecture.layers import CacheKind
from planner.catalogue.chips import chip
from planner.problems.serving.step.engine_rules import EnginePool
from tests.cases.serving import sparse

FULL = CacheKind("full", 2, 1.0, 2.0, None, True, 1.0, 1.0, 4)
# 12 query heads, 4 KV heads, 8 experts; 6, 4 and 3 blocks of 128 in the inner widths.
MODEL = replace(
    sparse(), n_q_heads=12, n_experts=8, n_shared_experts=1, vocab=374, family="mixtral",
    caches=(FULL,), kv_dtype="bf16", stored="bf16", stored_kv="bf16",
    weight_dtype=dict.fromkeys(("attention", "dense_ffn", "shared", "routed", "head"), "fp8"),
    inner=(InnerWidth("dense_ffn", 768, 128), InnerWidth("shared", 512, 128),
           InnerWidth("routed", 384, 128)),
)  # fmt: skip
H100, A100, B200, MI300, V100, T4 = (
    chip(name) for name in ("h100", "a100", "b200", "mi300x", "v100", "t4")
)
POOL = {"chip": H100, "role": "", "weights": "bf16"}
OF_POOL = (
    "chip", "role", "weights", "copies", "drafts", "method", "machine", "stages", "parts", "share",
)  # fmt: skip


def pool_with(changes: dict[str, Any]) -> EnginePool:
    """The pool with other figures of its own, or of its model."""
    own = {name: changes[name] for name in OF_POOL if name in changes}
    model = {name: value for name, value in changes.items() if name not in OF_POOL}
    return EnginePool(replace(MODEL, **model), **{**POOL, **own})
