"""A row of a sweep is what `planner.solve` answers at its point, though nothing is proved of it."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.scenario.grid import parse_grid
from planner.sweep.chunk import chunks, solved, validate_sweep
from tests.paths import EXAMPLES

LAYOUT = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "replicas")


def row(name: str, sets: tuple[str, ...] = (), certify: bool = False) -> dict[str, Any]:
    """The only row of a sweep of an example."""
    file = str(EXAMPLES / f"{name}.yaml")
    grid = parse_grid([f"problem={planner.check(file).problem}"])
    looked = validate_sweep(file, sets, grid, certify)
    (rows,) = map(solved, chunks(looked, [(0, 0)], 1))
    return rows[0]


def flat(plan: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Numbers and words of a plan by dotted name."""
    found: dict[str, Any] = {}
    for key, value in plan.items():
        if isinstance(value, dict):
            found |= flat(value, f"{above}{key}.")
        elif not isinstance(value, list):
            found[f"{above}{key}"] = value
    return found


@pytest.mark.parametrize(
    "sets", [("choose.mode=aggregated",), ("choose.mode=disaggregated",), ("estimate=bound",)]
)
def test_a_row_of_serving_is_the_plan_with_its_band_and_bound(sets):
    """Quantities, layout, words, the ends of the band, the pure roofline; the gap is left out."""
    document = planner.solve(str(EXAMPLES / "serve-llama-70b-fast.yaml"), sets).document
    plan, band, bound = document["plan"], document["band"] or {}, document["bound"]
    ours = row("serve-llama-70b-fast", sets)
    assert ours["status"] == "optimal"
    assert ours["gap"] is None
    for name, value in ours.items():
        quantity, _, end = name.rpartition("_")
        if end in ("low", "high"):
            ends = band.get(quantity)
            assert value == (pytest.approx(ends[end == "high"], rel=1e-9) if ends else None)
        elif end == "bound":
            assert value == bound[quantity]
        elif name in LAYOUT:
            assert value == (plan["layout"] or {}).get(name)
        elif name in plan and name != "layout":
            same = pytest.approx(plan[name], rel=1e-9) if isinstance(value, float) else plan[name]
            assert value == same


def test_a_gap_is_proved_where_it_is_asked_for():
    """With `certify` the column holds the gap of the certificate."""
    sets = ("choose.mode=aggregated",)
    document = planner.solve(str(EXAMPLES / "serve-llama-70b-fast.yaml"), sets).document
    assert row("serve-llama-70b-fast", sets, certify=True)["gap"] == pytest.approx(
        document["certificate"]["gap"], abs=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["budget-70b-quality", "lifecycle-7b-on-premises"])
def test_a_row_of_a_budget_has_every_number_of_its_plan(name):
    """By dotted name, to a part in a million: the certificate polishes what the search finds."""
    document = planner.solve(str(EXAMPLES / f"{name}.yaml")).document
    ours = row(name)
    for key, value in flat(dict(document["plan"])).items():
        same = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
        assert ours[key] == same, key


def test_a_row_without_a_plan_says_which_promise_is_missed():
    """The promises that fall short and the largest factor, every other column empty."""
    document = planner.solve(str(EXAMPLES / "infeasible.yaml")).document
    ours = row("infeasible")
    missed = document["infeasible"]
    assert ours["status"] == "infeasible"
    assert ours["reason"] == ", ".join(each["promise"] for each in missed)
    assert ours["short_by"] == max(each["short_by"] for each in missed)
    assert ours["usd_per_mtok"] is None
