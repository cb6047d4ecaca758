"""Kinds of cases: hostile ones by family, and those whose answers are held against something else.

What is not hostile is a function of a case's number that returns how it ended: 0 an answer that
was looked at, 1 nothing to look at (infeasible, or a mutant that is harmless), 2 refused. A wrong
answer is an AssertionError. Tests in their small size call the same functions; they are imported
where they are called, since every kind needs others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

import planner
from tests.campaign.hostile import FAMILIES, case
from tests.campaign.judged import judged
from tests.paths import ROOT

BROKEN = (Exception, pytest.fail.Exception, pytest.skip.Exception)


@dataclass(frozen=True)
class Outcome:
    """How a case ended: how many by status, what is wrong, CPU seconds."""

    statuses: Counter[int]
    faults: tuple[str, ...]
    cpu: float


@dataclass(frozen=True)
class Kind:
    """How many cases, how many a process takes at a time, and how many one call is."""

    run: Callable[[int], Outcome]
    count: int
    block: int
    each: int = 1


def hostile(family: str) -> Callable[[int], Outcome]:
    """Hostile cases of a family, run and judged in this process."""

    def run(number: int) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            end = judged(case(family, number), Path(folder))
        return Outcome(Counter([end.status]), end.faults, end.cpu)

    return run


def held(function: Callable[[int], int | Counter[int]], each: int) -> Callable[[int], Outcome]:
    """A function that ends with a status of `each` cases, or with an error, with its CPU time."""

    def run(number: int) -> Outcome:
        begun, faults, ended = spent(), "", Counter({3: each})
        try:
            status = function(number)
            ended = status if isinstance(status, Counter) else Counter({status: each})
        except BROKEN as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            faults = f"{type(error).__name__}: {error} ({place.name}: {place.line})"
        return Outcome(ended, (faults,) if faults else (), spent() - begun)

    return run


def spent() -> float:
    """CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


def soundness(number: int) -> int:
    """An answer computed anew; every tenth is asked in other ways too."""
    from tests.campaign.soundness import answer, checked, question, related

    asked = question(number)
    document = answer(asked)
    if document is None:
        return 2
    wrong = checked(asked, document) + (related(asked, document) if number % 10 == 0 else [])
    if wrong:
        raise AssertionError("; ".join(wrong))
    return int(document["status"] == "infeasible")


def rechecked(kind: str) -> Callable[[int], int]:
    """Answers of a kind of problem, computed anew by `tests.campaign.rechecks`."""

    def run(number: int) -> int:
        hand = import_module(f"tests.campaign.rechecks.{kind}")
        asked = hand.question(number)
        solved = planner.solve(deepcopy(asked)).document
        document = json.loads(json.dumps(solved, allow_nan=False))
        if wrong := list(hand.faults(asked, document)):
            raise AssertionError("; ".join(wrong))
        return int(document["plan"] is None)

    return run


def engines(number: int) -> Counter[int]:
    """Plans of a question, runners-up among them, by the rules of the engines that they name."""
    from tests.test_planner.problems.serving.step.test_engines_own_rules import judged

    return Counter({0: judged(10_000 + number, 32)}) or Counter({1: 1})


def geometry(number: int) -> int:
    """What is exported, placed and paid."""
    from tests.test_planner.engines.test_geometry import one_geometry

    return 0 if one_geometry(number) else 1


def placement(number: int) -> int:
    """A small system laid out by brute force: uneven machines, two pools, odd replicas."""
    from tests.test_planner.problems.serving.step.test_packing import agree

    agree(number)
    return 0


def brute_force(number: int) -> int:
    """Every layout and every whole batch of small questions against the search."""
    from tests.test_campaign.test_soundness import no_layout_beats_the_plan

    no_layout_beats_the_plan(number, KINDS["brute-force"].each)
    return 0


