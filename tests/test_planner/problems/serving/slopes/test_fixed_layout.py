"""Elasticities of serving plans against solving the held problem again on either side.

The other way: the scenario is read again with a value a little off, the layout is put into `choose`
by hand, and the real batch comes from the geometric program or from bisection on the equations.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from formulas.numerics.evaluate import kernel
from planner.problems.serving.deployment.alternatives import winner
from planner.problems.serving.deployment.questions import questions_of, ranked
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.slopes.fixed_layout import bound_to, elasticities
from planner.problems.serving.step.equations import BOUND, ESTIMATE
from planner.problems.serving.step.occupancy import LARGEST_BATCH
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import hardware_of, resolve
from planner.scenario import load
from tests.sizes import first, seldom

STEP = 1e-4
MODELS = ("llama-3.1-70b", "llama-3.1-8b", "deepseek-v3", "qwen3-235b-a22b", "gpt-oss-120b")
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-b200", "mi300x-8")


def scenario(seed: int) -> dict:
    """A random question that has one pool."""
    rng = random.Random(seed)
    promises = {}
    if rng.random() < 0.7:
        promises["tpot"] = rng.choice([0.02, 0.04, 0.08, 0.2])
    if rng.random() < 0.5:
        promises["ttft"] = rng.choice([1.0, 3.0, 10.0])
    given = {
        "problem": "serving",
        "model": rng.choice(MODELS),
        "system": rng.choice(SYSTEMS),
        "chips": rng.choice([8, 16]),
        "price": round(rng.uniform(1.5, 6.0), 2) / 3600,
        "workload": {
            "input_tokens": rng.choice([500, 3000, 12_000]),
            "output_tokens": rng.choice([100, 600, 2000]),
            "cached_input": rng.choice([0, 0, 0.5]),
        },
        "promises": promises,
        "choose": {"mode": rng.choice(["aggregated", "aggregated", "decode"])},
        "estimate": rng.choice(["calibrated", "calibrated", "bound"]),
    }
    return given


def found(given: dict):
    """The best point of a question, its givens and its number; None without a plan."""
    asked = load(given)
    questions = questions_of(resolve(asked))
    points = ranked(questions)
    if not points:
        return None
    givens = serving_parameters(asked, hardware_of(asked))
    number = winner(questions, points[0]).question
    return points[0], bound_to(asked, number, points[0]), givens


SMOOTH = ("b_rank", "b_stage", "b_mem", "b_own", "b_slice", "b_state")


class Again:
    """The held problem solved by bisection on equations without ceilings."""

    def __init__(self, task, layouts):
        self.task, self.bound = task, task.uses_bound
        step = Step(task, layouts, bound=self.bound)
        row = step.values(np.array([1.0]))
        self.row = {name: float(np.ravel(v)[0]) for name, v in row.items()}
        self.suffix = "_bound" if self.bound else ""
        kept = tuple(
            e for e in (BOUND if self.bound else ESTIMATE[task.mode]) if e.symbol.name not in SMOOTH
        )
        names = [f"{n}{self.suffix}" for n in ("T_tpot", "T_ttft", "T_slot", "T_pf_busy")]
        names += ["M_need"] + ([] if self.bound else ["phi_mixed"])
        self.kernel = kernel(kept, names)

    def at(self, batch):
        row = dict(self.row, B=batch)
        pp, dp, cp = row["pp"], row["dp"], row["cp"]
        rank, stage, mem = (max(1.0, batch / each) for each in (pp * dp, pp, dp))
        rank += row.get("c_rank", 0.0) * math.sqrt(batch / (pp * dp))
        row |= {"b_rank": rank, "b_stage": stage, "b_mem": mem}
        row |= {"b_own": max(1.0, rank / cp), "b_slice": max(1.0, stage / cp),
                "b_state": max(1.0, mem / cp)}  # fmt: skip
        values = self.kernel(**{name: row[name] for name in self.kernel.names})
        return {name.removesuffix("_bound"): float(v) for name, v in values.items()}

    def kept(self, batch):
        task, v = self.task, self.at(batch)
        held = [v["M_need"] <= task.chip.memory]
        if task.mode == "aggregated" and not self.bound:
            held.append(v["phi_mixed"] <= 1)
        for name in ("tpot", "ttft"):
            if name in task.promises:
                held.append(v[f"T_{name}"] <= task.promises[name])
        return all(held)

    def solved(self):
        low, high = 0.0, math.log(LARGEST_BATCH)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if self.kept(math.exp(middle)) else (low, middle)
        batch = math.exp(low)
        v, task = self.at(batch), self.task
        per = {"decode": task.output_tokens}.get(task.mode, task.input_tokens + task.output_tokens)
        cost = task.price * v["T_slot"] / per
        return {"usd_per_mtok": cost, "tpot": v["T_tpot"], "ttft": v["T_ttft"],
                "tokens_per_s": task.output_tokens / v["T_slot"], "batch": batch}  # fmt: skip


def held_again(bound, given, factor):
    changed = resolve(given.to(factor))
    (pool,) = bound.pools
    (task,) = bound.tasks(changed)
    return Again(task, pool.layouts).solved() if pool.free else stepped(task, pool)


def stepped(task, pool):
    """A batch of a few sequences, which is held, in the equations as they are."""
    step = Step(task, pool.layouts, bound=task.uses_bound)
    v = {name: float(np.ravel(value)[0]) for name, value in step(np.array([pool.batch])).items()}
    per = {"decode": task.output_tokens}.get(task.mode, task.input_tokens + task.output_tokens)
    return {"usd_per_mtok": v["usd_per_request"] / per, "tpot": v["tpot"], "ttft": v["ttft"],
            "tokens_per_s": task.output_tokens * v["requests"]}  # fmt: skip


def compared(seed: int) -> int:
    """How many elasticities of one random scenario were compared."""
    best = found(scenario(seed))
    if best is None:
        return 0
    point, bound, givens = best
    assert len(point.tasks) == 1
    varied = [given for given in givens if given.to is not None]
    _, slopes = elasticities(bound, varied)
    names = [n for n in ("usd_per_mtok", "tpot", "ttft", "tokens_per_s") if n in slopes]
    flat = bound.pools[0].task.uses_bound
    count = 0
    for i, given in enumerate(varied):
        ends = [held_again(bound, given, math.exp(sign * STEP)) for sign in (1, -1)]
        for name in names:
            if flat and name != "usd_per_mtok":
                continue  # past the critical batch the price does not say which batch it is
            left, right = slopes[name][:, i]
            if abs(left - right) > 1e-6:
                continue  # a kink, which a central difference does not see
            slope = math.log(ends[0][name] / ends[1][name]) / (2 * STEP)
            assert right == pytest.approx(slope, rel=1e-3, abs=1e-3), (seed, given.path, name)
            count += 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(2, range(6)))
def test_elasticities_are_those_of_solving_again(seed):
    """Price, times and throughput to 1e-3, the layout held."""
    compared(seed)


@pytest.mark.parametrize("seed", [*first(0, range(6, 60)), *seldom(range(60, 100))])
def test_elasticities_of_a_hundred_questions_are_those_of_solving_again(seed):
    """The same of many more."""
    compared(seed)
