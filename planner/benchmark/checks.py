"""Is the result right? A sample of each against the same work in float64.

The tolerance follows from the precision: the result is rounded once, partial sums may be too
(split products add halves in bf16), and a sum of k terms gathers the rounding of its accumulator.
"""

from __future__ import annotations

import numpy as np

from planner.benchmark.device import TimingSample
from planner.benchmark.kernels import AllReduce, Attention, KernelLaunch, Product, Work

SINGLE = 2.0**-24
# Half a step of the precision that a result of each dtype is rounded to; whole numbers are exact.
HALF_STEP = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp8": 2.0**-8, "fp32": SINGLE, "int8": 0.0}
PARTIAL = 4  # roundings of partial sums, at random and at the worst of the sample


def fault(work: Work, sample: TimingSample) -> str | None:
    """What is wrong with the result of a work, or None.

    `sample.operands` hold, by kind of work: `x` and, of a triad, `y` and `scale`; `a` of shape
    (rows, k) and `b` of shape (columns, k); `q` (samples, head_dim), `k` and `v` (samples, context,
    head_dim); `calls`; `parts` (devices, samples).
    """
    expected, tolerance = _expected(work, sample)
    result = sample.result
    if result.shape != expected.shape:
        return f"its shape is {result.shape}, expected {expected.shape}"
    if not np.isfinite(result).all():
        return "it holds numbers that are not finite"
    beyond = np.abs(result - expected) - tolerance
    if not beyond.size or beyond.max() <= 0:
        return None
    at = np.unravel_index(beyond.argmax(), beyond.shape)
    wrong = int((beyond > 0).sum())
    return (
        f"{wrong} of {beyond.size} sampled numbers are wrong: "
        f"{result[at]:.7g} where {expected[at]:.7g} was expected"
    )


def _expected(work: Work, sample: TimingSample) -> tuple[np.ndarray, np.ndarray]:
    """The result in float64, and how far from it rounding may lead."""
    operands = sample.operands
    if isinstance(work, Product):
        terms = operands["a"][:, None, :] * operands["b"][None, :, :]
        return _sum(terms, HALF_STEP[work.dtype], exact=work.dtype == "int8")
    if isinstance(work, Attention):
        return _attention(operands["q"], operands["k"], operands["v"], HALF_STEP[work.dtype])
    if isinstance(work, AllReduce):
        return _sum(operands["parts"].T, SINGLE)
    if isinstance(work, KernelLaunch):
        return operands["calls"], np.zeros_like(operands["calls"])
    if work.kind == "read":
        return _sum(operands["x"], SINGLE)
    if work.kind == "copy":
        return operands["x"], np.zeros_like(operands["x"])
    expected = operands["x"] + operands["scale"] * operands["y"]
    return expected, 8 * SINGLE * (
        np.abs(operands["x"]) + np.abs(operands["scale"] * operands["y"])
    )


def _sum(terms: np.ndarray, step: float, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Sums over the last axis, and their tolerance."""
    total = terms.sum(axis=-1)
    if exact:
        return total, np.zeros_like(total)
    scale = np.abs(total) + PARTIAL * np.sqrt((terms**2).sum(axis=-1))
    gathered = 2 * SINGLE * np.sqrt(terms.shape[-1]) * np.abs(terms).sum(axis=-1)
    return total, 2 * step * scale + gathered


def _attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Softmax attention of single queries; shape (samples, head_dim)."""
    scores = np.einsum("sd,scd->sc", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    expected = np.einsum("sc,scd->sd", weights, v)
    # Weights are rounded to the precision of the values before they are multiplied.
    spread = np.sqrt(np.einsum("sc,scd->sd", weights**2, v**2))
    gathered = 2 * SINGLE * np.sqrt(k.shape[1]) * np.einsum("sc,scd->sd", weights, np.abs(v))
    return expected, 2 * step * (np.abs(expected) + PARTIAL * spread) + gathered
