"""Coefficients of a training stack from measured steps and memory, shrunk to physical priors.

Logarithms of coefficients are normal around their priors, adjustments of a chip, a format, a kernel
or an era around zero; a robust loss keeps single rows from deciding. The equations are those that
`solve` uses, evaluated on all rows and all small changes of the coefficients at once. Of memory, a
run that fitted says that it is below the chip's, one that failed that it is above: the likelihood
of both, with peaks where they were measured, and the priors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import least_squares, minimize

from planner.catalogue.training.training_stacks import (
    ANY_VALUE,
    NO_TIME,
    PriorCoefficient,
    StackAdjustment,
    TrainingStack,
    coefficient_priors,
    training_stack,
    training_stack_names,
    usual_adjustments,
)
from planner.measurements.readers.training_rows import TrainingRow
from planner.measurements.training_steps import stack_version, training_symbols, training_task
from planner.problems.training.step.step_times import get_kernel, run_kernel
from planner.problems.training.step.training_task import TrainingTask

NOISE = 0.04  # of the logarithm of a step time: what another day, release or submitter changes
# Noise of routed models, whose layouts explain little: releases of four months made a layout
# 1.6 times faster, and the noise is half of ln 1.6.
ROUTED_NOISE = 0.25
STEP = 1e-4  # of a logarithm, for slopes
MIN_ROWS = 2  # of a scope, below which it has no adjustment
# Coefficients adjusted in each scope, and prior standard deviation of ln of the adjustment.
SCOPES: Mapping[str, tuple[tuple[str, ...], float]] = {
    "chip": (("k_mat", "k_att", "k_norm", "k_dp", ANY_VALUE), 0.12),
    "precision": (("k_mat", "k_expert", "k_quant"), 0.25),
    "kernel": (("k_att", "k_pairs"), 0.4),
    "norm": (("k_norm",), 0.6),
    "era": ((ANY_VALUE,), 0.06),
    "part": (("k_mat", "k_norm", "k_cut", "t_launch"), 0.15),
    "shape": (("k_uneven",), 0.5),
}
MEMORY = ("M_base", "k_act", "k_state", "k_loss")  # coefficients that no time moves
FITTED_COEFFICIENTS = tuple(name for name in coefficient_priors() if name not in MEMORY)


@dataclass(frozen=True)
class StepSample:
    """Rows of one stack as arrays: symbols of each, places, measured seconds."""

    rows: tuple[TrainingRow, ...]
    tasks: tuple[TrainingTask, ...]
    symbols: Mapping[str, np.ndarray]
    routed_noise: float = NOISE

    @classmethod
    def of(cls, rows: Sequence[TrainingRow], stack: TrainingStack) -> StepSample:
        """The sample of usable rows, seen by a stack."""
        tasks = tuple(training_task(row, stack) for row in rows)
        bound = [training_symbols(row, task) for row, task in zip(rows, tasks, strict=True)]
        names = bound[0].keys()
        symbols = {n: np.array([[float(each[n])] for each in bound]) for n in names}
        return cls(tuple(rows), tasks, symbols, stack.routed_noise)

    @cached_property
    def seconds(self) -> np.ndarray:
        """Measured step times [s]."""
        return np.array([row.seconds for row in self.rows], dtype=float)

    @cached_property
    def noise(self) -> np.ndarray:
        """Standard deviation of the logarithm of each step time [1]."""
        routed = [row.part == "routed" for row in self.rows]
        return np.where(routed, self.routed_noise, NOISE)

    @cached_property
    def places(self) -> list[dict[str, str]]:
        """Context of each row's stack coefficients: chip, precision, kernel, norm, era, part."""
        return [
            {**task.place, "era": stack_version(row)}
            for row, task in zip(self.rows, self.tasks, strict=True)
        ]

    def take(self, where: np.ndarray) -> StepSample:
        """Some of the rows."""
        at = np.flatnonzero(where) if where.dtype == bool else where
        return StepSample(
            tuple(self.rows[i] for i in at),
            tuple(self.tasks[i] for i in at),
            {name: values[at] for name, values in self.symbols.items()},
            self.routed_noise,
        )


@dataclass(frozen=True)
class StepFit:
    """Logarithms over the prior of coefficients and adjustments, and their covariance."""

    names: tuple[str, ...]
    adjustments: tuple[tuple[str, str, str], ...]  # coefficient, scope, word
    theta: np.ndarray
    covariance: np.ndarray
    spread: float
    priors: Mapping[str, PriorCoefficient]
    loss: float = np.inf

    def predicted(self, sample: StepSample) -> np.ndarray:
        """Step times of rows [s]; of a scope that the fit never saw, unadjusted."""
        return _predicted(sample, self, self.theta[:, None])[:, 0]

    def values(self) -> dict[str, float]:
        """Coefficients of the stack."""
        return {
            name: self.priors[name].value * float(np.exp(x))
            for name, x in zip(self.names, self.theta, strict=False)
        }

    def stack_adjustments(self) -> tuple[StackAdjustment, ...]:
        """Factors of the stack's places."""
        usual = {(one.of, one.scope, one.at): one.factor for one in usual_adjustments()}
        factors = np.exp(self.theta[len(self.names) :])
        return tuple(
            StackAdjustment(*key, round(float(factor) * usual.get(key, 1.0), 4))
            for key, factor in zip(self.adjustments, factors, strict=True)
        )

    def spreads(self) -> dict[str, float]:
        """Standard deviations of logarithms of coefficients."""
        sd = np.sqrt(np.diag(self.covariance))
        return {n: float(s) for n, s in zip(self.names, sd, strict=False)}


