"""Uncertain givens: what `uncertain:` says of a path, from the unit interval to values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalogue.profile import EFFICIENCIES
from planner.problems.serving.profiled import coefficient, known_profile
from planner.problems.serving.profiled import unit as profile_unit
from planner.protocol.parameter import scenario_with, value_at
from planner.protocol.units import unit_of
from planner.scenario import Tree
from planner.scenario.keys.uncertain import CATALOGUE
from planner.text.errors import FieldError, InputError, quoted
from planner.text.quantities import parse

__all__ = ["WITHIN", "Marginal", "marginals_of"]

WITHIN = 0.9  # share of a lognormal's values that lie between its ends
FARTHEST = 4.0  # standard deviations of a normal beyond which nothing is drawn


@dataclass(frozen=True)
class Marginal:
    """The distribution of one path: `ends` in base units, or texts of which each is as likely.

    `within` is the share of a lognormal's values between its ends; `source` says of a range of the
    catalogue what it is of.
    """

    path: str
    kind: str
    ends: tuple[Any, ...]
    unit: str = ""
    within: float = WITHIN
    source: str = ""

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.kind != "one_of"

    def at(self, share: np.ndarray) -> np.ndarray:
        """The values that these shares of the draws do not exceed; places in `ends` of `one_of`."""
        if self.kind == "one_of":
            count = len(self.ends)
            return np.minimum(np.floor(share * count), count - 1).astype(int)
        return _quantiles(self.kind, self.ends, share, self.within)

    def document(self) -> dict[str, Any]:
        """It as a mapping."""
        return {"path": self.path, "kind": self.kind, "ends": list(self.ends), "unit": self.unit,
                "source": self.source or None}  # fmt: skip


def marginals_of(tree: Tree, folder: Path, scenario: Any) -> list[Marginal]:
    """Every uncertain given of a scenario, its ends read as the path reads them.

    Raises
    ------
    InputError
        With every mistake: paths that do not exist, ends that are no value of theirs.
    """
    given: Mapping[str, Any] | None = scenario.uncertain
    if not given:
        told = (
            "uncertain: is missing: which givens are uncertain, such as "
            "price: {uniform: [$2/hour, $4/hour]}"
        )
        raise InputError(told)
    found, faults, mistakes = [], [], []
    for path, spread in given.items():
        try:
            one = _marginal(tree, folder, scenario, path, spread)
            unit = _unit(scenario.problem, path)
            found.append(replace(one, unit=unit if one.numeric else ""))
        except FieldError as error:
            faults += list(error.faults)
        except InputError as error:
            mistakes += [(f"uncertain.{path}", each.message) for each in error.mistakes] or [
                (f"uncertain.{path}", str(error))
            ]
    if faults or mistakes:
        raise InputError(
            tree.mistake(("uncertain", name.removeprefix("uncertain.")), told)
            for name, told in [*faults, *mistakes]
        )
    return found


def _marginal(tree: Tree, folder: Path, scenario: Any, path: str, spread: Any) -> Marginal:
    if spread == CATALOGUE:
        from planner.uncertainty.listed import listed

        found = listed(scenario, path)
        return Marginal(path, found.kind, found.ends, within=found.within, source=found.source)
    ((kind, given),) = spread.items()
    if coefficient(path) is not None:
        if kind == "one_of":
            words = "one_of: a coefficient of a profile is drawn from numbers between two ends"
            raise FieldError((f"uncertain.{path}", words))
        known_profile(scenario, path)
    if kind == "one_of":
        for value in given:
            scenario_with(tree, folder, path, value)
        return Marginal(path, kind, tuple(given))
    if kind == "normal":
        mean = _read(tree, folder, path, given[0])
        text = str(given[1]).strip()
        if text.endswith("%"):
            spread_ = mean * _share(path, text)
        else:
            spread_ = _read(tree, folder, path, given[1])
        ends: tuple[float, ...] = (mean, spread_)
    else:
        ends = tuple(_read(tree, folder, path, each) for each in given)
    told = _wrong(kind, ends)
    if told:
        raise FieldError((f"uncertain.{path}", f"{kind}: {told}"))
    return Marginal(path, kind, ends)


def _unit(problem: str, path: str) -> str:
    known = coefficient(path)
    return profile_unit(known) if known else unit_of(problem, path.split(".")) or ""


def _read(tree: Tree, folder: Path, path: str, given: object) -> float:
    name = coefficient(path)
    if name is not None:
        return _coefficient(path, name, given)
    value = value_at(scenario_with(tree, folder, path, given), path)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FieldError(
            (f"uncertain.{path}", f"expected a number, got {quoted(given)}; one_of takes words")
        )
    return float(value)


def _coefficient(path: str, name: str, given: object) -> float:
    """A coefficient of a profile: a number, or a time with its unit."""
    try:
        if name.startswith("t_"):
            return parse(given, "time") if isinstance(given, str) else float(given)  # type: ignore[arg-type]
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        kind = "a time such as 20 us" if name.startswith("t_") else "a number such as 0.8"
        told = f"{name} is {kind}, got {quoted(given)}"
        raise FieldError((f"uncertain.{path}", told)) from error
    if name in EFFICIENCIES and not 0 < value <= 1:
        told = f"{name} is an efficiency above 0 and at most 1, got {quoted(given)}"
        raise FieldError((f"uncertain.{path}", told))
    return value


def _share(path: str, text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        told = f"normal: expected a standard deviation such as 5%, got {quoted(text)}"
        raise FieldError((f"uncertain.{path}", told))
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
