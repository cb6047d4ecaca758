"""What more of anything does to the price, whatever the mode: one pool, two, with and without load.

Whole scenarios are searched, so that limits, promises, prices and arrivals all take part.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.problems.serving.deployment.questions import all_searches
from planner.problems.serving.deployment.scored_points import ranked_points
from planner.problems.serving.task.resolve import resolve
from planner.scenario import load
from planner.text.wording import gap_percent
from tests.sizes import examples

ROUNDING = 1 + 1e-9
H200 = {
    "memory": 141e9, "memory_bandwidth": 4.8e12, "scale_up": 450e9, "scale_out": 50e9,
    "bf16": 989e12,
}  # fmt: skip
PROMISES: list[dict[str, float]] = [
    {}, {"tpot": 0.02}, {"ttft": 1.0}, {"tpot": 0.01, "ttft": 0.6}, {"e2e": 6.0}
]  # fmt: skip


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """Questions of up to a node and a half, in every mode, with and without arrivals."""
    mode = draw(st.sampled_from(["aggregated", "disaggregated", "decode", "prefill", None]))
    promises = dict(draw(st.sampled_from(PROMISES)))
    # A phase alone keeps what it knows of.
    drop = {"decode": ("ttft", "e2e"), "prefill": ("tpot", "e2e")}.get(mode or "", ())
    lengths: dict[str, Any] = {
        "input_tokens": draw(st.sampled_from([300.0, 2000.0, 9000.0])),
        "output_tokens": draw(st.sampled_from([20.0, 300.0])),
    }
    demand = draw(st.sampled_from([None, None, "max", 0.5, 4.0]))
    if demand is not None and not (mode == "prefill" and demand == "max"):
        lengths["demand"] = demand if demand == "max" else f"{demand} requests/s"
    last = "energy" if demand == "max" else "latency"  # which next to nothing makes least
    found: dict[str, Any] = {
        "problem": "serving",
        "units": "base",
        "model": draw(st.sampled_from(["llama-3.2-1b", "llama-3.1-70b", "qwen3-30b-a3b"])),
        "system": {"like": "hgx-h200", **{k: v for k, v in figures(H200).items() if k != "bf16"}},
        "chips": draw(st.sampled_from([3, 8, 12, [2, 5]])),
        "price": 2.5 / 3600,
        "workload": lengths,
        "promises": {k: v for k, v in promises.items() if k not in drop},
        "objective": draw(st.sampled_from(["cost", "cost", "throughput", last])),
        "estimate": draw(st.sampled_from(["calibrated", "bound"])),
    }
    if mode is not None:
        found["choose"] = {"mode": mode}
    return found


def figures(values: dict[str, float]) -> dict[str, Any]:
    """Figures of a system in the words of a scenario."""
    units = {"memory": "B", "memory_bandwidth": "B/s", "scale_up": "B/s", "scale_out": "B/s"}
    found: dict[str, Any] = {k: f"{values[k]:.0f} {unit}" for k, unit in units.items()}
    return {**found, "bf16": {"bf16": f"{values['bf16']:.0f} FLOP/s"}}


def least(scenario: dict[str, Any]) -> float:
    """The best score of a scenario, infinite where nothing keeps the promises."""
    points = ranked_points(all_searches(resolve(load(scenario))))
    return points[0].score if points else math.inf


def better(scenario: dict[str, Any], name: str) -> dict[str, Any]:
    """The same scenario with a third more of a figure of the system."""
    found = copy.deepcopy(scenario)
    value = figures({**H200, name: 1.3 * H200[name]})[name]
    found["system"]["flops" if name == "bf16" else name] = value
    return found


def changed(scenario: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The same scenario with one value of its own changed, or taken out (None)."""
    found = copy.deepcopy(scenario)
    inner, keys = found, path.split(".")
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    if value is None:
        inner.pop(keys[-1], None)
    else:
        inner[keys[-1]] = value
    return found


