"""Bills of a fleet's models: they add up to the fleet's, and bear the starts of their replicas."""

from __future__ import annotations

import re

import pytest

import planner
from tests.cases.printed import lines, numbers, shows

HOUR = 3600.0
# Starting an hour's replica costs a sixth of its hour; demand makes both models start some.
FLEET = {
    "problem": "fleet", "hours": 3, "layouts": "free",
    "models": {
        "chat": {"demand": {"hourly": [f"{x} requests/s" for x in (2, 9, 2)]},
                 "columns": [{"pool": "p", "chips": 4, "rate": "2 requests/s"}],
                 "tokens": 1000},
        "code": {"demand": {"hourly": [f"{x} requests/s" for x in (5, 1, 6)]},
                 "columns": [{"pool": "p", "chips": 8, "rate": "3 requests/s"}]},
    },
    "pools": {"p": {"size": 8, "on_demand": "$4/hour",
                    "reserved": {"price": "$2/hour", "term": "1 year", "most": 2}}},
    "start": {"time": "10 min", "cost": "paid"}, "spare": {"replicas": 0, "headroom": "10%"},
}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """The fleet, solved once."""
    models = {name: {k: v for k, v in keys.items() if k != "tokens"}
              for name, keys in FLEET["models"].items()}  # fmt: skip
    return planner.solve(FLEET | {"models": models})


def started(plan, model: str) -> float:
    """What the starts of a model's replicas cost [USD]: a sixth of an hour each."""
    usd = 0.0
    for column in FLEET["models"][model]["columns"]:
        there = plan.answer.plan.replicas[model][f"p x{column['chips']}"]
        begun = sum(max(0, there[t] - there[t - 1]) for t in range(3))
        usd += begun * column["chips"] * 4.0 / 6
    return usd


def test_bills_of_the_models_are_the_fleets(plan):
    """Both bills together, starts among them; shares add up to one."""
    point = plan.answer.plan
    assert all(started(plan, model) > 0 for model in point.per_model)
    bills = [bill.usd_per_hour for bill in point.per_model.values()]
    assert sum(bills) == pytest.approx(point.usd_per_hour, rel=1e-9)
    assert sum(bill.share_of_bill for bill in point.per_model.values()) == pytest.approx(1)


def test_each_model_bears_its_chips_and_its_starts(plan):
    """Machines by chips in use, and the starts of its own replicas, by hand."""
    point = plan.answer.plan
    rented = sum(point.on_demand["p"]) * 8 * 4.0 + point.reserved["p"] * 8 * 2.0 * 3
    chips = {
        model: sum(
            int(name.removeprefix("p x")) * sum(row) for name, row in point.replicas[model].items()
        )
        for model in point.per_model
    }
    for model, bill in point.per_model.items():
        usd = rented * chips[model] / sum(chips.values()) + started(plan, model)
        assert bill.usd_per_hour == pytest.approx(usd / 3, rel=1e-9)
        requests = HOUR * sum(float(x.split()[0])
                              for x in FLEET["models"][model]["demand"]["hourly"])  # fmt: skip
        assert bill.usd_per_1000_requests == pytest.approx(1000 * usd / requests, rel=1e-9)


def test_what_is_printed_is_the_plan(plan):
    """Bill, machines and models, number by number."""
    point, text = plan.answer.plan, str(plan)
    hourly = point.usd_per_hour
    shows(text, "Cost", (hourly, 24 * hourly, point.usd_per_month))
    assert point.usd_per_month == pytest.approx(hourly * 8760 / 12, rel=1e-3)
    shows(text, "Buy", (point.reserved["p"], *ends(point.on_demand["p"])))
    firm = [point.reserved["p"] + more for more in point.on_demand["p"]]
    shows(text, "p firm", (min(firm), max(firm), sum(firm) / 3))
    for model, bill in point.per_model.items():
        (row,) = point.replicas[model].values()
        size = FLEET["models"][model]["columns"][0]["chips"]
        line = next(x for x in text.splitlines() if x.startswith(f"{model} "))
        numbers = [float(x) for x in re.findall(r"(?<![\w.])[\d.]+", line.replace("%", ""))]
        assert numbers[0] == pytest.approx(bill.usd_per_hour, rel=5e-3)
        assert numbers[1] == pytest.approx(100 * bill.share_of_bill, abs=0.51)
        assert numbers[-1] == max(row)
        assert f"p x{size}: " in line


@pytest.mark.parametrize("rate", ["1 requests/s", "7 requests/s"])
def test_a_fleet_that_is_owned_costs_nothing(rate):
    """Machines that are there already: no bill, and no rule that costs a share of it."""
    chat = {"demand": {"hourly": [rate]}, "columns": [{"pool": "p", "chips": 1, "rate": rate}]}
    pools = {"p": {"size": 8, "on_demand": "$4/hour"}}
    plan = planner.solve({
        "problem": "fleet", "hours": 1, "models": {"chat": chat}, "pools": pools,
        "have": {"p": "2 machines"}, "spare": {"replicas": 1, "headroom": "10%"},
    })  # fmt: skip
    assert plan.answer.plan.usd_per_hour == 0
    shows(str(plan), "Cheaper", (0.0, 0.0))
    (cost, _), (share, _), *_ = numbers(lines(str(plan), "Limit")[0])
    assert (cost, share) == (0.0, 0.0)


def ends(row) -> tuple[int, int]:
    """The least and the most machines of any hour."""
    return min(row), max(row)
