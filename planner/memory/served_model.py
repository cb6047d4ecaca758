"""A counted model on the chips of a replica, as its engine's memory sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.architecture.counts import Sizes
from planner.memory.cache_groups import INDEX, CacheGroups, LayerCache, cache_groups, pooled_groups
from planner.memory.engine_room import EngineLimits, ModelMemory
from planner.memory.engine_table import QUANTISED, EngineMemory, layout_factor


@dataclass(frozen=True)
class ReplicaLayout:
    """How a replica is cut: experts over `ep` groups of chips, each cut `tp_expert` ways."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    tp_expert: int | None = None

    @property
    def chips(self) -> int:
        """Chips of the replica."""
        return self.tp * self.pp * self.dp

    @property
    def expert_ways(self) -> int:
        """Chips of a stage over which routed experts are spread."""
        return self.ep * self.tp_expert if self.tp_expert else self.tp * self.dp


def model_memory(sizes: Sizes, layout: ReplicaLayout, engine: EngineMemory) -> ModelMemory:
    """What memory depends on of a model in a layout, on the fullest chip.

    Where an engine copies the attention of a dense model, the copies may share all else.
    """
    shares = engine.rules.get("copies_share_dense", False) and not sizes.n_experts
    routed, dense_ffn = sizes.weight_bytes["routed"], sizes.weight_bytes["dense_ffn"]
    fixed = sizes.total_weight_bytes - routed
    fixed -= dense_ffn * (1 - 1 / layout.dp) if shares else 0.0
    stage = -(-sizes.n_layers // layout.pp)
    share = stage / sizes.n_layers
    formats = {name for mix in sizes.weight_mix.values() for name in mix}
    narrow = next((name for name in QUANTISED if name in formats), sizes.stored or "bf16")
    ranks = layout.tp * layout.dp
    dense = max((x.width for x in sizes.inner if x.group in ("dense_ffn", "shared")), default=0)
    return ModelMemory(
        weights=share * (fixed / layout.tp + routed / layout.expert_ways),
        factor=layout_factor(narrow, ranks),
        layers=stage,
        hidden=sizes.hidden,
        ffn=dense,
        vocab=sizes.vocab,
        caches=tuple(_caches(sizes, layout)),
        experts=sizes.n_experts_active,
        expert_width=_expert_width(sizes) / (layout.tp_expert or layout.expert_ways / layout.ep),
        value=4 if sizes.activation_dtype == "fp32" else 2,
        packed=narrow == "mxfp4",
    )


def engine_groups(model: ModelMemory, engine: EngineMemory, limits: EngineLimits) -> CacheGroups:
    """The groups of a model's cache in an engine."""
    if engine.rules["meaning"] == "profiled":
        era = engine.era
        own_pages, drafts = era.get("own_pages", False), limits.drafted
        return cache_groups(model.caches, hybrid=era["hybrid"], drafts=drafts, own_pages=own_pages)
    rules = engine.rules
    return pooled_groups(model.caches, rules.get("window_share", 1), rules.get("state_share", 0))


def _caches(sizes: Sizes, layout: ReplicaLayout) -> Iterator[LayerCache]:
    """The layers of a stage that keep something, on one chip."""
    for cache in sizes.caches:
        whole = INDEX if cache.kind == "index" else cache.bytes_per_token / cache.layers
        part = -(-cache.heads // layout.tp) / cache.heads
        window = None if cache.grows else cache.limit
        yield LayerCache(-(-cache.layers // layout.pp), whole * part, window)
    if sizes.state_bytes_per_sequence:
        keeping = sizes.n_state_layers or sizes.n_layers  # of a model of bare numbers all
        state_bytes = sizes.state_bytes_per_sequence / keeping
        yield LayerCache(-(-keeping // layout.pp), state_bytes / layout.tp, state=True)


def _expert_width(sizes: Sizes) -> int:
    """Width of one routed expert; 0 of a model without."""
    return next((x.width for x in sizes.inner if x.group == "routed"), 0)
