"""What an engine takes of a chip's memory beside weights and caches, by layout.

Where an engine is named, its profile of a step is charged at the plan's batch, which the export
writes as the most sequences of a step; else what the equations count of the widest layer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.memory.engine_table import (
    GIB,
    MIB,
    EngineMemory,
    chip_memory,
    engine_memory,
    figures,
    layout_factor,
)

if TYPE_CHECKING:
    from planner.catalogue.chips import Chip
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

CHARGED = ("profiled", "pool")  # meanings of a share whose terms are known from enough logs
GRAPHS = 102  # two of each size up to 512 sequences
LIVE_VECTORS = 8  # hidden vectors alive per token in one layer: residual, norm, q, k, v, FFN
SURE = 0.9  # chance from which the low end of the room is charged
QUANTISED = ("mxfp4", "nvfp4", "int4", "fp8", "int8")  # the narrowest decides the layout


def memory_rules(engine: str, chip: Chip, version: str | None = None) -> EngineMemory | None:
    """How a named engine takes memory of a chip of the catalogue; None where nobody read it."""
    if engine in ("any", "none") or not chip.figures:
        return None
    rules = engine_memory(engine, version or "")
    return rules if rules.rules["meaning"] in CHARGED else None


def seen_chip(chip: Chip, rules: EngineMemory | None) -> Chip:
    """The chip with the memory that a share is of: what a runtime sees, or what contexts leave."""
    if rules is None:
        return chip
    seen, table = chip_memory(chip), figures()
    context = table["context"] + (table["links"]["experts"] if seen.links else 0.0)
    outside = context * GIB if rules.rules["meaning"] == "pool" else 0.0
    return replace(chip, memory=seen.visible - outside)


def live_vectors(task: Task) -> int:
    """Vectors of the model's width alive per token beside a peak: of a profile the residual."""
    rules = task.memory_rules
    return 1 if rules is not None and rules.rules["meaning"] == "profiled" else LIVE_VECTORS


def memory_terms(task: Task, layouts: Layouts) -> dict[str, np.ndarray]:
    """Values of the symbols of an engine's memory, each of shape (n_layouts,)."""
    ones, tp = np.ones(len(layouts)), layouts.tp.astype(float)
    rules, sizes = task.memory_rules, task.sizes
    reads = 0.0 if task.mode == "decode" else 1.0
    if rules is None or task.lecture:
        nothing = np.zeros(len(layouts))
        bare = dict.fromkeys(("h_peak", "h_work", "M_hold"), nothing)
        return {**bare, "k_smp": 1.0 / tp, "f_format": ones, "x_pass": reads * ones}
    ranks = layouts.tp * layouts.dp_attention
    seen, era = chip_memory(task.chip), rules.era
    formats = {name for mix in sizes.weight_mix.values() for name in mix}
    narrow = next((name for name in QUANTISED if name in formats), sizes.stored)
    band = figures()["band"]
    margin = np.where((ranks > 1) & seen.links, band["several"], band["one_rank"]) * GIB
    terms = {
        "f_format": np.where(ranks > 1, layout_factor(narrow, 2), layout_factor(narrow, 1)),
        "M_hold": margin * (task.chance is not None and task.chance >= SURE),
    }
    if rules.rules["meaning"] == "pool":  # activations are kept out of it as they are counted
        none = dict.fromkeys(("h_peak", "h_work"), 0.0 * tp)
        return {**terms, **none, "k_smp": 1.0 / tp, "x_pass": reads * ones}
    alone, several = (rules.elsewhere(seen, n) for n in (1, 2))
    graphs = era["graph_mib"] * MIB * GRAPHS * np.ceil(sizes.n_layers / layouts.pp)
    dense = max((x.width for x in sizes.inner if x.group in ("dense_ffn", "shared")), default=0)
    routed = next((x.width for x in sizes.inner if x.group == "routed"), 0) / layouts.tp_expert
    work = sizes.n_experts_active * (np.maximum(2 * routed, sizes.hidden) + routed)
    return {
        **terms,
        "M_hold": terms["M_hold"]
        + np.where(ranks > 1, several, alone)
        + graphs * bool(era["graphs_inside"]),
        "x_pass": ones,  # a pool that decodes lets in a prompt whose cache did not arrive
        "k_smp": era["sampler"] * layouts.pp.astype(float),
        "h_work": (0.0 if narrow == "mxfp4" else era["workspace"]) * work * ones,
        "h_peak": (era["residual"] - 1) * sizes.hidden + era["ffn"] * dense / tp,
    }
