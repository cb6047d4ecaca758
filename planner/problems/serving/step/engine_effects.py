"""How requests wait for each other in a load generator's closed loop.

A generator keeps a number of requests in flight for some rounds. Its first requests come all at
once, so each of them waits for half of the others' prompts; later ones meet only the prompts that
arrived while they were held, unless all lengths are equal, when an engine that reads prompts
before it decodes keeps them marching in step.

Reading weights beside multiplying prompts with them, in kernels that do both at once.

Engines whose static batches were published run one product after the other, each reading its
weights while it multiplies: about the root of the squares of both times, the longer one where they
differ, more than either where they are alike. It is taken at full efficiency, so that what remains
is still a sum of what coefficients add. Steps of decoding stay the sum that plans are made with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.measurements.measurement import Measurement
from planner.problems.serving.task.task import WEIGHT_ONLY

__all__ = ["RAMP", "Loop", "loop_of", "read_beside"]

# Ten prompts per slot, as the published runs were sent (InferenceX, benchmark_serving, 2025-10).
RAMP = 0.5 / 10
SEEN = 2.0  # steps in which a request that nothing holds meets others: it arrives, it is read
RESERVED = 0.9  # share of memory that engines fill (vLLM: gpu_memory_utilization)
RUNTIME = 2e9  # byte beside weights and cache: graphs, workspaces, the driver
AT_LEAST = 0.6  # share of what weights leave: engines are told to fill more where they must
# Share of the output whose cache must fit when a request is let in: vLLM lets it in and preempts,
# TensorRT-LLM sets all of it aside (GUARANTEED_NO_EVICT), SGLang a part (conservativeness).
LATER = {"vllm": 0.5, "trtllm": 1.0, "sglang": 0.75}
BEHIND = 0.95  # of a residence, for each request in flight beyond those that fit
# Engines that read every waiting prompt before they decode on, and those that read a few.
PROMPTS_FIRST, A_FEW_FIRST, FEW = "sglang", "trtllm", 3.0


@dataclass(frozen=True)
class Loop:
    """What a request meets, each of shape (n_rows,).

    `before` prompts are read before its own is done, it is `held` for so many decode steps beyond
    the engine's own, `most` sequences fit at once, and it waits `rounds` residences of others for
    a place.
    """

    before: np.ndarray
    held: np.ndarray
    most: np.ndarray
    rounds: np.ndarray


def loop_of(rows: Sequence[Measurement], one: Mapping[str, np.ndarray]) -> Loop:
    """The loops of rows that differ in layout and batch alone.

    Parameters
    ----------
    one : memory by part [byte] with one sequence in flight, as a step gives it.
    """
    first = rows[0]
    copies = np.array([(row.layout or {})["dp_attention"] for row in rows])
    sent = np.array([row.batch for row in rows])
    # What drivers report is more than what vendors list.
    whole = first.chip.memory_reported or first.chip.memory
    left = whole - one["memory.weights"]
    free = np.maximum(left - (1 - RESERVED) * whole - RUNTIME, AT_LEAST * left)
    later = LATER.get(first.engine.split("-")[0], 0.5) * first.output + first.prompt
    each = np.maximum(one["memory.kv"] * later / first.context, 1.0)
    most = np.maximum(copies * np.maximum(free / each, 1.0), 1.0)
    others = np.maximum(np.minimum(sent, most) / copies - 1.0, 0.0)
    poll = np.array([row.poll for row in rows])
    hold = np.array([row.hold for row in rows])
    gathered = np.minimum((poll + hold + SEEN) / max(first.output, 2.0), 1.0)
    before = others * (RAMP + gathered)
    if first.even and first.engine.startswith(PROMPTS_FIRST):
        before = others / 2
    elif first.even and first.engine.startswith(A_FEW_FIRST):
        before = others * RAMP + np.minimum(others / 2, FEW)
    return Loop(
        before=before,
        held=poll / 2 + hold,
        most=most,
        rounds=BEHIND * np.maximum(sent / most - 1.0, 0.0),
    )


FUSED = frozenset({"trtllm-2024", "fastertransformer-2022", "llama.cpp", "pope-2022"})
# Engines that write quantised weights out in 16 bits, and read those, before they multiply a pass
# (llama.cpp on CUDA; on Apple's chips its kernels widen them on the way).
WIDENING, IN_KERNEL = frozenset({"llama.cpp"}), "apple-silicon"
WIDE = 2.0  # bytes per weight, written once and read once


def read_beside(row: Measurement, reading: np.ndarray, math: np.ndarray) -> np.ndarray:
    """What reading weights adds to the arithmetic of a pass over prompts [s].

    `reading` are the weights as they are kept, read once a pass; the pass that widens them, where
    there is one, multiplies nothing meanwhile.
    """
    if row.engine not in FUSED:
        return reading
    widening, beside = _widened(row)
    hidden = beside * reading
    # What is left after taking off what costs nothing may fall below zero by rounding.
    sticks_out: np.ndarray = np.hypot(hidden, math) - np.maximum(math, 0.0)
    return (1 + widening - beside) * reading + sticks_out


def _widened(row: Measurement) -> tuple[float, float]:
    """Bytes moved to widen weights, and bytes read by products, over those of the weights."""
    if row.engine not in WIDENING or row.chip.architecture == IN_KERNEL:
        return 0.0, 1.0
    sizes = row.sizes
    narrow = sum(n for part, n in sizes.params.items() if sizes.weight_dtype[part] in WEIGHT_ONLY)
    wide = WIDE * narrow / sum(sizes.streamed_bytes.values())
    return 2 * wide, wide if narrow else 1.0
