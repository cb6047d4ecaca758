"""Coefficients of a profile as uncertain givens: `profile.e_w`, as the plan's own place has it.

A profile knows how far each of its coefficients would move if it were fitted to other rows of the
same kind. They stand in no scenario, so that a draw puts them into the question once it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES
from planner.scenario import Scenario
from planner.text.errors import FieldError, did_you_mean, quoted

if TYPE_CHECKING:
    from planner.catalogue.profile import Profile
    from planner.problems.serving.task.resolve import Asked
    from planner.problems.serving.task.task import Task

__all__ = ["COVERED", "coefficient", "drawn_apart", "known_profile", "profiled", "unit"]

COVERED = 0.8  # share of refits that a profile's intervals hold
ABOVE = "profile."


def coefficient(path: str) -> str | None:
    """The coefficient that a path names; None if it is a path of the scenario.

    Raises
    ------
    FieldError
        If a profile has no such coefficient.
    """
    if not path.startswith(ABOVE):
        return None
    name = path.removeprefix(ABOVE)
    if name not in COEFFICIENTS:
        hint = did_you_mean(name, COEFFICIENTS) or f" (known: {', '.join(COEFFICIENTS)})"
        told = f"a profile has no coefficient {quoted(name)}{hint}"
        raise FieldError((f"uncertain.{path}", told))
    return name


def known_profile(scenario: Any, path: str) -> Profile:
    """The profile of a serving scenario, as its first question has it.

    Raises
    ------
    FieldError
        If the scenario uses none, or more than one.
    """
    told = None
    if not isinstance(scenario, Scenario):
        told = f"a {scenario.problem} has no profile of its own"
    elif scenario.estimate == "bound" or scenario.assumptions == "lecture":
        told = "the bound knows no profile; ask for estimate: calibrated"
    if told:
        raise FieldError((f"uncertain.{path}", told))
    from planner.problems.serving.task.resolve import ask

    tasks = _tasks(ask(scenario))
    names = dict.fromkeys(task.profile.name for task in tasks)
    if len(names) > 1:
        told = f"the systems have different profiles ({', '.join(names)}); name one in profile"
        raise FieldError((f"uncertain.{path}", told))
    return tasks[0].profile


def unit(name: str) -> str:
    """Base unit of a coefficient."""
    return "s" if name.startswith("t_") else "1"


def drawn_apart(sets: tuple[str, ...]) -> tuple[list[str], dict[str, float]]:
    """Changes `PATH=VALUE` of the scenario, and values of coefficients."""
    ours = [each for each in sets if each.startswith(ABOVE)]
    values = {}
    for each in ours:
        path, _, value = each.partition("=")
        values[path.removeprefix(ABOVE)] = float(value)
    return [each for each in sets if each not in ours], values


def profiled(asked: Asked, values: Mapping[str, float]) -> Asked:
    """The question with coefficients of its profile in place of what they are.

    A task elsewhere, whose coefficients are others, has them times the same factor.
    """
    if not values:
        return asked
    first = _tasks(asked)[0].profile.values
    factors = {name: value / first[name] for name, value in values.items()}

    def changed(task: Task) -> Task:
        own = task.profile
        moved = {name: _limited(own, name, own.values[name] * f) for name, f in factors.items()}
        found = replace(own, values=MappingProxyType({**own.values, **moved}))
        return replace(task, profile=found)

    pools = []
    for pair in asked.pools:
        decode = changed(pair.decode)
        later = decode.profile.values["t_hop"] - pair.decode.profile.values["t_hop"]
        pools.append(replace(pair, prefill=changed(pair.prefill), decode=decode,
                             latency=pair.latency + later))  # fmt: skip
    return replace(asked, tasks=tuple(map(changed, asked.tasks)), pools=tuple(pools))


def _tasks(asked: Asked) -> list[Task]:
    return [*asked.tasks, *(task for pair in asked.pools for task in (pair.prefill, pair.decode))]


def _limited(profile: Profile, name: str, value: float) -> float:
    """No efficiency exceeds one, nor what a measured chip was seen not to exceed."""
    if name not in EFFICIENCIES:
        return value
    return min(value, 1.0, profile.ceilings.get(name, 1.0))
