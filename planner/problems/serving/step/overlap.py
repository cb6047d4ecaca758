"""Reading weights beside multiplying prompts with them, in kernels that do both at once.

Engines whose static batches were published run one product after the other, each reading its
weights while it multiplies: about the root of the squares of both times, the longer one where they
differ, more than either where they are alike. It is taken at full efficiency, so that what remains
is still a sum of what coefficients add. Steps of decoding stay the sum that plans are made with.
"""

from __future__ import annotations

import numpy as np

from planner.measurements.measurement import Measurement
from planner.problems.serving.task.task import WEIGHT_ONLY

__all__ = ["read_beside"]

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