def _predicted(sample: StepSample, fit: StepFit, theta: np.ndarray) -> np.ndarray:
    """Step times, shape (rows, n), at n columns of logarithms."""
    priors, kernel = fit.priors, get_kernel("step")
    usual = {(one.of, one.scope, one.at): np.log(one.factor) for one in usual_adjustments()}
    base = {n: np.log(priors[n].value) + theta[i] for i, n in enumerate(fit.names)}
    coefficients = {n: np.broadcast_to(v, (1, theta.shape[1])) for n, v in base.items()}
    more: dict[str, np.ndarray] = {}
    for j, (of, scope, word) in enumerate(fit.adjustments, start=len(fit.names)):
        here = np.array([[place.get(scope) == word] for place in sample.places], dtype=float)
        if here.any():
            more[of] = more.get(of, 0.0) + here * (theta[j] + usual.get((of, scope, word), 0.0))
    every = more.pop(ANY_VALUE, 0.0)
    values = {
        n: np.maximum(
            priors[n].least, np.exp(v + more.get(n, 0.0) + (0.0 if n in NO_TIME else every))
        )
        for n, v in coefficients.items()
    }
    values |= {n: priors[n].value for n in kernel.names if n in priors and n not in values}
    arguments = {n: values.get(n, sample.symbols.get(n)) for n in kernel.names}
    return np.asarray(kernel(**arguments)["step"])


def fit_steps(sample: StepSample, priors: Mapping[str, PriorCoefficient] | None = None) -> StepFit:
    """Coefficients that fit the rows of a sample, as near to the priors as these let them be.

    Without `priors` those of physics.
    """
    priors = priors or coefficient_priors()
    adjustments, spreads = _adjustable(sample)
    names = FITTED_COEFFICIENTS
    widths = np.array([priors[n].spread for n in names] + spreads)
    empty = StepFit(names, adjustments, np.zeros(len(widths)), np.zeros((0, 0)), NOISE, priors)
    logs, noise = np.log(sample.seconds), sample.noise
    count = len(widths)

    def residuals(z: np.ndarray) -> np.ndarray:
        off = np.log(_predicted(sample, empty, (z * widths)[:, None])[:, 0]) - logs
        return np.concatenate([robust(off / noise), z])

    def slopes(z: np.ndarray) -> np.ndarray:
        moved = (z * widths)[:, None] + STEP * np.hstack([np.zeros((count, 1)), np.eye(count)])
        times = np.log(_predicted(sample, empty, moved))
        off = (times[:, :1] - logs[:, None]) / noise[:, None]
        rows = (times[:, 1:] - times[:, :1]) / STEP * widths / noise[:, None]
        return np.vstack([rows * robust_slope(off), np.eye(count)])

    low, high = np.full(len(widths), -np.inf), np.full(len(widths), np.inf)
    for i, name in enumerate(names):
        prior = priors[name]
        low[i] = np.log(prior.least / prior.value) / widths[i] if prior.least else -np.inf
        high[i] = np.log(prior.most / prior.value) / widths[i]
    solution = least_squares(
        residuals, np.zeros(count), jac=slopes, method="trf", max_nfev=60, x_scale=1.0,
        bounds=(low, high),
    )  # fmt: skip
    jacobian = slopes(solution.x)
    covariance = np.linalg.inv(jacobian.T @ jacobian) * np.outer(widths, widths)
    theta = solution.x * widths
    off = np.log(_predicted(sample, empty, theta[:, None])[:, 0]) - logs
    return replace(
        empty, theta=theta, covariance=covariance, spread=float(np.std(off)), loss=solution.cost
    )


def robust(x: np.ndarray) -> np.ndarray:
    """Residuals whose square grows as their size beyond a few."""
    return np.sign(x) * np.sqrt(2 * LIMIT**2 * (np.sqrt(1 + (x / LIMIT) ** 2) - 1))


LIMIT = 2.0  # standard deviations of noise; a row with a larger residual counts less


def robust_slope(x: np.ndarray) -> np.ndarray:
    """Derivative of `robust`."""
    root = np.sqrt(1 + (x / LIMIT) ** 2)
    rho = np.maximum(1e-12, np.abs(robust(x)))
    return np.where(np.abs(x) < 1e-6, 1.0, np.abs(x) / root / rho)


