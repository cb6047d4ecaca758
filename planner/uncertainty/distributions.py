"""Uncertain parameters: what `uncertain:` says of a path, from the unit interval to values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalogue.ranges import no_range
from planner.protocol.parameter import scenario_with, unit_of, value_at
from planner.protocol.problem import problem_of
from planner.report.text.sensitivity import Uncertainty
from planner.scenario.loading import Question
from planner.scenario.tree import Tree
from planner.text.errors import FieldError, InputError, quoted

WITHIN = 0.9  # share of a lognormal's values that lie between its ends
FARTHEST = 4.0  # standard deviations of a normal beyond which nothing is drawn


@dataclass(frozen=True)
class Marginal(Uncertainty):
    """The distribution of one path; `within` is the share of a lognormal's values in its ends."""

    within: float = field(default=WITHIN, repr=False)  # no part of JSON

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.kind != "one_of"

    def at(self, share: np.ndarray) -> np.ndarray:
        """The values that these shares of the draws do not exceed; places in `ends` of `one_of`."""
        if not self.numeric:
            count = len(self.ends)
            return np.minimum(np.floor(share * count), count - 1).astype(int)
        return _quantiles(self.kind, self.ends, share, self.within)


def marginals_of(tree: Tree, folder: Path, scenario: Question) -> list[Marginal]:
    """Every uncertain parameter of a scenario, its ends read as the path reads them.

    Raises InputError with every mistake: paths that do not exist, ends that are no value of theirs.
    """
    uncertain: Mapping[str, Any] | None = getattr(scenario, "uncertain", None)
    if not uncertain:
        raise InputError(
            "uncertain: is missing: which givens are uncertain, such as "
            "price: {uniform: [$2/hour, $4/hour]}"
        )
    marginals, faults, mistakes = [], [], []
    for path, spread in uncertain.items():
        try:
            marginals.append(_marginal(tree, folder, scenario, path, spread))
        except FieldError as error:
            faults += list(error.faults)
        except InputError as error:
            mistakes += [(f"uncertain.{path}", each.message) for each in error.mistakes] or [
                (f"uncertain.{path}", str(error))
            ]
    if faults or mistakes:
        raise InputError(
            tree.mistake(("uncertain", name.removeprefix("uncertain.")), words)
            for name, words in [*faults, *mistakes]
        )
    return marginals


def _marginal(
    tree: Tree,
    folder: Path,
    scenario: Question,
    path: str,
    spread: str | Mapping[str, Sequence[object]],
) -> Marginal:
    problem = problem_of(scenario.problem)
    coefficient = problem.coefficient(scenario, path)
    unit = coefficient.unit if coefficient else unit_of(problem.kind, path.split(".")) or ""
    if isinstance(spread, str):  # `catalogue`, the only word that is read
        listed = coefficient.listed if coefficient else problem.listed(scenario, path)
        if listed is None:
            raise no_range(path, coefficient.unlisted if coefficient else None)
        source = listed.source or None
        return Marginal(path, listed.kind, listed.ends, unit, source, listed.within)
    ((kind, ends),) = spread.items()
    if kind == "one_of":
        if coefficient is not None:
            words = "one_of: a coefficient of a profile is drawn from numbers between two ends"
            raise FieldError((f"uncertain.{path}", words))
        for value in ends:
            scenario_with(tree, folder, path, value)
        return Marginal(path, kind, tuple(ends))
    read = coefficient.read if coefficient else partial(_read, tree, folder, path)
    if kind == "normal":
        mean, text = read(ends[0]), str(ends[1]).strip()
        deviation = mean * _share(path, text) if text.endswith("%") else read(ends[1])
        values: tuple[float, ...] = (mean, deviation)
    else:
        values = tuple(map(read, ends))
    mistake = _wrong(kind, values)
    if mistake:
        raise FieldError((f"uncertain.{path}", f"{kind}: {mistake}"))
    return Marginal(path, kind, values, unit)


def _read(tree: Tree, folder: Path, path: str, written: object) -> float:
    value = value_at(scenario_with(tree, folder, path, written), path)
    if not isinstance(value, int | float) or isinstance(value, bool):
        message = f"expected a number, got {quoted(written)}; one_of takes words"
        raise FieldError((f"uncertain.{path}", message))
    return float(value)


def _share(path: str, text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        message = f"normal: expected a standard deviation such as 5%, got {quoted(text)}"
        raise FieldError((f"uncertain.{path}", message))
    return share


def _wrong(kind: str, ends: tuple[float, ...]) -> str | None:
    """What is wrong with the ends of a distribution."""
    if kind == "normal":
        mean, deviation = ends
        if deviation <= 0:
            return f"expected a standard deviation above zero, got {deviation:g}"
        if mean - FARTHEST * deviation <= 0:
            return (
                f"{FARTHEST:g} standard deviations below the mean there is nothing left; give a "
                "smaller deviation, or lognormal: [low, high]"
            )
        return None
    if not ends[0] < ends[-1] or list(ends) != sorted(ends):
        return f"expected rising values, got {', '.join(f'{each:g}' for each in ends)}"
    if kind in ("log_uniform", "lognormal") and ends[0] <= 0:
        return f"expected values above zero, got {ends[0]:g}"
    return None


def _quantiles(kind: str, ends: tuple[float, ...], share: np.ndarray, within: float) -> np.ndarray:
    from scipy.special import ndtri

    if kind == "uniform":
        return ends[0] + share * (ends[1] - ends[0])
    if kind == "log_uniform":
        return np.asarray(ends[0] * (ends[1] / ends[0]) ** share)
    if kind == "triangular":
        low, mode, high = ends
        turn = (mode - low) / (high - low)
        rising = low + np.sqrt(share * (high - low) * (mode - low))
        falling = high - np.sqrt((1 - share) * (high - low) * (high - mode))
        return np.where(share < turn, rising, falling)
    normal = np.clip(ndtri(share), -FARTHEST, FARTHEST)
    if kind == "normal":
        return np.asarray(ends[0] + ends[1] * normal)
    middle, half = math.sqrt(ends[0] * ends[1]), math.log(ends[1] / ends[0]) / 2
    return np.asarray(middle * np.exp(normal * half / ndtri((1 + within) / 2)))
