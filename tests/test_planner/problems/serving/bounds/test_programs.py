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
    "all": {"tp": (2,), "pp": (2,), "dp_attention": (2,), "ep": (4,), "cp": (2,)},
}
GROUP = 8  # sequences of which every rank, stage and part has as many in any of the layouts
NARROW = 1e-7  # of an interval that stands for one batch


def of_a_layout(**declared: Any) -> Program:
    """`continuous`, lowered afresh."""
    P = GeometricProgram("serving plan")
    P.minimise(programs.layout(P, **declared))
    return Program(ProgramStructure.of_plain(P.compile().structure.plain()))


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
    """No program is read from the disk, nor from another test."""
    monkeypatch.setattr(lower_bound, "continuous", cache(of_a_layout))
    monkeypatch.setattr(lower_bound, "relaxable", cache(of_a_group))


def step_of(name: str, mode: str, **changes: Any) -> Step:
    """The step of one layout: two stages, two ranks that share 64 experts, or these in parts."""
    limits = {"halves": (1,), **LAYOUTS[name], **changes.pop("limits_of", {})}
    changes = {"cached_input": 0.5, "sram": 1e6, **changes}
    drawn = changes.pop("drawn", False)
    model, chips = MODELS.get(name, MODELS["sparse"]), (16,) if name == "all" else (4,)
    task = question(model, batch=400.0, mode=mode, limits_of=limits, chips=chips, **changes)
    step = searched(replace(task, draw=chip_power(task.chip)) if drawn else task)
    assert len(step.layouts) == 1
    if step.task.pooled:
        # Of four times four sequences a rank the fullest has four more.
        step = step._copy(step.layouts, {**step._values, "c_rank": np.ones(1)})
    return step


def exact(step: Step, batch: float) -> dict[str, float]:
    """Outputs of the step at a whole batch, and its objective."""
    values = step(np.array([batch]))
    values = {**values, "objective": step.task.score(values)}
    return {name: float(np.ravel(value)[0]) for name, value in values.items()}


# -- one layout ----------------------------------------------------------------------------------
KINDS: dict[str, dict[str, Any]] = {
    "billed": {"drawn": True, "electricity": 0.1 / 3.6e6}, "bound": {"estimate": "bound"},
    "bound's latency": {"objective": "latency", "estimate": "bound"}, "cost": {},
    "drawn": {"objective": "energy", "drawn": True}, "energy": {"objective": "energy"},
    "energy of a pool": {"objective": "energy", "pooled": True},
    "in a loop": {"objective": "latency", "loop": ClosedLoop(poll=1.0, hold=2.0)},
    "latency": {"objective": "latency"}, "overlapped": {"limits_of": {"halves": (2,)}},
    "throughput": {"objective": "throughput"},
}  # fmt: skip
ESTIMATES = [
    *((kind, "aggregated") for kind in ("billed", "bound", "bound's latency", "cost", "drawn")),
    *((kind, "aggregated") for kind in ("in a loop", "latency", "overlapped")),
    *((kind, "decode") for kind in ("bound", "drawn", "energy of a pool", "throughput")),
    *((kind, "prefill") for kind in ("bound", "bound's latency", "cost", "drawn")),
]
TOKENS = {"aggregated": 1200, "decode": 200, "prefill": 1000}  # whose price is made small


