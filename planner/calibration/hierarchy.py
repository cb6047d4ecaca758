"""Coefficients shared by all rows, with their adjustments for an engine or a format.

Every coefficient is a power of e. The square of a row's error counts while it is small, its size
alone beyond the `outlier` of a `Loss`; every unknown has a prior of stated width, so what the rows
cannot tell stays where the prior puts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve
from scipy.special import expit

from planner.catalogue.coefficient_spread import EffectFamily, RunContext, effect_multiplicity
from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES
from planner.measurements.prediction import coefficients_from_linear

if TYPE_CHECKING:
    from planner.calibration.sample import Sample

OUTLIER = 0.12
ROUNDS = 60
STOP_TOL = 1e-7  # of the objective
SOFT_FLOOR_WIDTH = 0.02  # within which an efficiency nears one smoothly while it is fitted
# Posterior width over prior width, above which rows do not identify an unknown.
MAX_WIDTH_RATIO = 0.5
MIN_ROWS = 8
Prior = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Loss:
    """Robust loss of the errors: quadratic up to `outlier`, linear beyond.

    They are logarithms of predicted over measured, or, where `relative`, that ratio less one, as
    scores have it.
    """

    outlier: float = OUTLIER
    relative: bool = False


@dataclass(frozen=True)
class Effect:
    """Adjustment of the coefficients `of` within a `scope`, with its prior standard deviation."""

    of: tuple[str, ...]
    scope: Mapping[str, str]
    width: float
    monthly: bool = False

    def weight(self, place: RunContext) -> float:
        """Multiplicity of the effect at a context [-]."""
        return effect_multiplicity(self, place)


@dataclass(frozen=True)
class Hierarchy:
    """Fitted logarithms of the shared unknowns and of the effects, with their widths.

    `shared` has shape (n_coefficients,), `adjusted` (n_effects,); `freedom` is the share of its
    prior width that an unknown keeps, near one where the rows say nothing of it. `covariance` is
    that of all logarithms, shape (n_unknowns, n_unknowns), by the curvature at the fit.
    """

    shared: np.ndarray
    effects: tuple[Effect, ...]
    adjusted: np.ndarray
    freedom: np.ndarray
    covariance: np.ndarray

    def unknowns(self, places: Sequence[RunContext]) -> np.ndarray:
        """1/e and t of every place, shape (n_places, n_coefficients)."""
        counts, touched = _design(places, self.effects)
        logarithms = self.shared + (counts * self.adjusted) @ touched
        return np.asarray(np.maximum(np.exp(logarithms), LOWER_BOUNDS))

    def times(self, sample: Sample) -> np.ndarray:
        """Times [s] of rows, shape (n_rows,)."""
        return sample.columns.times(self.unknowns(sample.places))

    @property
    def values(self) -> dict[str, float]:
        """The shared coefficients as a profile names them."""
        return coefficients_from_linear(np.maximum(np.exp(self.shared), LOWER_BOUNDS))

    @property
    def factors(self) -> list[float]:
        """Factors on times, one for each effect."""
        return [float(one) for one in np.exp(self.adjusted)]


LOWER_BOUNDS = np.array([1.0 if name in EFFICIENCIES else 0.0 for name in COEFFICIENTS])


def effects(places: Sequence[RunContext], families: Sequence[EffectFamily]) -> tuple[Effect, ...]:
    """The effects that at least LEAST_ROWS places can tell, in a fixed order."""
    tellable = []
    for family in families:
        seen = Counter(tuple(getattr(place, key) for key in family.keys) for place in places)
        for values in sorted(v for v, n in seen.items() if n >= MIN_ROWS and all(v)):
            scope = dict(zip(family.keys, values, strict=True))
            tellable.append(Effect(family.of, scope, family.width, family.monthly))
    return tuple(tellable)


def fit_hierarchy(
    sample: Sample,
    candidates: Sequence[Effect],
    prior: Prior,
    *,
    start: Hierarchy | None = None,
    loss: Loss | None = None,
    settled: float = STOP_TOL,
    rounds: int = ROUNDS,
) -> Hierarchy:
    """The unknowns that fit the rows best.

    Raises ValueError if there is no row.

    Args:
        candidates: effects, as `effects` finds them.
        prior: {coefficient: (value, standard deviation of its logarithm)}.
        start: where to begin; the prior by default.
        loss: how errors count; logarithms by default.
        settled: the gain, as a share of what is to be least, below which a descent ends.
        rounds: steps of a descent at most.
    """
    if len(sample.seconds) == 0:
        raise ValueError("nothing to fit: no rows")
    problem = HierarchyProblem(sample, candidates, prior, loss or Loss())
    theta = problem.start(start)
    value, damping = problem.value(theta), 1e-3
    for _ in range(rounds):
        gradient, curvature = problem.slopes(theta)
        for _ in range(12):
            damped = curvature + damping * np.diag(np.diag(curvature))
            step = np.clip(solve(damped, -gradient, assume_a="pos"), -1.0, 1.0)
            better = problem.value(theta + step)
            if better <= value:
                break
            damping *= 4
        else:
            break
        theta, gained, value = theta + step, value - better, better
        damping = max(damping / 4, 1e-9)
        if gained < settled * abs(value):
            break
    return problem.result(theta)


Solve = Callable[[tuple[Effect, ...], "Hierarchy | None"], Hierarchy]


def prune_effects(
    solve: Solve,
    candidates: tuple[Effect, ...],
    keep: Callable[[Hierarchy], tuple[Effect, ...]],
    rounds: int = ROUNDS,
) -> Hierarchy:
    """A fit with the effects that are worth their place: solved, pruned, solved again.

    Args:
        solve: the fit with some effects, from where another fit ended.
        keep: the effects of a fit that are worth keeping.
        rounds: times that effects are dropped at most.
    """
    fit = solve(candidates, None)
    for _ in range(rounds):
        effects_left = keep(fit)
        if len(effects_left) == len(fit.effects):
            break
        fit = solve(effects_left, fit)
    return fit


class HierarchyProblem:
    """Sum of robust squares of errors and of squares of the priors."""

    def __init__(
        self, sample: Sample, candidates: Sequence[Effect], prior: Prior, loss: Loss
    ) -> None:
        self.sample, self.candidates, self.loss = sample, tuple(candidates), loss
        rows: dict[RunContext, list[int]] = {}
        for i, place in enumerate(sample.places):
            rows.setdefault(place, []).append(i)
        counts, touched = _design(list(rows), self.candidates)
        shared, parts = len(COEFFICIENTS), []
        for count, members in zip(counts, rows.values(), strict=True):
            here = np.flatnonzero(count)
            unknown = np.concatenate([np.arange(shared), shared + here])
            spread = np.vstack([np.eye(shared), count[here, None] * touched[here]])
            parts.append((np.array(members), unknown, spread))
        self.places = parts
        signs = {c: -1 if c in EFFICIENCIES else 1 for c in COEFFICIENTS}
        expected = [sign * float(np.log(prior[c][0])) for c, sign in signs.items()]
        self.shared = len(expected)
        self.mean = np.concatenate([expected, np.zeros(len(self.candidates))])
        widths = [prior[c][1] for c in COEFFICIENTS] + [each.width for each in self.candidates]
        self.precision = np.array(widths) ** -2.0

    def start(self, start: Hierarchy | None) -> np.ndarray:
        """Starting point: the prior mean, or an earlier fit (0 for effects new to it)."""
        theta = self.mean.copy()
        if start is not None:
            earlier = {_key(e): x for e, x in zip(start.effects, start.adjusted, strict=True)}
            theta[: self.shared] = start.shared
            theta[self.shared :] = [earlier.get(_key(e), 0.0) for e in self.candidates]
        return theta

    def value(self, theta: np.ndarray) -> float:
        """Objective: weighted robust errors of the rows plus squared distances to the priors."""
        error = self._error(self.sample.columns.times(self._rounded(theta)[0])) / self.loss.outlier
        robust = 2 * (np.sqrt(1 + error**2) - 1)
        return float(self.sample.weights @ robust + self.precision @ (theta - self.mean) ** 2)

    def slopes(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Half the gradient, and half the curvature of the reweighted squares.

        Rows of one place differ in their shares alone, and few effects count there: what they add
        up to is spread over the unknowns place by place.
        """
        error, shares = self._errors(theta)
        outlier = self.loss.outlier
        weighted = self.sample.weights / np.sqrt(1 + (error / outlier) ** 2) / outlier**2
        pulled, heavy = (weighted * error)[:, None] * shares, weighted[:, None] * shares
        gradient, curvature = self.precision * (theta - self.mean), np.diag(self.precision)
        for rows, unknown, spread in self.places:
            gradient[unknown] += spread @ pulled[rows].sum(axis=0)
            between = heavy[rows].T @ shares[rows]
            curvature[np.ix_(unknown, unknown)] += spread @ between @ spread.T
        return gradient, curvature

    def result(self, theta: np.ndarray) -> Hierarchy:
        """Fitted unknowns by type, with the covariance and the share of prior width left [-]."""
        covariance = np.linalg.inv(self.slopes(theta)[1])
        freedom = np.sqrt(np.diag(covariance) * self.precision)
        shared, adjusted = np.split(theta, [self.shared])
        return Hierarchy(shared, self.candidates, adjusted, freedom, covariance)

    def _rounded(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = np.empty(self.sample.columns.matrix.shape)
        for rows, unknown, spread in self.places:
            x[rows] = theta[unknown] @ spread
        return _rounded(np.exp(x))

    def _error(self, times: np.ndarray) -> np.ndarray:
        """Errors of times [s], both of shape (n_rows,)."""
        ratio: np.ndarray = times / self.sample.seconds
        return ratio - 1 if self.loss.relative else np.log(ratio)

    def _errors(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Errors, shape (n_rows,), and d of them / d ln of a row's own (n_rows, n_coefficients)."""
        x, moved = self._rounded(theta)
        times, parts = self.sample.columns.times(x), self.sample.columns.parts(x) * moved
        over = self.sample.seconds if self.loss.relative else times
        return self._error(times), parts / over[:, None]


def _design(
    places: Sequence[RunContext], candidates: Sequence[Effect]
) -> tuple[np.ndarray, np.ndarray]:
    distinct = {place: i for i, place in enumerate(dict.fromkeys(places))}
    weights = np.array([[each.weight(place) for each in candidates] for place in distinct])
    counts = weights.reshape(len(distinct), len(candidates))[[distinct[place] for place in places]]
    touched = np.array([[c in each.of for c in COEFFICIENTS] for each in candidates], dtype=float)
    return counts, touched.reshape(len(candidates), len(COEFFICIENTS))


def _rounded(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unknowns with a smooth floor (no corner that stops a descent), and d ln(unknown) / d ln(x).

    An efficiency that nears one moves less and less: the reciprocal is one plus a soft excess.
    """
    over = (x - LOWER_BOUNDS) / SOFT_FLOOR_WIDTH
    rounded = LOWER_BOUNDS + SOFT_FLOOR_WIDTH * np.logaddexp(0.0, over)
    free = LOWER_BOUNDS == 0
    moved = x / rounded * expit(over)
    return np.where(free, x, rounded), np.where(free, 1.0, moved)


def _key(effect: Effect) -> tuple:
    return (effect.of, tuple(sorted(effect.scope.items())), effect.monthly)
