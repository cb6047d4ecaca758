"""What of a plan no row covers: named, with the share of its time, and nothing of it inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import planner
from planner.catalogue.coefficient_spread import IN_SAMPLE, CoefficientSpread
from planner.catalogue.hull import Hull
from planner.catalogue.profile import COEFFICIENTS
from planner.problems.serving.deployment.beyond_fit import (
    TIMES,
    distances,
    extrapolated_shares,
    extrapolation_column,
    extrapolations,
    farther,
    pool_extrapolation,
    scope_cell,
)
from planner.problems.serving.profiled import LECTURE
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.shares import coefficient_shares
from planner.problems.serving.task.task import Task
from planner.protocol.output import tolist
from planner.protocol.plan import Outside
from planner.text.errors import InputError
from tests.cases.serving import dense, one_pool, question, sparse

BASE = {
    "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 8,
    "price": "$2/hour", "profile": "vllm-2026",
    "workload": {"input_tokens": 2000, "output_tokens": 500},
    "choose": {"mode": "aggregated", "weights": "fp8", "kv": "fp8", "tp": 8, "pp": 1,
               "replicas": 1, "batch": 64},
}  # fmt: skip
EXPERTS = {"model": "deepseek-v3", "choose": {**BASE["choose"], "weights": None, "kv": None}}
# What is changed of a question well inside, and what alone is then outside.
MOVED = {
    "model": {"model": "llama-2-70b"},
    "number format": {"choose": {**BASE["choose"], "weights": "int8"}},
    "batch": {"choose": {**BASE["choose"], "batch": 1000}},
    "prompt length": {"workload": {"input_tokens": 50, "output_tokens": 8000}},
    "drafts": {"speculation": {"drafts": 3, "acceptance": 0.7}},
    "pipeline stages": {"choose": {**BASE["choose"], "tp": 4, "pp": 2}},
    "cache format": {"engine": "none", "choose": {**BASE["choose"], "kv": "int8"}},
    "engine": {"profile": "trtllm-2026", "engine": "vllm"},
    "scale-up domains": {"chips": 32, "engine": "none", "choose": {**BASE["choose"], "tp": 32}},
    "chips": {"chips": 64, "engine": "none", "choose": {**BASE["choose"], "tp": 64}},
}  # fmt: skip


def test_a_plan_among_the_rows_has_nothing_outside():
    """And says what its ranges hold; its JSON lists nothing."""
    plan = planner.solve(BASE, strict=True)
    assert plan.outside == ()
    assert plan.document["outside"] == []
    assert "ranges: hold 80% of measured runs" in plan.text("more")


@pytest.mark.slow
@pytest.mark.parametrize("what", list(MOVED))
def test_what_is_moved_out_alone_is_what_is_outside(what):
    """In text, JSON and page; no range is said to hold measured runs."""
    plan = planner.solve({**BASE, **MOVED[what]})
    assert [each.what for each in plan.outside] == [what]
    (told,) = plan.document["outside"]
    assert 0 < told["share"] <= 1
    assert told["asked"]
    assert told["fitted"]
    assert "outside the fit: " in str(plan)
    assert "measured runs" not in str(plan)
    assert "outside the fit" in plan._repr_html_()
    with pytest.raises(InputError, match="outside the fit"):
        planner.solve({**BASE, **MOVED[what]}, strict=True)


@pytest.mark.parametrize("free", [{}, {"batch": [64, 65]}])
def test_a_strict_sweep_refuses_the_points_outside(free):
    """With what and how much of the time; the others are as they are without it."""
    asked = {**BASE, "choose": {**BASE["choose"], **free}}
    over = {"workload.input_tokens": [50, 2000]}
    table, strict = (planner.sweep(asked, over, strict=s).columns for s in (False, True))
    assert list(strict["status"]) == ["refused", "optimal"]
    assert table["outside"][0].startswith("prompt length")
    assert table["outside"][0] in strict["reason"][0]
    assert table["outside"][1] is None
    assert strict["usd_per_mtok"][0] is None
    assert strict["usd_per_mtok"][1] == table["usd_per_mtok"][1]


def test_a_strict_frontier_is_refused_where_a_plan_of_it_is_outside():
    """As one question is."""
    inside = planner.pareto(BASE, points=2, strict=True)
    assert all(not point["outside"] for point in inside.document["points"])
    with pytest.raises(InputError, match="outside the fit: prompt length"):
        planner.pareto({**BASE, **MOVED["prompt length"]}, points=2, strict=True)


def test_two_pools_are_each_looked_at():
    """Prompts are short for one, contexts for the other."""
    short = {"input_tokens": 100, "output_tokens": 100}
    choose = {"mode": "disaggregated", "weights": "fp8", "kv": "fp8"}
    plan = planner.solve({**BASE, "workload": short, "choose": choose})
    assert {"prompt length": "first token", "context": "step"}.items() <= {
        each.what: each.of for each in plan.outside
    }.items()


@pytest.mark.parametrize("change", [{"estimate": "bound"}, {"assumptions": "lecture"}])
def test_a_bound_rests_on_no_row(change):
    """However far from any."""
    far = {**BASE, **MOVED["prompt length"], **change, "profile": "auto"}
    assert planner.solve(far, strict=True).outside == ()


@pytest.mark.parametrize("model", [dense(), sparse()])
def test_shares_are_parts_of_the_time_and_nothing_where_the_term_is_absent(model):
    """All coefficients together are all but what no coefficient scales; one chip sends nothing."""
    for point in one_pool(question(model, mode="aggregated", chips=(4,))).points():
        pool = point.candidate.last
        for times in coefficient_shares(pool.step, np.array([pool.batch])).values():
            of = dict(zip(COEFFICIENTS, times[:, 0], strict=True))
            assert ((times >= 0) & (times <= 1)).all()
            assert times.sum() > 0.9
            assert (of["t_ar"] + of["e_ar"] > 0) == (pool.layouts.tp[0] > 1)
            assert (of["t_moe"] > 0) == bool(model.n_experts)


# -- shares of hand-made times ------------------------------------------------------------------

OWN = {"model": ("dense", "sparse"), "chip": ("h200",), "overlap": ("none",)}
RANGES = {"batch": (16.0, 64.0), "context": (100.0, 8000.0), "prompt": (100.0, 8000.0)}
ROW = {name: i for i, name in enumerate(COEFFICIENTS)}


def layouts(tp: int = 4, halves: int = 1) -> Layouts:
    """One layout of so many chips."""
    one = np.array([1])
    return Layouts(np.array([tp]), *[one] * 5, one, np.array([tp]), np.array([halves]))


def task(names=OWN, ranges=RANGES, model=None, engine="any", **changes) -> Task:
    """A question on H200 whose profile was fitted on rows of these names and ranges."""
    hull = Hull(names, ranges, {"e_w": 0.5, "e_kv": 2.0})
    profile = replace(LECTURE, engine=engine, hull=hull)
    return replace(question(model or dense()), profile=profile, **changes)


def resting(n: int, **of: Mapping[str, float | list[float]]) -> dict[str, np.ndarray]:
    """Shares of both times by coefficient, at n points."""
    rests = {time: np.zeros((len(COEFFICIENTS), n)) for time in ("tpot", "ttft")}
    for time, shares in of.items():
        for name, share in shares.items():
            rests[time][ROW[name]] = share
    return rests


def outside(asked: Task, batch: list[float], rests: dict[str, np.ndarray]) -> dict[str, dict]:
    """Shares outside by the dimension's name and the time, as lists."""
    found = extrapolated_shares(asked, layouts(), np.array(batch), rests)
    return {
        dimension.name: {time: share.tolist() for time, share in times.items()}
        for dimension, times in found.items()
    }