def bounds(number: int) -> int:
    """The bound of a loaded question against plans of all modes."""
    from tests.test_planner.problems.serving.test_promises_under_load import bounded

    return 0 if bounded(number, "aggregated", "disaggregated") else 1


def arrivals(number: int) -> int:
    """A loaded plan's promises in a simulation of 100,000 requests."""
    from tests.test_planner.problems.serving.test_promises_under_load import MODES, simulated

    return 0 if simulated(number // 2, MODES[number % 2]) else 1


def kills(number: int) -> int:
    """Sweeps killed at random moments: alone, with workers, their workers, on a cluster."""
    from tests.test_planner.sweep import test_killed

    trials = KINDS["kills"].each
    ways = (
        partial(test_killed.test_the_command_may_be_killed, workers="1"),
        partial(test_killed.test_the_command_may_be_killed, workers="2"),
        test_killed.test_workers_may_be_killed,
        partial(test_killed.test_a_cluster_may_be_killed, part="worker"),
        partial(test_killed.test_a_cluster_may_be_killed, part="scheduler"),
    )
    with tempfile.TemporaryDirectory() as folder:
        ways[number // trials](Path(folder), trials=trials)
    return 0


def faults(number: int) -> int:
    """Full disks, two writers, a folder that nobody may write."""
    from tests.test_planner.sweep import test_faults

    with tempfile.TemporaryDirectory() as folder:
        if number < 12:
            test_faults.test_a_disk_that_fills_up_costs_no_row(Path(folder), 10 + 750 * number)
        elif number < 23:
            test_faults.test_two_that_write_one_file_write_it_once(Path(folder), number)
        else:
            told = test_faults.test_a_folder_that_cannot_be_written_is_told_before_computing
            told(Path(folder))
    return 0


def mutants(number: int) -> Counter[int]:
    """Mutants of one room of product code; those that nobody noticed are told."""
    from tests.product_mutants.__main__ import ROOMS, equivalent, results, sampled

    each, count = KINDS["mutants"].each, KINDS["mutants"].count
    room = list(ROOMS)[number // each]
    command = [sys.executable, "-m", "tests.product_mutants"]
    for words in (["map"], ["run", "--sample", str(count), "--room", room]):
        subprocess.run(
            [*command, *words, "--workers", "1"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
        )
    verdicts, harmless = results(), equivalent()
    names = [mutant.name for mutant in sampled(list(ROOMS), count, 15)[room]]
    tried = {name: verdicts[name]["verdict"] for name in names if name not in harmless}
    survivors = [name for name, verdict in tried.items() if verdict not in ("killed", "timeout")]
    if survivors:
        raise AssertionError(f"{len(survivors)} of {len(tried)} unnoticed: {', '.join(survivors)}")
    return Counter({0: len(tried), 1: len(names) - len(tried)})


# Kinds of problem whose answers are computed anew, with how many a process takes at a time.
RECHECKED = {
    "training": 25, "rl": 25, "cache": 50, "prices": 50, "schedule": 50, "fleet": 25, "budget": 100,
    "lifecycle": 10,
}  # fmt: skip
KINDS = {
    # by name: how a case is run, how many there are, in a block, in a call
    **{family: Kind(hostile(family), count, 50) for family, (_, count) in FAMILIES.items()},
    **{
        function.__name__.replace("_", "-"): Kind(held(function, each), count, block, each)
        for function, count, block, each in (
            (soundness, 2_500, 25, 1),
            (brute_force, 300, 50, 50),
            (placement, 1_000, 1_000, 1),
            (engines, 600, 20, 1),
            (geometry, 2_000, 25, 1),
            (bounds, 400, 20, 1),
            (kills, 105, 21, 21),
            (faults, 24, 24, 1),
            (arrivals, 400, 10, 1),
            (mutants, 344, 43, 43),
        )
    },
    **{
        f"{name}-answers": Kind(held(rechecked(name), 1), 2_000, block)
        for name, block in RECHECKED.items()
    },
}
