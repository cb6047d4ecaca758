"""A counted model on the chips of a replica, and the room that an engine leaves for its cache.

Term by term on one chip, with a band. One share has three meanings: vLLM's is of what the runtime
sees, SGLang's of what its context leaves and without activations, TensorRT-LLM's of what the peak
of a step leaves free.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from planner.architecture.counts import ModelSizes
from planner.memory.cache_groups import (
    INDEX,
    CacheGroups,
    LayerCache,
    cache_groups,
    packed_groups,
    pooled_groups,
)
from planner.memory.engine_table import (
    GB,
    GIB,
    MIB,
    NARROW_DTYPES,
    ChipMemory,
    EngineMemory,
    layout_factor,
    memory_table,
)
from planner.memory.room_equations import solved

Scalars: TypeAlias = float | np.ndarray  # a number, or an array with an entry per layout
GRAPHS = 512  # maximum sequences of a captured graph, vllm/config/compilation.py


@dataclass(frozen=True)
class ModelMemory:
    """Properties of a model that determine its memory on one chip.

    `weights` are resident, as in the checkpoint [byte]; `factor` what kernels make of them.
    `layers` are those of a stage, `ffn` the widest dense part of a whole model, `expert_width` that
    of one expert on one chip, `experts` those that a token visits; a value takes `value` [byte].
    """

    weights: float
    factor: float
    layers: int
    hidden: int
    ffn: int
    vocab: int
    caches: tuple[LayerCache, ...]
    experts: int = 0
    expert_width: float = 0.0
    value: int = 2
    packed: bool = False


@dataclass(frozen=True)
class ReplicaLayout:
    """Layout of a replica: experts over `ep` groups of chips, each cut `tp_expert` ways."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    tp_expert: int | None = None

    @property
    def chips(self) -> int:
        """Chips of the replica."""
        return self.tp * self.pp * self.dp