@pytest.mark.parametrize(("kind", "mode"), ESTIMATES)
def test_the_program_of_a_layout_touches_the_step_at_its_batch(kind, mode):
    """Price or time are those of the step at the batch, and change with it at the same rate."""
    step = step_of("all", mode, **KINDS[kind])
    batch = 8 * GROUP
    program = of_a_layout(**lower_bound.declare(step))
    per = TOKENS[mode] if step.task.objective in ("cost", "energy") else 1

    def values(at):
        # What a request of a closed loop meets is no choice.
        row = lower_bound.layout_given(step, at if step.task.loop else batch, batch)
        row |= {"lo": at * (1 - NARROW), "hi": at * (1 + NARROW)}
        solution = program.solve(lower_bound._named(program, row))
        return solution.value, exact(step, at)["objective"] / per

    assert values(batch)[0] / values(batch)[1] == pytest.approx(1, rel=3e-7)
    if step.task.pooled:
        return  # beside 16 sequences the fullest rank has no whole number
    (less, exactly_less), (more, exactly_more) = values(batch - GROUP), values(batch + GROUP)
    # Of third order: a quarter of the batch apart, the cube of an eighth over six.
    assert math.log(more / less) == pytest.approx(math.log(exactly_more / exactly_less), abs=4e-4)


LIMITED = {
    ("aggregated", "calibrated"): ("tpot", "ttft", "e2e", "memory", "mixed"),
    ("aggregated", "bound"): ("tpot", "e2e", "memory"),
}
WORDS = {"tpot": "tpot", "ttft": "ttft", "e2e": "latency"}  # of a step


@pytest.mark.parametrize(("mode", "estimate"), LIMITED)
def test_a_batch_that_is_free_grows_to_its_limit(mode, estimate):
    """One promise is what 64 sequences take; others are ten times as long."""
    batch = 64
    for limit in LIMITED[mode, estimate]:
        # As many tokens of prompts come as passes have room for, if 64 sequences are in flight.
        length = 199 * 512 * 2 / (batch - 1) / 0.5 if limit == "mixed" else 1000.0
        step = step_of("sparse", mode, estimate=estimate, input_tokens=length)
        values, task = exact(step, batch), step.task
        longer = {name: values[word] * (1 if name == limit else 10) for name, word in WORDS.items()}
        if limit == "memory":
            task = filled_by(step, batch)
        step = searched(replace(task, promises=longer))
        solution = lower_bound.optimum(step, float(batch))
        assert solution.choices["B"] == pytest.approx(batch, rel=1e-6), limit


def filled_by(step, batch, share=1.0):
    """The task on chips whose memory is a share of what this batch takes."""
    values, task = exact(step, batch), step.task
    full = sum(values[f"memory.{part}"] for part in ("weights", "kv", "activations"))
    return replace(task, chip=replace(task.chip, memory=share * full / task.utilisation))


# -- layouts of a group --------------------------------------------------------------------------
RELAXED = {
    ("aggregated", "cost"): MODELS, ("aggregated", "latency"): MODELS,
    ("aggregated", "given"): MODELS, ("aggregated", "overlapped"): ["sparse"],
    ("decode", "throughput"): MODELS, ("decode", "latency"): ["dense"],
    **{("prefill", kind): ["sparse"] for kind in ("cost", "latency", "given")},
    **{(mode, kind): ["dense"] for mode in TOKENS for kind in ("bound", "bound's latency")},
    ("decode", "bound given"): ["sparse"], ("decode", "energy of a pool"): ["sparse"],
}  # fmt: skip
OPENS: dict[str, dict[str, Any]] = {
    **KINDS, "given": {"batches": (64,)},
    "bound given": {"batches": (64,), "estimate": "bound"},
}  # fmt: skip
NEAR = 1e-4  # of a bound that multipliers prove
# With two stages their first two sequences count as one's own; a prompt's passes are no fraction.
FURTHER = {("dense", "aggregated", "latency"): 4e-3, ("sparse", "prefill", "latency"): 4e-4}


@pytest.mark.parametrize(("mode", "kind"), RELAXED)
def test_the_program_of_one_layout_is_hardly_below_the_step(mode, kind):
    """Where costs fall with the batch the best is the interval's end, which chords meet."""
    for name in RELAXED[mode, kind]:
        step = step_of(name, mode, **{"sram": 0.0, **OPENS[kind]})
        low = 8 if mode == "prefill" else 64
        for times in (1, 4):
            batches = [64] if "given" in kind else range(low, low * times + 1, 4)
            best = min(exact(step, batch)["objective"] for batch in batches)
            least = relaxed_between(step, batches[0], batches[-1])
            near = NEAR if times == 1 or "latency" not in kind else 5e-4
            assert best * (1 - FURTHER.get((name, mode, kind), near)) < least, (name, times)
            assert least <= best * (1 + 1e-9), (name, times)


