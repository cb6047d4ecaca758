"""What an engine takes of a chip's memory beside weights and caches, by layout.

Where one of the engines that were read must run a plan, its profile of a step is charged at the
plan's batch, which the export writes as the most sequences of a step; else what the equations count
of the widest layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.memory.engine_room import EngineLimits
from planner.memory.engine_table import (
    GIB,
    MIB,
    QUANTISED,
    EngineMemory,
    chip_memory,
    engine_memory,
    engine_names,
    figures,
    layout_factor,
)
from planner.memory.served_model import ReplicaLayout, engine_groups, model_memory
from planner.problems.serving.step.engine_rules import engine_tables

if TYPE_CHECKING:
    from planner.catalogue.chips import Chip
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

GRAPHS = 102  # two of each size up to 512 sequences
CONTEXTS = 33  # of a request from its prompt to its end, over which blocks are averaged
LIVE_VECTORS = 8  # hidden vectors alive per token in one layer: residual, norm, q, k, v, FFN
SURE = 0.9  # chance from which the low end of the room is charged


def memory_rules(
    names: Sequence[str], chip: Chip, version: str | None = None
) -> tuple[tuple[int, EngineMemory | None], ...]:
    """Engines by their bit in layouts, each with how it takes memory of a chip of the catalogue.

    The rules are None where nobody read them; no engine is charged on a chip of bare figures.
    """
    places = {name: place for place, name in enumerate(engine_tables())} if chip.figures else {}
    tables = {x: engine_memory(x, version or "") for x in names if x in engine_names()}
    return tuple((places[name], tables.get(name)) for name in names if name in places)


def seen_chip(chip: Chip, rules: Sequence[tuple[int, EngineMemory | None]]) -> Chip:
    """The chip with the memory that a runtime sees, where an engine is charged for it."""
    if not any(each for _, each in rules):
        return chip
    return replace(chip, memory=chip_memory(chip).visible)


def pool_context(chip: Chip) -> float:
    """What lies outside a share of a chip's pool [byte]: contexts, and links where it has any."""
    table = figures()
    links = table["links"]["experts"] if chip_memory(chip).links else 0.0
    return float(table["context"] + links) * GIB if chip.figures else 0.0


def charged_engine(task: Task, layouts: Layouts) -> np.ndarray:
    """The place in the task's rules of the first engine that runs each layout, -1 for none."""
    if not task.memory_rules or task.lecture:
        return np.full(len(layouts), -1)
    places = np.array([place for place, _ in task.memory_rules])
    runs = layouts.engines[:, None] >> places & 1
    return np.where(runs.any(axis=1), runs.argmax(axis=1), -1)


def memory_terms(task: Task, layouts: Layouts) -> dict[str, np.ndarray]:
    """Values of the symbols of an engine's memory, each of shape (n_layouts,).

    Each layout is charged for the first of the engines that runs it, in the order of the table;
    where none is, what is alive of a pass is a value that all layouts share.
    """
    ones, tp = np.ones(len(layouts)), layouts.tp.astype(float)
    terms = {
        **{name: np.zeros(len(layouts)) for name in ("h_peak", "h_work", "M_hold", "x_rest")},
        "k_smp": 1.0 / tp,
        "f_format": ones.copy(),
        "f_pages": ones.copy(),
        "x_pass": float(task.mode != "decode") * ones,
    }
    if not task.memory_rules:
        return terms
    terms["h_wide"] = LIVE_VECTORS * task.sizes.hidden * ones
    terms["x_mem"] = task.utilisation * ones
    charged = charged_engine(task, layouts)
    for place, (_, rules) in enumerate(task.memory_rules):
        rows = np.flatnonzero(charged == place)
        if rules is not None and rows.size:
            for name, value in _of_engine(task, layouts.take(rows), rules).items():
                if np.size(value) > terms[name].size:  # of one layout, points of lengths
                    terms[name] = np.asarray(value)
                else:
                    terms[name][rows] = value
    return terms


