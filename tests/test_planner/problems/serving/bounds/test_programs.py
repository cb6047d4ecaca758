"""Both programs against the exact step: at one layout, and at layouts of a group on an interval.

Programs are lowered afresh from the equations: nothing that is kept on disk answers here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from planner.catalogue.chips import chip_power
from planner.problems.serving.bounds import lower_bound, programs
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import ClosedLoop
from planner.programs.geometric import GeometricProgram, Program, ProgramStructure
from tests.cases.serving import dense, question, searched, sparse

MODELS = {"dense": dense(), "sparse": sparse(experts=64)}
LAYOUTS = {
    "dense": {"tp": (2,), "pp": (2,), "dp_attention": (1,)},
    "sparse": {"tp": (2,), "pp": (1,), "dp_attention": (2,), "ep": (4,)},
}
GROUP = 4  # sequences of which every rank and stage has as many, in either layout
NARROW = 1e-7  # of an interval that stands for one batch


@cache
def of_a_layout(**declared: Any) -> Program:
    """`continuous`, lowered afresh."""
    P = GeometricProgram("serving plan")
    P.minimise(programs.layout(P, **declared))
    return Program(ProgramStructure.of_plain(P.compile().structure.plain()))


@cache
def of_a_group(
    *, bound: bool, objective: str, promises: frozenset[str], given_batch: bool, mode: str,
    halved: bool = False,
) -> Program:  # fmt: skip
    """`relaxed`, lowered afresh."""
    return programs.relaxed_layouts(
        bound, objective, promises, mode, given_batch=given_batch, halved=halved
    )


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is read from the disk."""
    monkeypatch.setattr(lower_bound, "continuous", of_a_layout)
    monkeypatch.setattr(lower_bound, "relaxed", of_a_group)


def step_of(name: str, mode: str, **changes: Any) -> Step:
    """The step of one layout: of two stages, or of two ranks that share 64 experts."""
    limits = {"halves": (1,), **LAYOUTS[name], **changes.pop("limits_of", {})}
    changes = {"cached_input": 0.5, "sram": 1e6, **changes}
    drawn = changes.pop("drawn", False)
    task = question(MODELS[name], batch=400.0, mode=mode, limits_of=limits, **changes)
    step = searched(replace(task, draw=chip_power(task.chip)) if drawn else task)
    assert len(step.layouts) == 1
    return step


def exact(step: Step, batch: float) -> dict[str, float]:
    """Outputs of the step at a whole batch, and its objective."""
    values = step(np.array([batch]))
    values = {**values, "objective": step.task.score(values)}
    return {name: float(np.ravel(value)[0]) for name, value in values.items()}


# -- one layout ----------------------------------------------------------------------------------
KINDS: dict[str, dict[str, Any]] = {
    "cost": {}, "latency": {"objective": "latency"}, "throughput": {"objective": "throughput"},
    "energy": {"objective": "energy"}, "drawn": {"objective": "energy", "drawn": True},
    "paid": {"drawn": True, "electricity": 0.1 / 3.6e6},
    "bound": {"estimate": "bound"},
    "bound's latency": {"objective": "latency", "estimate": "bound"},
    "halves": {"limits_of": {"halves": (2,)}},
    "closed loop": {"objective": "latency", "loop": ClosedLoop(poll=1.0, hold=2.0)},
}  # fmt: skip
ESTIMATES = [
    *(("sparse", "aggregated", kind) for kind in KINDS),
    *(("dense", "aggregated", kind) for kind in ("cost", "bound", "bound's latency")),
    *(("dense", "decode", kind) for kind in ("energy", "drawn", "bound", "bound's latency")),
    *(("dense", "prefill", kind) for kind in ("cost", "drawn", "bound", "bound's latency")),
]
TOKENS = {"aggregated": 1200, "decode": 200, "prefill": 1000}  # whose price is made small


