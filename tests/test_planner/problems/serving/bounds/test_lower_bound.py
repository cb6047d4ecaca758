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
from planner.problems.serving.bounds.binding_limits import SYMBOLS, worth
from planner.problems.serving.bounds.lower_bound import elastic, relaxation
from planner.problems.serving.search.batch import search
from planner.problems.serving.step.equations import BOUND, ESTIMATE
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from planner.text.errors import SolverError
from tests.cases.serving import MODELS, NAMES, decided, question, questions, searched
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
        given_slopes = worth(elastic(one, float(found.batch[0])))
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
    found_slopes = worth(elastic(step.take(found.rows[:1]), float(found.batch[0])))
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