def test_a_share_is_that_of_the_coefficients_that_a_dimension_holds():
    """Of both times where it concerns prompts; none up to a quarter beyond the ends of a range."""
    rests = resting(
        4, tpot={"e_c": 0.25, "e_kv": [0.1, 0.2, 0.3, 0.9], "e_w": 0.5, "e_pf": 0.125},
        ttft={"e_pf": 0.5, "e_c": 0.25, "t_tok": 0.125},
    )  # fmt: skip
    assert outside(task(), [12.8, 80.0, 81.0, 12.7], rests) == {
        "batch": {"tpot": pytest.approx([0.0, 0.0, 0.55, 1.0])}  # no more than all of it
    }
    new = task({**OWN, "model": ("another",)}, {**RANGES, "prompt": (2000.0, 9000.0)})
    assert outside(new, [32.0] * 4, rests) == {
        "model": {"tpot": pytest.approx([0.875] * 4)},
        "prompt": {"tpot": pytest.approx([0.125] * 4), "ttft": pytest.approx([0.625] * 4)},
    }
    assert outside(replace(new, profile=LECTURE), [99.0] * 4, rests) == {}


def test_a_pool_that_only_reads_has_first_tokens_and_one_that_only_writes_has_steps():
    """So have the shares of what it has outside."""
    rests = resting(1, tpot={"e_pf": 0.25, "e_w": 0.5}, ttft={"e_pf": 0.5, "e_w": 0.25})
    new = {**OWN, "model": ("another",)}
    prompts = {"prompt": (2000.0, 9000.0)}
    assert outside(task(new, prompts, mode="prefill"), [1.0], rests) == {
        "model": {"ttft": [0.75]}, "prompt": {"ttft": [0.5]}
    }  # fmt: skip
    assert outside(task(new, prompts, mode="decode"), [1.0], rests) == {"model": {"tpot": [0.75]}}


