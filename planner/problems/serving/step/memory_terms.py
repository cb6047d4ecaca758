"""Memory that an engine uses on a chip in addition to weights and caches, by layout.

Where one of the engines that were read must run a plan, its profile of a step is charged at the
plan's batch, which the export writes as the most sequences of a step; else what the equations count
of the widest layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.memory import engine_room
from planner.memory.engine_room import Scalars
from planner.memory.engine_table import (
    GIB,
    MIB,
    EngineMemory,
    chip_memory,
    engine_memory,
    engine_names,
    memory_table,
)
from planner.problems.serving.step.engine_rules import engine_tables

if TYPE_CHECKING:
    from planner.catalogue.chips import Chip
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

# Symbols of the memory that caches take in an engine's blocks.
BLOCKS = ("f_whole", "f_bound", "f_pool", "f_state", "L_pad", "R_pad", "R_least")
WHOLE = ("f_whole", "f_bound", "f_state")  # of these, the ones that multiply bytes
GRAPHS = 102  # two of each size up to 512 sequences
LIVE_VECTORS = 8  # hidden vectors alive per token in one layer: residual, norm, q, k, v, FFN
SURE_CHANCE = 0.9  # minimum required chance that charges the low end of the free memory


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
    """Memory outside the share of a chip's pool [byte]: contexts, and links where it has any."""
    table = memory_table()
    links = table["links"]["experts"] if chip_memory(chip).links else 0.0
    return float(table["context"] + links) * GIB if chip.figures else 0.0


def charged_engine(task: Task, layouts: Layouts) -> np.ndarray:
    """The place in the task's rules of the first engine that runs each layout, -1 for none."""
    if not task.memory_rules or task.lecture:
        return np.full(len(layouts), -1)
    places = np.array([place for place, _ in task.memory_rules])
    both = layouts.engines | layouts.engines >> len(engine_tables())
    runs = both[:, None] >> places & 1
    return np.where(runs.any(axis=1), runs.argmax(axis=1), -1)


def memory_terms(task: Task, layouts: Layouts) -> dict[str, np.ndarray]:
    """Values of the symbols of an engine's memory, each of shape (n_layouts,).

    Each layout is charged for the first of the engines that runs it, in the order of the table;
    where none is, what is alive of a pass is a value that all layouts share.
    """
    ones, budget = np.ones(len(layouts)), task.max_num_batched_tokens
    terms = {
        "n_seats": (task.max_num_seqs or 0) * task.positions_per_step / layouts.pp,  # in one step
        "x_seats": float(task.max_num_seqs is None) * ones,
        "x_budget": float(budget is None) * ones,
        **{name: np.zeros_like(ones) for name in ("h_peak", "h_work", "M_hold", "x_rest", *BLOCKS)},
        **{name: ones.copy() for name in (*WHOLE, "f_format")},
        "k_smp": 1.0 / layouts.tp,
        "h_wide": ones * (not task.lecture) * LIVE_VECTORS * task.sizes.hidden,
        "x_pass": ones * (budget or task.chunk * (task.mode != "decode")) / task.chunk,
    }
    if not task.memory_rules:
        return terms
    terms["x_mem"] = task.utilisation * ones
    charged = charged_engine(task, layouts)
    for place, (_, rules) in enumerate(task.memory_rules):
        rows = np.flatnonzero(charged == place)
        if rules is not None and rows.size:
            for name, value in _of_engine(task, layouts.take(rows), rules).items():
                if len(layouts) == 1:  # a single layout may have many points
                    terms[name] = np.atleast_1d(value)
                else:
                    terms[name][rows] = value
    return terms


