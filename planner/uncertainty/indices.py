"""Which uncertain given the answer's spread comes from: Sobol and Morris indices.

Sobol (2001): the share of the variance that a given explains by itself, and with all others; SciPy
estimates both (Saltelli et al. 2010), and their intervals are percentiles of resampled draws.
Morris (1991), Campolongo et al. (2007): means of the steps along one given at a time, cheaper and
coarser.

What knowing uncertain givens before choosing is worth: the expected value of information.

A choice made now is best on average; one made after everything is known is best at each draw. The
difference of what they cost is the value of perfect information (Raiffa and Schlaifer 1961). Of
one given alone it is taken from the mean cost of every choice at a value of the given, a cubic in
its quantile fitted by least squares (Strong, Oakley and Brennan 2014).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.report.text.sensitivity import KnowingValue, MorrisEffect, SobolIndex
from planner.text.errors import InputError

INTERVAL = 0.9
RESAMPLES = 200
LEVELS = 4
SAME = 1e-12  # relative spread of an answer that does not vary


def sobol_design(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Points of the unit cube, shape (n (d + 2), d): A, B, and A with a column of B each.

    Raises InputError if the count is not a power of two.
    """
    from scipy.stats import qmc

    if count < 2 or count & (count - 1):
        near = 1 << max(count, 2).bit_length()
        raise InputError(f"--sobol {count}: expected a power of two such as {near}")
    drawn = qmc.Sobol(2 * dimensions, rng=np.random.default_rng(seed)).random(count)
    first, second = drawn[:, :dimensions], drawn[:, dimensions:]
    mixed = [np.where(np.arange(dimensions) == i, second, first) for i in range(dimensions)]
    return np.concatenate([first, second, *mixed])


def sobol(values: np.ndarray, dimensions: int, seed: int) -> list[SobolIndex] | None:
    """The indices of each given from the answers at a design; None where too few have a plan.

    A draw of which some answer is missing is replaced by another one, which keeps the shares of the
    rest.
    """
    blocks = values.reshape(dimensions + 2, -1)
    complete = np.isfinite(blocks).all(axis=0)
    count = complete.size
    if complete.sum() < 2:
        return None
    rng = np.random.default_rng(seed)
    places = np.arange(count)
    places[~complete] = rng.choice(places[complete], count - complete.sum())
    blocks = blocks[:, places]
    first, total = _indices(blocks)
    drawn = [_indices(blocks[:, rng.integers(count, size=count)]) for _ in range(RESAMPLES)]
    ends = [
        np.quantile([each[k] for each in drawn], [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], axis=0)
        for k in (0, 1)
    ]
    columns = (first, ends[0].T, total, ends[1].T)
    return [SobolIndex(*index) for index in zip(*(each.tolist() for each in columns), strict=True)]


def _indices(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First-order and total indices of answers at A, at B and at A with a column of B each."""
    from scipy.stats import sobol_indices

    if np.ptp(blocks) <= SAME * np.abs(blocks).max():
        return np.zeros(len(blocks) - 2), np.zeros(len(blocks) - 2)
    if len(blocks) - 2 == 1:  # SciPy takes none alone, and all of the variance is its
        return np.ones(1), np.ones(1)
    parts: Any = {"f_A": blocks[:1], "f_B": blocks[1:2], "f_AB": blocks[2:, None, :]}
    estimate: Any = sobol_indices(func=parts, n=blocks.shape[1])
    return np.ravel(estimate.first_order), np.ravel(estimate.total_order)


def morris_design(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Trajectories through a grid of four levels, shape (count (d + 1), d): one given a step."""
    rng = np.random.default_rng(seed)
    step = LEVELS / (2 * (LEVELS - 1))
    starts = np.arange(LEVELS // 2) / (LEVELS - 1)
    points = []
    for _ in range(count):
        at = rng.choice(starts, dimensions)
        up = rng.random(dimensions) < 0.5
        at = np.where(up, at, at + step)
        points.append(at.copy())
        for i in rng.permutation(dimensions):
            at[i] += step if up[i] else -step
            points.append(at.copy())
    return np.array(points)


def effects(design: np.ndarray, values: np.ndarray) -> list[MorrisEffect]:
    """The effect of each given along trajectories; steps without a plan are left out."""
    dimensions = design.shape[1]
    moved = np.diff(design.reshape(-1, dimensions + 1, dimensions), axis=1)
    changes = np.diff(values.reshape(-1, dimensions + 1), axis=1)
    # One given moves in each step.
    slopes, which = changes / moved.sum(axis=2), np.abs(moved).argmax(axis=2)
    return [_effect(slopes[(which == i) & np.isfinite(slopes)]) for i in range(dimensions)]


def _effect(slopes: np.ndarray) -> MorrisEffect:
    if not slopes.size:
        return MorrisEffect(None, None, None)
    deviation = float(slopes.std(ddof=1)) if slopes.size > 1 else 0.0
    return MorrisEffect(float(slopes.mean()), float(np.abs(slopes).mean()), deviation)


DEGREE = 3


def knowing(
    outputs: np.ndarray,
    shares: np.ndarray,
    choices: Sequence[str],
    paths: Sequence[str],
    sign: float = 1.0,
) -> KnowingValue | None:
    """From the outputs of choices at draws, shape (n, k), and shares of paths, shape (n, d).

    An output times `sign` is a cost; a choice without a plan is nan. It rests on the draws at which
    every choice has a plan; None where too few are left.
    """
    complete = np.isfinite(outputs).all(axis=1)
    costs, shares = sign * outputs[complete], shares[complete]
    if len(costs) <= 4 * (DEGREE + 1):
        return None
    means = costs.mean(axis=0)
    best = int(means.argmin())
    every = max(float(means[best] - costs.min(axis=1).mean()), 0.0)
    alone = {path: _alone(costs, shares[:, i]) for i, path in enumerate(paths)}
    mean = sign * float(means[best])
    return KnowingValue(every, choices[best], mean, len(costs), choices, alone)


def _alone(costs: np.ndarray, share: np.ndarray) -> float:
    basis = np.polynomial.legendre.legvander(2 * share - 1, DEGREE)
    weights = np.linalg.lstsq(basis, costs, rcond=None)[0]
    fitted = basis @ weights
    return max(float(fitted.mean(axis=0).min() - fitted.min(axis=1).mean()), 0.0)


def frequent(choices: Sequence[str | None], most: int) -> list[tuple[str, float]]:
    """The choices with the share of all draws at which each is best, the most frequent first."""
    counted = Counter(choice for choice in choices if choice is not None)
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(name, count / len(choices)) for name, count in ranked[:most]]
