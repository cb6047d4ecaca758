"""Effects of an engine, a closed loop or a static batch on a step, other than its coefficients.

A task says which of these hold for it: the engine that its profile speaks for, a closed loop where
requests are kept in flight, a static batch whose prompts are read in one go. Their equations stand
in `formulas.serving.closed_loop` and `formulas.serving.older_kernels`; here they are fed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.problems.serving.step.kernels import feed, get_kernel
from planner.problems.serving.step.occupancy import TAILS, excess_symbols
from planner.problems.serving.task.task import WEIGHT_ONLY
from planner.text.tables import table

if TYPE_CHECKING:
    from formulas.numerics.kernel import Kernel
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

CHUNK = 8192  # tokens of prompt per step: vLLM's default max_num_batched_tokens for servers

# Ten prompts per slot, as the published runs were sent (InferenceX, benchmark_serving, 2025-10).
RAMP = 0.5 / 10
# Mean share of the other prompts that a prompt waits for, if all arrive at once.
GATHERED_WAIT_SHARE = 0.5
N_STEPS = 2.0  # steps during which an undelayed request meets others: its arrival and its prefill
ENGINE_MEMORY_SHARE = 0.9  # share of memory that engines fill (vLLM: gpu_memory_utilization)
RUNTIME = 2e9  # byte; graphs, workspaces and driver, in addition to weights and cache
MIN_CACHE_SHARE = 0.6  # share of memory left by weights: engines are set to fill more if needed
EXCESS_WAIT_RESIDENCES = 0.95  # of a residence, for each request in flight beyond those that fit
# Vector fp32 peak [flop/s] of the chips with measurements of these kernels (NVIDIA data
# sheets of A100, H100, H200 and L40S).
VECTOR = {"a100": 19.5e12, "h100": 67e12, "h200": 67e12, "l40s": 91.6e12}
# Memory bandwidth of a single multiprocessor [byte/s], nearly equal on the chips above.
SINGLE_SM_BANDWIDTH = 50e9
IN_KERNEL = "apple-silicon"  # chips whose kernels widen quantised weights on the way
STEP = 1e-5  # of a symbol, in logarithms
DEQUANTIZED_BYTES = 2.0  # bytes per widened weight, written once and read once


@dataclass(frozen=True)
class EngineTraits:
    """Traits of an engine in prefill, in its decode kernels and in admission.

    Attributes:
        chunk: Prompt tokens that it reads in one pass. [token]
        largest_group: Query heads per KV head that its decode kernels multiply at once; larger
            groups go head by head to vector units (TensorRT-LLM 0.9: its kernel fills one tile of a
            tensor core).
        unsplit: The cache of a sequence is left to one multiprocessor per head or group of heads,
            however few there are (TensorRT-LLM before it split contexts by default).
        fused: Its static batches read weights beside multiplying prompts with them.
        widens: It writes quantised weights out in 16 bits, and reads those, before it multiplies a
            pass (llama.cpp on CUDA).
        set_aside: Share of the output whose cache must fit when a request is let in: vLLM lets it
            in and preempts, TensorRT-LLM sets all of it aside, SGLang a part (conservativeness).
        prompts_first: It reads all waiting prompts before it decodes on, unless it is told to mix
            their steps.
        captures: Its decode steps are launched as one recorded graph (CUDA graphs: vLLM, SGLang and
            TensorRT-LLM by default), not kernel by kernel.
        overlaps: It has an option that lets two half-batches overlap; `planner.engines` knows
            which.
    """

    chunk: float = CHUNK
    largest_group: float = np.inf
    unsplit: bool = False
    fused: bool = False
    widens: bool = False
    set_aside: float = 0.5
    prompts_first: bool = False
    captures: bool = True
    overlaps: bool = True


ENGINES: Mapping[str, EngineTraits] = {
    name: EngineTraits(**row)
    for name, row in table("planner.problems.serving.step", "engine_traits.toml").items()
}


def engine_name(name: str, as_of: str = "") -> str:
    """Key of an engine's effects: its name, with its year if the effects depend on it.

    `as_of` is the day of the engine that is meant.
    """
    dated = f"{name}-{as_of[:4]}"
    return dated if dated in ENGINES else name


def prefill_chunk_tokens(engine: str) -> float:
    """Prompt tokens that an engine reads in one pass. [token]"""
    return _engine(engine).chunk


def captures(engine: str) -> bool:
    """True if an engine launches a decode step as one recorded graph."""
    return _engine(engine).captures


def overlaps(engine: str) -> bool:
    """True if an engine has an option that lets two half-batches overlap."""
    return _engine(engine).overlaps


def _engine(name: str) -> EngineTraits:
    if name in ENGINES:
        return ENGINES[name]
    # A plugin, or a port to other chips, keeps the scheduler of the engine that it names.
    return next((ENGINES[word] for word in name.split("-") if word in ENGINES), EngineTraits())


def has_slowdown(task: Task) -> bool:
    """True if the engine may have `slowdown_factors` in the phase of the task."""
    engine = _engine(task.engine)
    if task.mode == "prefill":
        return engine.fused and not task.static
    return engine.unsplit or engine.largest_group < np.inf


def slowdown_factors(
    task: Task, layouts: Layouts, values: Mapping[str, float | np.ndarray]
) -> dict[str, float | np.ndarray]:
    """Factors on times by the coefficient that they belong to, each of shape (n_layouts,).

    Of decoding those of attention (`e_at`) and of reading caches (`e_kv`), of a phase that only
    prefills that of reading weights (`e_w`); empty for engines that have none.
    """
    engine = _engine(task.engine)
    factors: dict[str, float | np.ndarray] = {}
    if not has_slowdown(task):
        return factors
    if task.mode == "prefill":
        wide, beside = _read_beside(task)
        symbols = {**values, "e_w": 1.0, "n_pr": 1.0, "x_wide": wide, "x_beside": beside}
        times = feed(_beside_kernel(), symbols)
        return {"e_w": np.asarray(times["T_pf_beside"]) / times["T_pf_read"]}
    flop = sum(cache.flop_per_cached_token for cache in task.sizes.caches)
    group = flop / max(2 * sum(cache.elements_per_token for cache in task.sizes.caches), 1.0)
    vectored = group > engine.largest_group and task.chip.name in VECTOR
    if vectored:
        factors["e_at"] = task.chip.peak("bf16") / VECTOR[task.chip.name]
    if engine.unsplit:
        # Groups that no kernel takes whole are taken head by head.
        heads = np.ceil(task.sizes.n_kv_heads / layouts.tp) * (group if vectored else 1.0)
        symbols = {**values, "w_mp": SINGLE_SM_BANDWIDTH, "n_mp": heads}
        factors["e_kv"] = np.asarray(feed(_cache_kernel(), symbols)["x_lone"])
    return factors


def coefficient_powers(
    task: Task, layouts: Layouts, values: Mapping[str, float | np.ndarray]
) -> dict[str, dict[str, float]]:
    """d ln coefficient / d ln symbol of slowed coefficients, at one layout; empty for most.

    `values` are every symbol of the step, the batch included. A batch that moves is left out.
    """
    powers: dict[str, dict[str, float]] = {}
    for name in slowdown_factors(task, layouts, values):
        # Attention on vector units ignores the tensor peak, so its efficiency falls as 1/peak.
        powers[name] = {"F_sdpa": -1.0} if name == "e_at" else {}
        for symbol in (*_beside_kernel().names, *_cache_kernel().names):
            if symbol == "B" or symbol not in values or not np.all(values[symbol]):
                continue
            ends = [
                slowdown_factors(
                    task, layouts, {**values, symbol: values[symbol] * np.exp(sign * STEP)}
                )
                for sign in (1, -1)
            ]
            change = np.log(ends[0][name] / ends[1][name]) / (2 * STEP)
            powers[name][symbol] = -float(np.ravel(change)[0])
    return powers


def slowdown_depends_on_batch(task: Task) -> bool:
    """True if `slowdown_factors` change with the batch: only that of lone caches does."""
    return task.mode != "prefill" and _engine(task.engine).unsplit


def loop_first_token(
    task: Task, values: Mapping[str, float | np.ndarray], outputs: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Mean time to first token of a closed loop [s], shape (n_layouts,).

    Args:
        values: every symbol of the step, the batch included.
        outputs: what the step computed of them.
    """
    symbols = {**values, **outputs, **loop_symbols(task, values)}
    loop = get_kernel("closed_loop", "prefill" if task.mode == "prefill" else "aggregated")
    return np.asarray(feed(loop, symbols)["T_loop"])


