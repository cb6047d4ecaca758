"""Listed tiers on our curve: each at the plan that serves it, in the layout that it needs."""

import pytest

import planner
from planner.text.errors import InputError

SCENARIO = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 8,
    "choose": {"mode": "aggregated"}, "workload": {"input_tokens": 2000, "output_tokens": 500},
    "tiers": [
        {"name": "priority", "price": "2x", "speed": "1.5x"},
        {"name": "express", "price": "6x", "speed": "1.55x"},
        {"name": "ultra", "price": "10x", "speed": "400x"},
        {"name": "batch", "price": "0.9x"},
        {"name": "free", "price": "0.001x"},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def curve():
    """The frontier with the listed tiers."""
    return planner.pareto(SCENARIO, points=8)


def test_a_tier_lies_at_the_cheapest_plan_as_fast(curve):
    """By exhaustion over the points: as fast with a speed, as cheap without one."""
    plans = curve.plans
    normal = plans[curve.marks["normal"]]
    tiers = {each["name"]: each for each in curve.document["tiers"]}
    for name in ("priority", "express"):
        tier = tiers[name]
        able = [p for p in plans if normal["tpot"] / p["tpot"] >= tier["speed"]]
        best = min(able, key=lambda p: p["usd_per_mtok"])
        assert plans[tier["place"]] == best
        assert tier["our_price"] == pytest.approx(best["usd_per_mtok"] / normal["usd_per_mtok"])
        assert ("pays" in tier["verdict"]) == (tier["price"] >= tier["our_price"])
    able = [p for p in plans if p["usd_per_mtok"] <= 0.9 * normal["usd_per_mtok"]]
    if able:
        assert plans[tiers["batch"]["place"]] == min(able, key=lambda p: p["tpot"])
    else:
        assert tiers["batch"]["place"] is None
    assert tiers["ultra"]["verdict"] == "faster than any plan"
    assert tiers["free"]["verdict"] == "cheaper than any plan"


def test_the_tiers_are_marked_and_the_layouts_named(curve):
    """The table marks the points of tiers; below it stand prices, ours, and the layout."""
    text = str(curve)
    assert "listed tiers, as multiples of normal" in text
    assert "priority: 2x the price at 1.5x the speed; ours" in text
    assert any("priority" in (row["mark"] or "") for row in curve.rows)


def test_a_curve_without_tiers_marks_none():
    """Nothing is said of tiers where none are listed."""
    scenario = {key: value for key, value in SCENARIO.items() if key != "tiers"}
    assert "listed tiers" not in str(planner.pareto(scenario, points=2))


def test_a_price_of_a_tier_is_read_against_our_normal_price(curve):
    """A tier in dollars is the multiple of the normal plan that it is."""
    normal = curve.plans[curve.marks["normal"]]["usd_per_mtok"]
    tier = {"name": "priority", "price": f"${2 * normal!r}/Mtok", "speed": "1.5x"}
    again = planner.pareto(SCENARIO | {"tiers": [tier]}, points=8)
    assert again.document["tiers"][0]["price"] == pytest.approx(2.0)


def test_a_tier_without_a_price_is_refused():
    """With the place of what is missing."""
    with pytest.raises(InputError, match="price"):
        planner.pareto(SCENARIO | {"tiers": [{"name": "fast", "speed": "2x"}]})
