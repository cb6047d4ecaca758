"""The profile of a question: its coefficients as uncertain parameters, its limits, the lecture's.

A profile knows how far each of its coefficients would move if it were fitted to other rows of the
same kind. They stand in no scenario, so that a draw puts them into the question once it is asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from planner.benchmark import ceilings, read_measured
from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES, Band, Profile
from planner.catalogue.ranges import ListedRange
from planner.catalogue.systems import System
from planner.problems.serving.point import ServingPoint
from planner.problems.serving.question import Scenario
from planner.protocol.plan import DataSource
from planner.protocol.problem import PREFIX, UncertainCoefficient
from planner.text.errors import FieldError, InputError, did_you_mean, quote
from planner.text.quantities import parse

if TYPE_CHECKING:
    from planner.problems.serving.task.resolve import ServingTasks
    from planner.problems.serving.task.task import Task

COVERAGE = 0.8  # share of refits that a profile's intervals hold
EXACT = Band(1.0, 1.0)

LECTURE = Profile(
    name="lecture",
    as_of="2026-04",
    engine="none",
    chips=(),
    rows=0,
    source="by definition: perfect overlap, efficiencies of one, no overhead",
    coverage=1.0,
    bands={"tpot": EXACT, "ttft": EXACT, "usd_per_mtok": EXACT},
    errors={},
    values={name: 1.0 if name in EFFICIENCIES else 0.0 for name in COEFFICIENTS},
)


def coefficient(scenario: Scenario, path: str) -> UncertainCoefficient | None:
    """The coefficient that a path names, of the profile of a scenario's first task.

    Raises FieldError if a profile has no such coefficient, or the scenario uses none, or more than
    one.
    """
    if not path.startswith(PREFIX):
        return None
    name = path.removeprefix(PREFIX)
    if name not in COEFFICIENTS:
        hint = did_you_mean(name, COEFFICIENTS) or f" (known: {', '.join(COEFFICIENTS)})"
        raise _refused(path, f"a profile has no coefficient {quote(name)}{hint}")
    if scenario.estimate == "bound" or scenario.assumptions == "lecture":
        raise _refused(path, "the bound knows no profile; ask for estimate: calibrated")
    from planner.problems.serving.task.resolve import resolve

    tasks = _tasks(resolve(scenario))
    names = dict.fromkeys(task.profile.name for task in tasks)
    if len(names) > 1:
        words = f"the systems have different profiles ({', '.join(names)}); name one in profile"
        raise _refused(path, words)
    profile = tasks[0].profile
    low, high = profile.intervals.get(name, (profile.values[name],) * 2)
    source = f"{COVERAGE:.0%} of refits of the profile {profile.name}"
    listed = ListedRange("lognormal", (low, high), source, COVERAGE) if 0 < low < high else None
    missing = (
        f"the profile {profile.name} has {name} = {profile.values[name]:.4g} here in every refit; "
        "leave it out, or give a distribution"
    )
    unit = "s" if name.startswith("t_") else "1"
    return UncertainCoefficient(path, unit, partial(_read, path, name), listed, missing)


def _read(path: str, name: str, value: object) -> float:
    """A coefficient as it is written: a number, or a time with its unit."""
    try:
        if name.startswith("t_"):
            return parse(value, "time") if isinstance(value, str) else float(value)  # type: ignore[arg-type]
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        form = "a time such as 20 us" if name.startswith("t_") else "a number such as 0.8"
        raise _refused(path, f"{name} is {form}, got {quote(value)}") from error
    if name in EFFICIENCIES and not 0 < number <= 1:
        words = f"{name} is an efficiency above 0 and at most 1, got {quote(value)}"
        raise _refused(path, words)
    return number


def _refused(path: str, words: str) -> FieldError:
    return FieldError((f"uncertain.{path}", words))


def with_profile_values(tasks: ServingTasks, values: Mapping[str, float]) -> ServingTasks:
    """Tasks with coefficients of their profiles replaced by `values`.

    Other tasks have theirs times the same factor, or as it is drawn where the first has nothing.
    """
    if not values:
        return tasks
    first = _tasks(tasks)[0].profile.values

    def changed(task: Task) -> Task:
        profile, theirs = task.profile, task.profile.values
        drawn = {
            name: _limited(profile, name, theirs[name] * (x / first[name]) if first[name] else x)
            for name, x in values.items()
        }
        return replace(task, profile=replace(profile, values=MappingProxyType({**theirs, **drawn})))

    pools = []
    for pair in tasks.pools:
        decode = changed(pair.decode)
        later = decode.profile.values["t_hop"] - pair.decode.profile.values["t_hop"]
        pools.append(replace(pair, prefill=changed(pair.prefill), decode=decode,
                             latency=pair.latency + later))  # fmt: skip
    return replace(tasks, tasks=tuple(map(changed, tasks.tasks)), pools=tuple(pools))


def _tasks(tasks: ServingTasks) -> list[Task]:
    return [*tasks.tasks, *(task for pair in tasks.pools for task in (pair.prefill, pair.decode))]


def _limited(profile: Profile, name: str, value: float) -> float:
    if name not in EFFICIENCIES:
        return value
    return min(value, 1.0, profile.ceilings.get(name, value))


def limit_efficiencies(profile: Profile, system: System) -> tuple[Profile, DataSource | None]:
    """The profile with its efficiencies limited by the system's measured chip, and its source.

    A profile's efficiency holds what an engine loses as well, so one that is below what the chip
    sustains stays as it is; its interval ends where the chip does. Raises InputError if the file is
    no sound measurement of this chip, or the profile is the lecture's.
    """
    if system.measured is None:
        return profile, None
    if profile is LECTURE:
        raise InputError("the lecture counts no losses of chips; choose assumptions: physical")
    measured = read_measured(system.measured)
    try:
        most = ceilings(measured, system.chip, system.scale_up)
    except InputError as error:
        raise InputError(f"{system.measured.name}: {error}") from error
    values = {name: min(value, most.get(name, value)) for name, value in profile.values.items()}
    intervals = {
        name: (min(low, most.get(name, low)), min(high, most.get(name, high)))
        for name, (low, high) in profile.intervals.items()
    }
    lower = [
        f"{name} {profile.values[name]:.3g} -> {value:.3g}"
        for name, value in values.items()
        if value < profile.values[name]
    ]
    limits = ", ".join(lower) or "no efficiency of the profile is above what it sustains"
    part = "" if measured.head.complete else " (the measurement is not complete)"
    words = f"{system.measured.name}: {limits}{part}"
    source = DataSource(f"measured {measured.head.device}", words, measured.head.as_of)
    limited_profile = replace(
        profile,
        values=MappingProxyType(values),
        intervals=MappingProxyType(intervals),
        ceilings=MappingProxyType(dict(most)),
    )
    return limited_profile, source


def probability_cheaper(
    chosen: ServingPoint, rival: ServingPoint, profile: Profile
) -> float | None:
    """Probability that the rival is cheaper; None without a spread or a price.

    Two plans of one kind (chips, formats, both phases together or apart) share most of what the
    estimate gets wrong; what is left to each differs by the profile's spread of runs alike. Plans
    of different kinds differ by the spread of all runs.
    """
    if not profile.spread or not chosen.usd_per_mtok or not rival.usd_per_mtok:
        return None
    spread = profile.spread["alike" if _kind(chosen) == _kind(rival) else "other"]
    width = spread * math.sqrt(2)  # of the difference of two
    ahead = math.log(rival.usd_per_mtok / chosen.usd_per_mtok)
    return 0.5 * math.erfc(ahead / (width * math.sqrt(2)))


def _kind(plan: ServingPoint) -> tuple[str | None, ...]:
    chips: list[str | None] = [pool.chip for pool in plan.phases.values()]
    return (plan.mode, plan.weights, plan.kv, *(chips or [plan.chip]))