@examples(4, 12)
@given(scenarios(), st.sampled_from(sorted(H200)))
def test_more_of_a_figure_never_costs_more(scenario: dict[str, Any], name: str) -> None:
    """Memory, its bandwidth, arithmetic, links inside and between domains.

    A collective on other links is fitted anew, three numbers to a measured curve, and may come out
    up to 2 % slower for it, which a whole plan feels as less than 1 %.
    """
    slack = 1.01 if name.startswith("scale") else ROUNDING
    assert least(better(scenario, name)) <= least(scenario) * slack


@examples(5, 40)
@given(scenarios(), st.sampled_from([{}, {"spare_replicas": 1}, {"headroom": 0.2}]))
def test_the_most_is_the_largest_demand_that_is_carried(
    scenario: dict[str, Any], more: Any
) -> None:
    """`demand: max` is a demand that has a plan, and a millionth above it has none."""
    chips = scenario["chips"]
    asked = {
        **scenario,
        "objective": "throughput",
        "chips": max(chips) if isinstance(chips, list) else chips,
    }
    asked["workload"] = {**scenario["workload"], **more, "demand": "max"}
    most = 1 / least(asked)
    for rate, carried in (
        (most * (1 - 1e-9) or 1e-6, most > 0),
        (most * (1 + 1e-6) or 1e-3, False),
    ):
        assert (
            least(changed(asked, "workload.demand", f"{rate} requests/s")) < math.inf
        ) is carried


@examples(4, 12)
@given(scenarios(), st.sampled_from(["looser", "one fewer", "wider"]))
def test_more_freedom_never_costs_more(scenario: dict[str, Any], how: str) -> None:
    """Promises eased or left out, and another number of chips that may be bought."""
    free = copy.deepcopy(scenario)
    if how == "looser":
        free["promises"] = {name: 1.5 * limit for name, limit in free["promises"].items()}
    elif how == "one fewer":
        free["promises"] = dict(list(free["promises"].items())[1:])
    else:
        chips = free["chips"]
        free["chips"] = sorted({*(chips if isinstance(chips, list) else [chips]), 4, 16})
    assert least(free) <= least(scenario) * ROUNDING


@examples(4, 12)
@given(scenarios(), st.sampled_from(["input_tokens", "output_tokens"]))
def test_longer_requests_never_cost_less(scenario: dict[str, Any], name: str) -> None:
    """Per request, whose prompt, answer and context all grow; of prompts alone only the prompt.

    In one pool a longer answer spreads the prompts of others over more of its tokens, so a promise
    on the time per token is easier to keep: it is left out there.
    """
    if name == "output_tokens":
        scenario = changed(scenario, "promises.tpot", None)
    longer = changed(scenario, f"workload.{name}", 1.5 * scenario["workload"][name])
    assert least(longer) >= least(scenario) / ROUNDING


@examples(3, 8)
@given(scenarios(), st.sampled_from(["demand", "spare_replicas", "headroom"]))
def test_more_to_bear_never_costs_less(scenario: dict[str, Any], what: str) -> None:
    """Half as much again to carry, one replica that may fail, a fifth of the slots kept free.

    What is paid is compared, per second: under a load a plan has more chips, not dearer requests.
    """
    rate = 1.0
    if scenario["objective"] == "latency":  # two pools compare latencies at their most
        scenario = changed(scenario, "choose.mode", "aggregated")
        scenario = changed(scenario, "promises", {})
    plain = changed(scenario, "workload.demand", f"{rate} requests/s")
    values = {"demand": f"{1.5 * rate} requests/s", "spare_replicas": 1, "headroom": 0.2}
    more = changed(plain, f"workload.{what}", values[what])
    grows = 1.5 if what == "demand" and scenario["objective"] != "latency" else 1.0
    assert least(more) * grows >= least(plain) / ROUNDING


