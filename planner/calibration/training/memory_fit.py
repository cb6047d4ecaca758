"""Coefficients of a training stack's memory, from runs that fitted or failed and measured peaks.

A run that fitted says that its memory is below the chip's, one that failed that it is above: the
likelihood of both, with peaks where they were measured, and the priors of the coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from planner.catalogue.training.training_stacks import TrainingStack, coefficient_priors
from planner.measurements.readers.training_rows import TrainingRow
from planner.measurements.training_steps import symbols_of, task_of
from planner.problems.training.step.step_times import fed

SLACK = 0.08  # of the logarithm of memory: what fragmentation and libraries change from run to run
MEMORY = ("M_base", "k_act", "k_state", "k_loss")
PLACES = (("k_act", "norm", "plain"), ("k_act", "kernel", "unfused"))
PLACE_SPREAD = 0.3


@dataclass(frozen=True)
class MemorySample:
    """Runs that fitted, failed or stated a peak, with the symbols of each."""

    rows: tuple[TrainingRow, ...]
    symbols: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, rows: Sequence[TrainingRow], stack: TrainingStack) -> MemorySample:
        """The sample of rows whose recomputation is known."""
        sound = [row for row in rows if not row.reason and not row.latent]
        bound = [symbols_of(row, task_of(row, stack)) for row in sound]
        names = bound[0].keys() if bound else ()
        return cls(tuple(sound), {n: np.array([float(each[n]) for each in bound]) for n in names})

    @cached_property
    def capacity(self) -> np.ndarray:
        """Memory of each row's chip [byte]."""
        return np.array([row.machine.memory for row in self.rows if row.machine])

    @cached_property
    def fits(self) -> np.ndarray:
        """Whether each ran."""
        return np.array([row.fits for row in self.rows], dtype=bool)

    @cached_property
    def peaks(self) -> np.ndarray:
        """Measured peaks [byte], not a number where none is."""
        return np.array([row.peak or np.nan for row in self.rows], dtype=float)

    def take(self, where: np.ndarray) -> MemorySample:
        """Some of the rows."""
        at = np.flatnonzero(where)
        return MemorySample(
            tuple(self.rows[i] for i in at), {n: v[at] for n, v in self.symbols.items()}
        )


@dataclass(frozen=True)
class MemoryFit:
    """Logarithms over the priors of the coefficients in MEMORY, then of the factors in PLACES."""

    theta: np.ndarray

    def used(self, sample: MemorySample) -> np.ndarray:
        """Memory of every row [byte]."""
        return _used(sample, self.theta)

    def values(self) -> dict[str, float]:
        """Coefficients by name."""
        priors = coefficient_priors()
        pairs = zip(MEMORY, self.theta, strict=False)
        return {name: priors[name].value * float(np.exp(x)) for name, x in pairs}

    def factors(self) -> list[tuple[str, str, str, float]]:
        """Adjustments of PLACES."""
        pairs = zip(PLACES, np.exp(self.theta[len(MEMORY) :]), strict=True)
        return [(*place, float(factor)) for place, factor in pairs]


UNFITTED = MemoryFit(np.zeros(len(MEMORY) + len(PLACES)))


def _used(sample: MemorySample, theta: np.ndarray) -> np.ndarray:
    priors = coefficient_priors()
    values = {n: np.full(len(sample.rows), priors[n].value * np.exp(x))
              for n, x in zip(MEMORY, theta, strict=False)}  # fmt: skip
    for (of, scope, word), x in zip(PLACES, theta[len(MEMORY) :], strict=True):
        here = [getattr(row, scope) == word for row in sample.rows]
        values[of] = values[of] * np.where(here, np.exp(x), 1.0)
    return np.asarray(fed("used", {**sample.symbols, **values})["used"])


def fit_memory(sample: MemorySample) -> MemoryFit:
    """Coefficients under which runs that fitted fit, those that failed do not, and peaks agree."""
    priors = coefficient_priors()
    widths = np.array([priors[n].spread for n in MEMORY] + [PLACE_SPREAD] * len(PLACES))
    peaked = np.isfinite(sample.peaks)
    sign = np.where(sample.fits, 1.0, -1.0)

    def surprise(z: np.ndarray) -> float:
        used = _used(sample, z * widths)
        margin = np.log(sample.capacity / used) / SLACK
        calls = np.logaddexp(0, -sign * margin)[~peaked]
        off = np.log(used[peaked] / sample.peaks[peaked]) / SLACK
        return float(calls.sum() + (np.sqrt(1 + off**2) - 1).sum() + z @ z / 2)

    start = np.zeros(len(widths))
    return MemoryFit(minimize(surprise, start, method="L-BFGS-B").x * widths)