def _adjustable(sample: StepSample) -> tuple[tuple[tuple[str, str, str], ...], list[float]]:
    """Adjustments that a sample's places ask for: every word of a scope but the commonest."""
    keys = [(one.of, one.scope, one.at) for one in usual_adjustments()]
    spreads = [SCOPES[scope][1] for _, scope, _ in keys]
    for scope, (coefficients, spread) in SCOPES.items():
        words = [place.get(scope, "") for place in sample.places]
        counts = {word: words.count(word) for word in words}
        if len(counts) < 2:
            continue
        for word, count in sorted(counts.items()):
            if count >= MIN_ROWS and word:
                for of in coefficients:
                    if (of, scope, word) in keys:
                        continue
                    keys.append((of, scope, word))
                    spreads.append(spread)
    return tuple(keys), spreads


# Share of the variance of a physical prior that is variance between stacks.
STACK_SHARE = 0.5
MIN_INFORMATION = 1e-3  # relative to a prior's information; below it a coefficient is unidentified
Findings = Mapping[str, Mapping[str, tuple[float, float]]]


def coefficient_estimates(alone: StepFit) -> dict[str, tuple[float, float]]:
    """Estimate of each coefficient from rows: log ratio to its prior, standard deviation [1].

    `alone` is a fit whose priors are those of physics; coefficients that no row moves are left out.
    """
    findings = {}
    for name, spread in alone.spreads().items():
        prior = coefficient_priors()[name]
        information = spread**-2 - prior.spread**-2
        if information > MIN_INFORMATION * prior.spread**-2:
            moved = np.log(alone.values()[name] / prior.value) / spread**2 / information
            findings[name] = (float(moved), float(information**-0.5))
    return findings


def shipped_findings() -> Findings:
    """Findings of the stacks that ship, by name."""
    return {name: training_stack(name).findings for name in training_stack_names()}


def stack_priors(stack: str, findings: Findings) -> dict[str, PriorCoefficient]:
    """Priors of a stack's coefficients, updated by the estimates of the other stacks.

    A coefficient of a stack is normal, in logarithms, around a mean of all stacks, and that mean
    around what physics says. Of each other stack its likelihood counts, its prior taken out again.
    """
    others = [rows for name, rows in findings.items() if name != stack]
    return {name: _pooled(name, prior, others) for name, prior in coefficient_priors().items()}


def _pooled(
    name: str, prior: PriorCoefficient, others: list[Mapping[str, tuple[float, float]]]
) -> PriorCoefficient:
    """The prior of one coefficient after the other stacks."""
    between = STACK_SHARE * prior.spread**2
    weights, means = [1 / (prior.spread**2 - between)], [0.0]
    for rows in others:
        if name in rows:
            mean, deviation = rows[name]
            weights.append(1 / (between + deviation**2))
            means.append(mean)
    value = prior.value * np.exp(np.average(means, weights=weights))
    return replace(
        prior, value=float(np.clip(value, prior.least, prior.most)),
        spread=float(np.sqrt(1 / sum(weights) + between)),
    )  # fmt: skip


SLACK = 0.08  # of the logarithm of memory: what fragmentation and libraries change from run to run
ABSENT_TERMS = (("k_act", "norm", "plain"), ("k_act", "kernel", "unfused"))
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
        bound = [training_symbols(row, training_task(row, stack)) for row in sound]
        names = bound[0].keys() if bound else ()
        return cls(tuple(sound), {n: np.array([float(each[n]) for each in bound]) for n in names})

    @cached_property
    def capacity(self) -> np.ndarray:
        """Memory of each row's chip [byte]."""
        return np.array([row.machine.memory for row in self.rows if row.machine])

    @cached_property
    def fits(self) -> np.ndarray:
        """True for each row whose run fitted into memory, shape (n_rows,)."""
        return np.array([row.fits for row in self.rows], dtype=bool)

    @cached_property
    def peaks(self) -> np.ndarray:
        """Measured memory peaks [byte], NaN if not measured, shape (n_rows,)."""
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
        pairs = zip(ABSENT_TERMS, np.exp(self.theta[len(MEMORY) :]), strict=True)
        return [(*place, float(factor)) for place, factor in pairs]


def _used(sample: MemorySample, theta: np.ndarray) -> np.ndarray:
    priors = coefficient_priors()
    values = {n: np.full(len(sample.rows), priors[n].value * np.exp(x))
              for n, x in zip(MEMORY, theta, strict=False)}  # fmt: skip
    for (of, scope, word), x in zip(ABSENT_TERMS, theta[len(MEMORY) :], strict=True):
        here = [getattr(row, scope) == word for row in sample.rows]
        values[of] = values[of] * np.where(here, np.exp(x), 1.0)
    return np.asarray(run_kernel("used", {**sample.symbols, **values})["used"])


def fit_memory(sample: MemorySample) -> MemoryFit:
    """Coefficients under which runs that fitted fit, those that failed do not, and peaks agree."""
    priors = coefficient_priors()
    widths = np.array([priors[n].spread for n in MEMORY] + [PLACE_SPREAD] * len(ABSENT_TERMS))
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
