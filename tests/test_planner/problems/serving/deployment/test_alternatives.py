"""Runners-up of another kind: how far behind, what lets them win, and what eases no answer."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.catalogue.systems import system
from planner.problems.serving.advice.switch_points import SwitchScan
from planner.problems.serving.deployment.alternatives import (
    alternative_kinds,
    contenders,
    explained_kinds,
    winner,
)
from planner.problems.serving.deployment.missed_promises import relaxed_promises
from planner.problems.serving.deployment.questions import all_searches
from planner.problems.serving.deployment.scored_points import ranked_points
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.presentation import answer, explanation_text
from planner.problems.serving.task.resolve import resolve
from planner.protocol.document import to_document
from planner.scenario import load
from tests.cases import serving as serving_cases
from tests.cases.serving import one_pool
from tests.sizes import examples, first

SMALL = {
    "problem": "serving", "units": "base",
    "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 4,
    "price": "$2.50/hour", "workload": {"input_tokens": 2000, "output_tokens": 300},
    "promises": {"ttft": 0.5, "tpot": 0.02},
}  # fmt: skip
DEEPSEEK = {
    **SMALL, "model": "deepseek-v3", "system": "hgx-h200", "chips": 32,
    "workload": {"input_tokens": 4000, "output_tokens": 1000},
    "promises": {"ttft": 2.0, "tpot": 0.05}, "choose": {"overlap": "none"},
}  # fmt: skip


def asked(base: dict[str, Any] = SMALL, **changes: Any) -> dict[str, Any]:
    """A question with some values changed; None takes one away, mappings are merged."""
    found = copy.deepcopy(base)
    for key, value in changes.items():
        merge = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = {**found[key], **value} if merge else value
    return {key: value for key, value in found.items() if value is not None}


def two(first: str, second: str, **changes: Any) -> dict[str, Any]:
    """The small question on either of two systems at catalogue prices."""
    return asked(system=[first, second], price=None, choose={"mode": "aggregated"}, **changes)


def least(scenario: dict[str, Any]) -> float:
    """The best objective of a question, infinite without a plan."""
    points = ranked_points(all_searches(resolve(load(scenario))))
    return points[0].score if points else math.inf


def explained(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    """The rivals of a question with what lets them win."""
    document: list[dict[str, Any]] = to_document(explained_kinds(load(scenario)))
    return document


def changed(scenario: dict[str, Any], change: dict[str, Any], factor: float) -> dict[str, Any]:
    """The question with the quantity of a change times a factor, as its author would write it."""
    found = copy.deepcopy(scenario)
    path = change["what"].split(".")
    given = change["value"] and change["value"] / change["factor"] * factor
    if path[0] != "system":
        found[path[0]][path[1]] = given
        return found
    own = found["system"][int(path[1])] if len(path) > 2 else found["system"]
    value = given
    if path[-1] == "flops":
        value = {unit: rate * factor for unit, rate in system(own).chip.flops.items()}
    varied = {"like": own, path[-1]: value}
    if len(path) > 2:
        found["system"][int(path[1])] = varied
    else:
        found["system"] = varied
    return found


def before(change: dict[str, Any]) -> float:
    """The factor at which the plan was last seen to lead."""
    return (
        change["factor"] ** 0.0
        if change["before"] is None
        else (change["before"] / change["value"] * change["factor"])
    )


MODES = {
    "small": asked(),
    "load": asked(workload={"demand": "10 requests/s"}),
    "deepseek": DEEPSEEK,
    "long answers": asked(workload={"output_tokens": 900}),
    "speed": asked(promises={"tpot": None, "tokens_per_s_per_user": 60}),
    "bound": asked(estimate="bound"),
}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", first(3, MODES.values()), ids=MODES)
def test_another_mode_wins_from_the_change_that_is_told(scenario):
    """On one side of it the plan's mode is better by itself, on the other the rival's."""
    for rival in explained(scenario):
        other = rival["kind"]
        if other not in ("aggregated", "disaggregated"):
            continue
        own = ({"aggregated", "disaggregated"} - {other}).pop()
        for change in rival["wins_if"]:
            for factor, wins in ((change["factor"], True), (before(change), False)):
                there = changed(scenario, change, factor)
                scores = [least(asked(there, choose={"mode": mode})) for mode in (own, other)]
                assert (scores[1] < scores[0] * (1 - 1e-9)) is wins


SYSTEMS = {
    "cost": two("hgx-h100", "hgx-h200", promises={"tpot": None}),
    "latency": two("hgx-h100", "hgx-h200", objective="latency"),
    "tight": two("hgx-h200", "hgx-h100", promises={"tpot": 0.008}),
}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", first(1, SYSTEMS.values()), ids=SYSTEMS)
def test_another_system_wins_from_the_change_that_is_told(scenario):
    """Each system solved by itself: the rival's is as good from there on, and not before."""
    first = [least({**scenario, "system": [name]}) for name in scenario["system"]]
    for rival in explained(scenario):
        if not rival["kind"].startswith("on "):
            continue
        own = first.index(min(first))
        assert rival["behind"] == pytest.approx(max(first) / min(first) - 1)
        assert rival["wins_if"]
        for change in rival["wins_if"]:
            for factor, wins in ((change["factor"], True), (before(change), False)):
                there = changed(scenario, change, factor)["system"]
                scores = [
                    least({**scenario, **part, "system": [there[k]]})
                    for k in (own, 1 - own)
                    for part in [_rest(scenario, change, factor)]
                ]
                assert (scores[1] < scores[0] * (1 - 1e-9)) is wins


