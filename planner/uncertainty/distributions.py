"""Uncertain givens: what `uncertain:` says of a path, from the unit interval to values.

Ranges that the catalogues know: what `uncertain: {PATH: catalogue}` stands for.

Prices of rent are spread over the listed ones, the MFU of training over published runs, and the
coefficients of a profile over its refits. Of anything else a catalogue has one figure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalogue.chips import chip
from planner.catalogue.prices import default_price
from planner.catalogue.profile import EFFICIENCIES
from planner.catalogue.training_runs import training_rates
from planner.problems.serving.profiled import COVERED, coefficient, known_profile
from planner.problems.serving.profiled import unit as profile_unit
from planner.protocol.parameter import scenario_with, unit_of, value_at
from planner.scenario import LifecycleScenario, Scenario, Tree
from planner.scenario.keys.machines import resolved_system
from planner.scenario.keys.uncertain import CATALOGUE
from planner.text.errors import CatalogueError, FieldError, InputError, quoted
from planner.text.quantities import parse

__all__ = ["WITHIN", "Listed", "Marginal", "listed", "marginals_of"]

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


MFU = re.compile(r"phases\.(\w+)\.mfu")
KNOWN = "rents (price), the MFU of training (phases.pretrain.mfu) and a profile (profile.e_w)"


@dataclass(frozen=True)
class Listed:
    """A range: between its `ends` lies the share `within` of a lognormal; `source` in words."""

    kind: str
    ends: tuple[float, float]
    source: str
    within: float = 1.0


def listed(scenario: Any, path: str) -> Listed:
    """The range that a catalogue or a profile knows of a path.

    Raises
    ------
    FieldError
        If there is none.
    """
    name, trained = coefficient(path), MFU.fullmatch(path)
    if name is not None:
        return _listed_coefficient(scenario, path, name)
    if trained and getattr(getattr(scenario, "phases", None), trained[1], None) is not None:
        return _mfu(getattr(scenario.phases, trained[1]), path)
    return _rent(_renting(scenario, path), path)


def _refused(path: str, told: str) -> FieldError:
    return FieldError((f"uncertain.{path}", told))


def _listed_coefficient(scenario: Any, path: str, name: str) -> Listed:
    found = known_profile(scenario, path)
    low, high = found.intervals.get(name, (0.0, 0.0))
    if not 0 < low < high:
        told = f"the profile {found.name} has {name} = {found.values[name]:.4g} here in every refit"
        raise _refused(path, f"{told}; leave it out, or give a distribution")
    told = f"{COVERED:.0%} of refits of the profile {found.name}"
    return Listed("lognormal", (low, high), told, COVERED)


def _mfu(phase: Any, path: str) -> Listed:
    """From the least to the most that published runs in the same dtype reached."""
    dtype = phase.dtype
    runs = [rate for rate in training_rates() if rate.dtype == dtype]
    found = [(rate.mfu(_peak(rate.chip, dtype)), rate) for rate in runs]
    ends = sorted(share for share, _ in found)
    if len(ends) < 2:
        raise _refused(path, f"fewer than two published runs in {dtype}; give a distribution")
    told = f"{len(ends)} published training runs in {dtype}, dense and sparse"
    return Listed("log_uniform", (ends[0], ends[-1]), told)


def _peak(name: str, dtype: str) -> float:
    return chip(name).peak(dtype)


def _renting(scenario: Any, path: str) -> tuple[Any, ...]:
    """The systems that a path is the price of; none where it is no price."""
    if isinstance(scenario, Scenario):
        return tuple(scenario.systems()) if path in ("price", "system.price") else ()
    if isinstance(scenario, LifecycleScenario) and path == "serving.price":
        given = scenario.serving.system
        return tuple(map(resolved_system, given if isinstance(given, tuple) else (given,)))
    if path.startswith("phases.") and path.endswith(".price"):
        phase = getattr(scenario.phases, path.split(".")[1], None)
        return tuple(phase.systems()) if phase is not None else ()
    return ()


def _rent(systems: tuple[Any, ...], path: str) -> Listed:
    if len(systems) != 1:
        several = " of one system" if systems else ""
        told = f"the catalogue has ranges of {KNOWN}{several}; give a distribution"
        raise _refused(path, told)
    if not hasattr(systems[0], "chip"):
        raise _refused(path, "a network of one's own has no listed price; give a distribution")
    name = systems[0].chip.name
    try:
        price = default_price(name)
    except CatalogueError as error:
        raise _refused(path, str(error)) from error
    if not price.low < price.high:
        raise _refused(path, f"only one price of {name} is listed; give a distribution")
    return Listed("log_uniform", (price.low, price.high), price.source)