def spread_by(**quantiles: tuple[float, float, float]) -> dict[str, Any]:
    """What of a profile says how far its coefficients may be off."""
    every = {kind: {"tpot": ends, "ttft": ends} for kind, ends in quantiles.items()}
    n = len(COEFFICIENTS)
    spread = CoefficientSpread((), np.eye(n), {}, every)
    return {"coefficient_spread": spread, "covariance": np.zeros((n, n))}


@pytest.mark.parametrize(
    ("ends", "widens"),
    [((-1.0, 2.0, 0.1), True), ((-2.0, 1.0, 0.1), True), ((-1.0, 1.0, 0.1), False)],
)
def test_a_point_without_a_share_is_outside_where_its_band_is_wider(ends, widens):
    """By the quantiles of batches that were left out; the least share above zero stands for it."""
    asked = task()
    spread = spread_by(known=(-1.0, 1.0, 0.1), new_batch=ends)
    asked = replace(asked, profile=replace(asked.profile, **spread))
    rests = resting(4, tpot={"e_kv": [0.0, 0.004, 0.005, 0.0]})
    (found,) = outside(asked, [99.0, 99.0, 99.0, 32.0], rests)["batch"].values()
    assert found == [np.finfo(float).tiny * widens, 0.004 * widens, 0.005, 0.0]
    alone = resting(1, tpot={"e_kv": 0.004})
    assert ("batch" in outside(asked, [99.0], alone)) == widens


def test_a_dimension_without_a_regime_widens_nothing():
    """Another that lies outside as well widens the band of both."""
    asked = task({**OWN, "model": ("another",)})
    spread = spread_by(known=(-1.0, 1.0, 0.1), new_batch=(-3.0, 3.0, 0.1))
    asked = replace(asked, profile=replace(asked.profile, **spread))
    assert list(outside(asked, [99.0], resting(1))) == ["batch"]


def test_where_a_pool_lies_is_told_by_names():
    """Two half-batches, an engine where one is meant, experts whose format it is."""
    rests = resting(1, tpot=dict.fromkeys(COEFFICIENTS, 0.04))
    every = {"overlap": ("none",), "engine": ("vllm",), "format": ("bf16 weights",)}
    asked = task(every, {})
    assert outside(asked, [1.0], rests) == {}
    found = extrapolated_shares(asked, layouts(halves=2), np.array([1.0]), rests)
    assert [dimension.name for dimension in found] == ["overlap"]
    assert list(outside(task(every, {}, engine="sglang"), [1.0], rests)) == ["engine"]
    assert outside(task(every, {}, engine="vllm"), [1.0], rests).keys() == {"format"}
    assert list(outside(task(every, {}, sparse()), [1.0], rests)) == ["format"]


def test_a_column_says_of_each_point_what_its_cell_says():
    """In percent, of the longer share of the two times; nothing where a point is inside."""
    asked = task({**OWN, "model": ("another",)}, {**RANGES, "prompt": (2000.0, 9000.0)})
    rests = resting(
        5, tpot={"e_w": [0.5, 0.0, 0.5, 0.996, 0.0], "e_kv": [0.1, 0.2, 0.0, 0.3, 0.0]},
        ttft={"t_tok": [0.125, 0.25, 0.0, 0.0, 0.0]},
    )  # fmt: skip
    column = extrapolation_column(asked, layouts(), np.array([99.0, 99.0, 99.0, 32.0, 32.0]), rests)
    assert tolist(column) == [
        "model 50%; batch 10%; prompt length 12%", "batch 20%; prompt length 25%", "model 50%",
        "model 100%", None,
    ]  # fmt: skip
    assert (column.codes > 0).all()
    inside = extrapolation_column(task(), layouts(), np.array([32.0, 33.0]), resting(2))
    assert tolist(inside) == [None, None]


def test_a_cell_is_in_the_order_of_the_dimensions():
    """Whatever widens the band most; empty where nothing lies outside."""
    parts = [Outside(what, (), share, "step", 1.0) for what, share in
             (("chips", 0.126), ("model", 0.5), ("batch", 0.004))]  # fmt: skip
    assert scope_cell(parts) == "model 50%; batch 0%; chips 13%"
    assert scope_cell([]) is None


