"""Kinks, switches and break-even points, each checked by solving on both sides of it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

import planner
from planner.problems.serving.slopes.serving import all_parameters, serving_rows
from planner.protocol.elasticity import Elasticity, one_per_parameter
from planner.protocol.parameter import Parameter
from planner.protocol.problem import NO_PLAN, Search, get_problem, search
from planner.scenario import kinds, load
from planner.sensitivity import switch_point
from planner.sensitivity.switch_point import (
    RATIO_TOLERANCE,
    _Rivalry,
    break_even,
    next_switches,
    switch_points,
)
from tests.paths import EXAMPLES

SMALL = {
    "problem": "serving",
    "units": "base",
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
    given = next(each for each in all_parameters(scenario) if each.path == path)
    found = next_switches(best, [(given, up) for up in (False, True)])
    assert any(found)
    for switch in filter(None, found):
        assert (
            abs(math.log(switch["factor"] / switch["before"])) <= math.log(RATIO_TOLERANCE) * 1.001
        )
        then = search(given.to(switch["factor"]))
        assert not best.switched(search(given.to(switch["before"])))
        assert best.switched(then)
        assert then.choice == switch["to"]


def test_one_more_of_few_sequences_is_a_switch():
    """A batch of one is held: the promise has no slope, and the next switch is a batch of two."""
    few = {
        "problem": "serving", "units": "base",
        "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 8,
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
    given = next(each for each in all_parameters(scenario) if each.path == "promises.tpot")
    (switch,) = next_switches(best, [(given, True)])
    assert switch["counts"] == [best.small_counts, f"batch {batch + 1} a replica"]
    value = given.value * switch["factor"]
    then = planner.solve(few, sets=[f"promises.tpot={value!r}"]).chosen
    assert then["batch_per_replica"] == batch + 1


def test_a_share_of_cached_prompts_stays_below_one():
    """Twice eight tenths is no share: there is no such scenario, and no crash."""
    scenario = load({**SMALL, "workload": {**SMALL["workload"], "cached_input": 0.8}})
    given = next(each for each in all_parameters(scenario) if each.path == "workload.cached_input")
    assert given.to(1.2).workload.cached_input == pytest.approx(0.96)
    with pytest.raises(planner.InputError, match="less than 1"):
        given.to(2.0)


def test_a_switch_is_what_set_would_make_of_it():
    """The scenario that is varied is the one that `--set` gives."""
    scenario = load(SMALL)
    given = next(
        each for each in all_parameters(scenario) if each.path == "system.memory_bandwidth"
    )
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
    for given in all_parameters(scenario):
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


# -- a toy, whose switches are known in closed form ---------------------------------------------
TOY = {"problem": "toy", "units": "base"}


@pytest.fixture
def toy(monkeypatch):
    """The toy is a kind of its own; its parameters by path."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")
    return {row.path: row for row in get_problem("toy").parameters(load(TOY))}


def test_switches_of_a_toy_are_where_the_small_chip_is_too_slow(toy):
    """It reads 141 GB in 70.5 ms of the 80 promised: a shorter promise, or more to read."""
    best = search(load(TOY))
    down, none, up, fewer = next_switches(
        best, [(toy["promise"], False), (toy["promise"], True), (toy["weights"], True),
               (toy["weights"], False)]
    )  # fmt: skip
    assert none is None
    assert fewer is None
    for switch, place in ((down, 70.5 / 80), (up, 80 / 70.5)):
        ends = sorted([switch["before"], switch["factor"]])
        assert ends[0] <= place <= ends[1]
        assert ends[1] / ends[0] <= RATIO_TOLERANCE
        assert (switch["from"], switch["to"], switch["verified"]) == ("small", "big", True)
    assert down["factor"] < down["before"]
    # The big chip is never as cheap: however far the small one is eased it stays the choice.
    (nearer,) = next_switches(search(load({**TOY, "promise": 0.0706})), [(toy["promise"], True)])
    assert nearer is None


def element(path: str, slope: float, group: str = "chip", reach: float = 0.0) -> Elasticity:
    """A row of a table."""
    return Elasticity(path, 1.0, "", group, slope, slope, "slope", "by hand", reach=reach)


def test_switches_are_sought_of_what_matters_and_of_limits(monkeypatch):
    """Ten at most, by the most that they do to any output; promises and memory though they do
    nothing; the price never."""
    sought = []

    def found(best: Any, pairs: Any, *, shown: bool) -> list[Any]:
        sought.append(([(row.path, up) for row, up in pairs], shown))
        return [{"factor": 0.5} if not up and row.path != "b" else None for row, up in pairs]

    monkeypatch.setattr(switch_point, "next_switches", found)
    rows = [
        element("price", 1.0), element("a", 0.002), element("slight", 0.0019),
        element("b", -0.5), element("promises.tpot", 0.0, "promises"),
        element("system.memory", 0.0), element("system.memory_bandwidth", 0.0),
        element("gone", math.nan), element("still", 0.9), element("other", 0.0, reach=0.7),
    ]  # fmt: skip
    varied = [Parameter(row.path, 1.0, "", row.group, lambda f: f) for row in rows]
    fixed = {"still"}
    parameters = [
        Parameter(row.path, 1.0, "", row.group) if row.path in fixed else row for row in varied
    ]
    nearest = switch_points(NO_PLAN, parameters, rows, shown=True)
    ((pairs, shown),) = sought
    order = ["other", "b", "a", "promises.tpot", "system.memory"]
    assert pairs == [(path, up) for path in order for up in (False, True)]
    assert shown
    one = ({"factor": 0.5},)
    assert nearest == {"other": one, "b": (), "a": one, "promises.tpot": one, "system.memory": one}
    many = [element(f"r{k}", 1 - k / 100) for k in range(15)]
    switch_points(NO_PLAN, [Parameter(r.path, 1.0, "", "chip", lambda f: f) for r in many], many)
    assert len(sought[1][0]) == 20
    assert not sought[1][1]


