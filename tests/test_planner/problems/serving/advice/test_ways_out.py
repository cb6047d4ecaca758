"""What an infeasible question is told: never an empty reason, and ways out that are plans."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import planner
from planner.problems.serving import PROBLEM
from planner.scenario import load
from planner.text.errors import InputError
from planner.text.quantities import parse
from tests.loops import for_all
from tests.sizes import first, seldom

MODELS = (
    "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "deepseek-v3", "gpt-oss-120b",
    "mixtral-8x7b", "gemma-2-27b", "nemotron-h-56b",
)  # fmt: skip
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-a100", "mi300x-8", "tpu-v6e", "gb200-nvl72")
MODES = ("aggregated", "disaggregated", "prefill", "decode")


def _scenario(r: random.Random) -> dict[str, Any]:
    """Hard to serve: large models on few chips, short times, many requests."""
    requests: dict[str, Any] = {
        "input_tokens": r.choice([1, 500, 4000, 30_000]),
        "output_tokens": r.choice([2, 50, 500, 4000]),
    }
    promises = {
        name: r.choice(values)
        for name, values in (
            ("ttft", ("1 ms", "50 ms", "500 ms")),
            ("tpot", ("0.5 ms", "3 ms", "10 ms")),
            ("e2e", ("10 ms", "1 s", "20 s")),
        )
        if r.random() < 0.5
    }
    choose: dict[str, Any] = {}
    if r.random() < 0.4:
        requests["demand"] = r.choice(["0.01 requests/s", "2 requests/s", "5000 requests/s"])
        requests["spare_replicas"] = r.choice([0, 0, 1])
        if r.random() < 0.5:
            promises["ttft_p95"] = r.choice(["5 ms", "300 ms"])
    elif r.random() < 0.2:
        choose["batch"] = r.choice([1, 7, 4000])
    if r.random() < 0.7:
        choose["mode"] = r.choice(MODES)
    if r.random() < 0.25:
        choose["tp"] = r.choice([1, 2, 8])
    if r.random() < 0.1:
        choose["replicas"] = r.choice([1, 2])
    return {
        "problem": "serving", "model": r.choice(MODELS), "system": r.choice(SYSTEMS),
        "chips": r.choice([1, 2, 4, 8, 11, [2, 4, 8]]), "price": "$3/hour", "workload": requests,
        "promises": promises, "choose": choose,
    }  # fmt: skip


def _infeasible(seed: int, count: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """So many questions that nothing answers."""
    r = random.Random(seed)
    while count:
        scenario = _scenario(r)
        try:
            plan = planner.solve(scenario)
        except InputError:
            continue
        if plan.status == "infeasible":
            count -= 1
            yield scenario, plan


def _with(scenario: dict[str, Any], sets: dict[str, Any]) -> dict[str, Any]:
    """The scenario with what a way out sets, as its words stand."""
    changed = {k: dict(v) if isinstance(v, dict) else v for k, v in scenario.items()}
    for path, value in sets.items():
        record, _, name = path.rpartition(".")
        (changed[record] if record else changed)[name] = value
    return changed


def _holds(scenario: dict[str, Any], plan: Any) -> None:
    assert plan.infeasible, scenario
    for missed in plan.infeasible:
        assert missed.expression, scenario
        assert missed.short_by is None or missed.short_by > 1, (missed, scenario)
    assert "NO PLAN" in str(plan)
    assert all(len(line) <= 80 for line in str(plan).splitlines())


@for_all("seed", range(30))
def test_no_reason_is_empty(seed: int) -> None:
    """Of the next infeasible question of a seed, as sweeps ask it: without the ways out."""
    r, searched = random.Random(seed), None
    while searched is None or searched.feasible:
        try:
            searched = PROBLEM.search(load(_scenario(r)))
        except InputError:
            continue
    for missed in searched.shortfalls:
        assert missed.expression
        assert missed.short_by is None or missed.short_by > 1
    assert searched.shortfalls


@pytest.mark.parametrize("count", [*first(0, [5]), *seldom([12, 60])])
def test_every_way_out_is_a_plan_of_the_price_that_is_told(count: int) -> None:
    ways = 0
    for scenario, plan in _infeasible(2026, count):
        _holds(scenario, plan)
        for way in plan.answer.ways_out:
            ways += 1
            other = planner.solve(_with(scenario, way.sets))
            assert other.feasible, (scenario, way)
            assert other.cost == pytest.approx(way.usd_per_mtok, rel=1e-9)
    assert ways > count / 2


BIG = {
    "problem": "serving", "model": "llama-3.1-405b", "system": "hgx-h100", "chips": 8,
    "price": "$3/hour", "workload": {"input_tokens": 2000, "output_tokens": 500},
}  # fmt: skip


def test_what_lacks_memory_is_told_the_chips_the_machine_and_the_format_that_do() -> None:
    plan = planner.solve(BIG | {"choose": {"mode": "aggregated"}})
    assert [missed.promise for missed in plan.infeasible] == ["memory"]
    ways = {next(iter(way.sets)): way for way in plan.answer.ways_out}
    assert ways.keys() == {"chips", "system", "choose.weights"}
    count = ways["chips"].sets["chips"]
    # 405e9 parameters of two bytes fill 810 GB, more than eleven times 72 GB: two machines.
    assert count == 16
    for chips, fits in ((count, True), (count - 8, False)):
        asked = BIG | {"choose": {"mode": "aggregated"}, "chips": chips}
        assert planner.solve(asked).feasible == fits
    assert f"--set chips={count}" in str(plan)


def test_a_promise_that_would_do_alone_has_its_price() -> None:
    asked = BIG | {"model": "llama-3.1-8b", "chips": 2, "promises": {"tpot": "1 ms"}}
    plan = planner.solve(asked)
    (way,) = [way for way in plan.answer.ways_out if "promises.tpot" in way.sets]
    limit = parse(str(way.sets["promises.tpot"]), "time")
    (eased,) = plan.answer.eased
    assert eased.alone <= limit <= eased.alone * 1.01
    other = planner.solve(_with(asked, way.sets))
    assert other.cost == pytest.approx(way.usd_per_mtok, rel=1e-9)
    tighter = planner.solve(_with(asked, {"promises.tpot": f"{limit * 0.99:.9f} s"}))
    assert tighter.status == "infeasible"


@pytest.mark.parametrize("mode", ["aggregated", "disaggregated"])
@pytest.mark.parametrize("promises", [{}, {"ttft": "700 ms", "tpot": "30 ms"}], ids=["", "late"])
def test_a_model_ten_times_too_large_is_told_its_chips(mode: str, promises: dict) -> None:
    """However far memory falls short, and with what the promises then have to be."""
    question = BIG | {"chips": 2, "choose": {"mode": mode}, "promises": promises}
    ways = planner.solve(question).answer.ways_out
    assert ways
    for way in ways:
        assert "chips" in way.sets
        assert planner.solve(_with(question, way.sets)).feasible


def test_a_load_is_told_the_fewest_chips_that_carry_it() -> None:
    load = {"input_tokens": 500, "output_tokens": 100, "demand": "150 requests/s"}
    asked = BIG | {"model": "llama-3.1-8b", "chips": 2, "workload": load}
    asked |= {"choose": {"mode": "aggregated"}}
    plan = planner.solve(asked)
    ways = {next(iter(way.sets)): way for way in plan.answer.ways_out}
    count = ways["chips"].sets["chips"]
    assert planner.solve(asked | {"chips": count}).feasible
    assert planner.solve(asked | {"chips": count - 1}).status == "infeasible"
    less = planner.solve(_with(asked, ways["workload.demand"].sets))
    assert less.feasible


@pytest.mark.parametrize(
    ("choose", "more", "missed"),
    [
        ({"mode": "disaggregated", "tp": 8}, {}, "chips"),  # two replicas of eight on eleven chips
        ({"mode": "aggregated", "replicas": 1}, {"demand": "1 requests/s", "spare_replicas": 1},
         "replicas"),
    ],
)  # fmt: skip
def test_what_no_promise_says_is_said(choose: Any, more: Any, missed: str) -> None:
    asked = BIG | {"model": "gemma-2-27b", "chips": 11, "choose": choose, "rent": {"unit": 1}}
    asked["workload"] = BIG["workload"] | more  # type: ignore[operator]
    plan = planner.solve(asked)
    assert [each.promise for each in plan.infeasible] == [missed]


@pytest.mark.slow
def test_a_tail_that_no_pool_that_reads_can_keep_is_named() -> None:
    load = {"input_tokens": 4000, "output_tokens": 200, "demand": "1 requests/s"}
    asked = BIG | {"model": "llama-3.1-70b", "workload": load, "promises": {"ttft_p95": "150 ms"}}
    plan = planner.solve(asked | {"choose": {"mode": "disaggregated"}})
    assert "ttft_p95" in [each.promise for each in plan.infeasible]


def test_promises_that_clash_between_two_pools_are_eased_together() -> None:
    """Each pool keeps its promise on eight chips at best; on eight together neither does."""
    asked = BIG | {
        "model": "llama-3.1-70b", "promises": {"tpot": "3 ms", "ttft": "30 ms"},
        "choose": {"mode": "disaggregated"},
    }  # fmt: skip
    (way,) = planner.solve(asked).answer.ways_out
    assert way.sets.keys() == {"promises.ttft", "promises.tpot"}
    factors = [
        parse(str(way.sets[path]), "time") / made
        for path, made in (("promises.ttft", 0.03), ("promises.tpot", 0.003))
    ]
    assert factors[0] == pytest.approx(factors[1], rel=0.01)
    assert planner.solve(_with(asked, way.sets)).cost == pytest.approx(way.usd_per_mtok)


def test_no_number_of_chips_is_tried_that_no_system_has():
    """A prompt of 5e32 tokens fits no machine, and the answer says so instead of counting on."""
    plan = planner.solve(
        {
            "problem": "serving",
            "model": "llama-3.1-8b",
            "system": "hgx-h100",
            "chips": 2,
            "workload": {"input_tokens": 5e32, "output_tokens": 100},
            "promises": {"tpot": "50 us"},
        }
    )
    assert plan.status == "infeasible"
    assert all("chips" not in way.path for way in plan.answer.ways_out)
