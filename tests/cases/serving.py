"""Small serving questions, and an exhaustive answer to them that shares only the equations."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from formulas.numerics.evaluate import kernel, scalar
from planner.architecture import from_config, model_sizes
from planner.architecture.counts import ModelSizes
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.profile_choice import choose_profile
from planner.catalogue.systems import system
from planner.problems.serving.deployment.questions import OnePool, single_pools
from planner.problems.serving.profiled import LECTURE
from planner.problems.serving.search.admitted_layouts import cut_heads
from planner.problems.serving.step.equations import BOUND, ESTIMATE
from planner.problems.serving.step.layouts import Layouts, enumerate_layouts
from planner.problems.serving.step.runnable import copies_dense
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from topologies import Machine, machine

NAMES = {
    False: ("T_tpot", "T_ttft", "M_need", "phi_mixed", "T_slot", "T_pf_busy"),
    True: ("T_tpot_bound", "T_ttft_bound", "M_need", "T_slot_bound", "T_pf_busy_bound"),
}


def dense(layers: int = 6, heads: int = 4, kv_heads: int = 2) -> ModelSizes:
    """A small dense model of the Llama family."""
    config = {
        "model_type": "llama", "hidden_size": 512, "intermediate_size": 1536,
        "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "vocab_size": 8000, "torch_dtype": "bfloat16",
        "head_dim": 64,
    }  # fmt: skip
    return model_sizes(from_config(config, "dense"))


def sparse(layers: int = 5, heads: int = 4, experts: int = 8, active: int = 2) -> ModelSizes:
    """A small mixture of experts of the Mixtral family."""
    config = {
        "model_type": "mixtral", "hidden_size": 512, "intermediate_size": 512,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": 2,
        "vocab_size": 8000, "torch_dtype": "bfloat16", "num_local_experts": experts,
        "num_experts_per_tok": active, "head_dim": 64,
    }  # fmt: skip
    return model_sizes(from_config(config, "sparse"))


def within_limits(task: Task, values: dict[str, Any]) -> np.ndarray:
    """Which values keep every limit of a task by expectation."""
    kept = [np.asarray(values[name]) <= limit for name, limit in task.limits.items()]
    return np.logical_and.reduce(np.broadcast_arrays(*kept))


def question(model: ModelSizes, batch: float = 24.0, **changes: Any) -> Task:
    """One question on H200 nodes whose memory holds about `batch` sequences on one chip.

    `slow` names what is a thousand times slower than it is, `plain` leaves out all overheads.
    """
    base = system(changes.pop("system", "hgx-h200"))
    sram, slow = changes.pop("sram", 0.0), changes.pop("slow", "")
    chosen, _ = choose_profile("auto", base.chip.name)
    chosen = LECTURE if changes.pop("plain", False) else chosen
    wired: Machine = machine(base.topology)
    if "domain" in changes:
        wired = replace(wired, chips_per_domain=changes.pop("domain"))
    given: dict[str, Any] = {
        "sizes": model, "chip": base.chip, "machine": wired, "price": 3.5 / 3600,
        "profile": chosen.at(RunContext.of(model, base.chip)), "chips": (4,), "limits_of": {},
        "input_tokens": 1000.0, "output_tokens": 200.0, "context": 1100.0, "cached_input": 0.0,
        "chunk": 512.0,
        "mode": "aggregated", "batches": None, "kappa": 1.0, "promises": {}, "objective": "cost",
        "estimate": "calibrated", "lecture": False, "utilisation": 0.9, "power": 1000.0,
    }  # fmt: skip
    given |= changes
    if given["lecture"]:
        given |= {"profile": LECTURE, "utilisation": 1.0}
    task = Task(**given)
    room = model.total_weight_bytes + (batch + 0.37) * model.stored_bytes(task.context)
    room += task.chunk * 8 * model.hidden * 2.0 + 1e6
    chip = replace(task.chip, memory=room / given["utilisation"], sram=sram)
    if slow == "flops":
        chip = replace(chip, flops={name: rate / 1e3 for name, rate in chip.flops.items()})
    if slow == "memory":
        chip = replace(chip, memory_bandwidth=chip.memory_bandwidth / 1e3)
    return replace(task, chip=chip)


@dataclass(frozen=True)
class Decided:
    """Every point of a question: layout number, batch per replica, objective, what is kept."""

    rows: np.ndarray
    batch: np.ndarray
    score: np.ndarray
    kept: np.ndarray
    stretch: np.ndarray

    @property
    def best(self) -> float:
        return float(self.score[self.kept].min()) if self.kept.any() else math.inf


def one_pool(task: Task) -> OnePool:
    """The question of one pool, searched by itself."""
    return single_pools([task])[0]


def searched(task: Task) -> Step:
    """The model of a question on all its layouts, as the search sees it."""
    whole = {"halves": (1,)} if task.uses_bound else {}
    layouts = enumerate_layouts(
        heads=task.sizes.n_q_heads,
        layers=task.sizes.n_layers,
        experts=task.sizes.n_experts,
        domain=task.machine.chips_per_domain,
        chips=tuple(task.chips),
        joined=task.machine.scale_out is not None,
        tiled=task.machine.kind == "torus",
        copied=copies_dense(task),
        kv_heads=cut_heads(task),
        limits=frozenset({**whole, **task.limits_of}.items()),
    )
    return Step(task, layouts, bound=task.uses_bound)


def all_layouts(task: Task) -> list[tuple[int, ...]]:
    """(tp, pp, cp, dp, ep, xtp, replicas, chips, halves, dcp) of every layout, by plain loops."""
    heads, experts = task.sizes.n_q_heads, task.sizes.n_experts
    # Chips may share the feed-forward part of a dense model whose widths are known.
    copied = experts or (task.sizes.inner and not task.lecture)
    domain, found = task.machine.chips_per_domain, []
    for chips in sorted(set(task.chips)):
        largest = chips if task.machine.scale_out is not None else min(chips, domain)
        for tp in range(1, largest + 1):
            ranks = range(1, (largest // tp if copied else 1) + 1)
            for dp, cp in itertools.product(ranks, sorted(set(task.limits_of.get("cp", (1,))))):
                stage = tp * dp * cp
                edges = [n % domain == 0 or domain % n == 0 for n in (tp, tp * dp)]
                whole = stage % domain == 0 and all(edges)
                inside = stage <= domain and (task.machine.kind != "torus" or domain % stage == 0)
                if heads % tp or stage > largest or not (inside or whole):
                    continue
                slots = (
                    chips // stage
                    if stage > domain
                    else chips // domain * (domain // stage) + chips % domain // stage
                )
                for pp in range(1, task.sizes.n_layers + 1):
                    if stage * pp > largest or slots < pp:
                        continue
                    for ep in range(1, tp * dp + 1 if experts else 2):
                        if experts and (tp * dp % ep or ep > experts):
                            continue
                        xtp = tp * dp // ep if experts else 1
                        spread = min(dp, ep) > 1 and not task.uses_bound
                        for halves in (1, 2) if spread else (1,):
                            split = (tp, pp, cp, dp, ep, xtp, slots // pp, chips, halves)
                            found += [(*split, dcp) for dcp in _token_ways(task, tp, cp)]
    return found


def _token_ways(task: Task, tp: int, cp: int) -> list[int]:
    """Over how many ranks a context may be cut by tokens: where each then holds less of it."""
    if task.mode == "prefill" or task.lecture or cp > 1:
        return [1]
    kv = task.sizes.n_kv_heads
    fewer = [d for d in range(2, tp + 1) if tp % d == 0 and math.ceil(kv * d / tp) / d < (
        math.ceil(kv / tp))]  # fmt: skip
    return [1, *fewer]


def columns(rows: list[tuple[int, ...]]) -> Layouts:
    """Layouts of rows of `all_layouts`; passes are whole where a row does not say."""
    *ways, dcp = np.array([(*row, 1, 1)[:10] for row in rows], dtype=np.int64).T
    return replace(Layouts(*ways), dcp=dcp)


def decided(task: Task, most: int, *, slowly: bool = False) -> Decided:
    """Every layout at every whole batch up to `most` per replica (or at the given batches).

    The layouts are bound one at a time; `slowly` also evaluates one point at a time.
    """
    bound = task.uses_bound
    equations, names = (BOUND, NAMES[True]) if bound else (ESTIMATE[task.mode], NAMES[False])
    compiled = kernel(equations, names)
    parts = []
    for number, row in enumerate(all_layouts(task)):
        step = Step(task, columns([row]), bound=bound)
        batch, fill = _batches(task, row, most)
        given = {k: float(np.ravel(v)[0]) for k, v in step.values(np.ones(1)).items()}
        given = {name: given[name] for name in compiled.names}
        if slowly:
            points = [scalar(equations, names, {**given, "B": float(b)}) for b in batch]
            found = {name: np.array([p[name] for p in points]) for name in names}
        else:
            found = compiled(**{**given, "B": batch})
        values = _values(task, row, found, fill)
        limits = {**task.promises, "memory": task.chip.memory}
        if task.mode == "aggregated" and not bound:
            limits["mixed"] = 1.0
        over = np.stack([values[name] / limit for name, limit in limits.items()])
        parts.append((np.full(batch.size, number), batch, values["score"], over.max(axis=0)))
    rows, batch, score, stretch = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Decided(rows, batch, score, stretch <= 1, stretch)


def _batches(task: Task, row: tuple[int, ...], most: int) -> tuple[np.ndarray, np.ndarray]:
    if task.mode == "prefill":
        ranks, new = row[1] * row[3], task.input_tokens * (1 - task.cached_input)
        room = max(math.ceil(task.chunk * row[2] / new), 1)
        if task.batches is None:
            most = 1 if task.uses_bound else room
            return np.arange(1.0, most + 1) * ranks, np.ones(most)
        totals = np.array(task.batches)
        each = np.ceil(totals / (row[6] * ranks))
        fits = np.full(each.size, True) if task.uses_bound else each <= room
        return each[fits] * ranks, totals[fits] / (each[fits] * ranks * row[6])
    if task.batches is None:
        return np.arange(1.0, most + 1), np.ones(most)
    each = np.array([math.ceil(total / row[6]) * 1.0 for total in task.batches])
    return each, np.array(task.batches) / (each * row[6])


def _values(
    task: Task, row: tuple[int, ...], found: dict[str, Any], fill: np.ndarray
) -> dict[str, np.ndarray]:
    """Promised quantities and objective, from the words of the specification."""
    end = "_bound" if task.uses_bound else ""
    tpot, ttft = found[f"T_tpot{end}"], found[f"T_ttft{end}"]
    slot = found[f"T_slot{end}"] if task.mode != "prefill" else found[f"T_pf_busy{end}"]
    emitted = task.output_tokens - (task.mode == "aggregated")
    latency = {
        "aggregated": ttft + emitted * tpot, "decode": emitted * tpot, "prefill": ttft
    }[task.mode]  # fmt: skip
    requests = row[6] * fill / slot
    per_request = row[7] / requests  # chip seconds
    score = {
        "cost": per_request * task.price, "throughput": 1 / requests, "latency": latency,
        "energy": per_request * (task.power or 0.0),
    }[task.objective]  # fmt: skip
    whole = {
        "tpot": tpot, "ttft": ttft, "e2e": latency, "memory": found["M_need"],
        "mixed": found.get("phi_mixed", 0.0), "score": score,
    }  # fmt: skip
    return {name: np.broadcast_to(value, fill.shape) for name, value in whole.items()}


def product(**axes: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Every combination of the axes' values."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


MODELS = {"dense": dense(), "sparse": sparse(), "wide": sparse(layers=3, heads=6, experts=12)}


@st.composite
def questions(draw: st.DrawFn) -> Task:
    """Small questions of every kind: modes, objectives, promises, loads, speculation."""
    one = draw(st.sampled_from(sorted(MODELS)))
    mode = draw(st.sampled_from(["aggregated", "aggregated", "decode", "prefill"]))
    tight = draw(st.sampled_from([None, 1.0503, 1.513, 4.07]))
    changes: dict[str, Any] = {
        "chips": draw(st.sampled_from([(1,), (2,), (3,), (4,), (6, 8), (8,), (12,), (16,)])),
        "domain": draw(st.sampled_from([2, 4, 8])),
        "mode": mode,
        "objective": draw(st.sampled_from(["cost", "latency", "throughput", "energy"])),
        "estimate": draw(st.sampled_from(["calibrated", "bound"])),
        "cached_input": draw(st.sampled_from([0.0, 0.5])),
        "kappa": draw(st.sampled_from([0.5, 1.0])),
        "output_tokens": draw(st.sampled_from([2.0, 20.0, 200.0])),
        "batches": draw(st.sampled_from([None, None, (7,), (3, 24)])),
        "slow": draw(st.sampled_from(["", "flops", "memory"])),
        "plain": draw(st.booleans()),
        "sram": draw(st.sampled_from([0.0, 2e6, 3e7])),
        "limits_of": draw(st.sampled_from([{}, {}, {"cp": (1, 2, 4)}, {"cp": (1, 3)}])),
        "redundant": draw(st.sampled_from([0, 0, 1, 4])),
        "skew": draw(st.sampled_from([1.0, 1.3])),
    }
    if draw(st.booleans()):
        changes |= {"positions_per_step": 3.0, "tokens_per_step": 2.1}
    task = question(MODELS[one], batch=draw(st.sampled_from([2.0, 9.0, 21.0])), **changes)
    if tight is None:
        return task
    # Promises a little above what the fastest layout reaches, so that they bind.
    step = searched(task)
    values = step(np.ones(len(step.layouts)))
    names = {"aggregated": ("tpot", "ttft"), "decode": ("tpot",), "prefill": ("ttft",)}[mode]
    made = {name: float(np.min(values[name])) * tight for name in names}
    return question(MODELS[one], batch=9.0, **changes, promises=made)
