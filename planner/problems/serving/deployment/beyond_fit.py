"""Extrapolation of a plan outside the fitted rows of its profile, and its share of the time.

Beside it the one run that would narrow its band most: a load generator, and what reads its result.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.chips import chip_names
from planner.catalogue.coefficient_spread import IN_SAMPLE, NEW_ARCHITECTURE, NEW_CHIP, RunContext
from planner.catalogue.hull import HullDimension, HullValue, dimensions, hull_names
from planner.catalogue.models import repository
from planner.catalogue.profile import COEFFICIENTS
from planner.problems.serving.advice.records import NarrowingRun
from planner.problems.serving.step.runnable import supporting_engines
from planner.problems.serving.step.shares import DIGITS, extrapolation_masks, hull_numbers
from planner.protocol.output import CodedColumn
from planner.protocol.plan import MIN_SHOWN_SHARE, Outside
from planner.scenario.keys.references import File

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.pool import EvaluatedPool
    from planner.problems.serving.question import Scenario
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

ROLES = ("prefill", "decode")
TIMES = {"tpot": "step", "ttft": "first token"}


def extrapolations(candidate: Candidate) -> tuple[Outside, ...]:
    """Dimensions of a plan outside the profile's rows, the largest widening of the band first.

    Empty for a bound, which rests on no row.
    """
    if candidate.task.uses_bound:
        return ()
    merged: dict[tuple[str, HullValue], tuple[float, Outside]] = {}
    roles = ROLES if candidate.joint else ("",)
    for role, pool in zip(roles, candidate.pools, strict=True):
        for variance, dimension, part in pool_extrapolation(pool):
            key = dimension.name, part.value
            if key in merged:
                merged[key] = max(merged[key], (variance, part), key=lambda pair: pair[1].share)
            elif role and dimension.unit:
                merged[key] = variance, replace(part, words=f"{part.words} to {role}")
            else:
                merged[key] = variance, part
    ranked = sorted(merged.values(), key=lambda pair: (-pair[0], -pair[1].share))
    return tuple(part for _, part in ranked)


def distance_kinds(candidate: Candidate) -> set[str]:
    """Kinds of extrapolation of a plan; of new chip and new architecture only the farther.

    What follows from another, as an engine's formats from a new engine, is none of its own.
    """
    kinds = {each.regime for pool in candidate.pools for _, each, _ in pool_extrapolation(pool)}
    if NEW_CHIP in kinds and candidate.task.profile.regime == NEW_ARCHITECTURE:
        kinds = kinds - {NEW_CHIP} | {NEW_ARCHITECTURE}
    return kinds


def pool_extrapolation(pool: EvaluatedPool) -> list[tuple[float, HullDimension, Outside]]:
    """Extrapolated dimensions of a pool, and the affected share of its own time.

    Each comes with the variance of the logarithm of that time [1] that rests on coefficients which
    no measured row there covers.
    """
    task, layouts, batch = pool.task, pool.layouts, np.array([pool.batch])
    hull, point = task.profile.hull, _point(task, layouts, batch)
    rests = {name: np.array([[each] for each in of.values()]) for name, of in pool.rests_on.items()}
    parts = []
    for dimension, times in extrapolated_shares(task, layouts, batch, rests).items():
        time, share = max(times.items(), key=lambda pair: float(pair[1][0]))
        resting = [(name, x) for name, x in pool.rests_on[time].items() if dimension.holds(name)]
        value = dimension.value(point[dimension.name])
        fitted, words = hull.fitted(dimension.name) if hull else (), dimension.asking(value)
        widths = hull.widths if hull else {}
        variance = sum((x * widths.get(name, 1.0)) ** 2 for name, x in resting)
        part = Outside(
            dimension.title, fitted, round(float(share[0]), DIGITS), TIMES[time], value, words
        )
        parts.append((variance, dimension, part))
    return parts


def extrapolated_shares(
    task: Task, layouts: Layouts, batch: np.ndarray, rests: Mapping[str, np.ndarray]
) -> dict[HullDimension, dict[str, np.ndarray]]:
    """Affected shares of the times by extrapolated dimension and time, each of shape (n,).

    Zero where a point lies inside. Points of which neither the time nor the band has any part in a
    dimension count as inside: one that only widens the band has the least share above zero.

    Args:
        rests: shares of both times by coefficient, as `coefficient_shares` gives them.
    """
    hull, beyond = task.profile.hull, extrapolation_masks(task, layouts, batch)
    every: dict[HullDimension, dict[str, np.ndarray]] = {}
    for dimension, out in hull.outside(_point(task, layouts, batch)).items() if hull else ():
        rows = [i for i, name in enumerate(COEFFICIENTS) if dimension.holds(name)]
        has = {"tpot": task.mode != "prefill", "ttft": task.mode != "decode"}
        times = [name for name in TIMES if has[name]][: None if dimension.prompts else 1]
        shares = {name: np.minimum(rests[name][rows].sum(axis=0), 1.0) for name in times}
        small = np.maximum.reduce([*shares.values()]) < MIN_SHOWN_SHARE
        here = out & ~small
        if (out & small).any():
            # Its bands would be narrower but for this kind of distance.
            time = times[0]
            others = {kind: holds for kind, holds in beyond.items() if kind != dimension.regime}
            nearer = replace(
                task.profile, kinds=tuple(x for x in task.profile.kinds if x != dimension.regime)
            )
            (low, high), (lower, higher) = (
                profile.band_ends(time, rests[time], kinds)
                for profile, kinds in ((task.profile, beyond), (nearer, others))
            )
            here = out & (~small | ((low != lower) | (high != higher)))
        if here.any():
            least = np.finfo(float).tiny
            every[dimension] = {
                name: np.where(here, np.maximum(share, least), 0.0)
                for name, share in shares.items()
            }
    return every


def extrapolation_column(
    task: Task, layouts: Layouts, batch: np.ndarray, rests: Mapping[str, np.ndarray]
) -> CodedColumn:
    """Coded column of the extrapolation at n points, as `scope_cell` text; first word None."""
    count = rests["tpot"].shape[1]
    every = extrapolated_shares(task, layouts, batch, rests)
    percents = [
        np.where(share > 0, np.round(100 * share) + 1, 0)
        for share in (np.maximum.reduce([*times.values()]) for times in every.values())
    ]
    rows, codes = np.unique(np.array([np.zeros(count), *percents]), axis=1, return_inverse=True)
    titles = [dimension.title for dimension in every]
    words = [
        _cell([(title, (n - 1) / 100) for title, n in zip(titles, row, strict=True) if n])
        for row in rows.T[:, 1:].tolist()
    ]
    return CodedColumn(codes.ravel() + 1, (None, *words))


def scope_cell(outside: Sequence[Outside]) -> str | None:
    """Table cell with the extrapolated dimensions and their time shares; None if all are inside.

    In the order of the dimensions, so that a column of many points has few words.
    """
    order = {dimension.title: place for place, dimension in enumerate(dimensions().values())}
    return _cell([(x.what, x.share) for x in sorted(outside, key=lambda x: order[x.what])])


def _cell(pairs: Sequence[tuple[str, float]]) -> str | None:
    return "; ".join(f"{what} {share:.0%}" for what, share in pairs) or None


def distances(pools: Sequence[EvaluatedPool]) -> dict[str, np.bool_]:
    """Kinds of extrapolation of the pools' points, each mapped to True."""
    every = [extrapolation_masks(x.task, x.layouts, np.array([x.batch])) for x in pools]
    return {kind: np.True_ for each in every for kind, holds in each.items() if holds.any()}