def loop_tails(
    task: Task, symbols: Mapping[str, Any], values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Times to first token [s] that shares of a closed loop's requests exceed, by name.

    Of each share that of all requests, and (`settled`) of those after the first of each user.
    """
    if task.mode != "aggregated":
        return {}
    every = {**symbols, **loop_symbols(task, symbols), **_step_times(values)}
    tails: dict[str, np.ndarray] = {}
    for name, share in TAILS.items():
        late = feed(get_kernel("loop_tails"), {**every, **excess_symbols(share)})
        tails |= {name: late["T_late"], f"settled.{name}": late["T_settled"]}
    return tails


def loop_symbols(
    task: Task, values: Mapping[str, float | np.ndarray]
) -> dict[str, float | np.ndarray]:
    """Values of closed-loop symbols, by name; raises ValueError if the task has no loop."""
    loop, engine = task.loop, _engine(task.engine)
    if loop is None:
        raise ValueError("the task is no closed loop")
    meet = np.minimum(np.add(loop.poll, loop.hold) + N_STEPS, np.maximum(task.output_tokens, 2.0))
    # If all prompts in flight are prefilled before decoding goes on, rounds are like the first; a
    # pool that only prefills has no decode steps to put them before.
    decodes = task.mode != "prefill"
    together = decodes and engine.prompts_first and loop.even and not loop.mixed
    return {
        "n_others": np.maximum(values["B"] / values["dp"] - 1.0, 0.0),
        "x_ramp": GATHERED_WAIT_SHARE if together else RAMP,
        "n_meet": meet,
        "n_back": np.multiply(loop.poll, 0.5) + loop.hold,
        "n_rounds": loop.rounds,
        "n_turns": _turns(loop.users, values) if loop.users else 0.0,
        "n_burst": loop.burst,
        **({} if decodes else {"T_tpot": loop.tpot, "T_dec": loop.step}),
    }


def _turns(users: int, values: Mapping[str, float | np.ndarray]) -> np.ndarray:
    return rounds_waited(np.ceil(users / np.asarray(values["n_rep"])), np.asarray(values["B"]))


def static_first_token(task: Task, values: Mapping[str, float | np.ndarray]) -> np.ndarray:
    """Time until a static batch's prompts are prefilled, in the fewest passes they fill [s].

    `values` are every symbol of the step, the batch included; the shape is (n_layouts,).
    """
    prompts = values["B"] / values["dp"]
    wide, beside = _read_beside(task)
    arithmetic = get_kernel("prompt", "T_pf_math", "T_pf_x", "T_pf_attn", "T_ring", "T_pf_peak")
    # All prompts of a copy of attention in one.
    merged = {**values, "L_in": values["L_in"] * prompts}
    reading = get_kernel("prompt", "T_pf_read", "T_pf_net", "T_hop_pf", "T_pf_over", "n_chunks")
    symbols = {**values, **feed(arithmetic, values), **feed(reading, merged),
                                      "n_pr": prompts,
               "x_wide": wide, "x_beside": beside}  # fmt: skip
    return np.asarray(feed(get_kernel("static_batch"), symbols)["T_batch"])


def max_resident(
    task: Task, layouts: Layouts, weights: np.ndarray, cache: np.ndarray
) -> np.ndarray:
    """Most sequences of a replica that an engine lets in at once, shape (n_layouts,).

    Args:
        weights, cache: bytes of one chip with one sequence in flight, shape (n_layouts,).
    """
    # Drivers report more memory than vendors list.
    whole = task.chip.memory_reported or task.chip.memory
    left = whole - weights
    free = np.maximum(left - (1 - ENGINE_MEMORY_SHARE) * whole - RUNTIME, MIN_CACHE_SHARE * left)
    later = _engine(task.engine).set_aside * task.output_tokens + task.input_tokens
    per_sequence = np.maximum(cache * later / task.context, 1.0)
    most: np.ndarray = layouts.dp_attention * np.maximum(free / per_sequence, 1.0)
    return most


def rounds_waited(sent: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Residences of others that a request waits, of `sent` in flight where `most` fit."""
    rounds: np.ndarray = EXCESS_WAIT_RESIDENCES * np.maximum(sent / most - 1.0, 0.0)
    return rounds


def _read_beside(task: Task) -> tuple[float, float]:
    """Bytes moved to widen weights, and bytes read during products, over those of the weights."""
    engine = _engine(task.engine)
    if not engine.fused:
        return 0.0, 0.0
    if not engine.widens or task.chip.architecture == IN_KERNEL:
        return 0.0, 1.0
    sizes = task.sizes
    narrow = sum(n for part, n in sizes.params.items() if sizes.weight_dtype[part] in WEIGHT_ONLY)
    wide = DEQUANTIZED_BYTES * narrow / sum(sizes.streamed_bytes.values())
    return 2 * wide, wide if narrow else 1.0


def _cache_kernel() -> Kernel:
    return get_kernel("lone_cache")


def _beside_kernel() -> Kernel:
    return get_kernel("prompt", "T_pf_beside", "T_pf_read")


def gathered_first_token(
    task: Task, symbols: Mapping[str, Any], values: Mapping[str, np.ndarray], gathers: bool
) -> np.ndarray:
    """The time to first token [s] without a load, where prompts arrive together (`gathers`)."""
    if not gathers:
        return values["first"]
    if task.static:
        return static_first_token(task, symbols)
    return loop_first_token(task, symbols, _step_times(values))


def _step_times(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        "T_ttft": values["first"], "T_dec": values["step"], "T_tpot": values["tpot"],
        "T_pf_busy": values["busy"], "T_slot": values["slot"],
    }  # fmt: skip
