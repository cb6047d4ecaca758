"""`optimal` means that at most 1e-6 of the objective is unproved; all else is `feasible`."""

import json
import math
from dataclasses import replace

import pytest

import planner
from planner.pages.operations import run_operation
from planner.problems.fleet.plan import FleetAnswer, FleetCertificate
from planner.protocol.document import versioned_schema
from planner.protocol.page import plan_page
from planner.protocol.plan import Provenance, gap_status, max_gap, status_text
from planner.protocol.problem import search
from planner.protocol.solve import solve_with_question
from planner.sweep.chunk import result_row
from tests.cases.fleet_brute_force import least_bill, small_scenario

SERVING = {
    "problem": "serving", "model": "llama-3.3-70b", "system": "hgx-h200", "chips": 8,
    "workload": {"input_tokens": 2000, "output_tokens": 500}, "promises": {"tpot": "40 ms"},
}  # fmt: skip
# Three models whose machines are shared: the relaxation lies far below any whole plan.
THREE = {
    "problem": "fleet",
    "models": {
        name: {
            "demand": {"mean": f"{mean} requests/s", "peak_to_mean": 1.7, "peak_hour": hour},
            "columns": [{"pool": "a", "chips": 4, "rate": "2 requests/s"},
                        {"pool": "b", "chips": 2, "rate": "0.9 requests/s"}],
        }
        for name, mean, hour in (("x", 1.1, 9), ("y", 1.9, 15), ("z", 0.7, 21))
    },
    "pools": {
        "a": {"size": 8, "on_demand": "$4/hour", "reserved": "$2.6/hour"},
        "b": {"size": 8, "on_demand": "$3.7/hour", "reserved": "$2.5/hour"},
    },
    "start": {"time": "10 min"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("gap", "status", "words"),
    [
        (0.0, "optimal", "optimal"),
        (1e-6, "optimal", "optimal"),
        (1.01e-6, "feasible", "feasible, within less than 0.001% of the best"),
        (0.2, "feasible", "feasible, within 20% of the best"),
        (None, "feasible", "feasible, nothing proved"),
    ],
)
def test_a_status_follows_from_the_gap(gap: float | None, status: str, words: str) -> None:
    assert gap_status(gap) == status
    assert status_text(status, gap) == words
    assert gap_status(gap, feasible=False) == "infeasible"


def test_the_widest_gap_is_unknown_where_one_is() -> None:
    assert max_gap([0.1, 0.3]) == 0.3
    assert max_gap([0.1, None]) is max_gap([]) is None


def test_no_answer_is_told_its_status() -> None:
    known = {"scenario": {}, "certificate": FleetCertificate("", 0, 0, None, None, None),
             "provenance": Provenance()}  # fmt: skip
    with pytest.raises(TypeError, match="status"):
        FleetAnswer(status="optimal", **known)
    assert FleetAnswer(**known).status == "infeasible"


def test_a_fleet_of_three_models_says_how_far_it_is_from_proved() -> None:
    plan = planner.solve(THREE)
    proof = plan.certificate
    gap = 1 - proof.relaxation / proof.objective
    assert gap > 1e-3
    assert (plan.status, plan.feasible) == ("feasible", True)
    assert plan.gap == pytest.approx(gap, rel=1e-9)
    assert list(plan.document)[2:4] == ["status", "gap"]
    assert plan.document["gap"] == plan.gap
    assert str(plan).endswith(f"Lower bound {100 * gap:.2g}% below (loose)")
    assert f"fleet, feasible, within {100 * gap:.2g}% of the best" in plan_page(plan)
    reply = run_operation("solve", {"scenario": THREE})
    assert (reply.status, json.loads(reply.text)["status"]) == (0, "feasible")


def test_small_fleets_that_are_called_optimal_have_the_least_bill_of_all() -> None:
    proved = 0
    for seed in range(12):
        scenario = small_scenario(seed) | {"layouts": "free"}
        least = least_bill(scenario)
        if math.isfinite(least):
            plan = planner.solve(scenario)
            assert (plan.status, plan.gap <= 1e-6) == ("optimal", True)
            assert plan.cost * scenario["hours"] == pytest.approx(least, rel=1e-6)
            proved += 1
    assert proved >= 5


def test_a_preferred_simple_plan_is_feasible_by_what_it_loses() -> None:
    best = planner.solve(SERVING)
    assert best.status == best.document["status"] == "optimal"
    simple = best.answer.simplest
    assert simple is not None
    assert simple.behind > 1e-6
    taken = planner.solve(SERVING, ["prefer.simple=50%"])
    gap = 1 - best.cost / taken.cost
    assert taken.cost == pytest.approx(best.cost * (1 + simple.behind), rel=1e-9)
    assert taken.status == taken.document["status"] == "feasible"
    assert taken.gap == pytest.approx(min(gap, taken.certificate.gap), rel=1e-6)


def test_every_face_of_a_kind_without_a_bound_says_feasible() -> None:
    life = planner.solve("examples/lifecycle-7b-on-premises.yaml")
    assert (life.status, life.gap, life.document["gap"]) == ("feasible", None, None)
    assert str(life).endswith("(geometric program); best of 14 sizes tried")


@pytest.mark.parametrize("name", ["budget-70b-quality", "cache-deepseek-v3", "train-lora-70b-h100"])
def test_a_row_of_a_sweep_has_the_status_of_the_plan(name: str) -> None:
    question, plan = solve_with_question(f"examples/{name}.yaml")
    best = search(question)
    assert (best.status, plan.status) == ("optimal", "optimal")
    assert best.gap == pytest.approx(plan.gap, abs=1e-6)
    assert result_row(plan.kind, replace(best, gap=2e-6), 0.0)["status"] == "feasible"


def test_a_schema_lists_what_a_status_can_be() -> None:
    schema = versioned_schema(FleetAnswer, "fleet/1")
    assert schema["$defs"]["FleetAnswer"]["properties"]["status"] == {
        "enum": ["optimal", "feasible", "infeasible"]
    }
