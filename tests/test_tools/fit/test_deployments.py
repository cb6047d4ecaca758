"""Published deployments answered as questions: what is stated is fixed, the rest is free."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from planner.measurements.published_names import BadRow
from planner.text.errors import InputError
from tests.paths import shared
from tools.fit.deployments import (
    DeploymentScore,
    DeploymentScores,
    deployment_questions,
    deployment_score,
    deployment_scores,
)

TABLE = "serving_steady.csv"
# The open deployments of the contract, spec/13, section 3.
OPEN = [f"m0{n}" for n in (
    1812, 1813, 1814, 1815, 1816, 1817, 1818, 1819, 1820, 1822, 1829, 1830,
    1831, 1832, 1851, 1852, 1853, 1854, 1855, 1900, 1901, 1722, 1723, 1736,
    1737, 1747, 1741, 1767, 1770, 1776, 1797, 1806, 1804,
)]  # fmt: skip


@pytest.fixture(scope="module")
def questions():
    """The open deployments as questions, by id."""
    return {each.stated.id: each for each in deployment_questions(shared(TABLE), OPEN)}


def test_every_open_deployment_is_a_question(questions):
    """No row is refused, and each says what it leaves free."""
    assert list(questions) == OPEN
    for each in questions.values():
        assert {"problem", "model", "system", "chips", "workload"} <= set(each.scenario)
        assert ("layout" in each.stated.free) == ("tp" not in each.scenario["choose"])


def test_what_a_row_states_is_fixed(questions):
    """Layout, batch, cache and overlap of a wide decoding; nothing of a benchmark's entry."""
    choose = questions["m01820"].scenario["choose"]
    assert choose["dp_attention"] == choose["ep"] == 72
    assert choose["batch"] == 18432
    assert choose["overlap"] == "two-batch"
    assert questions["m01820"].stated.free == ()
    assert questions["m01822"].scenario["choose"]["overlap"] == "none"
    # It ran with part of its weights in the host's memory.
    assert questions["m01829"].scenario["system"] == {"like": "gb200-nvl72", "memory": "426 GB"}
    # The round's configurations for these chips keep caches in 8 bits.
    assert questions["m01747"].scenario["choose"] == {"weights": "fp8", "kv": "fp8"}
    assert questions["m01737"].scenario["choose"] == {"weights": "fp8"}
    assert questions["m01736"].scenario["promises"] == {"ttft": "0.45 s", "tpot": "0.04 s"}


def test_rates_are_of_all_chips(questions):
    """Per-chip rates times chips; a time per token stays one."""
    with shared(TABLE).open(encoding="utf-8") as stream:
        rows = {row["id"]: row for row in csv.DictReader(stream)}
    assert questions["m01815"].stated.measured == pytest.approx(
        128 * float(rows["m01815"]["value"])
    )
    assert questions["m01854"].stated.quantity == "token"
    assert questions["m01854"].stated.measured == pytest.approx(
        float(rows["m01854"]["value"]) / 1e3
    )


def test_a_row_that_no_question_can_be_made_of_is_named(tmp_path):
    """By its id, with what lacks; an id that is not there too."""
    path = Path(tmp_path) / "table.csv"
    path.write_text(
        "id,source,model,phase,chip,n_chips,layout,weight_dtype,kv_dtype,batch,context_or_isl,osl,"
        "metric,value,notes\n"
        "a1,own,llama-3.1-8b,mixed,h100,1,,fp8,,,,128,tok_s_total,5000,\n",
        encoding="utf-8",
    )
    with pytest.raises(BadRow, match="a1: context_or_isl is not given"):
        deployment_questions(path, ["a1"])
    with pytest.raises(BadRow, match="no row has the id b2"):
        deployment_questions(path, ["b2"])


def test_a_time_and_a_rate_score_alike():
    """Twice as fast as published is a ratio of two, as a rate and as a time per token."""
    rate = DeploymentScore("a", "", "", "output", 100.0, estimate=200.0, low=150.0, high=250.0)
    time = DeploymentScore("b", "", "", "token", 0.02, estimate=0.01, low=0.005, high=0.03)
    assert rate.ratio == time.ratio == 2.0
    assert not rate.inside
    assert time.inside
    lost = DeploymentScore("c", "", "", "output", 1.0, refused="infeasible")
    scores = DeploymentScores("t", (rate, time, lost))
    assert (scores.inside, scores.infeasible) == (1, 1)


def test_a_deployment_is_answered_as_solve_answers_it(questions):
    """The estimate is that of the plan, and the layout that ran is the one that is answered."""
    from planner.protocol.solve import solve

    question = questions["m01820"]
    score = deployment_score(question)
    plan = solve(question.scenario).document["plan"]
    assert score.estimate == pytest.approx(plan["tokens_per_s"])
    assert score.low < score.estimate < score.high
    assert plan["layout"]["ep"] == 72
    assert plan["batch"] == 18432


@pytest.mark.slow
def test_the_open_deployments():
    """Of all that ran at most one is called impossible, and half or more lie in their bands."""
    scores = deployment_scores(shared(TABLE), OPEN)
    assert scores.infeasible <= 1
    assert scores.inside >= 24
    assert scores.median_error <= 0.19


def test_without_ids_what_cannot_be_asked_is_listed_by_its_reason(tmp_path):
    """A row that gives no rate is no question: named it is refused, else it is left out aloud."""
    with shared(TABLE).open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["id"] in ("m00001", "m01854")]
    path = tmp_path / "some.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    scores = deployment_scores(path)
    assert [row.id for row in scores.rows] == ["m01854"]
    assert scores.left_out == {"no rate of tokens: ttft_ms": ["m00001"]}
    with pytest.raises(InputError, match="m00001: no rate of tokens"):
        deployment_scores(path, ["m00001"])
    path.write_text("id,model\nx,y\n")
    with pytest.raises(InputError, match="missing columns source, phase"):
        deployment_scores(path)