# -- rivals by hand ------------------------------------------------------------------------
class Side:
    """A choice whose cost is a function of the value; its own where it is asked for none."""

    def __init__(self, name: str, cost: Any) -> None:
        self.name, self.cost, self.asked = name, cost, []

    def at(self, path: str, value: float | None) -> Search:
        self.asked.append(value)
        cost = self.cost(7.0 if value is None else value)
        return NO_PLAN if cost is None else Search({"cost": cost}, self.name, cost)


def rivalry(first: Any, rival: Any, path: str = "workload.x", *, rises: bool = False) -> Any:
    """Two choices whose costs are functions of one value."""
    target = SimpleNamespace(name="cost", rises=rises, unit="USD")
    return _Rivalry(Side("mine", first), Side("theirs", rival), path, target)  # type: ignore[arg-type]


def test_the_lead_of_a_choice_is_how_much_less_it_costs():
    """In logarithms, more where more is better; infinite where the other has no answer."""
    both = rivalry(lambda x: 2.0, lambda x: 2.0 * x)
    assert both.lead(math.e) == pytest.approx(1)
    assert both.better(both.lead(math.e)) == "mine"
    assert both.better(both.lead(0.5)) == "theirs"
    assert both.lead(1 + 1e-13) == 0
    assert both.better(0.0) == "either"
    assert rivalry(lambda x: 2.0, lambda x: 2 * x, rises=True).lead(math.e) == pytest.approx(-1)
    assert rivalry(lambda x: None, lambda x: x).lead(1.0) == -math.inf
    assert rivalry(lambda x: x, lambda x: None).lead(1.0) == math.inf
    nobody = rivalry(lambda x: None, lambda x: None)
    assert math.isnan(nobody.lead(1.0))
    assert nobody.better(math.nan) is None


def test_what_belongs_to_the_rival_is_varied_for_it_alone():
    """Its price, its machine; the first is then solved once, as it is."""
    for path in ("price", "system.memory", "model.weight_bytes", "choose.tp", "phases.rl.mfu"):
        alone = rivalry(lambda x: x, lambda x: x, path)
        assert alone.alone
        assert [alone.outputs(value) for value in (1.0, 2.0)] == [(7.0, 1.0), (7.0, 2.0)]
        assert alone.first.asked == [None]
    shared = rivalry(lambda x: x, lambda x: x)
    assert not shared.alone
    assert shared.outputs(3.0) == (3.0, 3.0)


@pytest.mark.parametrize("turn", [False, True])
def test_a_crossing_is_closed_in_on(turn):
    """Costs are level at four: within a thousandth, with the better one on either side."""
    level = 4.0
    pair = (lambda x: level, lambda x: x)
    found = rivalry(*(pair[::-1] if turn else pair)).crossing(1.0, 16.0, leads=turn)
    below, above = found["below"]["value"], found["above"]["value"]
    assert below <= level <= above <= below * 1.001
    assert below > level / 1.001
    assert found["value"] == pytest.approx(math.sqrt(below * above))
    own = {"first": below, "rival": level} if turn else {"first": level, "rival": below}
    assert found["below"] == {"value": below, **own}
    better = ("mine", "theirs") if turn else ("theirs", "mine")
    assert (found["better_below"], found["better_above"]) == better
    assert found["verified"] is True


def test_where_two_are_level_for_long_the_first_does_not_lead():
    """From four to eight they cost the same: the first is better from eight on."""
    found = rivalry(lambda x: 4.0, lambda x: min(x, 4.0) if x < 8 else 5.0)
    crossing = found.crossing(1.0, 16.0, leads=False)
    assert crossing["below"]["value"] <= 8.0 <= crossing["above"]["value"]


def test_a_break_even_of_toys_in_closed_form(toy):
    """The rival promises half the time: 85 sequences of its small chip, while reading is faster."""
    (found,) = break_even(TOY, "promise=80 ms,40 ms", "weights")
    (crossing,) = found["crossings"]
    level = 85 * 140e9 / 0.3e15 * 2e12
    assert crossing["below"]["value"] <= level <= crossing["above"]["value"]
    assert (crossing["better_below"], crossing["better_above"]) == ("40 ms", "80 ms")
    assert (found["first"], found["rival"], found["of"]) == ("80 ms", "40 ms", "price")
    assert (found["over"], found["unit"], found["varied"]) == ("weights", "byte", "both")
    # From a tenth to ten times what it is; beyond 384 GB nobody has an answer.
    assert found["looked_at"] == pytest.approx([14.1e9, 1.41e12])
    assert found["ends"] == ["either", None]
    (given,) = break_even(TOY, "promise=80 ms,40 ms", "weights=200 GB,10 GB,120 GB")
    assert given["looked_at"] == [10e9, 200e9]
    assert given["ends"] == ["either", "80 ms"]
    # From 160 GB on both need the big chip: the first leads by less than half below.
    (upper,) = break_even(TOY, "promise=80 ms,40 ms", "weights=120 GB,170 GB")
    (crossing,) = upper["crossings"]
    assert crossing["below"]["value"] <= 160e9 * (1 + 1e-12)
    assert crossing["above"]["value"] >= 160e9
    assert (crossing["better_below"], crossing["better_above"]) == ("80 ms", "40 ms")
    assert upper["ends"] == ["80 ms", "either"]
    with pytest.raises(planner.InputError, match="two or more numbers"):
        break_even(TOY, "promise=80 ms,40 ms", "weights=200 GB")
