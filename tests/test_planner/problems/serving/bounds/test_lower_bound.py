"""The relaxation lies below every plan; elasticities are the slopes of a re-solved problem."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import brentq

import planner
from formulas.numerics.evaluate import Kernel, kernel
from planner.catalogue.chips import chip_power
from planner.problems.serving.bounds.binding_limits import SYMBOLS, parameter_elasticities
from planner.problems.serving.bounds.lower_bound import (
    _Box,
    _decided,
    _groups,
    _halves,
    _most_sequences,
    _power_of_work,
    _work,
    contention_free_batch,
    declare,
    optimum,
    relaxation,
    whole_chips,
)
from planner.problems.serving.search.batch import search
from planner.problems.serving.step.equations import BOUND, ESTIMATE
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import ClosedLoop, Task
from planner.text.errors import SolverError
from tests.cases.serving import MODELS, NAMES, decided, question, questions, searched
from tests.loops import for_all
from tests.sizes import examples, first

STEP = 1e-4
ROUNDING = 1 + 1e-7


@examples(5, 15)
@given(questions())
def test_serving_relaxation_lies_below_every_plan(task: Task) -> None:
    """No layout at any whole batch that keeps the promises beats the bound."""
    step = searched(task)
    found = search(step)
    if not found.rows.size:
        return
    # Sought beyond the best plan, so that a bound that is too high is not cut to it.
    bound = relaxation(step, found, 2 * float(found.score[0]))
    every = decided(task, int(found.largest.max()) + 1)
    assert bound.value <= every.best * ROUNDING


# Real numbers of stages and sequences, and chords, leave so much of the best plan's cost.
CLOSE = {
    "cost": ({}, 0.02), "latency": ({"objective": "latency"}, 1e-6),
    "tpot": ({"share": 1.3}, 1e-4), "decode": ({"mode": "decode", "objective": "throughput"}, 0.02),
    "prefill": ({"mode": "prefill", "objective": "energy"}, 1e-4),
    "bound": ({"estimate": "bound", "share": 1.3}, 1e-4),
    "given batch": ({"batches": (24,)}, 0.06),
    "alone": ({"mode": "decode", "share": 1.0005, "chips": (1,)}, 1e-3),
}  # fmt: skip


@for_all("case", CLOSE)
def test_the_bound_is_close_to_the_best_of_all_plans(case):
    """Every layout at every whole batch, one by one, on eight chips."""
    changes, gap = CLOSE[case]
    share = changes.get("share")
    changes = {name: value for name, value in changes.items() if name != "share"}
    task = question(MODELS["dense"], batch=21.0, **{"chips": (8,), **changes})
    if share:
        fastest = searched(task)(np.ones(len(searched(task).layouts)))
        names = ("tpot", "ttft") if task.mode == "aggregated" else ("tpot",)
        task = replace(task, promises={p: float(fastest[p].min()) * share for p in names})
    step = searched(task)
    found = search(step)
    assert (found.largest.max() == 1) == (case == "alone")
    best = decided(task, int(found.largest.max()) + 1).best
    bound = relaxation(step, found, 2 * best)
    assert best * (1 - gap) < bound.value <= best * ROUNDING
    assert 60 <= bound.solves <= 61 or case == "alone"
    # No further than the best known, and no more programs than are wanted.
    assert relaxation(step, found, best / 2).value == best / 2
    near = relaxation(step, found, best)
    assert near.value >= best * (1 - gap)
    # A thousandth below the best known is near enough.
    assert near.solves < 60 or gap > 1e-3
    few = relaxation(step, found, 2 * best, most=4)
    assert few.value <= bound.value
    groups = list(_groups(step, np.flatnonzero(found.largest)))
    assert few.solves <= max(4, len(groups) + 2) + 1


def test_a_bound_is_sought_until_it_is_enough():
    """Asked before each program; the first answer is zero, later ones rise."""
    task = question(MODELS["dense"], chips=(8,))
    step = searched(task)
    found = search(step)
    told: list[float] = []

    def enough(bound) -> bool:
        told.append(bound.value)
        assert bound.solves >= len(told) - 1
        return bound.value > 0.5 * float(found.score[0])

    bound = relaxation(step, found, 2 * float(found.score[0]), enough)
    assert told[0] == 0.0
    assert told == sorted(told)
    assert told[-2] <= 0.5 * float(found.score[0]) < told[-1] == bound.value
    nothing = replace(found, largest=np.zeros_like(found.largest))
    assert relaxation(step, nothing, 5.0).value == 5.0
    assert relaxation(step, nothing, 5.0).solves == 0


@pytest.mark.parametrize(("mode", "chips"), [("decode", 8), ("prefill", 8), ("decode", 9)])
@pytest.mark.parametrize("objective", ["energy", "cost"])
def test_work_is_what_power_beyond_the_least_takes(objective, mode, chips):
    """At one layout, from its exact time, it is the exact energy, or what that costs.

    A ninth chip that no replica uses idles: that its power is softly limited too leaves a little.
    """
    price = 0.1 / 3.6e6
    draw = chip_power(question(MODELS["dense"]).chip)
    least = draw.least * 1.2
    task = question(
        MODELS["dense"], mode=mode, objective=objective, chips=(chips,), draw=draw, power=least,
        site=1.2, electricity=price if objective == "cost" else 0.0,
        limits_of={"tp": (2,), "pp": (2,), "dp_attention": (1,)}, price=1e-3,
    )  # fmt: skip
    step = searched(task)
    found = search(step)
    batch = 2 * math.ceil(found.largest[0] / 2)  # both stages are full: the least work of each
    values = {name: float(np.ravel(v)[0]) for name, v in step(np.array([batch])).items()}
    time = chips / values["requests"]
    for share in (1.0, 0.9):
        # Less time asks for more power, softly limited.
        work = _work(step, found)(share * time * (least if objective == "energy" else 1e-3))
        exact = values["joule_per_request" if objective == "energy" else "usd_per_request"]
        beyond = exact - time * (least if objective == "energy" else 1e-3)
        if share == 1:
            assert work <= beyond * (1 + 1e-9)
            assert work == pytest.approx(beyond, rel=1e-9 if chips == 8 else 0.02)
        else:
            assert share * beyond < work < beyond
    # Of several given batches the largest has the least work; a prompt's is the same in any.
    lone = replace(found, largest=np.ones_like(found.largest))
    small, large, both = (
        _work(searched(replace(task, batches=batches)), lone)(1e-3 * time)
        for batches in ((2,), (batch,), (2, batch))
    )
    assert large == both
    assert small > large or mode == "prefill"
    for other in ({"draw": None}, {"objective": "throughput"}, {"objective": "latency"}):
        asked = searched(replace(task, electricity=0.0, **other))
        assert _work(asked, found)(1.0) == 0.0


def test_power_drawn_is_a_monomial_of_what_work_asks_for():
    """It touches where the work is, by its value and slope; chips of no replica idle beside it."""
    task = question(MODELS["dense"], mode="decode", chips=(3,),
                    limits_of={"tp": (2,), "pp": (1,), "dp_attention": (1,)})  # fmt: skip
    draw = replace(chip_power(task.chip), rated=250.0)
    step = searched(replace(task, draw=draw, site=1.2))
    found = _power_of_work(step, 24.0)
    mean = float(step(np.array([24.0]))["watts"][0]) / 1.2
    # Two of three chips work: what they draw beyond idling is three halves of the mean's.
    works = draw.idle + (mean - draw.idle) * 3 / 2

    def limited(asked: float) -> float:
        return asked / (1 + (asked / draw.rated) ** draw.soft) ** (1 / draw.soft)

    asked = brentq(lambda x: limited(x) - works, works, 10 * works)
    assert asked > 1.02 * works
    at = found["drawn"] * asked ** found["given_way"]
    assert at + found["unused"] * draw.idle == pytest.approx(mean, rel=1e-9)
    slope = math.log(limited(asked * (1 + STEP)) / limited(asked * (1 - STEP))) / (2 * STEP)
    assert found["given_way"] == pytest.approx(slope, rel=1e-6)
    assert found["not_given_way"] == pytest.approx(1 - slope, rel=1e-6)
    assert found["unused"] == pytest.approx(1 / 3)
    whole = searched(replace(task, draw=draw, chips=(2,)))
    assert _power_of_work(whole, 24.0)["unused"] == pytest.approx(0, abs=1e-11)
    assert _power_of_work(searched(task), 24.0) == {}


def test_chips_are_paid_whole():
    """Two dollars a chip and second, ten requests a second: the next number of chips that do."""
    task = replace(question(MODELS["dense"]), price=2.0, chips=(16, 4, 8))
    for bound, spare, expected in (
        (0.5, 0.0, 4 * 2 / 10), (0.8, 0.0, 0.8), (0.8 + 1e-12, 0.0, 0.8 + 1e-12),
        (0.81, 0.0, 8 * 2 / 10), (0.8, 1.0, 8 * 2 / 10), (0.8, 5.0, 16 * 2 / 10),
        (3.3, 0.0, 3.3), (0.8, 13.0, 0.8),
    ):  # fmt: skip
        assert whole_chips(task, 10.0, bound, spare) == pytest.approx(expected)


def test_a_box_is_cut_where_it_is_widest():
    """By ranks from 1 to 8, by stages from 1 to 6, or the batch, each at its geometric middle."""
    task = question(MODELS["dense"], chips=(8,), limits_of={"tp": (1,), "halves": (1,)})
    step = searched(task)
    dp, pp = step.layouts.dp_attention, step.layouts.pp
    every = np.arange(dp.size)
    assert (dp.max(), pp.max()) == (8, 6)
    lower, upper = _halves(step, _Box(0.5, 3, every, 1.0, 7.0, tried=True))
    assert (dp[lower.rows].max(), dp[upper.rows].min()) == (2, 3)
    assert sorted([*lower.rows, *upper.rows]) == list(every)
    assert (lower.low, upper.low, lower.high, upper.high) == (1.0, 1.0, 7.0, 7.0)
    lower, upper = _halves(step, _Box(0.5, 3, every[dp == 1], 1.0, 5.0, tried=True))
    assert (pp[lower.rows].max(), pp[upper.rows].min()) == (2, 3)
    lower, upper = _halves(step, _Box(0.5, 3, every, 2.0, 18.0, tried=True))
    assert (lower.low, lower.high, upper.low, upper.high) == pytest.approx((2.0, 6.0, 6.0, 18.0))
    assert (lower.bound, list(upper.rows)) == (0.5, list(every))


def test_groups_are_alike_in_what_a_program_is_given():
    """By tp, parts, ranks that share contexts, halves, and whether copies are in a domain."""
    task = question(MODELS["sparse"], chips=(8,), domain=4, limits_of={"cp": (1, 2)})
    step = searched(task)
    layouts = step.layouts
    rows = np.flatnonzero(np.arange(len(layouts)) % 7)
    place = np.where(layouts.dp_attention == 1, 0, 1) + (layouts.stage > 4)
    kinds = list(zip(layouts.tp, layouts.cp, layouts.dcp > 1, place, layouts.halves, strict=True))
    groups = list(_groups(step, rows))
    assert sorted(np.concatenate(groups)) == list(rows)
    for group in groups:
        assert len({kinds[row] for row in group}) == 1
    assert len(groups) == len({kinds[row] for row in rows})
    assert {kind[3] for kind in kinds} == {0, 1, 2}


def test_an_interval_holds_the_most_sequences_of_any_stage():
    """Of 7 on two stages four, of 9 on three three; an interval needs room beyond."""
    step = searched(question(MODELS["dense"], chips=(6,), limits_of={"tp": (1,)}))
    pp = step.layouts.pp
    found = search(step)
    largest = np.select([pp == 2, pp == 3], [7, 9], 0)
    found = replace(found, largest=largest)
    rows = np.flatnonzero(largest)
    assert 4 < _most_sequences(step, found, rows) < 4.001
    assert 3 < _most_sequences(step, found, np.flatnonzero(pp == 3)) < 3.001


def test_a_batch_is_free_where_nothing_decides_it():
    """Then tangents touch a hundredth above a sequence alone, else next to it."""
    free = question(MODELS["dense"])
    for changes, decides in (
        ({}, False), ({"promises": {"ttft": 1.0}}, False), ({"objective": "energy"}, False),
        ({"batches": (4,)}, True), ({"arrivals": 1.0}, True), ({"site_power": 1e4}, True),
        ({"promises": {"cache_fits": 1.0}}, True), ({"mode": "prefill"}, True),
        ({"objective": "latency"}, True),
    ):  # fmt: skip
        step = searched(replace(free, **changes))
        assert _decided(step) == decides, changes
        assert contention_free_batch(step) == pytest.approx(
            1 + (1e-6 if decides else 1e-2), abs=1e-9
        )


def test_a_real_batch_may_grow_by_less_than_a_group():
    """Four ranks hold one sequence each at a batch of 4; a promise that 7.6 keep lets it grow."""
    limits = {"tp": (1,), "dp_attention": (4,), "ep": (4,), "pp": (1,), "halves": (1,)}
    task = question(MODELS["sparse"], limits_of=limits, batch=400.0)
    step = searched(task)
    row = {k: float(np.ravel(v)[0]) for k, v in step.values(np.array([4.0])).items()}
    row |= {"n_chunks": 2.0, "f_pace": 1.0}
    for batch, expected in ((4.0, 7.6), (1.0, 1.3)):
        tpot = smooth(task, row, expected)["tpot"]
        asked = searched(replace(task, promises={"tpot": tpot}))
        assert optimum(asked, batch).choices["B"] == pytest.approx(expected, rel=1e-6)


def test_programs_are_declared_by_what_the_step_is():
    """Power that follows from the work, and where it is paid; a loop; halves; promises it knows."""
    plain = question(MODELS["sparse"], promises={"tpot": 1.0, "e2e": 9.0, "cache_fits": 1.0})
    draw = chip_power(plain.chip)
    expected = {
        "bound": False, "objective": "cost", "promises": frozenset({"tpot", "latency"}),
        "mode": "aggregated", "loop": False, "halved": False,
    }  # fmt: skip
    for changes, other in (
        ({}, {}), ({"draw": draw}, {}), ({"objective": "energy"}, {"objective": "energy"}),
        ({"draw": draw, "objective": "energy"}, {"objective": "energy drawn"}),
        ({"draw": draw, "electricity": 1e-8}, {"objective": "cost with power drawn"}),
        ({"draw": draw, "objective": "energy", "estimate": "bound"},
         {"objective": "energy", "bound": True}),
        ({"loop": ClosedLoop()}, {"loop": True}),
        ({"loop": ClosedLoop(), "estimate": "bound"}, {"bound": True}),
        ({"limits_of": {"halves": (2,)}}, {"halved": True}),
    ):  # fmt: skip
        assert declare(searched(replace(plain, **changes))) == expected | other


CASES = {
    "memory binds": {"batch": 21.0},
    "tpot binds": {"promises": {"tpot": 1.3}, "batch": 400.0},
    "ttft binds": {"promises": {"ttft": 1.08}, "batch": 400.0},
    "e2e binds": {"promises": {"e2e": 1.2}, "batch": 400.0},
    "prefill keeps up": {"input_tokens": 9000.0, "output_tokens": 150.0, "batch": 400.0},
    "latency": {"objective": "latency", "batch": 21.0},
    "throughput": {"objective": "throughput", "promises": {"tpot": 1.3}, "batch": 400.0},
    "energy": {"objective": "energy", "batch": 21.0},
    "given batch": {"batches": (9,), "batch": 21.0},
    "decode": {"mode": "decode", "promises": {"tpot": 1.4}, "batch": 400.0},
    "prefill": {"mode": "prefill", "batch": 400.0},
    "long prompts": {"input_tokens": 90000.0, "chunk": 4096.0, "batch": 9.0},
    "speculation": {"positions_per_step": 3.0, "tokens_per_step": 2.1, "batch": 21.0},
}
LAYOUTS = {
    "dense": (
        {"tp": (2,), "pp": (2,)},
        {"tp": (1,), "pp": (1,)},
        {"tp": (1,), "cp": (4,), "pp": (1,)},
    ),
    "sparse": (
        {"tp": (2,), "dp_attention": (2,), "ep": (4,), "pp": (1,)},
        {"tp": (1,), "dp_attention": (2,), "ep": (2,), "cp": (2,), "pp": (1,)},
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("model", first(1, ["sparse", "dense"]))
@pytest.mark.parametrize("estimate", ["calibrated", "bound", "lecture"])
def test_serving_elasticities_are_slopes(name: str, model: str, estimate: str) -> None:
    """d ln objective / d ln quantity equals a central difference of the problem solved again."""
    for limits in LAYOUTS[model]:
        task = layout_question(name, model, limits, estimate)
        step = searched(task)
        found = search(step)
        if not found.rows.size:
            assert estimate != "calibrated"
            continue
        one = step.take(found.rows[:1])
        expected = slopes(one, float(found.batch[0]))
        given_slopes = parameter_elasticities(optimum(one, float(found.batch[0])))
        for quantity, slope in expected.items():
            assert given_slopes.get(quantity, 0.0) == pytest.approx(slope, abs=1e-3), quantity


def layout_question(name: str, model: str, limits: dict, estimate: str) -> Task:
    """A case on one layout; promises are multiples of what one sequence gets, or of memory's."""
    changes = dict(CASES[name]) | {"limits_of": limits, "sram": 3e6}
    made = changes.pop("promises", {})
    kind = {"estimate": estimate} if estimate != "lecture" else {"lecture": True}
    task = question(MODELS[model], **changes, **kind)
    values = searched(task)(np.ones(1))
    names = {"tpot": "tpot", "ttft": "ttft", "e2e": "latency"}
    promises = {p: float(np.ravel(values[names[p]])[0]) * share for p, share in made.items()}
    return replace(task, promises=promises)