@dataclass(frozen=True)
class EngineLimits:
    """Start settings of an engine and ranks of a replica; None for a setting left to the engine.

    `seats` sequences and `tokens` of a step; `sampler` native, flashinfer or none (of models that
    only embed), empty for the usual; `drafted` tokens a step by the model's own blocks (mtp) or by
    another model (draft), as `drafts` says; `dcp` ranks of `tp` share contexts.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    share: float | None = None
    seats: int | None = None
    tokens: int | None = None
    sampler: str = ""
    graphs: bool = True
    images: bool = False
    drafts: str = ""
    drafted: int = 0
    dcp: int = 1

    @property
    def ranks(self) -> int:
        """Ranks of a stage, which gather from each other; stages only send."""
        return self.tp * self.dp


@dataclass(frozen=True)
class CacheRoom:
    """Memory left for the cache on one chip, from `low` to `high` [byte], and the terms subtracted.

    `share` of the memory as the engine means it, at most `largest`; `seats` and `tokens` of a step;
    `terms` by name [byte]; `outside` is what the share leaves, of which context, graphs and, beside
    packed experts, the sampler's first step use `beside` [byte]: two logs end there.
    """

    room: float
    low: float
    high: float
    share: float
    largest: float
    seats: int
    tokens: int
    terms: Mapping[str, float]
    outside: float
    beside: float
    assumed: tuple[str, ...] = ()

    @property
    def starts(self) -> bool:
        """True if the share is free, and context, graphs and a first step fit outside it."""
        return self.share <= self.largest and self.outside >= self.beside


def engine_room(
    model: ModelMemory, chip: ChipMemory, engine: EngineMemory, limits: EngineLimits
) -> CacheRoom:
    """The room on one chip of a replica."""
    usual = engine.limits(chip)
    tokens = limits.tokens or usual[1]
    seats = min(limits.seats or usual[0], tokens)
    values = _step_values(model, chip, engine, replace(limits, seats=seats, tokens=tokens))
    share = limits.share or engine.rules.get("share") or _default_share(chip, engine, values)
    sizes = solved(engine.rules["meaning"], {**values, "x_mem": share})
    linked = limits.ranks > 1 and chip.links
    band = memory_table()["band"]["several" if linked else "one_rank"] * GIB
    profiles = engine.rules["meaning"] == "profiled"
    counted = engine.rules["meaning"] != "pool"  # which leaves activations outside
    late = limits.graphs and not engine.era["graphs_inside"]
    graphs = values["k_graph"] * model.layers * _graphs(seats) if late else 0.0
    terms = {
        "weights": values["M_weights"] * values["f_format"],
        "profile of a step": counted * max(sizes["M_smp"], sizes["M_fwd"]),
        "workspace of experts": sizes["M_moe"],
        "libraries and links": values["M_else"],
        "images, drafts, host": values["M_more"],
        "graphs": sizes["M_graph"],
    }
    defaults = profiles and not (limits.seats and limits.tokens)
    unasked = "limits of a step are the engine's defaults for this chip" if defaults else ""
    return CacheRoom(
        room=sizes["M_room"],
        low=sizes["M_room"] - band,
        high=sizes["M_room"] + band,
        share=share,
        largest=sizes.get("x_start", 1.0),
        seats=seats,
        tokens=tokens,
        terms=terms,
        outside=(1 - share) * chip.visible,
        beside=values["M_ctx"] + graphs + model.packed * sizes["M_smp"] if profiles else 0.0,
        assumed=tuple(filter(None, (engine.assumed, chip.assumed, unasked))),
    )


def _graphs(seats: int) -> int:
    most = min(GRAPHS, 2 * seats)
    return 2 * sum(x <= most for x in (1, 2, 4, *range(8, 256, 8), *range(256, GRAPHS + 1, 16)))


def _step_values(
    model: ModelMemory, chip: ChipMemory, engine: EngineMemory, limits: EngineLimits
) -> dict[str, float]:
    """Values by symbol for the equations of an engine's room, without the memory share."""
    seats, tokens = limits.seats or 0, limits.tokens or 0
    table, era = memory_table(), engine.era
    drafts = {"": 0.0, "mtp": table["prediction"], "draft": table["draft"]["fixed"]}
    more = drafts[limits.drafts] + limits.images * table["images"]
    more = (more + chip.unified * table["unified"]["taken"]) * GIB
    if limits.drafts == "draft":
        more += table["draft"]["mib_per_token"] * tokens * MIB
    return {
        "M_vis": chip.visible,
        "M_ctx": chip.context(limits.ranks, experts=bool(model.experts)),
        "M_weights": model.weights,
        "f_format": model.factor,
        "M_else": engine.elsewhere(chip, limits.ranks),
        "M_more": more,
        "k_graph": era["graph_mib"] * MIB,
        "n_deep": model.layers,
        "n_graph": _graphs(seats) if limits.graphs and era["graphs_inside"] else 0,
        "k_smp": era[f"sampler_{limits.sampler}" if limits.sampler else "sampler"],
        "k_resid": era["residual"],
        "k_ffn": era["ffn"],
        "k_moe": 0.0 if model.packed else era["workspace"],
        "n_seats": seats,
        "n_budget": tokens,
        "n_pick": model.experts,
        "h_hid": model.hidden,
        "h_ffn": model.ffn,
        "h_one": model.expert_width,
        "vocab": model.vocab,
        "b_val": model.value,
        "b_logit": 4,  # 32 bits in every sampler
        "tp": limits.tp,
        "pp": limits.pp,
        "one_seq": 1,
        "one_token": 1,
    }


def _default_share(chip: ChipMemory, engine: EngineMemory, values: Mapping[str, float]) -> float:
    """The share of an engine that works it out from a chunk, graphs and ranks."""
    rule = engine.rules["default_share"]
    settings = {
        **{"M_base_gr": rule["base"] * MIB, "b_chunk": rule["per_token"] * MIB},
        **{"b_run": rule["per_graph"] * MIB, "M_rank": rule["per_rank"] * MIB},
        **{"tp": values["tp"], "pp": values["pp"], "n_seats": min(values["n_seats"], GRAPHS)},
        "n_budget": max(values["n_budget"], rule["least_tokens"]),
    }
    static = solved("kept", settings)["M_static"]
    if chip.reported > rule["least_above"] * GB:
        static = max(static, rule["least"] * MIB)
    room = {"M_static": static, "M_cap": chip.reported}
    return solved("share", room)["x_default"]