def pool(asked: Task, batch: float = 99.0, **of: Mapping[str, float]) -> SimpleNamespace:
    """A pool whose times rest on coefficients by these shares."""
    rests = {time: {**dict.fromkeys(COEFFICIENTS, 0.0), **of.get(time, {})} for time in TIMES}
    return SimpleNamespace(task=asked, layouts=layouts(), batch=batch, rests_on=rests)


def plan(*pools: SimpleNamespace, joint: bool = False) -> SimpleNamespace:
    """A plan of one pool, or of two."""
    return SimpleNamespace(task=pools[0].task, joint=joint, pools=pools)


def test_what_widens_a_band_most_is_told_first():
    """By the squares of shares times widths beforehand, of one where none is known."""
    asked = task({**OWN, "model": ("another",)}, {**RANGES, "prompt": (2000.0, 9000.0)})
    one = pool(asked, tpot={"e_w": 0.5, "e_kv": 0.2, "e_pf": 0.1}, ttft={"t_tok": 0.3, "e_pf": 0.4})
    found = {dimension.name: variance for variance, dimension, _ in pool_extrapolation(one)}
    assert found == {
        "model": pytest.approx((0.5 * 0.5) ** 2 + 0.1**2),
        "batch": pytest.approx((0.2 * 2.0) ** 2),
        "prompt": pytest.approx(0.3**2 + 0.4**2),
    }
    prompts, batch, model = extrapolations(plan(one))
    assert (prompts.what, prompts.of, prompts.share) == ("prompt length", "first token", 0.7)
    assert (prompts.value, prompts.fitted) == (1000.0, (2000.0, 9000.0))
    assert prompts.words == "prompts of 1,000 tokens"
    assert (batch.what, batch.of, batch.share, batch.value) == ("batch", "step", 0.2, 99.0)
    assert batch.words == "99 sequences on a copy of attention"
    assert (model.what, model.share, model.value) == ("model", pytest.approx(0.6), "dense")
    assert (model.fitted, model.words) == (("another",), "this model")
    bound = replace(asked, estimate="bound")
    assert extrapolations(plan(pool(bound, tpot={"e_w": 0.5}))) == ()


def test_of_equal_variances_the_longer_share_is_told_first():
    """Whatever the order of the dimensions."""
    new = task({**OWN, "chip": ("h100",), "model": ("another",)})
    one = pool(new, 32.0, tpot={"e_w": 0.5, "t_step": 0.0, "e_kv": 0.0})
    assert [part.what for part in extrapolations(plan(one))] == ["model", "chip"]
    free = replace(new.profile.hull, widths={"t_step": 0.0})
    new = replace(new, profile=replace(new.profile, hull=free))
    one = pool(new, 32.0, tpot={"e_w": 0.5, "t_step": 0.25})
    assert [part.what for part in extrapolations(plan(one))] == ["chip", "model"]


def test_both_pools_of_a_plan_are_looked_at():
    """What is the same in both is told once, with the longer share; numbers say whose they are."""
    new = task({**OWN, "model": ("another",)}, {**RANGES, "prompt": (2000.0, 9000.0)})
    reading = pool(replace(new, mode="prefill"), ttft={"t_tok": 0.3, "e_w": 0.75})
    writing = pool(replace(new, mode="decode"), tpot={"e_kv": 0.2, "e_w": 0.5})
    found = {part.what: part for part in extrapolations(plan(reading, writing, joint=True))}
    assert found.keys() == {"model", "prompt length", "batch"}
    assert (found["model"].share, found["model"].of) == (0.75, "first token")
    assert found["model"].words == "this model"
    assert found["prompt length"].words == "prompts of 1,000 tokens to prefill"
    assert found["batch"].words == "99 sequences on a copy of attention to decode"
    found = {part.what: part for part in extrapolations(plan(writing, reading, joint=True))}
    assert (found["model"].share, found["model"].of) == (0.75, "first token")
    (alone,) = extrapolations(plan(pool(task(), tpot={"e_kv": 0.2})))
    assert alone.words == "99 sequences on a copy of attention"


def test_a_plan_is_as_far_from_the_rows_as_its_pools():
    """The kinds at which some number lies outside; the place counts before its numbers."""
    near, far = pool(task(), 32.0), pool(task(), 99.0)
    assert distances([near, far]) == {"new_batch": np.True_}
    assert distances([near, near]) == {}
    assert distances([pool(replace(task(), profile=LECTURE))]) == {}
    assert farther(IN_SAMPLE, {"new_batch": True}) == "new_batch"
    assert farther(IN_SAMPLE, {}) == IN_SAMPLE
    assert farther("new_chip", {"new_batch": True}) == "new_chip"