def slopes(step: Step, batch: float) -> dict[str, float]:
    """Central differences of ln objective, the batch found anew each time."""
    task = step.task
    row = {k: float(np.ravel(v)[0]) for k, v in step.values(np.array([batch])).items()}
    new = task.input_tokens * (1 - task.cached_input)
    row |= {
        "n_chunks": math.ceil(new / row["c_chunk"]),
        "f_pace": max(1.0, row["f_stage"] * min(1.0, batch / row["pp"])),
        "f_pace_w": max(1.0, row["f_read"] * min(1.0, batch / row["pp"])),
    }
    quantities = {**SYMBOLS, **{f"promises.{p}": (p,) for p in task.promises}}
    found = {}
    for quantity, names in quantities.items():
        ends = []
        for factor in (1 - STEP, 1 + STEP):
            moved = row | {n: row[n] * factor for n in names if n in row}
            limits = {p: v * (factor if p in names else 1) for p, v in task.promises.items()}
            ends.append(math.log(least(task, moved, limits, batch)))
        found[quantity] = (ends[1] - ends[0]) / math.log((1 + STEP) / (1 - STEP))
    return found


def least(task: Task, row: dict[str, float], limits: dict[str, float], batch: float) -> float:
    """The objective at the largest real batch that keeps the limits (or at the one given)."""
    limits = limits | {"memory": row["M_cap"]}
    if task.mode == "aggregated" and not task.uses_bound:
        limits["mixed"] = 1.0

    def worst(b: float) -> float:
        values = smooth(task, row, b)
        return max(values[name] / limit for name, limit in limits.items()) - 1

    if task.batches is None and task.mode != "prefill":
        batch = 1.0 if task.objective == "latency" else brentq(worst, 1.0, 1e7, xtol=1e-9)
    return smooth(task, row, batch)["score"]


