"""A global study: uncertain givens drawn, each draw answered, and where the spread comes from.

Sobol (2001): the share of the variance that a given explains by itself, and with all others; SciPy
estimates both (Saltelli et al. 2010), and their intervals are percentiles of resampled draws.
Morris (1991), Campolongo et al. (2007): means of the steps along one given at a time, cheaper and
coarser.

A choice made now is best on average; one made after everything is known is best at each draw. The
difference of what they cost is the value of perfect information (Raiffa and Schlaifer 1961). Of
one given alone it is taken from the mean cost of every choice at a value of the given, a cubic in
its quantile fitted by least squares (Strong, Oakley and Brennan 2014).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from planner.protocol.document import to_document
from planner.protocol.output import output_named
from planner.protocol.parameter import base_folder
from planner.protocol.plan import gap_status
from planner.protocol.problem import get_problem
from planner.report.text.sensitivity import MorrisEffect, SobolIndex, ValueOfInformation, study_text
from planner.scenario import load_tree, resolve_keys
from planner.scenario.loading import Source
from planner.text.errors import Infeasible, InputError
from planner.uncertainty.evaluate_samples import Draws, SampleAnswers, read_marginals

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 40
MAX_CHOICES_SHOWN = 8  # choices that are shown
MAX_CHOICES_COMPARED = 5  # choices whose costs are compared, the most frequent
RARE_SHARE = 0.02  # share of the draws below which a choice is not compared
MAX_SAMPLES = 1 << 20  # draws


@dataclass(frozen=True)
class Study:
    """Result of a study."""

    result: dict[str, Any]

    @cached_property
    def document(self) -> dict[str, Any]:
        """Document printed by `--json`."""
        document: dict[str, Any] = to_document(self.result)
        return document

    def __str__(self) -> str:
        return study_text(self.result)


def run_global_sensitivity(
    source: Source,
    output: str | None = None,
    sets: Sequence[str] = (),
    *,
    sobol: int | None = None,
    morris: int | None = None,
    seed: int = 0,
    workers: int = 1,
    shown: bool = False,
) -> Study:
    """The spread of an output under the scenario's `uncertain:` givens, and where it comes from.

    Raises InputError with every mistake in the scenario; Infeasible if no draw keeps the promises.

    Args:
        sobol: base draws, a power of two; (d + 2) times as many are answered for d uncertain
            givens.
        morris: trajectories, each of d + 1 draws.
        workers: processes that solve, where draws are solved one by one.
        shown: draw a bar on standard error.
    """
    tree, scenario = load_tree(source, sets)
    folder = base_folder(source)
    problem = get_problem(scenario.problem)
    marginals = read_marginals(tree, folder, scenario)
    target = output_named(problem, scenario, output or "cost")
    draws = Draws(tree, folder, marginals, target.name, workers, shown)
    result: dict[str, Any] = {
        "problem": problem.kind, "status": None, "gap": None, "scenario": resolve_keys(scenario),
        "of": target.name, "unit": target.unit, "seed": seed,
        "uncertain": marginals,
        "method": None, "draws": None, "without_plan": None, "distribution": None,
        "choices": [], "sobol": None, "morris": None, "knowing": None,
        "provenance": {"version": version("token-planner")},
    }  # fmt: skip
    if sobol is not None:
        _check_count("--sobol", sobol, len(marginals) + 2)
        result |= _by_sobol(draws, sobol, seed, rises=target.rises)
    if morris is not None:
        _check_count("--morris", morris, len(marginals) + 1)
        result |= _by_morris(draws, morris, seed, result["method"])
    return Study(result)


def _check_count(option: str, count: int, times: int) -> None:
    if not 0 < count * times <= MAX_SAMPLES:
        most = f"{MAX_SAMPLES // times:,}"
        raise InputError(f"{option} {count}: expected 1 to {most}; each takes {times} draws")


def _by_sobol(draws: Draws, count: int, seed: int, *, rises: bool) -> dict[str, object]:
    marginals = draws.marginals
    shares = sobol_design(count, len(marginals), seed)
    answers = draws.at(shares)
    independent = slice(0, 2 * count)
    values = answers.values[independent]
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise Infeasible("no draw has a plan that keeps the promises")
    choices = rank_choices_by_frequency(answers.choices[independent], MAX_CHOICES_SHOWN)
    estimate, sign = sobol(answers.values, len(marginals), seed), -1.0 if rises else 1.0
    counts, edges = np.histogram(finite, BINS)
    return {
        **_proved(answers),
        "method": answers.method,
        "draws": len(shares),
        "without_plan": float(np.isnan(values).mean()),
        "distribution": {
            "histogram": {"edges": edges.tolist(), "shares": (counts / finite.size).tolist()},
            "mean": float(finite.mean()),
            "deviation": float(finite.std(ddof=1)) if finite.size > 1 else 0.0,
            "quantiles": {f"{q:g}": float(np.quantile(finite, q)) for q in QUANTILES},
        },
        "choices": [{"choice": choice, "best": share} for choice, share in choices],
        "sobol": None if estimate is None else draws.by_path(estimate),
        "knowing": _value_of_knowing(draws, answers, shares[independent], choices, sign),
    }


def _proved(answers: SampleAnswers) -> dict[str, object]:
    return {"status": gap_status(answers.gap), "gap": answers.gap}


def _value_of_knowing(
    draws: Draws,
    answers: SampleAnswers,
    shares: np.ndarray,
    choices: Sequence[tuple[str, float]],
    sign: float,
) -> ValueOfInformation | None:
    """The value of knowing, where different layouts are best at different draws."""
    wanted = [name for name, share in choices[:MAX_CHOICES_COMPARED] if share >= RARE_SHARE]
    paths = [marginal.path for marginal in draws.marginals]
    if len(wanted) < 2:
        best = wanted[0] if wanted else None
        return ValueOfInformation(0.0, best, None, len(shares), wanted, dict.fromkeys(paths, 0.0))
    if not all(answers.sets.get(name) for name in wanted):
        return None
    outputs = np.stack([draws.at(shares, answers.sets[name]).values for name in wanted], axis=1)
    return value_of_information(outputs, shares, wanted, paths, sign)


def _by_morris(draws: Draws, count: int, seed: int, method: str | None) -> dict[str, object]:
    design = morris_design(count, len(draws.marginals), seed)
    answers = draws.at(design)
    if not np.isfinite(answers.values).any():
        raise Infeasible("no draw has a plan that keeps the promises")
    steps = draws.by_path(effects(design, answers.values))
    return {**_proved(answers), "morris": steps, "method": method or answers.method}


INTERVAL = 0.9
RESAMPLES = 200
MORRIS_LEVELS = 4
ZERO_SPREAD = 1e-12  # relative spread of an answer that does not vary


def sobol_design(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Points of the unit cube, shape (n (d + 2), d): A, B, and A with a column of B each.

    Raises InputError if the count is not a power of two.
    """
    from scipy.stats import qmc

    if count < 2 or count & (count - 1):
        near = 1 << max(count, 3).bit_length()
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

    if np.ptp(blocks) <= ZERO_SPREAD * np.abs(blocks).max():
        return np.zeros(len(blocks) - 2), np.zeros(len(blocks) - 2)
    if len(blocks) - 2 == 1:  # SciPy takes none alone, and all of the variance is its
        return np.ones(1), np.ones(1)
    parts: Any = {"f_A": blocks[:1], "f_B": blocks[1:2], "f_AB": blocks[2:, None, :]}
    estimate: Any = sobol_indices(func=parts, n=blocks.shape[1])
    return np.ravel(estimate.first_order), np.ravel(estimate.total_order)