@pytest.mark.parametrize(("name", "mode", "kind"), ESTIMATES)
def test_the_program_of_a_layout_touches_the_step_at_its_batch(name, mode, kind):
    """Price or time are those of the step at the batch, and change with it at the same rate."""
    step = step_of(name, mode, **KINDS[kind])
    batch = 8 * GROUP
    program = of_a_layout(**lower_bound.declared(step))
    per = TOKENS[mode] if step.task.objective in ("cost", "energy") else 1

    def values(at):
        # What a request of a closed loop meets is no choice.
        row = lower_bound.layout_given(step, at if step.task.loop else batch, batch)
        row |= {"lo": at * (1 - NARROW), "hi": at * (1 + NARROW)}
        solution = program.solve(lower_bound._named(program, row))
        return solution.value, exact(step, at)["objective"] / per

    assert values(batch)[0] == pytest.approx(values(batch)[1], rel=3e-7)
    (less, exactly_less), (more, exactly_more) = values(batch - GROUP), values(batch + GROUP)
    # Of third order: a quarter of the batch apart, the cube of an eighth over six.
    assert math.log(more / less) == pytest.approx(math.log(exactly_more / exactly_less), abs=4e-4)


LIMITED = [
    *(("aggregated", "calibrated", name) for name in ("tpot", "ttft", "e2e", "memory", "mixed")),
    *(("decode", "calibrated", name) for name in ("tpot", "e2e", "memory")),
    *(("aggregated", "bound", name) for name in ("tpot", "e2e", "memory")),
]


@pytest.mark.parametrize(("mode", "estimate", "limit"), LIMITED)
def test_a_batch_that_is_free_grows_to_its_limit(mode, estimate, limit):
    """The promise is what 64 sequences take; others are ten times as long."""
    batch, words = 16 * GROUP, {"tpot": "tpot", "ttft": "ttft", "e2e": "latency"}
    # As many tokens of prompts come as passes have room for, if 64 sequences are in flight.
    length = 199 * 512 * 2 / (batch - 1) / 0.5 if limit == "mixed" else 1000.0
    step = step_of("sparse", mode, estimate=estimate, input_tokens=length)
    values, task = exact(step, batch), step.task
    longer = {name: values[word] * (1 if name == limit else 10) for name, word in words.items()}
    if mode == "decode":
        del longer["ttft"]
    if limit == "memory":
        full = sum(values[f"memory.{part}"] for part in ("weights", "kv", "activations"))
        task = replace(task, chip=replace(task.chip, memory=full / task.utilisation))
    step = searched(replace(task, promises=longer))
    assert lower_bound.elastic(step, float(batch)).choices["B"] == pytest.approx(batch, rel=1e-6)


# -- layouts of a group --------------------------------------------------------------------------
RELAXED = [
    *(("sparse", "aggregated", kind) for kind in ("cost", "latency", "given", "halves")),
    *(("dense", "aggregated", kind) for kind in ("cost", "latency", "given")),
    *(("dense", "decode", kind) for kind in ("throughput", "latency")),
    *(("sparse", "prefill", kind) for kind in ("cost", "latency", "given")),
    *(("dense", mode, kind) for mode in TOKENS for kind in ("bound", "bound's latency")),
    *(("sparse", "decode", kind) for kind in ("bound", "bound given")),
]
OPENS: dict[str, dict[str, Any]] = {
    **KINDS, "given": {"batches": (16 * GROUP,)},
    "bound given": {"batches": (16 * GROUP,), "estimate": "bound"},
}  # fmt: skip
NEAR = 1e-4  # of a bound that multipliers prove
# With two stages their first two sequences count as one's own; a prompt's passes are no fraction.
FURTHER = {("dense", "aggregated", "latency"): 4e-3, ("sparse", "prefill", "latency"): 4e-4}


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize(("name", "mode", "kind"), RELAXED)
def test_the_program_of_one_layout_is_hardly_below_the_step(name, mode, kind, times):
    """Where costs fall with the batch the best is the interval's end, which chords meet."""
    step = step_of(name, mode, **{"sram": 0.0, **OPENS[kind]})
    low = (2 if mode == "prefill" else 16) * GROUP
    batches = [16 * GROUP] if "given" in kind else range(low, low * times + 1, GROUP)
    best = min(exact(step, batch)["objective"] for batch in batches)
    least = relaxed_between(step, batches[0], batches[-1])
    gap = FURTHER.get((name, mode, kind), NEAR if times == 1 or "latency" not in kind else 5e-4)
    assert best * (1 - gap) < least <= best * (1 + 1e-9)