def model_memory(sizes: ModelSizes, layout: ReplicaLayout, engine: EngineMemory) -> ModelMemory:
    """Properties of a model in a layout that determine its memory, on the fullest chip.

    Where an engine copies the attention of a dense model, the copies may share all else.
    """
    shares = engine.rules.get("copies_share_dense", False) and not sizes.n_experts
    routed, dense_ffn = sizes.weight_bytes["routed"], sizes.weight_bytes["dense_ffn"]
    fixed = sizes.total_weight_bytes - routed
    fixed -= dense_ffn * (1 - 1 / layout.dp) if shares else 0.0
    fixed += (layout.tp - 1) * sizes.copied[1]
    ways = layout.ep * layout.tp_expert if layout.tp_expert else layout.tp * layout.dp
    fullest = fullest_weights(sizes, *(np.array([n]) for n in (layout.tp, layout.pp, ways)))
    cut = layout.tp_expert or ways / layout.ep
    dense = max((x.width for x in sizes.inner if x.group in ("dense_ffn", "shared")), default=0)
    return ModelMemory(
        weights=float(fullest[0]) * (fixed / layout.tp + routed / ways) / layout.pp,
        factor=float(kernel_factor(sizes, layout.tp, ways, cut, layout.tp * layout.dp)),
        layers=-(-sizes.n_layers // layout.pp),
        hidden=sizes.hidden,
        ffn=dense,
        vocab=sizes.vocab,
        caches=tuple(_caches(sizes, layout)),
        experts=sizes.n_experts_active,
        expert_width=_expert_width(sizes) / cut,
        value=4 if sizes.activation_dtype == "fp32" else 2,
        packed=packed_format(sizes) == "mxfp4",
    )


def fullest_weights(
    sizes: ModelSizes, tp: np.ndarray, pp: np.ndarray, ways: np.ndarray, *, read: bool = False
) -> np.ndarray:
    """Weights on a chip of the fullest of `pp` stages over the mean of all; shape (n_layouts,).

    They are cut `tp` ways, routed experts `ways` ways; those that a step may `read`, or all that
    are stored. Of a model of bare numbers layers are alike.
    """
    layers, weights = sizes.n_layers, sizes.streamed_bytes if read else sizes.weight_bytes
    fullest = np.ceil(layers / pp) * pp / layers
    if not sizes.layer_bytes:
        return fullest
    # A tied embedding is stored once more on the last stage, which multiplies with it.
    ends = weights["embedding"], sizes.streamed_bytes["head"]
    mean = ((sum(weights.values()) - weights["routed"]) / tp + weights["routed"] / ways) / pp
    for stages in np.unique(pp[pp > 1]).tolist():
        rows = np.flatnonzero(pp == stages)
        parts = _stages(sizes.layer_bytes, *ends, min(stages, layers))
        loads = [outside / tp[rows] + routed / ways[rows] for outside, routed in parts]
        fullest[rows] = np.max(loads, axis=0) / mean[rows]
    return fullest


@lru_cache(maxsize=4096)
def _stages(
    layer_bytes: tuple[tuple[float, float], ...], first: float, last: float, stages: int
) -> tuple[tuple[float, float], ...]:
    """Bytes outside routed experts and in them, of stages that differ.

    Layers that do not divide go to the stages before the last, from behind. Source: vLLM,
    distributed/utils.py: get_pp_indices; SGLang begins with the last.
    """
    whole, rest = divmod(len(layer_bytes), stages)
    counts = [whole + (stages - 1 - rest <= i < stages - 1) for i in range(stages)]
    weights = np.add.reduceat(np.array(layer_bytes), np.cumsum([0, *counts[:-1]]))
    weights[[0, -1], 0] += first, last
    return tuple(dict.fromkeys((outside, routed) for outside, routed in weights.tolist()))


def packed_format(sizes: ModelSizes) -> str:
    """Weight format that kernels lay out: the first of `NARROW_DTYPES` in use, else as stored."""
    formats = {name for mix in sizes.weight_mix.values() for name in mix}
    return next((name for name in NARROW_DTYPES if name in formats), sizes.stored or "bf16")


def kernel_factor(
    sizes: ModelSizes, tp: Scalars, ways: Scalars, cut: Scalars, ranks: Scalars
) -> np.ndarray:
    """Bytes of a chip's weights as kernels lay them out, over those of the checkpoint.

    Dense weights are cut `tp` ways, experts lie over `ways` chips and each is `cut`.
    """
    factor, routed = layout_factor(packed_format(sizes)), sizes.weight_bytes["routed"]
    if packed_format(sizes) != "mxfp4" or not routed:
        return np.full(np.shape(ranks), factor)
    dense = (sizes.total_weight_bytes - routed) / tp
    pads = expert_padding(sizes.hidden, _expert_width(sizes) / cut, ranks)
    return np.asarray(factor * (1 + routed / ways * (pads - 1) / (dense + routed / ways)))


def conversion_note(stored: ModelSizes, converted: ModelSizes) -> str:
    """Note on attention that a conversion takes along, unlike many a checkpoint; empty if none."""
    more = stored.weight_bytes["attention"] - converted.weight_bytes["attention"]
    if more <= 0:
        return ""
    name, before = (x.weight_dtype["attention"] for x in (converted, stored))
    return (
        f"weights: {name} converts attention too; a checkpoint that keeps it in {before} holds "
        f"{more / GB:.3g} GB more in all: give its config.json"
    )


def expert_padding(hidden: float, width: Scalars, ranks: Scalars) -> np.ndarray:
    """Bytes of MXFP4 experts as kernels pad both their sides, over those of the checkpoint.

    `width` is that of an expert on one of so many ranks. Source: vLLM, mxfp4.py: columns of 256,
    rows of 128; rows of 64 on one rank, as logged.
    """
    rows = np.where(np.asarray(ranks) > 1, 128, 64)
    return np.ceil(hidden / 256) * 256 / hidden * np.ceil(width / rows) * rows / width


def engine_groups(model: ModelMemory, engine: EngineMemory, limits: EngineLimits) -> CacheGroups:
    """The groups of a model's cache in an engine; of `dcp` ranks each fills blocks of its own."""
    rules, era = engine.rules, engine.era
    if rules["meaning"] != "profiled":
        shares = (rules.get("window_share", 1), rules.get("state_share", 0))
        groups = pooled_groups(model.caches, *shares)
    elif "packed" in era and any(x.ratio > 1 for x in model.caches):
        groups = packed_groups(model.caches, era["packed"])
    else:
        own_pages, drafts = era.get("own_pages", False), limits.drafted
        groups = cache_groups(
            model.caches, hybrid=era["hybrid"], drafts=drafts, own_pages=own_pages
        )
    steps = limits.pp + 1 if era.get("overlapped") else 1
    return replace(groups, in_flight=steps, tokens=groups.tokens * limits.dcp)


def _caches(sizes: ModelSizes, layout: ReplicaLayout) -> Iterator[LayerCache]:
    """The layers of a stage that keep something, on one chip."""
    widths = {x.kind: x.elements_per_token / x.layers for x in sizes.caches}
    for cache in sizes.caches:
        # Keys of an index are compressed as the entries of its layers are.
        entries = widths.get("compressed_sparse" if cache.kind == "index" else cache.kind, 0)
        packed = cache.kind == "index" or cache.kind.startswith("compressed")
        ratio = round(widths["window"] / entries) if packed and entries else 1
        whole = INDEX / ratio if cache.kind == "index" else cache.bytes_per_token / cache.layers
        part = -(-cache.heads // layout.tp) / cache.heads
        window = None if cache.grows else cache.limit
        yield LayerCache(-(-cache.layers // layout.pp), whole * part, window, ratio=ratio)
    if sizes.state_bytes_per_sequence:
        keeping = sizes.n_state_layers or sizes.n_layers  # of a model of bare numbers all
        state_bytes = sizes.state_bytes_per_sequence / keeping
        yield LayerCache(-(-keeping // layout.pp), state_bytes / layout.tp, state=True)


def _expert_width(sizes: ModelSizes) -> int:
    return next((x.width for x in sizes.inner if x.group == "routed"), 0)
