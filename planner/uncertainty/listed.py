"""Ranges that the catalogues know: what `uncertain: {PATH: catalogue}` stands for.

Prices of rent are spread over the listed ones, the MFU of training over published runs, and the
coefficients of a profile over its refits. Of anything else a catalogue has one figure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from planner.catalogue.chips import chip
from planner.catalogue.prices import default_price
from planner.catalogue.training_runs import training_rates
from planner.problems.serving.profiled import COVERED, coefficient, known_profile
from planner.scenario import LifecycleScenario, Scenario
from planner.scenario.keys.machines import resolved_system
from planner.text.errors import CatalogueError, FieldError

__all__ = ["Listed", "listed"]

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
        return _coefficient(scenario, path, name)
    if trained and getattr(getattr(scenario, "phases", None), trained[1], None) is not None:
        return _mfu(getattr(scenario.phases, trained[1]), path)
    return _rent(_renting(scenario, path), path)


def _refused(path: str, told: str) -> FieldError:
    return FieldError((f"uncertain.{path}", told))


def _coefficient(scenario: Any, path: str, name: str) -> Listed:
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
