"""Kinks, switches and break-even points, each checked by solving on both sides of it."""

from __future__ import annotations

import math

import pytest

import planner
from planner.problems.serving.slopes.serving import parameters_of, serving_rows
from planner.protocol.elasticity import one_per_parameter
from planner.protocol.problem import search
from planner.scenario import load
from planner.sensitivity.switch_point import CLOSE, break_even, next_switches
from tests.paths import EXAMPLES

SMALL = {
    "problem": "serving",
    "model": "llama-3.1-70b",
    "system": "hgx-h100",
    "chips": 8,
    "price": "$2.50/hour",
    "workload": {"input_tokens": 2000, "output_tokens": 500},
    "promises": {"ttft": "500 ms", "tpot": "25 ms"},
    "choose": {"mode": "aggregated", "weights": ["bf16", "fp8"]},
}
LECTURE = EXAMPLES / "lecture.yaml"


@pytest.mark.parametrize("path", ["promises.tpot", "system.memory_bandwidth"])
def test_a_switch_is_one(path):
    """Just before it the plan's own choice is best, just after it another."""
    scenario = load(SMALL)
    best = search(scenario)
    given = next(each for each in parameters_of(scenario) if each.path == path)
    found = next_switches(best, [(given, up) for up in (False, True)])
    assert any(found)
    for switch in filter(None, found):
        assert abs(math.log(switch["factor"] / switch["before"])) <= math.log(CLOSE) * 1.001
        then = search(given.to(switch["factor"]))
        assert not best.switched(search(given.to(switch["before"])))
        assert best.switched(then)
        assert then.choice == switch["to"]


def test_one_more_of_few_sequences_is_a_switch():
    """A batch of one is held: the promise has no slope, and the next switch is a batch of two."""
    few = {
        "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 8,
        "price": "$2.50/hour", "workload": {"input_tokens": 20_000, "output_tokens": 500},
        "promises": {"tpot": "14 ms"}, "choose": {"mode": "aggregated", "tp": 8},
    }  # fmt: skip
    scenario = load(few)
    best = search(scenario)
    batch = best.counts[0][1]
    assert batch < 20
    assert best.small_counts == f"batch {batch} a replica"
    rows = {row.path: row for row in one_per_parameter(serving_rows(scenario, "usd_per_mtok"))}
    assert (rows["promises.tpot"].left, rows["promises.tpot"].right) == (0, 0)
    given = next(each for each in parameters_of(scenario) if each.path == "promises.tpot")
    (switch,) = next_switches(best, [(given, True)])
    assert switch["counts"] == [best.small_counts, f"batch {batch + 1} a replica"]
    value = given.value * switch["factor"]
    then = planner.solve(few, sets=[f"promises.tpot={value!r}"]).chosen
    assert then["batch_per_replica"] == batch + 1


def test_a_share_of_cached_prompts_stays_below_one():
    """Twice eight tenths is no share: there is no such scenario, and no crash."""
    scenario = load({**SMALL, "workload": {**SMALL["workload"], "cached_input": 0.8}})
    given = next(each for each in parameters_of(scenario) if each.path == "workload.cached_input")
    assert given.to(1.2).workload.cached_input == pytest.approx(0.96)
    with pytest.raises(planner.InputError, match="less than 1"):
        given.to(2.0)


def test_a_switch_is_what_set_would_make_of_it():
    """The scenario that is varied is the one that `--set` gives."""
    scenario = load(SMALL)
    given = next(each for each in parameters_of(scenario) if each.path == "system.memory_bandwidth")
    for factor in (0.7, 1.3):
        value = given.value * factor
        said = planner.solve(SMALL, sets=[f"system.memory_bandwidth={value!r}"])
        assert search(given.to(factor)).outputs["usd_per_mtok"] == pytest.approx(
            said.cost, rel=1e-12
        )


def test_both_sides_of_a_kink_are_told():
    """At the critical batch of the lecture, given as the batch, both roofs are as high: more
    bandwidth changes nothing, less makes reading the bottleneck; of arithmetic likewise."""
    scenario = load(LECTURE, ["choose.batch=2400", "choose.tp=72"])
    rows = {row.path: row for row in one_per_parameter(serving_rows(scenario, "tpot"))}
    bandwidth, flops = rows["system.memory_bandwidth"], rows["system.flops"]
    assert (bandwidth.left, bandwidth.right) == pytest.approx((-1, 0), abs=1e-9)
    assert (flops.left, flops.right) == pytest.approx((-1, 0), abs=1e-9)
    for given in parameters_of(scenario):
        if given.path not in ("system.memory_bandwidth", "system.flops"):
            continue
        for step, side in ((-1e-3, "left"), (1e-3, "right")):
            ends = [search(given.to(math.exp(x))).outputs["tpot"] for x in (0.0, step)]
            slope = math.log(ends[1] / ends[0]) / step
            assert getattr(rows[given.path], side) == pytest.approx(slope, abs=1e-6)


def test_a_break_even_price_is_solved_on_both_sides():
    """Below it the rival is cheaper, above it the first; both by `planner.solve`."""
    (found,) = break_even(SMALL, "system=hgx-h100,hgx-h200", "price")
    (point,) = found["crossings"]
    assert found["varied"] == "rival"
    assert (point["better_below"], point["better_above"]) == ("hgx-h200", "hgx-h100")
    first = planner.solve(SMALL).cost
    for side, sign in (("below", 1), ("above", -1)):
        value = point[side]["value"]
        rival = planner.solve(SMALL, sets=["system=hgx-h200", f"price={value!r}"]).cost
        assert point[side]["first"] == pytest.approx(first)
        assert point[side]["rival"] == pytest.approx(rival)
        assert sign * (first - rival) >= 0
    assert point["above"]["value"] / point["below"]["value"] < 1.0011


def test_a_break_even_of_what_both_share_varies_both():
    """More room for latency, and the format matters less or more; the lead changes sign there."""
    (found,) = break_even(SMALL, "choose.tp=8,4", "promises.tpot=log(15 ms..100 ms,5)")
    assert found["varied"] == "both"
    for point in found["crossings"]:
        leads = []
        for side in (point["below"], point["above"]):
            first, rival = side["first"], side["rival"]
            leads.append(first is not None and (rival is None or first < rival))
        assert leads[0] != leads[1]


@pytest.mark.parametrize(
    ("between", "over", "told"),
    [
        ("system=hgx-h100", "price", "two choices"),
        ("system=hgx-h100,hgx-h201", "price", "did you mean"),
        ("system=hgx-h100,hgx-h200", "system", "differ in"),
        ("system=hgx-h100,hgx-h200", "pricce", "pricce"),
    ],
)
def test_mistakes_in_a_break_even_are_told(between, over, told):
    """One message that names what is wrong."""
    with pytest.raises(planner.InputError, match=told):
        break_even(SMALL, between, over)