def _of_engine(task: Task, layouts: Layouts, rules: EngineMemory) -> dict[str, np.ndarray | float]:
    """What differs of the terms under an engine's rules, each for all layouts or one number."""
    sizes, ranks = task.sizes, layouts.tp * layouts.dp_attention
    seen, era = chip_memory(task.chip), rules.era
    formats = {name for mix in sizes.weight_mix.values() for name in mix}
    narrow = next((name for name in QUANTISED if name in formats), sizes.stored)
    band = figures()["band"]
    margin = np.where((ranks > 1) & seen.links, band["several"], band["one_rank"]) * GIB
    factor = np.where(ranks > 1, layout_factor(narrow, 2), layout_factor(narrow, 1))
    hold = margin * (task.chance is not None and task.chance >= SURE)
    pages = _pages(task, layouts, rules)
    if rules.rules["meaning"] == "pool":  # activations are kept out of it as they are counted
        context = task.utilisation * pool_context(task.chip)
        return {"f_format": factor, "f_pages": pages, "M_hold": hold + context}
    alone, several = (rules.elsewhere(seen, n) for n in (1, 2))
    graphs = era["graph_mib"] * MIB * GRAPHS * np.ceil(sizes.n_layers / layouts.pp)
    dense = max((x.width for x in sizes.inner if x.group in ("dense_ffn", "shared")), default=0)
    routed = next((x.width for x in sizes.inner if x.group == "routed"), 0) / layouts.tp_expert
    work = sizes.n_experts_active * (np.maximum(2 * routed, sizes.hidden) + routed)
    share = {}
    if rules.rules["meaning"] == "free":
        hold = hold + pool_context(task.chip)
        share = {"x_mem": 1.0, "x_rest": 1 / task.utilisation - 1}
    return {
        **share,
        "f_format": factor,
        "f_pages": pages,
        "M_hold": hold + np.where(ranks > 1, several, alone) + graphs * bool(era["graphs_inside"]),
        "x_pass": 1.0,  # a pool that decodes lets in a prompt whose cache did not arrive
        "k_smp": era["sampler"] * layouts.pp.astype(float),
        "h_wide": float(sizes.hidden),  # beside the peak that a profile finds the residual
        "h_work": (0.0 if narrow == "mxfp4" else era["workspace"]) * work,
        "h_peak": (era["residual"] - 1) * sizes.hidden + era["ffn"] * dense / layouts.tp,
    }


def _pages(task: Task, layouts: Layouts, rules: EngineMemory) -> np.ndarray:
    """Bytes of a cache in an engine's blocks over those of its layers, shape (n_layouts,).

    The mean over the contexts that a request has while it decodes, or of a prompt; of lengths that
    are arrays of points, shape (n_points,), for one layout. One where no rule was read for the
    kinds of layers of the model.
    """
    last = np.array(task.input_tokens + task.output_tokens)
    ends = (
        (task.context, task.context) if task.mode == "prefill" else (2 * task.context - last, last)
    )
    contexts = np.linspace(np.maximum(ends[0], 1.0), np.maximum(ends[1], 1.0), CONTEXTS)
    cuts, place = np.unique(np.stack([layouts.tp, layouts.pp]), axis=1, return_inverse=True)
    factors = []
    for tp, pp in cuts.T.tolist():
        model = model_memory(task.sizes, ReplicaLayout(tp, pp), rules)
        groups = engine_groups(model, rules, EngineLimits(tp, pp, drafted=task.drafts))
        alone = sum(x.held(task.context) for x in model.caches)
        blocks = groups.of_requests(np.ceil(contexts), 1 + task.drafts).mean(axis=0)
        known = groups.exact and np.all(alone)
        factors.append(blocks * groups.page / alone if known else np.ones(np.shape(task.context)))
    return np.array(factors)[place.ravel()] if len(layouts) > 1 else np.atleast_1d(factors[0])