def _of_engine(task: Task, layouts: Layouts, rules: EngineMemory) -> dict[str, np.ndarray | float]:
    """Memory terms that change under an engine's rules, each for all layouts or one number."""
    sizes, ranks = task.sizes, layouts.tp * layouts.dp_attention
    seen, era, band = chip_memory(task.chip), rules.era, memory_table()["band"]
    narrow, ways = engine_room.packed_format(sizes), layouts.ep * layouts.tp_expert
    margin = np.where((ranks > 1) & seen.links, band["several"], band["one_rank"]) * GIB
    factor = engine_room.kernel_factor(sizes, layouts.tp, ways, layouts.tp_expert, ranks)
    hold = margin * ((task.chance or 0) >= SURE_CHANCE)
    cuts, place = np.unique(np.stack([layouts.tp, layouts.pp]), axis=1, return_inverse=True)
    rows = [_blocks_of_cut(task, rules, tp, pp) for tp, pp in cuts.T.tolist()]
    blocks = {name: np.array([row[name] for row in rows])[place.ravel()] for name in rows[0]}
    hold = hold + blocks.pop("M_hold").ravel()
    if rules.rules["meaning"] == "pool":  # activations are kept out of it as they are counted
        context = task.utilisation * pool_context(task.chip)
        return {**blocks, "f_format": factor, "M_hold": hold + context}
    alone, several = (rules.elsewhere(seen, n) for n in (1, 2))
    graphs = era["graph_mib"] * MIB * GRAPHS * np.ceil(sizes.n_layers / layouts.pp)
    dense = max((x.width for x in sizes.inner if x.group in ("dense_ffn", "shared")), default=0)
    routed = next((x.width for x in sizes.inner if x.group == "routed"), 0) / layouts.tp_expert
    work = sizes.n_experts_active * (np.maximum(2 * routed, sizes.hidden) + routed)
    share = {}
    if rules.rules["meaning"] == "free":
        lone, linked = (seen.context(n, experts=sizes.n_experts > 0) for n in (1, 2))
        hold = hold + np.where(ranks > 1, linked, lone)
        share = {"x_mem": 1.0, "x_rest": 1 / task.utilisation - 1}
    return {
        **share,
        "f_format": factor,
        **blocks,
        "M_hold": hold + np.where(ranks > 1, several, alone) + graphs * bool(era["graphs_inside"]),
        # A pool that decodes lets in a prompt whose cache did not arrive.
        "x_pass": (task.max_num_batched_tokens or task.chunk) / task.chunk,
        "k_smp": era["sampler"] * layouts.pp.astype(float),
        "h_wide": float(sizes.hidden),  # beside the peak that a profile finds the residual
        "h_work": (0.0 if narrow == "mxfp4" else era["workspace"]) * work,
        "h_peak": (era["residual"] - 1) * sizes.hidden + era["ffn"] * dense / layouts.tp,
    }


def _blocks_of_cut(task: Task, rules: EngineMemory, tp: int, pp: int) -> dict[str, Scalars]:
    """Cache block terms of one stage of one cut; neutral if no rule of the layers was read."""
    sizes = task.sizes
    model = engine_room.model_memory(sizes, engine_room.ReplicaLayout(tp, pp), rules)
    groups = engine_room.engine_groups(
        model, rules, engine_room.EngineLimits(tp, pp, drafted=task.drafts)
    )
    whole = sum(c.bytes_per_token for c in sizes.caches if c.grows or c.limit is None)
    bounded = {c.limit: c.bytes_per_token for c in sizes.caches if not c.grows and c.limit}
    plain: dict[str, Scalars] = {x: float(x in WHOLE) for x in (*BLOCKS, "M_hold")}
    if not groups.exact:
        return plain
    stage = math.ceil(sizes.n_layers / pp) / sizes.n_layers
    heads = math.ceil(sizes.n_kv_heads / tp) / sizes.n_kv_heads if sizes.n_kv_heads else 1.0
    token = groups.page / groups.tokens / (stage * heads)  # a group's, as the equations cut it
    state = sizes.state_bytes_per_sequence * stage / tp
    blocks = plain | {"L_pad": groups.tokens / 2 * (groups.tokens > 1)}
    # Windows keep the tokens of steps in flight until those are through.
    blocks["M_hold"] = groups.page * groups.scheduled(task.max_num_batched_tokens or task.chunk)
    context = float(np.mean(task.context))
    blocks["R_least"] = whole * max(groups.tokens, groups.least) * (groups.full > 0)
    if groups.states or groups.least:
        blocks["f_state"] = groups.states * (1 + task.drafts) * groups.page / state
    if whole:
        blocks["f_whole"] = groups.full * token / whole
    if bounded and groups.window_share:
        blocks |= {"f_bound": 0.0, "f_pool": whole / sum(bounded.values()) / groups.window_share}
    elif groups.windows:
        alike = not groups.spans  # a token of a window takes what one of a whole context does
        blocks["f_bound"] = alike * sum(groups.widths) * token / sum(bounded.values())
        for window, wide, span in groups.window_groups:
            most = groups.most(window, 1 + task.drafts, span)
            if alike:  # a context that does not fill its window takes a block and a half beside
                pad = max(most * span - window, 1.5 * span)
            else:
                pad = min(most, math.ceil(context / span) + 1) * groups.tokens
            blocks["R_pad"] += token * wide * pad
    elif bounded:  # which the engine keeps whole
        seen = sum(x * min(limit, context) for limit, x in bounded.items())
        blocks["f_bound"] = 0.0 if whole else token * context / seen
    return blocks
