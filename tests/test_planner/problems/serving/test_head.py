"""The head of a serving answer: its rows say what the typed answer holds, in words of engines."""

from __future__ import annotations

import re
from typing import Any

import pytest

import planner
from planner.problems.serving.head import MONTH, head, miss_text
from planner.protocol.section import MAX_LINES
from planner.text.wording import joined_ends, pools_text, three_digits
from tests.paths import EXAMPLES

LOADED: dict[str, Any] = {
    "problem": "serving", "model": "gpt-oss-120b", "system": "hgx-h100", "chips": 32,
    "workload": {"concurrency": 200, "input_tokens": 3000, "output_tokens": 800},
    "promises": {"ttft": "3 s", "tpot": "33.3 ms"},
}  # fmt: skip
LAYOUT = {"tp": 1, "pp": 1, "cp": 1, "dp_attention": 1, "ep": 1, "tp_expert": 1, "replicas": 1}
PRIVATE = ("two-batch", "held by", "dp attention", "expert tp", "this fleet", "long run", "keeping",
           "next best", "in the long", "described in", "nobody knows")  # fmt: skip


@pytest.fixture(scope="module")
def loaded() -> Any:
    """200 users on four nodes, where fewer do."""
    return planner.solve(LOADED)


def test_fewer_chips_for_a_load_come_first_with_their_bill(loaded: Any) -> None:
    """The row names what `sizes` holds; what it says to type leads to that bill."""
    answer = loaded.answer
    (label, lines), *others = head(answer).rows()
    assert label == "SMALLER"
    assert "Run" in dict(others)
    smaller = [size for size in answer.sizes if size.chips < answer.plan.chips]
    least = min(smaller, key=lambda size: size.usd_per_hour)
    assert least.usd_per_hour < 0.9 * answer.plan.usd_per_hour
    (line,) = [text for text in lines if text.startswith(f"{least.chips:,} chips")]
    assert f"${least.usd_per_hour:,.2f}/hour" in line
    typed = re.findall(r"--set (\S+)", dict(others)["Next"][0])
    found = planner.solve(LOADED, typed)
    assert found.answer.plan.usd_per_hour == pytest.approx(least.usd_per_hour)
    assert f"{least.chips:,} chips: --set {typed[0]}" in loaded.text("more")


def test_the_bill_of_a_month_and_the_promises_are_those_of_the_answer(loaded: Any) -> None:
    """730 hours; a mark for each promise, ✓ where nine in ten cases keep it."""
    answer, rows = loaded.answer, dict(head(loaded.answer).rows())
    bill = answer.plan.usd_per_hour
    (cost,) = rows["Cost"]
    assert f"${bill:,.2f}/hour · ${bill * MONTH:,.0f}/month" in cost
    assert f"${three_digits(answer.plan.usd_per_mtok)}/Mtok" in cost
    text = " ".join(rows["Promises"])
    assert text.count("≤") == len(answer.promises) == 2
    assert text.count("✓") == sum(each.chance >= 0.9 for each in answer.promises)


def test_a_queue_that_would_break_a_promise_makes_it_a_question() -> None:
    """Prefill nearly always busy: the first token is in time only if nobody queues."""
    answer = planner.solve(str(EXAMPLES / "serve-deepseek-v3-h200.yaml")).answer
    (first, second) = dict(head(answer).rows())["Promises"]
    assert answer.plan.ttft + answer.plan.unqueued.added_p95 > 2.0
    assert first.startswith("? TTFT")
    assert "if nobody queues" in first
    assert second.startswith("~ TPOT")


@pytest.mark.parametrize(
    "name", ["serve-deepseek-v3-h200", "carry-a-load", "size-gpt-oss-120b", "infeasible", "lecture"]
)
def test_an_answer_is_short_and_in_words_of_the_field(name: str) -> None:
    """At most 80 columns and 25 lines; the head alone at most 17; sources and more stand apart."""
    plan = planner.solve(str(EXAMPLES / f"{name}.yaml"))
    text, short, more = plan.text(), plan.text("short"), plan.text("more")
    assert max(map(len, more.splitlines())) <= 80
    assert len(text.splitlines()) <= MAX_LINES
    assert len(short.splitlines()) <= 17
    assert [words for words in PRIVATE if words in more] == []
    assert "http" not in text
    assert "token-planner" in plan.text("sources")


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ({"tp": 2, "dp_attention": 16, "ep": 32, "overlap": "two-batch"},
         "TP2 × DP16, EP32, dual-batch overlap"),
        ({"dp_attention": 8, "ep": 8, "replicas": 2}, "2 × (DP8, EP8)"),
        ({"tp": 8, "tp_expert": 8}, "TP8, experts TP8"),
        ({"pp": 2, "tp": 8, "dcp": 8, "dp_attention": 2}, "PP2 × TP8 (DCP8) × DP2"),
        ({"dp_attention": 8, "ep": 4, "tp_expert": 2}, "DP8, EP4 × TP2"),
        ({"pp": 3}, "PP3"), ({}, "TP1"),
    ],
)  # fmt: skip
def test_layouts_are_written_as_engines_name_them(ways: dict[str, Any], words: str) -> None:
    """Ways of one are left out; experts say whether they are spread, cut, or both."""
    assert pools_text({"layout": {**LAYOUT, **ways}}) == words


def test_ends_share_a_unit_and_numbers_keep_three_digits() -> None:
    """One unit where both ends have it; zeros stay."""
    assert joined_ends("27.5 ms", "69.1 ms") == "27.5–69.1 ms"
    assert joined_ends("782 ms", "2.97 s") == "782 ms–2.97 s"
    assert joined_ends("5.0e+26 FLOP", "5.4e+26 FLOP") == "5.0–5.4e+26 FLOP"
    assert joined_ends("9.9e+25 FLOP", "1.2e+26 FLOP") == "9.9e+25–1.2e+26 FLOP"
    assert joined_ends("$0.140/Mtok", "$0.377/Mtok") == "$0.140–0.377/Mtok"
    assert [three_digits(x) for x in (0.1, 50.0, 1234.5, 999.7)] == [
        "0.100",
        "50.0",
        "1,234",
        "1,000",
    ]


def test_a_miss_is_a_share_below_twice_and_a_factor_beyond() -> None:
    """In the user's words, with what falls short."""
    assert miss_text("tpot", 1.87) == "TPOT 87% too slow"
    assert miss_text("ttft", 3.5) == "TTFT 3.50 times too slow"
    assert miss_text("memory", 1.31) == "memory 31% too small"
    assert miss_text("demand", 1.952) == "51.2% of the load carried"