def farther(regime: str, beyond: Iterable[str]) -> str:
    """The kind of distance of a place, or where the place is known that of its numbers."""
    return next(iter(beyond), regime) if regime == IN_SAMPLE else regime


def _point(task: Task, layouts: Layouts, batch: np.ndarray) -> dict[str, str | np.ndarray]:
    return {**place_names(task), **hull_numbers(task, layouts, batch)}


def place_names(task: Task) -> dict[str, str]:
    """The names of a task's model, chip, engine and formats by dimension of a hull."""
    place = RunContext.of(task.sizes, task.chip, runs=task.engines or ())
    return hull_names(replace(place, engine=task.profile.engine_asked(place)))


ROUNDS = 10  # requests of a run for each that is in flight, as published runs have
# A closed loop of whole requests cannot measure overlap: steps and prompts hide different shares.
UNMEASURED_DIMENSION = "overlap"
DEFAULT_ENGINE = "vllm"  # where the profile speaks for no engine in particular


def narrowing(candidate: Candidate, scenario: Scenario) -> NarrowingRun | None:
    """Measurement run of one replica that would narrow the extrapolation most.

    Of every pool and dimension the one whose share of the time, times how little is known of what
    it rests on, is the largest. None inside, for a model that no repository holds, and for a chip
    that the catalogue does not.
    """
    if candidate.task.uses_bound:
        return None
    worth = [
        (variance, dimension, pool, commands)
        for pool in candidate.pools
        if (commands := benchmark_commands(candidate, scenario, pool))
        for variance, dimension, _ in pool_extrapolation(pool)
        if dimension.name != UNMEASURED_DIMENSION
    ]
    if not worth:
        return None
    variance, dimension, pool, commands = max(worth, key=lambda row: row[0])
    whole = pool.layouts.halves[0] == 1
    return NarrowingRun(dimension.title, math.sqrt(variance), commands, overlap_off=not whole)


def benchmark_commands(
    candidate: Candidate, scenario: Scenario, pool: EvaluatedPool
) -> tuple[str, ...]:
    """A load generator against one replica of a pool, and what makes a profile of its result.

    Empty for a model that no repository holds, and for a chip that the catalogue does not.
    """
    place = repository(scenario.model) if isinstance(scenario.model, str) else None
    if place is None or pool.task.chip.name not in chip_names():
        return ()
    runs = supporting_engines([(each.task, each.layouts) for each in candidate.pools])
    task, choice = pool.task, pool.choice
    engine = (
        task.profile.engine
        if task.profile.engine != "any"
        else next(iter(runs or ()), DEFAULT_ENGINE)
    )
    layout = choice.layout
    facts = {
        "engine": engine,
        "chip": task.chip.name, "n_chips": int(pool.layouts.replica_chips[0]),
        "tp": layout.tp, "pp": layout.pp, "dp_attention": layout.dp_attention, "ep": layout.ep,
        "weights": choice.weights, "kv": choice.kv,
    }  # fmt: skip
    requests = max(int(pool.batch), 1)
    words = [
        *("vllm", "bench", "serve", "--base-url", "http://localhost:8000", "--model", place),
        *("--dataset-name", "random", "--random-input-len", str(round(task.input_tokens))),
        *("--random-output-len", str(round(task.output_tokens)), "--ignore-eos"),
        *("--max-concurrency", str(requests), "--num-prompts", str(ROUNDS * requests)),
        *("--save-result", "--result-filename", "run.json", "--metadata"),
        *(f"{name}={value}" for name, value in facts.items()),
    ]
    start = scenario.profile.written if isinstance(scenario.profile, File) else scenario.profile
    like = [] if start == "auto" else ["--like", start]
    read = ["planner", "calibrate", "run.json", "--name", "own", "--out", "own.toml", *like]
    return shlex.join(words), shlex.join(read)