def relaxed_between(step, low, high):
    """The bound of all layouts of a step with `low` to `high` sequences per replica."""
    values = step.values(np.array([lower_bound.ENDLESS]))
    pp, rows = step.layouts.pp, np.arange(len(step.layouts))
    ends = low / pp.max(), max(high / pp.min(), low / pp.max() * lower_bound.ROOM)
    return lower_bound._solve(step, values, rows, *ends, 0.0)


GROUPS = {
    "stages": ("dense", {"tp": (1,), "pp": (1, 2, 3, 6), "dp_attention": (1,)}, (6,)),
    "ranks": ("sparse", {"tp": (1,), "pp": (1,), "dp_attention": (2, 3, 4, 6)}, (6, 12)),
}
GAPS = {"stages": {"cost": NEAR, "latency": 1e-2}, "ranks": {"cost": NEAR, "latency": 0.05}}


@pytest.mark.parametrize(("low", "high"), [(4, 16), (16, 64)])
@pytest.mark.parametrize("objective", ["cost", "latency"])
@pytest.mark.parametrize("mode", ["aggregated", "decode"])
@pytest.mark.parametrize("group", GROUPS)
def test_no_layout_of_a_group_beats_its_program(group, mode, objective, low, high):
    """All layouts at all batches whose stages have so many sequences, one by one."""
    name, limits, chips = GROUPS[group]
    limits = {"halves": (1,), **limits}
    step = searched(
        question(MODELS[name], batch=400.0, mode=mode, objective=objective, chips=chips,
                 limits_of=limits)
    )  # fmt: skip
    pp, best = step.layouts.pp, math.inf
    for batch in range(low, int(high * pp.max()) + 1):
        values = step(np.full(len(step.layouts), float(batch)))
        inside = (np.ceil(batch / pp) >= low) & (np.ceil(batch / pp) <= high)
        inside &= values["mixed"] <= 1 if mode == "aggregated" else inside
        best = min(best, step.task.score(values)[inside].min(initial=math.inf))
    values = step.values(np.array([lower_bound.ENDLESS]))
    bound = lower_bound._solve(step, values, np.arange(pp.size), float(low), float(high), 0.0)
    assert best * (1 - GAPS[group][objective]) < bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("estimate", ["calibrated", "bound"])
def test_no_part_is_left_where_a_promise_is_shorter_than_its_least_time(estimate):
    """One percent below what the fewest sequences take there is nothing, one percent above is."""
    step = step_of("sparse", "aggregated", estimate=estimate, sram=0.0)
    values = exact(step, 8 * GROUP)
    words = {"tpot": "tpot", "ttft": "ttft", "e2e": "latency"}
    longer = {name: values[word] * 1.01 for name, word in words.items()}
    for name, word in words.items():
        short = {**longer, name: values[word] * 0.99}
        for promises, kept in ((longer, True), (short, False)):
            asked = step.with_task(replace(step.task, promises=promises))
            assert (relaxed_between(asked, 8 * GROUP, 8 * GROUP) is not None) == kept
    task, chip = step.task, step.task.chip
    full = sum(values[f"memory.{part}"] for part in ("weights", "kv", "activations"))
    for share in (1.01, 0.99):
        memory = replace(chip, memory=full / task.utilisation * share)
        fits = searched(replace(task, chip=memory, promises=longer))
        assert (relaxed_between(fits, 8 * GROUP, 8 * GROUP) is not None) == (share > 1)
    if estimate == "calibrated":
        for share in (1.01, 0.99):
            # Half of a prompt is new; passes have room for two ranks' chunks a step.
            length = 2 * 199 * 512 * 2 / (8 * GROUP - 1) / share
            flow = step_of("sparse", "aggregated", sram=0.0, input_tokens=length)
            flow = flow.with_task(replace(flow.task, promises=dict.fromkeys(words, 1e3)))
            assert (relaxed_between(flow, 8 * GROUP, 8 * GROUP) is not None) == (share > 1)