def smooth(task: Task, row: dict[str, float], batch: float) -> dict[str, float]:
    """All quantities at a real batch, ranks and stages holding fractions of sequences."""
    values = {
        **row,
        "B": batch,
        "b_rank": batch / (row["pp"] * row["dp"]),
        "b_stage": batch / row["pp"],
        "b_mem": batch / row["dp"],
    }
    shared = {"b_own": "b_rank", "b_slice": "b_stage", "b_state": "b_mem"}
    values |= {part: values[whole] / row["cp"] for part, whole in shared.items()}
    compiled = smooth_kernel(task.mode, bound=task.uses_bound)
    found = compiled(**{name: values[name] for name in compiled.names})
    end = "_bound" if task.uses_bound else ""
    tpot, ttft = found[f"T_tpot{end}"], found[f"T_ttft{end}"]
    slot = found[f"T_slot{end}"] if task.mode != "prefill" else found[f"T_pf_busy{end}"]
    decoding = row["L_dec"] * tpot * (task.mode != "prefill")
    latency = decoding + ttft * (task.mode != "decode")
    seconds = slot / (row["n_rep"] * row["r_fill"])
    score = {
        "cost": seconds * row["n_chips"] * row["p_chip"], "energy": seconds * row["n_chips"],
        "throughput": seconds, "latency": latency,
    }[task.objective]  # fmt: skip
    mixed = found.get("phi_mixed", 0.0)
    return {
        "tpot": tpot, "ttft": ttft, "e2e": latency, "memory": found["M_need"], "mixed": mixed,
        "score": score,
    }  # fmt: skip


