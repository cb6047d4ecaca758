"""Fleets drawn and exported: what is drawn are the plan's own numbers."""

import xml.etree.ElementTree as ET

import pytest

import planner
from planner.problems.fleet.plan import FleetPlan
from planner.protocol.problem import problem_of
from planner.report.pictures.stacked_hours import MOST_LINES, StackedHours

PRICES = {"on_demand": "$4/hour", "reserved": {"price": "$2.5/hour", "term": "1 day"}}


def small_fleet(models: int, hours: int = 24) -> dict:
    """Models on two pools, one with spot machines; two machines are owned."""
    rows = {
        f"m{i}": {
            "demand": {"mean": 4.0 + 3 * i, "peak_to_mean": 1.8, "peak_hour": 5 * i},
            "columns": [
                {"pool": "a", "chips": 4, "rate": 2.0},
                {"pool": "b", "chips": 16, "rate": 7.0, "name": "two machines"},
            ],
        }
        for i in range(models)
    }
    spot = {"price": "$1.5/hour", "machines": 2, "lost": 0.05}
    pools = {"a": {"size": 8, **PRICES, "spot": spot}, "b": {"size": 8, **PRICES}}
    return {"problem": "fleet", "hours": hours, "models": rows, "pools": pools,
            "have": {"b": 2}, "spare": {"replicas": 1}, "start": {"time": 0.0}}  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> FleetPlan:
    """Two models over a day."""
    return planner.solve(small_fleet(2))


def test_the_layers_of_the_picture_are_the_machines_of_the_plan(plan):
    """Owned, reserved, on demand, spot in every hour, and the demand as it was asked."""
    picture, point = problem_of(plan.problem).picture(plan), plan.answer.plan
    drawn = picture.layers
    assert set(drawn["b"]["owned"]) == {2}
    assert set(drawn["a"]["reserved"]) == {point.reserved["a"]}
    assert any(drawn["a"]["spot"])
    paid = sum(sum(row) for kind in drawn.values() for row in kind.values())
    counts = [*point.on_demand.values(), *point.spot.values()]
    assert paid == 24 * (sum(point.reserved.values()) + 2) + sum(map(sum, counts))
    assert max(picture.demand["m0"]) == pytest.approx(4 * 1.8)
    first = picture.draw("svg")
    assert first == picture.draw("svg")
    assert ET.fromstring(first).tag.endswith("svg")


def test_a_picture_of_many_models_names_the_largest_and_sums_the_others():
    """No demand is left out."""
    demand = {f"m{i}": [float(i), 2.0 * i] for i in range(1, 21)}
    lines = StackedHours("", "", demand, "", {}).lines()
    assert next(iter(lines)) == "m20"
    assert len(lines) == MOST_LINES + 1
    assert sum(row[1] for row in lines.values()) == sum(row[1] for row in demand.values())