def relaxed_between(step, low, high):
    """The bound of all layouts of a step with `low` to `high` sequences per replica."""
    values = step.values(np.array([lower_bound.MAX_SEQUENCES]))
    pp, rows = step.layouts.pp, np.arange(len(step.layouts))
    ends = low / pp.max(), max(high / pp.min(), low / pp.max() * lower_bound.BOUND_SLACK)
    return lower_bound._solve(step, values, rows, *ends, 0.0)


GROUPS = {
    "stages": ("dense", {"tp": (1,), "pp": (1, 2, 3, 6), "dp_attention": (1,)}, (6,)),
    "ranks": ("sparse", {"tp": (1,), "pp": (1,), "dp_attention": (2, 3, 4, 6)}, (6, 12)),
}
GAPS = {"stages": {"cost": NEAR, "latency": 1e-2}, "ranks": {"cost": NEAR, "latency": 0.05}}


@pytest.mark.parametrize("objective", ["cost", "latency"])
@pytest.mark.parametrize("mode", ["aggregated", "decode"])
def test_no_layout_of_a_group_beats_its_program(mode, objective):
    """All layouts at all batches whose stages have so many sequences, one by one."""
    for group, (name, limits, chips) in GROUPS.items():
        task = question(MODELS[name], batch=400.0, mode=mode, objective=objective, chips=chips,
                        limits_of={"halves": (1,), **limits})  # fmt: skip
        step = searched(task)
        pp, fastest = step.layouts.pp, step.values(np.array([lower_bound.MAX_SEQUENCES]))
        for low, high in ((4.0, 8.0), (8.0, 32.0)):
            best = math.inf
            for batch in range(int(low), int(high * pp.max()) + 1):
                values = step(np.full(pp.size, float(batch)))
                inside = (np.ceil(batch / pp) >= low) & (np.ceil(batch / pp) <= high)
                inside &= values["mixed"] <= 1 if mode == "aggregated" else inside
                best = min(best, task.score(values)[inside].min(initial=math.inf))
            bound = lower_bound._solve(step, fastest, np.arange(pp.size), low, high, 0.0)
            assert best * (1 - GAPS[group][objective]) < bound <= best * (1 + 1e-9), (group, low)


@pytest.mark.parametrize("estimate", ["calibrated", "bound"])
def test_no_part_is_left_where_a_promise_is_shorter_than_its_least_time(estimate):
    """One percent below what the fewest sequences take there is nothing, one percent above is."""
    batch = 32
    step = step_of("sparse", "aggregated", estimate=estimate, sram=0.0)
    values = exact(step, batch)
    longer = {name: values[word] * 1.01 for name, word in WORDS.items()}
    shorter = [{**longer, name: values[word] * 0.99} for name, word in WORDS.items()]
    cases = [(step.task, longer, True), *((step.task, short, False) for short in shorter)]
    cases += [(filled_by(step, batch, share), longer, share > 1) for share in (1.01, 0.99)]
    if estimate == "calibrated":
        for share in (1.01, 0.99):
            # Half of a prompt is new; passes have room for the chunks of two ranks.
            length = 2 * 199 * 512 * 2 / (batch - 1) / share
            task = step_of("sparse", "aggregated", sram=0.0, input_tokens=length).task
            cases.append((task, dict.fromkeys(WORDS, 1e3), share > 1))
    for task, promises, left in cases:
        asked = searched(replace(task, promises=promises))
        assert (relaxed_between(asked, batch, batch) is not None) == left