def morris_design(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Trajectories through a grid of four levels, shape (count (d + 1), d): one given a step."""
    rng = np.random.default_rng(seed)
    step = MORRIS_LEVELS / (2 * (MORRIS_LEVELS - 1))
    starts = np.arange(MORRIS_LEVELS // 2) / (MORRIS_LEVELS - 1)
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


def value_of_information(
    outputs: np.ndarray,
    shares: np.ndarray,
    choices: Sequence[str],
    paths: Sequence[str],
    sign: float = 1.0,
) -> ValueOfInformation | None:
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
    alone = {path: _worth_of_knowing(costs, shares[:, i]) for i, path in enumerate(paths)}
    mean = sign * float(means[best])
    return ValueOfInformation(every, choices[best], mean, len(costs), choices, alone)


def _worth_of_knowing(costs: np.ndarray, share: np.ndarray) -> float:
    basis = np.vander(share, DEGREE + 1)
    weights = np.linalg.lstsq(basis, costs, rcond=None)[0]
    fitted = basis @ weights
    return max(float(fitted.mean(axis=0).min() - fitted.min(axis=1).mean()), 0.0)


def rank_choices_by_frequency(choices: Sequence[str | None], most: int) -> list[tuple[str, float]]:
    """The `most` most frequent best choices, each with its share of all draws."""
    counted = Counter(choice for choice in choices if choice is not None)
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(name, count / len(choices)) for name, count in ranked[:most]]