def _rest(scenario: dict[str, Any], change: dict[str, Any], factor: float) -> dict[str, Any]:
    varied = changed(scenario, change, factor)
    return {key: varied[key] for key in ("workload", "promises")}


@pytest.mark.parametrize(
    ("name", "profile"), [("hgx-h100", "engines-2026"), ("mi300x-8", "steady-2024")]
)
def test_a_change_of_nothing_scores_as_the_plans_do(name, profile):
    """Of one pool and two, and of chips that borrow another maker's efficiencies, once."""
    loaded = load(asked(system=name, profile=profile))
    questions = all_searches(resolve(loaded))
    contest = SwitchScan(loaded, questions)
    best = winner(questions, ranked_points(questions)[0])
    rivals = [rival for rival, _ in contenders(questions, best, 1)]
    change = next(
        row for row in serving_parameters(loaded, contest.hardware) if row.path == "price"
    )
    for rival in rivals:
        lead = math.log(rival.point.score / best.point.score)
        assert contest.leads(best, rival, [(change, 1.0)]) == pytest.approx([lead])
    for (number, *_), score in contest.scores.items():
        scores = {each.point.score for each in (best, *rivals) if each.question == number}
        assert any(score == pytest.approx(each) for each in scores)


def test_deepseek_has_a_rival_of_the_other_mode_and_of_another_family():
    """How far behind is what solving that mode alone says."""
    scenario = asked(DEEPSEEK, choose={"pp": 1})
    loaded = load(scenario)
    questions = all_searches(resolve(loaded))
    found = to_document(alternative_kinds(loaded, questions, ranked_points(questions)[0]))
    modes = [least(asked(scenario, choose={"mode": m})) for m in ("aggregated", "disaggregated")]
    mode = next(each for each in found if each["kind"] in ("aggregated", "disaggregated"))
    assert mode["behind"] == pytest.approx(max(modes) / min(modes) - 1)
    assert len(found) > 1
    assert [each["behind"] for each in found] == sorted(each["behind"] for each in found)


@pytest.mark.slow
def test_another_family_wins_from_the_change_that_is_told():
    """DeepSeek on one pool: the plan's family against the rival's, each enforced by limits."""
    scenario = asked(DEEPSEEK, choose={"mode": "aggregated", "tp": 1, "cp": 1, "pp": [1, 2]})
    own = {"pp": 1, "tp_expert": 1, "overlap": "none"}
    limits = {
        "with pipeline stages": {**own, "pp": 2},
        "with experts cut into parts": {**own, "tp_expert": [2, 4, 8], "ep": [2, 4, 8, 16]},
    }
    found = [each for each in explained(scenario) if each["kind"] in limits]
    assert found
    for rival in found:
        for change in rival["wins_if"]:
            for factor, wins in ((change["factor"], True), (before(change), False)):
                there = changed(scenario, change, factor)
                scores = [
                    least({**there, "choose": {**scenario["choose"], **kind}})
                    for kind in (own, limits[rival["kind"]])
                ]
                assert (scores[1] < scores[0] * (1 - 1e-9)) is wins


def test_the_answer_says_which_system_and_by_how_much():
    """A list of systems is compared with each alone; one that keeps no promise says so."""
    scenario = two("hgx-a100", "hgx-h200", promises={"tpot": 0.006})
    plan = planner.solve(scenario)
    alone = [least({**scenario, "system": [name]}) for name in scenario["system"]]
    told = [each["behind"] for each in plan.document["systems"]]
    assert told == [None if math.isinf(a) else pytest.approx(a / min(alone) - 1) for a in alone]
    assert "hgx-h200 is best" in answer(plan)


@pytest.mark.slow
def test_what_would_have_to_change_is_worked_out_when_asked():
    """The document has the kinds at once; `why` has a sentence for each; a plan still pickles."""
    plan = pickle.loads(pickle.dumps(planner.solve(SMALL)))
    assert [each["wins_if"] for each in plan.document["rivals"]] == [None] * len(plan.rivals)
    assert plan.explained().document["rivals"] == to_document(plan.rivals)
    text = " ".join(explanation_text(plan).split())
    assert all(each.kind in text for each in plan.rivals)


