"""A global study: uncertain givens drawn, each draw answered, and what comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from planner.protocol.document import document_of
from planner.protocol.output import output_named
from planner.protocol.parameter import folder_of
from planner.protocol.problem import problem_of
from planner.report.text.sensitivity import KnowingValue, study_text
from planner.scenario import opened, resolved
from planner.scenario.loading import Source
from planner.text.errors import Infeasible, InputError
from planner.uncertainty import indices
from planner.uncertainty.distributions import marginals_of
from planner.uncertainty.evaluate_samples import Answered, Draws

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 40
SHOWN = 8  # choices that are shown
COMPARED = 5  # choices whose costs are compared, the most frequent
RARE = 0.02  # share of the draws below which a choice is not compared
MOST = 1 << 20  # draws


@dataclass(frozen=True)
class Study:
    """What a study found."""

    result: dict[str, Any]

    @cached_property
    def document(self) -> dict[str, Any]:
        """What `--json` prints."""
        document: dict[str, Any] = document_of(self.result)
        return document

    def __str__(self) -> str:
        return study_text(self.result)


def explore(
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

    Parameters
    ----------
    sobol : base draws, a power of two; (d + 2) times as many are answered for d uncertain givens.
    morris : trajectories, each of d + 1 draws.
    workers : processes that solve, where draws are solved one by one.
    shown : draw a bar on standard error.
    """
    tree, scenario = opened(source, sets)
    folder = folder_of(source)
    problem = problem_of(scenario.problem)
    marginals = marginals_of(tree, folder, scenario)
    target = output_named(problem, scenario, output or "cost")
    draws = Draws(tree, folder, marginals, target.name, workers, shown)
    result: dict[str, Any] = {
        "problem": problem.kind, "status": "optimal", "scenario": resolved(scenario),
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
    if not 0 < count * times <= MOST:
        most = f"{MOST // times:,}"
        raise InputError(f"{option} {count}: expected 1 to {most}, each of which is {times} draws")


def _by_sobol(draws: Draws, count: int, seed: int, *, rises: bool) -> dict[str, object]:
    marginals = draws.marginals
    shares = indices.sobol_design(count, len(marginals), seed)
    answers = draws.at(shares)
    independent = slice(0, 2 * count)
    values = answers.values[independent]
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise Infeasible("nothing keeps the promises at any draw")
    choices = indices.frequent(answers.choices[independent], SHOWN)
    estimate, sign = indices.sobol(answers.values, len(marginals), seed), -1.0 if rises else 1.0
    return {
        "method": answers.method,
        "draws": len(shares),
        "without_plan": float(np.isnan(values).mean()),
        "distribution": _distribution(finite),
        "choices": [{"choice": choice, "best": share} for choice, share in choices],
        "sobol": None if estimate is None else draws.by_path(estimate),
        "knowing": _value_of_knowing(draws, answers, shares[independent], choices, sign),
    }


def _distribution(values: np.ndarray) -> dict[str, object]:
    counts, edges = np.histogram(values, BINS)
    return {
        "histogram": {"edges": edges.tolist(), "shares": (counts / values.size).tolist()},
        "mean": float(values.mean()),
        "deviation": float(values.std(ddof=1)) if values.size > 1 else 0.0,
        "quantiles": {f"{q:g}": float(np.quantile(values, q)) for q in QUANTILES},
    }


def _value_of_knowing(
    draws: Draws,
    answers: Answered,
    shares: np.ndarray,
    choices: Sequence[tuple[str, float]],
    sign: float,
) -> KnowingValue | None:
    """The value of knowing, where different layouts are best at different draws."""
    wanted = [name for name, share in choices[:COMPARED] if share >= RARE]
    paths = [marginal.path for marginal in draws.marginals]
    if len(wanted) < 2:
        best = wanted[0] if wanted else None
        return KnowingValue(0.0, best, None, len(shares), wanted, dict.fromkeys(paths, 0.0))
    if not all(answers.sets.get(name) for name in wanted):
        return None
    outputs = np.stack([draws.at(shares, answers.sets[name]).values for name in wanted], axis=1)
    return indices.knowing(outputs, shares, wanted, paths, sign)


def _by_morris(draws: Draws, count: int, seed: int, method: str | None) -> dict[str, object]:
    design = indices.morris_design(count, len(draws.marginals), seed)
    answers = draws.at(design)
    if not np.isfinite(answers.values).any():
        raise Infeasible("nothing keeps the promises at any draw")
    steps = draws.by_path(indices.effects(design, answers.values))
    return {"morris": steps, "method": method or answers.method}
