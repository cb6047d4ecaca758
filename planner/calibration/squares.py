"""Non-negative least squares on relative errors, and the scores of a prediction.

Residuals are weighted so that a row counts by its relative error, outliers by no more than their
sign, and every unknown has a weak prior: what the data cannot tell stays where the prior puts it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from planner.calibration.features import Features, unknowns
from planner.calibration.profile import COEFFICIENTS, EFFICIENCIES

__all__ = ["PRIOR", "Score", "score", "solve", "values_of"]

# Values one expects before seeing a measurement: the study of published steps for weights, cache
# and layers; measured floors of NCCL and DeepEP for collectives; a software hand-off for a hop.
PRIOR = {
    "e_w": 0.8,
    "e_kv": 0.8,
    "e_c": 0.7,
    "e_pf": 0.55,
    "e_pf_x": 0.25,
    "e_pf_a": 0.35,
    "e_ar": 0.7,
    "e_ar_pf": 0.5,
    "e_a2a": 1.0,
    "t_layer": 40e-6,
    "t_moe": 30e-6,
    "t_ep": 10e-6,
    "t_ar": 3e-6,
    "t_a2a": 5e-6,
    "t_hop": 20e-6,
    "t_seq": 5e-6,
    "t_step": 0.5e-3,
    "t_pf_chunk": 2e-3,
    "t_pf_moe": 0.3e-3,
    "t_tok": 5e-6,
    "n_sched": 4.0,
    "t_request": 20e-3,
}
# Weight of the prior against rows: an error of one row in three for a doubling of an unknown.
STRENGTH = 0.3
FIRM = 100.0
OUTLIER = 0.15  # relative error beyond which a row no longer pulls harder
ROUNDS = 12
LEAST = np.array([1.0 if name in EFFICIENCIES else 0.0 for name in COEFFICIENTS])


@dataclass(frozen=True)
class Score:
    """Errors of predictions: count, median and mean absolute relative error, shares within."""

    n: int
    median: float
    mean: float
    within_10: float
    within_20: float


def solve(
    columns: Features,
    seconds: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    prior: np.ndarray | None = None,
    strength: float = STRENGTH,
    firm: Collection[str] = (),
) -> np.ndarray:
    """Unknowns (1/e >= 1, t >= 0) that fit the rows best, shape (n_coefficients,).

    Parameters
    ----------
    columns : features of the rows.
    seconds : measured times [s], shape (n_rows,).
    weights : weights of the rows, same shape; ones by default.
    prior : unknowns expected beforehand, those of PRIOR by default.
    strength : weight of the prior, near 0 for none.
    firm : coefficients that stay with the prior, whatever the rows say.
    """
    from scipy.optimize import nnls

    given = np.ones(len(seconds)) if weights is None else np.sqrt(weights)
    expected = unknowns(PRIOR)
    held = np.array([FIRM if name in firm else 1.0 for name in COEFFICIENTS])
    pull = strength * np.diag(held / expected)
    expected = expected if prior is None else prior
    scale, robust = seconds.copy(), np.ones(len(seconds))
    found = expected
    for _ in range(ROUNDS):
        each = given * robust / scale
        matrix = np.vstack([columns.matrix * each[:, None], pull])
        wanted = (seconds - columns.rest - columns.matrix @ LEAST) * each
        found = LEAST + nnls(matrix, np.concatenate([wanted, pull @ (expected - LEAST)]))[0]
        times = columns.matrix @ found + columns.rest
        # Between measured and predicted lies the scale in which over and under count alike.
        scale = np.sqrt(seconds * np.maximum(times, 0.2 * seconds))
        error = np.abs(np.log(np.maximum(times, 1e-12) / seconds))
        robust = np.sqrt(np.minimum(1.0, OUTLIER / np.maximum(error, 1e-9)))
    return found


def values_of(found: np.ndarray) -> dict[str, float]:
    """Coefficients of a profile from the unknowns."""
    pairs = zip(COEFFICIENTS, found.tolist(), strict=True)
    return {name: 1 / x if name in EFFICIENCIES else x for name, x in pairs}


def score(predicted: np.ndarray, seconds: np.ndarray) -> Score:
    """Errors of predicted against measured times."""
    error = np.abs(predicted / seconds - 1)
    return Score(
        len(error),
        float(np.median(error)),
        float(error.mean()),
        float((error < 0.1).mean()),
        float((error < 0.2).mean()),
    )