IMPOSSIBLE = {
    "one pool": asked(promises={"ttft": 0.01, "tpot": 0.02}, choose={"mode": "aggregated"}),
    "tpot": asked(promises={"tpot": 0.001}, choose={"mode": "aggregated"}),
    "e2e": asked(promises={"e2e": 0.4}),
    "both modes": asked(promises={"ttft": 0.03, "tpot": 0.02}),
    "either": asked(promises={"ttft": 0.02, "tpot": 0.001}),
    "batch": asked(promises={"tpot": 0.002}, choose={"batch": 64}),
    "prompts": asked(promises={"ttft": 0.01, "tpot": None}, choose={"mode": "prefill"}),
    "load": asked(promises={"ttft_p95": 0.06}, workload={"demand": "20 requests/s"},
                  choose={"mode": "aggregated"}),
    "load of two pools": asked(promises={"ttft_p95": 0.06}, workload={"demand": "20 requests/s"},
                               choose={"mode": "disaggregated"}),
    "grown": asked(promises={"tpot": 0.0012}, chips=[4, 8], workload={"demand": "2 requests/s"},
                   choose={"mode": "aggregated"}),
    "two systems": two("hgx-h100", "hgx-h200", promises={"tpot": 0.002}),
}  # fmt: skip


@examples(4, 8)
@given(serving_cases.questions(), st.sampled_from([0.5, 0.97]))
def test_an_eased_promise_agrees_with_every_layout_and_batch(task, share):
    """One pool of small questions: just kept by some point of all of them, or by none."""
    fastest = serving_cases.searched(task)(np.ones(1))
    names = {"aggregated": ("tpot", "ttft"), "decode": ("tpot",), "prefill": ("ttft",)}[task.mode]
    made = {name: share * float(np.min(fastest[name])) for name in names}
    task = replace(task, promises=made)

    def kept(name: str, value: float) -> bool:
        held = replace(task, promises={**made, name: value})
        return bool(serving_cases.decided(held, 2).kept.any())

    for each in relaxed_promises([one_pool(task)]):
        name, value = each.promise, each.alone
        if value is None:
            assert not kept(name, 1e6)
        else:
            assert kept(name, value * (1 + 1e-9))
            assert not kept(name, value * (1 - 1e-6))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_promise_eased_to_what_is_told_is_just_kept(scenario):
    """With a rounding more the question has a plan, with a millionth less it has none."""
    scenario["promises"] = {k: v for k, v in scenario["promises"].items() if v is not None}
    plan = planner.solve(scenario)
    assert plan.status == "infeasible"
    for each in plan.document["eased"]:
        name, value = each["promise"], each["alone"]
        room = name == "cache_fits"  # a chance: what is eased is how often there is none

        def under(limit, name=name, room=room):
            promised = 1 - limit if room else limit
            return least({**scenario, "promises": {**scenario["promises"], name: promised}})

        if value is None:
            assert math.isinf(under(1.0 if room else 1e6))
            continue
        limit, promised = (1 - v if room else v for v in (value, each["promised"]))
        assert limit > promised
        assert math.isfinite(under(limit * (1 + 1e-9)))
        assert math.isinf(under(limit * (1 - 1e-6)))
    missed = {each.promise: each.alone for each in plan.infeasible}
    told = {each["promise"]: each["alone"] for each in plan.document["eased"]}
    assert all(missed[name] == told.get(name) for name in missed)


def test_the_text_says_what_would_do():
    """The nearest promise that would do is told with its unit."""
    scenario = IMPOSSIBLE["one pool"]
    assert "TTFT" in answer(planner.solve(scenario)).split("feasible if ")[1]


@pytest.mark.parametrize(
    ("model", "systems", "unranked"),
    [
        ("llama-2-70b", ["hgx-h200", "gaudi3-8"], [True, True]),  # whose efficiencies are lent
        ("llama-2-70b", ["hgx-h200", "mi300x-8"], [True, False]),  # either may be the cheaper
        ("llama-2-70b", ["hgx-h200", "hgx-h100"], [False, False]),  # of one maker
        ("gpt-oss-120b", ["gb200-nvl72", "mi300x-8"], [False, False]),  # bands apart
    ],
)
def test_no_rank_between_makers_is_told_where_bands_overlap(model, systems, unranked):
    """Nor of efficiencies that another maker's chips lend."""
    plan = planner.solve({
        "problem": "serving", "units": "base",
        "model": model, "system": systems, "chips": 8, "price": "$2/hour",
        "promises": {"tpot": "12 ms"} if "oss" in model else {}, "choose": {"mode": "aggregated"},
        "workload": {"input_tokens": 1000, "output_tokens": 300},
    })  # fmt: skip
    assert [each["unranked"] for each in plan.document["systems"]] == unranked
    assert ("they are not ranked" in " ".join(str(plan).split())) == any(unranked)