@examples(3, 5)
@given(scenarios())
def test_a_price_scales_what_is_paid_and_nothing_else(scenario: dict[str, Any]) -> None:
    """Half the price, half the cost, the same plan."""
    cheap = changed(scenario, "price", scenario["price"] / 2)
    one, half = (ranked_points(all_searches(resolve(load(s)))) for s in (scenario, cheap))
    assert len(one) == len(half)
    if one:
        scale = 2.0 if scenario["objective"] == "cost" else 1.0
        assert half[0].score * scale == pytest.approx(one[0].score, rel=1e-12)
        plans = [points[0].candidate.plan() for points in (one, half)]
        assert plans[0].layout == plans[1].layout
        assert plans[0].prefill is None or plans[0].prefill.layout == plans[1].prefill.layout


MODES = ("aggregated", "disaggregated")
ARRIVING = (None, "max", 0.02)


def asked(mode: str, chips: Any, per_chip: Any = None, **others: Any) -> dict[str, Any]:
    """A question of one or two pools; `per_chip` are the requests per second to carry, a chip."""
    lengths: dict[str, Any] = {"input_tokens": 4000.0, "output_tokens": 1000.0}
    if per_chip is not None:
        lengths["demand"] = per_chip if per_chip == "max" else f"{per_chip * chips} requests/s"
    return {
        "problem": "serving", "units": "base",
        "model": "llama-3.1-70b", "system": "hgx-h200", "chips": chips,
        "price": "$2/hour", "workload": lengths, "promises": {"tpot": 0.05, "ttft": 2.0},
        "choose": {"mode": mode, **others.pop("choose", {})}, **others,
    }  # fmt: skip


def evaluations(scenario: dict[str, Any]) -> int:
    """Points computed to decide a scenario."""
    return sum(each.decided.evaluated for each in all_searches(resolve(load(scenario))))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("per_chip", ARRIVING)
def test_a_hundred_thousand_chips_cost_what_a_hundred_cost(mode: str, per_chip: Any) -> None:
    """Fleets are counts of replicas: a thousand times the chips, and bisections a few steps longer.

    Of two pools 12 % more points are looked at, of one none. Attention is not copied: copies make
    replicas of up to 512 chips, which 104 do not hold.
    """
    choose = {"tp": [1, 2, 4, 8], "pp": [1, 2, 4], "dp_attention": 1}
    few, many = (
        evaluations(asked(mode, chips, per_chip, choose=choose)) for chips in (104, 100_000)
    )
    assert many <= 1.2 * few


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_layouts_stop_growing_at_the_largest_replica(mode: str) -> None:
    """Left free, more chips mean more layouts up to replicas of 512 chips, and no further.

    Seven copies, the width of a feed-forward divided by 7, leave one chip of each node of 8 free:
    73 stages of them are 511 chips on 73 nodes.
    """
    few, many = (evaluations(asked(mode, chips)) for chips in (73 * 8, 100_000))
    assert many <= few


@pytest.mark.parametrize(
    ("mode", "per_chip"),
    [*((mode, load) for mode in MODES for load in (None, 0.02)),
     ("disaggregated", "max"), ("decode", None), ("prefill", None)],
)  # fmt: skip
def test_the_relaxation_lies_below_the_plan_and_says_by_how_much(mode: str, per_chip: Any) -> None:
    """In every mode, and printed with the plan."""
    scenario = asked(mode, 8, per_chip)
    drop = {"decode": "ttft", "prefill": "tpot"}.get(mode)
    plan = planner.solve(changed(scenario, f"promises.{drop}", None) if drop else scenario)
    proof = plan.document["certificate"]
    assert 0 < proof["relaxation"] <= proof["objective"]
    assert proof["gap"] == pytest.approx(1 - proof["relaxation"] / proof["objective"])
    told = f"lower bound {gap_percent(proof['gap'])} below"
    assert told in " ".join(plan.text("more").split())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("objective", ["cost", "latency"])
def test_two_systems_are_no_worse_than_either(mode: str, objective: str) -> None:
    """A list of systems is a choice, for each of two pools as well."""
    both = ["hgx-h200", "hgx-h100"]
    alone = [least(asked(mode, 8, system=one, objective=objective)) for one in both]
    assert least(asked(mode, 8, system=both, objective=objective)) <= min(alone) * ROUNDING
