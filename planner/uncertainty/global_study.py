"""A global study: uncertain givens drawn, each draw answered, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from planner.protocol.output import Output, output_named
from planner.protocol.parameter import folder_of
from planner.protocol.problem import problem_of
from planner.scenario import opened, resolved
from planner.scenario.loading import Source
from planner.scenario.tree import Tree
from planner.text.errors import Infeasible, InputError
from planner.uncertainty.distributions import Marginal, marginals_of
from planner.uncertainty.evaluate_samples import Answered, answered
from planner.uncertainty.indices import (
    effects,
    frequent,
    knowing,
    morris_design,
    sobol,
    sobol_design,
)

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 40
TOLD = 8  # choices that are told
COMPARED = 5  # choices whose costs are compared, the most frequent
RARE = 0.02  # share of the draws below which a choice is not compared
MOST = 1 << 20  # draws


@dataclass(frozen=True)
class Study:
    """What a study found; `document` is what `--json` prints."""

    document: dict[str, Any]

    def __str__(self) -> str:
        from planner.report.text.sensitivity import study_text

        return study_text(self.document)


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
    ask = _Draws(tree, folder, marginals, target, workers, shown)
    document: dict[str, Any] = {
        "problem": problem.kind, "status": "optimal", "scenario": resolved(scenario),
        "of": target.name, "unit": target.unit, "seed": seed,
        "uncertain": [each.document() for each in marginals],
        "method": None, "draws": None, "without_plan": None, "distribution": None,
        "choices": [], "sobol": None, "morris": None, "knowing": None,
        "provenance": {"version": version("token-planner")},
    }  # fmt: skip
    if sobol is not None:
        document |= _by_sobol(ask, _counted("--sobol", sobol, len(marginals) + 2), seed)
    if morris is not None:
        document |= _by_morris(
            ask, _counted("--morris", morris, len(marginals) + 1), seed, document
        )
    return Study(document)


@dataclass(frozen=True)
class _Draws:
    """A scenario and what of it is drawn."""

    tree: Tree
    folder: Path
    marginals: Sequence[Marginal]
    target: Output
    workers: int
    shown: bool

    def at(self, shares: np.ndarray, sets: Sequence[str] = ()) -> Answered:
        """The answers at shares, with changes made first."""
        return answered(self.tree, self.folder, self.marginals, shares, self.target.name,
                        workers=self.workers, sets=sets, shown=self.shown)  # fmt: skip


def _counted(option: str, count: int, times: int) -> int:
    if not 0 < count * times <= MOST:
        message = (
            f"{option} {count}: expected 1 to {MOST // times:,}, each of which is {times} draws"
        )
        raise InputError(message)
    return count


def _by_sobol(ask: _Draws, count: int, seed: int) -> dict[str, object]:
    marginals = ask.marginals
    shares = sobol_design(count, len(marginals), seed)
    answers = ask.at(shares)
    independent = slice(0, 2 * count)
    values = answers.values[independent]
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise Infeasible("nothing keeps the promises at any draw")
    choices = frequent(answers.choices[independent], TOLD)
    indices = sobol(answers.values, len(marginals), seed)
    rows = None
    if indices is not None:
        rows = {
            marginal.path: {
                "first": float(indices.first[i]),
                "first_interval": indices.first_interval[:, i].tolist(),
                "total": float(indices.total[i]),
                "total_interval": indices.total_interval[:, i].tolist(),
            }
            for i, marginal in enumerate(marginals)
        }
    return {
        "method": answers.method,
        "draws": len(shares),
        "without_plan": float(np.isnan(values).mean()),
        "distribution": _distribution(finite),
        "choices": [{"choice": choice, "best": share} for choice, share in choices],
        "sobol": rows,
        "knowing": _value_of_knowing(ask, answers, shares[independent], choices),
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
    ask: _Draws, answers: Answered, shares: np.ndarray, choices: Sequence[tuple[str, float]]
) -> dict[str, object] | None:
    """The value of knowing, where different layouts are best at different draws."""
    wanted = [name for name, share in choices[:COMPARED] if share >= RARE]
    if len(wanted) < 2:
        nothing = dict.fromkeys((each.path for each in ask.marginals), 0.0)
        return {"all": 0.0, "each": nothing, "best": wanted[0] if wanted else None,
                "mean": None, "draws": len(shares), "compared": wanted}  # fmt: skip
    if not all(answers.sets.get(name) for name in wanted):
        return None
    sign = -1.0 if ask.target.rises else 1.0
    costs = np.stack([sign * ask.at(shares, answers.sets[name]).values for name in wanted], axis=1)
    worth = knowing(costs, shares)
    if worth is None:
        return None
    return {
        "all": worth.all,
        "each": {m.path: value for m, value in zip(ask.marginals, worth.alone, strict=True)},
        "best": wanted[worth.best],
        "mean": sign * worth.mean,
        "draws": worth.draws,
        "compared": wanted,
    }


def _by_morris(
    ask: _Draws, count: int, seed: int, document: dict[str, object]
) -> dict[str, object]:
    design = morris_design(count, len(ask.marginals), seed)
    answers = ask.at(design)
    if not np.isfinite(answers.values).any():
        raise Infeasible("nothing keeps the promises at any draw")
    steps = effects(design, answers.values)
    rows = {
        marginal.path: {
            "mean": _known_number(steps.mean[i]),
            "size": _known_number(steps.size[i]),
            "deviation": _known_number(steps.deviation[i]),
        }
        for i, marginal in enumerate(ask.marginals)
    }
    return {"morris": rows, "method": document["method"] or answers.method}


def _known_number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
