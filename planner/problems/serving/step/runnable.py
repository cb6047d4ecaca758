"""Engines that run a pool of a plan, refusals of the other engines, and their remedies.

Columns of layouts are judged at once, by the rules that an engine has (`engine_rules`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.catalogue.systems import machine_chips
from planner.problems.serving.step.engine_rules import (
    FP4_CACHES,
    RULES,
    SENDERS,
    EnginePool,
    EngineTable,
    engine_tables,
)
from planner.problems.serving.step.layouts import Layouts

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task

MAX_REMEDY_CHIPS = 1024  # maximum chips of a layout tried as a remedy


def stamps(names: Sequence[str]) -> str:
    """Engines with their versions, as a reader should see them."""
    every = [engine_tables()[name].stamp for name in names]
    return ", ".join(every) or "none of those read loads and runs it as it stands"


def engine_pool(task: Task) -> EnginePool:
    """Build the `EnginePool` of a task, the input of the rules."""
    sizes, role = task.sizes, "" if task.mode == "aggregated" else task.mode
    weights = sizes.weight_dtype["routed" if sizes.n_experts else "dense_ffn"]
    return EnginePool(
        sizes, task.chip, role, weights, task.redundant, task.drafts, task.drafting,
        chips_per_box(task), share=task.utilisation,
    )  # fmt: skip


def chips_per_box(task: Task) -> int:
    """Chips of one machine of the task's; those of a domain where machines do not divide it."""
    domain, machine = task.machine.chips_per_domain, machine_chips(task.chip.name)
    return machine if domain % machine == 0 or machine % domain == 0 else domain


def tied_stages() -> int:
    """Bit mask of engines that send a cache to one stage or to its source's number of stages."""
    tied = ["stages that decode" in engine.rules for engine in engine_tables().values()]
    return sum(1 << k for k, ties in enumerate([*tied, *tied]) if ties)


def supporting_engines(pools: Sequence[tuple[Task, Layouts]]) -> tuple[str, ...] | None:
    """Engines that run every pool of a plan, one layout each; None if a task has no engines set.

    None of them lets in requests longer than the model was made for.
    """
    if any(task.engines is None for task, _ in pools):
        return None
    longest = max(task.input_tokens + task.output_tokens + task.drafts for task, _ in pools)
    names = tuple(engine_tables()) if longest <= (pools[0][0].sizes.max_context or math.inf) else ()
    first, several = pools[0][1], len(pools) > 1
    stages, parts = (int(x[0]) if several else 0 for x in (first.pp, first.cp))
    for task, layouts in pools:
        pool = replace(engine_pool(task), stages=stages, parts=parts)
        runs = int(supports(pool, layouts, task.engines or ())[0])
        names = engines_loading_checkpoint(
            pool, [n for n in names if runs >> list(engine_tables()).index(n) & 1]
        )
    return names


def supports(pool: EnginePool, layouts: Layouts, names: Sequence[str]) -> np.ndarray:
    """Bit mask of the engines that run each layout, shape (n_layouts,)."""
    runs = np.zeros(len(layouts), dtype=np.int64)
    for k, (name, engine) in enumerate(engine_tables().items()):
        if name in names:
            broken = np.zeros(len(layouts), dtype=bool)
            for rule in engine.rules:
                if not RULES[rule].of_checkpoint:
                    broken |= RULES[rule].broken(pool, layouts, engine)
            runs |= np.where(broken, 0, 1 << k)
    return runs


def on_engines(task: Task, layouts: Layouts) -> Layouts:
    """Layouts with the bit mask of the engines that run each; unchanged if no engine is requested.

    Two pools are paired where they have a bit in common: where not all that reads may send caches
    to ranks that share contexts, these have a second bit of the engine, and so has what may.
    """
    if task.engines is None or task.any_layout:
        return layouts
    runs = supports(engine_pool(task), layouts, task.engines)
    reads, number = task.mode == "prefill", len(engine_tables())
    for k, engine in enumerate(engine_tables().values()):
        axes = [axis for rule, axis in SENDERS.items() if rule in engine.rules]
        if axes and task.mode != "aggregated":
            sends = np.all([getattr(layouts, axis) == 1 for axis in axes], axis=0)
            first = runs & np.where(sends if reads else layouts.dcp > 1, 1 << k, 0)
            runs = (runs if reads else runs & ~first) | first << number
    return replace(layouts, engines=runs)


