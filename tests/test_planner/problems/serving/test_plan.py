"""A serving plan as attributes: the same words in every mode, and JSON that its type describes."""

from __future__ import annotations

import pickle

import pytest

import planner
from planner.problems.serving.plan import ServingAnswer
from planner.problems.serving.point import ServingPoint
from planner.protocol.document import json_schema, to_document
from tests.cases.documents import typed

BASE = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 4,
    "workload": {"input_tokens": 300, "output_tokens": 300},
}  # fmt: skip
MODES = ("aggregated", "disaggregated", "decode", "prefill")


@pytest.fixture(scope="module", params=MODES)
def plan(request) -> planner.Plan:
    """The plan of one mode."""
    return planner.solve({**BASE, "choose": {"mode": request.param}})


def test_a_plan_has_its_numbers_before_it_is_proved(plan):
    """Mode, pools, layouts, batch, times, price, bound and band, without a certificate."""
    assert "answer" not in vars(plan)
    point = plan.point
    assert plan.mode in repr(plan)
    assert f"${plan.cost:.4g}/Mtok" in repr(plan)
    assert sum(pool.chips for pool in plan.pools) == point.chips == 4
    names = [pool.layout for pool in plan.pools]
    if plan.mode == "disaggregated":
        assert [plan.layout[phase] for phase in ("prefill", "decode")] == list(map(vars, names))
    else:
        assert plan.layout == vars(names[0])
    assert (plan.batch, plan.ttft, plan.tpot) == (point.batch, point.ttft, point.tpot)
    assert plan.tokens_per_s == point.tokens_per_s
    assert plan.bound.usd_per_mtok <= plan.cost
    low, high = plan.band.usd_per_mtok
    assert low < plan.cost < high
    assert "answer" not in vars(plan)
    assert plan.certificate.gap >= 0
    assert plan.answer.plan == point


def test_the_document_is_the_typed_answer(plan):
    """Keys in the order of the fields, the schema first; read back it is the same answer."""
    document = plan.document
    assert next(iter(document.items())) == ("schema", "serving/2")
    whole = {key: value for key, value in document.items() if key != "schema"}
    assert typed(ServingAnswer, whole) == plan.answer
    assert list(to_document(plan.point)) == list(document["plan"])
    schema = json_schema(ServingAnswer, "serving/2")
    assert set(schema["$defs"]["ServingPoint"]["required"]) == set(document["plan"])
    assert schema["$defs"]["ServingPoint"]["properties"]["tpot"]["unit"] == "s"


def test_a_plan_travels_with_its_answer(plan):
    """What comes out of a pickle prints as what went in."""
    assert pickle.loads(pickle.dumps(plan)).document == plan.document


def test_another_key_is_no_plan():
    """A document that lacks a number, or has one more, is refused by name."""
    document = planner.solve({**BASE, "choose": {"mode": "decode"}}).document["plan"]
    with pytest.raises(TypeError, match="tpot"):
        typed(ServingPoint, {key: value for key, value in document.items() if key != "tpot"})


def test_no_end_of_a_range_lies_below_the_bound_that_nothing_beats():
    """Chips that are paid whatever they serve: no engine makes a token cheaper, nor serves more."""
    asked = {**BASE, "workload": {**BASE["workload"], "demand": "1 requests/s"}}
    plan = planner.solve(asked)
    low, high = plan.band.usd_per_mtok
    assert plan.bound.usd_per_mtok == pytest.approx(low) == pytest.approx(plan.cost)
    assert high > 1.2 * low
    slowest, fastest = plan.band.tokens_per_s
    assert fastest == pytest.approx(plan.tokens_per_s)
    assert slowest * high == pytest.approx(plan.tokens_per_s * plan.cost)
    for time in ("tpot", "ttft"):
        assert getattr(plan.band, time)[0] >= getattr(plan.bound, time)
