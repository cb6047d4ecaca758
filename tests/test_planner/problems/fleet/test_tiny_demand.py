"""Hours of hardly any demand, and of very much: a plan keeps its promises, whatever the size."""

import pytest

import planner

POOLS = {"h": {"system": "hgx-h200", "on_demand": "$4/hour"}}
RENT = 4 * 8  # USD/hour of a machine


def solved(demand, rate="9 requests/s", chips=8, **more):
    """The plan of one model on whole machines."""
    model = {"demand": demand, "columns": [{"pool": "h", "chips": chips, "rate": rate}]}
    question = {"problem": "fleet", "models": {"a": model}, "pools": POOLS, "hours": 24, **more}
    return planner.solve(question).answer.plan


@pytest.mark.parametrize("tiny", [1e-7, 1e-12, 1e-5, 1e-30])
def test_a_tiny_hour_has_one_replica(tiny):
    """Any demand at all needs a replica, none needs none: 23 busy hours and a tiny one are 24."""
    hours = ["5 requests/s"] * 23
    alone = [f"{tiny} requests/s", *hours]
    assert solved(alone).usd_per_day == pytest.approx(24 * RENT)
    assert solved(["0 requests/s", *hours]).usd_per_day == pytest.approx(23 * RENT)


def test_tiny_demand_keeps_headroom_and_spare():
    """With a spare, two replicas even in the tiny hour."""
    hours = ["1e-7 requests/s", *["5 requests/s"] * 23]
    plan = solved(hours, spare={"replicas": 1, "headroom": "20%"})
    assert plan.usd_per_day == pytest.approx(2 * 24 * RENT)


@pytest.mark.parametrize("demand", [1e3, 1e6, 1e9, 1e12])
def test_machines_grow_with_demand_and_time_does_not(demand):
    """As many machines as the demand over a replica's rate, whatever their number."""
    plan = solved(f"{demand:g} requests/s", rate="8 requests/s")
    assert plan.usd_per_day == pytest.approx(24 * RENT * demand / 8, rel=1e-6)