def engines_loading_checkpoint(pool: EnginePool, names: Sequence[str]) -> tuple[str, ...]:
    """Engines among `names` that load the published checkpoint of the pool."""
    whole, rows = Layouts.of(), engine_tables()
    every = [(name, rule) for name in names for rule in rows[name].rules]
    refused = {
        name
        for name, rule in every
        if RULES[rule].of_checkpoint and RULES[rule].broken(pool, whole, rows[name])
    }
    return tuple(name for name in names if name not in refused)


def refusal_text(pool: EnginePool, layouts: Layouts, names: Sequence[str]) -> str:
    """Refusal by all engines: for each engine the reason on the layout of fewest broken rules."""
    reasons: dict[str, list[str]] = {}
    for name in names:
        engine = engine_tables()[name]
        broken = [RULES[rule].broken(pool, layouts, engine) for rule in engine.rules
                  if not RULES[rule].of_checkpoint]  # fmt: skip
        count = np.sum([np.broadcast_to(each, len(layouts)) for each in broken], axis=0)
        nearest = layouts.take(np.array([int(np.argmin(count))]))
        reason, remedy = next(refusals(pool, nearest, engine, checkpoint=False))
        reasons.setdefault(f"{reason}; what would work: {remedy}", []).append(engine.stamp)
    parts = [f"{' and '.join(stamps)}: {reason}" for reason, stamps in reasons.items()]
    return f"no engine that was read runs this; {'; '.join(parts)}; or engine: none, for your own"


def refusal_location(pinned: Iterable[str], words: str) -> tuple[str, str]:
    """Path and text of a refusal: the key that a remedy names, else the first pinned choice."""
    if setting := re.search(r"would work: (?!choose\.)([\w.]+)=", words):
        return setting[1], words
    remedies, keys = re.findall(r"choose\.(\w+)=", words), list(pinned)
    key = next((key for key in remedies if key in keys), keys[0] if keys else "")
    return f"choose.{key or next(iter(remedies), '')}".rstrip("."), words


def task_refusal(task: Task) -> str:
    """Reason why no engine runs a task in any layout; empty if one does or no engine is given."""
    if not task.engines or task.any_layout:
        return ""
    # Redundant experts need several chips, and this layout has a single chip.
    pool, single = replace(engine_pool(task), copies=0), Layouts.of()
    return (
        "" if supports(pool, single, task.engines)[0] else refusal_text(pool, single, task.engines)
    )