@cache
def smooth_kernel(mode: str, *, bound: bool) -> Kernel:
    """The model's kernel with what has ceilings given instead of computed."""
    given = {"b_rank", "b_stage", "b_mem", "b_own", "b_slice", "b_state", "f_pace", "n_chunks"}
    equations = [e for e in (BOUND if bound else ESTIMATE[mode]) if e.symbol.name not in given]
    return kernel(equations, NAMES[bound])


def test_serving_elasticities_of_the_fastest_decode() -> None:
    """One sequence alone has no prompts of others to wait for, and no number overflows."""
    task = question(MODELS["sparse"], mode="decode", objective="latency", chips=(8,))
    step = searched(task)
    found = search(step)
    found_slopes = parameter_elasticities(optimum(step.take(found.rows[:1]), float(found.batch[0])))
    assert "price" not in found_slopes
    assert found_slopes["engine.overhead"] > 0


def test_an_answer_does_not_follow_what_was_answered_before() -> None:
    """The same question gets the same digits, whatever was asked of the same programs between."""
    scenario = {
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 2,
        "workload": {"input_tokens": 500, "output_tokens": 100}, "promises": {"tpot": "20 ms"},
        "choose": {"mode": "aggregated"},
    }  # fmt: skip
    first = planner.solve(scenario).document
    planner.solve({**scenario, "model": "llama-3.1-70b", "chips": 8})
    assert planner.solve(scenario).document == first


def test_a_use_of_the_second_solver_is_a_warning_of_the_answer(monkeypatch) -> None:
    """Where Clarabel gives up on the program of a plan, its answer says who solved it."""

    def gives_up(*_: object) -> None:
        raise SolverError("gave up")

    scenario = {
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 1,
        "price": "$2.50/hour", "workload": {"input_tokens": 500, "output_tokens": 100},
        "choose": {"mode": "aggregated"},
    }  # fmt: skip
    assert not any("SCS" in each for each in planner.solve(scenario).warnings)
    monkeypatch.setattr("planner.programs.geometric.solver.Program._optimum", gives_up)
    assert any("solved by SCS" in each for each in planner.solve(scenario).warnings)
