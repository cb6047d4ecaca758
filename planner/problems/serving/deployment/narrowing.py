"""The one run that would narrow a plan's band most: a load generator, and what reads its result."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from planner.catalogue.chips import chip_names
from planner.catalogue.models import repository
from planner.problems.serving.deployment.beyond_fit import pool_outside
from planner.problems.serving.plan import NarrowingRun
from planner.problems.serving.step.runnable import engines_of
from planner.scenario.keys.references import File

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.pool import EvaluatedPool
    from planner.problems.serving.question import Scenario

ROUNDS = 10  # requests of a run for each that is in flight, as published runs have
# What a loop of whole requests cannot tell: steps and prompts hide different shares of their own.
UNMEASURED = "overlap"
USUAL = "vllm"  # where the profile speaks for no engine in particular


def narrowing(candidate: Candidate, scenario: Scenario) -> NarrowingRun | None:
    """The run of one replica that would narrow most what is outside the fit.

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
        for variance, dimension, _ in pool_outside(pool)
        if dimension.name != UNMEASURED
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
    runs = engines_of([(each.task, each.layouts) for each in candidate.pools])
    return _load(pool, place, next(iter(runs or ()), USUAL)), _read(scenario)


def _load(pool: EvaluatedPool, place: str, runs: str) -> str:
    """A closed loop against one replica, which writes beside its result what the server is."""
    task, choice = pool.task, pool.choice
    layout = choice.layout
    facts = {
        "engine": runs if task.profile.engine == "any" else task.profile.engine,
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
    return shlex.join(words)


def _read(scenario: Scenario) -> str:
    """What makes a profile of the result, for this question to name."""
    start = scenario.profile.written if isinstance(scenario.profile, File) else scenario.profile
    like = [] if start == "auto" else ["--like", start]
    return shlex.join(["planner", "calibrate", "run.json", "--name", "own", "--out", "own.toml",
                       *like])  # fmt: skip