def refusals(
    pool: EnginePool, layout: Layouts, engine: EngineTable, *, checkpoint: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield each reason why an engine does not run one layout, with its remedy."""
    for name in engine.rules:
        rule = RULES[name]
        if (rule.of_checkpoint and not checkpoint) or not np.all(rule.broken(pool, layout, engine)):
            continue
        facts = _facts(pool, layout, engine)
        near = [text for axis in rule.axes for text in _nearest(pool, layout, engine, axis)]
        remedy = ", or ".join(near) or rule.remedy or "another model, or another engine"
        yield rule.what.format_map(facts), remedy.format_map(facts)


def _nearest(pool: EnginePool, layout: Layouts, engine: EngineTable, axis: str) -> Iterator[str]:
    """Next smaller and larger values of an axis that break no rule about layouts.

    Experts that lie over all chips of a stage follow it.
    """
    now, whole, ep = (int(x[0]) for x in (getattr(layout, axis), layout.whole, layout.ep))
    most = whole if axis == "ep" else MAX_REMEDY_CHIPS // whole * now
    values = np.arange(1, max(most, now) + 1)
    tried = replace(layout.take(np.zeros(values.size, dtype=int)), **{axis: values})
    follows = pool.sizes.n_experts > 0 and axis != "ep" and ep == whole
    if pool.sizes.n_experts:
        ways = tried.whole if follows else tried.ep
        tried = replace(tried, ep=ways, tp_expert=np.maximum(tried.whole // ways, 1))
    fits = tried.whole % tried.ep == 0
    for name in engine.rules:
        if RULES[name].axes:
            fits &= ~np.asarray(RULES[name].broken(pool, tried, engine), dtype=bool)
    less, more = np.flatnonzero(fits & (values < now))[-1:], np.flatnonzero(fits & (values > now))
    for k in (*less, *more[:1]):
        beside = f" with choose.ep={tried.ep[k]}" if follows else ""
        yield f"choose.{axis}={values[k]}{beside}"


def _facts(pool: EnginePool, layout: Layouts, engine: EngineTable) -> dict[str, Any]:
    """Values that fill in the texts of rules."""
    sizes, widths = pool.sizes, dict.fromkeys(("dense_ffn", "shared", "routed"), "")
    for part in sizes.inner:
        blocks = f" in blocks of {part.block}" if part.block > 1 else ""
        widths[part.group] = f"{part.width}{blocks}"
    drafter = f"it does not run the multi-token prediction blocks of {sizes.family}"
    if not sizes.mtp_blocks:
        drafter = f"{sizes.name} has no blocks for multi-token prediction in its checkpoint"
    if pool.method not in ("", "mtp"):
        drafter = f"drafting by {pool.method} is not written by this export"
    numbers = {f.name: int(getattr(layout, f.name)[0]) for f in fields(layout)}
    return {
        **numbers, **widths, "whole": int(layout.whole[0]), "stamp": engine.stamp,
        "replica_chips": int(layout.replica_chips[0]), "machine": pool.machine,
        "stages": pool.stages,
        "parts": pool.parts, "share": pool.share,
        "largest": math.floor(1000 * pool.largest_share(layout.whole)[0]) / 1000,
        "heads": sizes.n_q_heads,
        "kv_heads": sizes.n_kv_heads, "model": sizes.name, "family": sizes.family,
        "vocab": sizes.vocab, "experts": pool.experts, "copies": pool.copies,
        "drafts": pool.drafts, "blocks": sizes.mtp_blocks, "drafter": drafter,
        "chip": pool.chip.title, "vendors": " and ".join(engine.vendors), "kv": pool.kv,
        "caches": " or ".join(x for x in engine.caches if x not in FP4_CACHES),
        "stored_kv": sizes.stored_kv, "weights": pool.weights, "stored": sizes.stored,
    }  # fmt: skip


def copies_dense(task: Task) -> bool:
    """True if an engine replicates attention over chips that share a dense feed-forward part.

    A mesh of one's own does, wherever the widths are known.
    """
    if task.lecture or task.sizes.n_experts or not task.sizes.inner:
        return False
    if task.engines is None or task.any_layout:
        return True
    return any(task.sizes.family in engine_tables()[x].dense_copies for x in task.engines)


def cut_otherwise(
    task: Task, layouts: Layouts, values: Mapping[str, Any], *, bound: bool
) -> dict[str, Any]:
    """Weights [byte], and parameters of attention, as `tp` chips hold them together.

    Where copies of a dense model's attention share its feed-forward part, each of dp holds and
    reads a share of that, as an expert cut over the stage. Down-projections of latent attention and
    routers are whole on each chip (SGLang, deepseek_v2.py: ReplicatedLinear), but in a `bound`: in
    memory and in products of prompts; decode steps were fitted to measured ones without them.
    """
    dp, (parameters, size) = layouts.dp_attention, task.sizes.copied
    more = (layouts.tp - 1) * (not (bound or task.ideal or task.lecture))
    shared = not task.sizes.n_experts and (dp > 1).any()
    saved = task.sizes.weight_bytes["dense_ffn"] * (1 - 1 / dp) if shared else 0.0
    return {
        "S_fixed": values["S_fixed"] - saved,
        "M_fixed": np.asarray(values["M_fixed"] - saved + more * size),
        "N_attn_pf": np.asarray(values["N_attn_pf"] + more * parameters),
    }
