"""Requests and promises of small scenarios in the numbers of a task, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from planner.problems.serving.task.requests import (
    arrivals,
    batches,
    checked_promises,
    context,
    context_parts,
    draft_method,
    layout_limits,
    modes,
    outputs,
)
from planner.text.errors import FieldError
from tests.cases.scenarios import small
from tests.loops import for_all

DEMAND = {"workload": {"demand": "2 requests/s"}}
BOTH = ("aggregated", "disaggregated")


@for_all(
    ("changes", "expected"),
    [
        ({}, BOTH),
        ({"chips": 2}, BOTH),
        ({"chips": 1}, BOTH[:1]),
        ({"chips": [1, 2, 3]}, BOTH),
        ({"chips": [1, 1]}, BOTH[:1]),
        ({"assumptions": "lecture"}, BOTH[:1]),
        ({"choose": {"batch": 3}}, BOTH[:1]),
        ({"workload": {"concurrency": 3}}, BOTH[:1]),
        ({"objective": "latency"}, BOTH),
        (DEMAND, BOTH),
        ({"objective": "latency", **DEMAND}, BOTH[:1]),
        ({"objective": "latency", "choose": {"mode": "disaggregated"}, **DEMAND}, BOTH[1:]),
        ({"chips": 1, "choose": {"mode": ["decode", "prefill"]}}, ("decode", "prefill")),
    ],
)
def test_two_pools_are_tried_where_they_are_possible(
    changes: dict[str, Any], expected: tuple[str, ...]
) -> None:
    """Not on one chip, under a fixed number of sequences, by the lecture, or for a fast load."""
    assert modes(small(**changes)) == expected


def test_layouts_are_limited_by_what_is_chosen_of_the_whole_or_of_a_pool() -> None:
    """What a pool does not say is taken from the whole; what nobody says is free."""
    assert layout_limits(small(), None) == {}
    scenario = small(choose={
        "mode": "disaggregated", "tp": [1, 2], "pp": 2, "overlap": "two-batch",
        "decode": {"tp": 1, "replicas": 2, "overlap": "none"},
    })  # fmt: skip
    whole = {"tp": (1, 2), "pp": (2,), "halves": (2,)}
    assert layout_limits(scenario, None) == layout_limits(scenario, "prefill") == whole
    decode = {"tp": (1,), "pp": (2,), "replicas": (2,), "halves": (1,)}
    assert layout_limits(scenario, "decode") == decode


def test_an_engine_that_overlaps_no_halves_has_none_unless_they_are_asked_for() -> None:
    """One whole pass where nobody chooses."""
    assert layout_limits(small(), None, halved=False) == {"halves": (1,)}
    wanted = small(choose={"overlap": ["none", "two-batch"]})
    assert layout_limits(wanted, None, halved=False) == {"halves": (1, 2)}


@pytest.mark.parametrize(
    ("tokens", "pool", "expected"),
    [
        (500, None, {}),
        (2 * 16_384 - 1, None, {}),
        (2 * 16_384, None, {"cp": (1, 2)}),
        (100_000, "prefill", {"cp": (1, 2, 4)}),
        (200_000, "decode", {}),
        (262_144, "decode", {"cp": (1, 2)}),
    ],
)
def test_long_contexts_are_cut_where_nobody_says(
    tokens: int, pool: str | None, expected: dict[str, tuple[int, ...]]
) -> None:
    """Parts of 2^14 tokens of a prompt that is read, of 2^17 in a pool that decodes."""
    chosen = {"mode": "disaggregated"} if pool else {}
    long = small(model="llama-3.1-70b", choose=chosen, workload={"input_tokens": tokens})
    assert layout_limits(long, pool) == expected
    if not pool:
        lecture = small(assumptions="lecture", workload={"input_tokens": tokens})
        assert layout_limits(lecture, None) == {}
    fixed = small(choose={**chosen, "cp": 1}, workload={"input_tokens": tokens})
    assert layout_limits(fixed, pool) == {"cp": (1,)}


def test_parts_are_doubled_up_to_sixteen() -> None:
    """Each keeps its least tokens."""
    assert context_parts(99, least=50) == (1,)
    assert context_parts(100, least=50) == (1, 2)
    assert context_parts(420, least=50) == (1, 2, 4, 8)
    assert context_parts(1e9) == (1, 2, 4, 8, 16)
    assert context_parts(1.0) == (1,)


def test_a_batch_is_given_or_that_of_a_closed_loop() -> None:
    """It is the pool that decodes which has it; both are said only where they agree."""
    assert batches(small(), None) is None
    given = small(choose={"batch": [3, 8]})
    assert batches(given, None) == batches(given, "decode") == (3, 8)
    assert batches(given, "prefill") is None
    loop = small(workload={"concurrency": 5})
    assert batches(loop, None) == (5,)
    assert batches(small(workload={"concurrency": 5}, choose={"batch": 5}), None) == (5,)
    both = small(workload={"concurrency": 5}, choose={"batch": [5, 6]})
    with pytest.raises(FieldError, match="keeps 5 requests in flight, so the batch is not free"):
        batches(both, None)


def test_arrivals_are_requests_whatever_they_are_counted_in() -> None:
    """Tokens by the hundred of an answer; infinitely many are the most that can be served."""
    assert arrivals(small()) is None
    assert arrivals(small(**DEMAND)) == 2
    assert arrivals(small(workload={"demand": "300 tokens/s"})) == 3
    assert arrivals(small(workload={"demand": "max"})) == float("inf")
    assert arrivals(small(workload={"utilisation": 0.5})) == float("inf")


def test_what_drafts_is_a_model_or_a_method_or_not_said() -> None:
    """A model by its name, else the method; empty where the checkpoint's own blocks draft."""
    assert draft_method(small()) == ""
    assert draft_method(small(speculation={"drafts": 2})) == ""
    assert draft_method(small(speculation={"drafts": 2, "method": "eagle"})) == "eagle"
    assert draft_method(small(speculation={"drafts": 2, "draft_model": "llama-3.2-1b"})) == (
        "llama-3.2-1b"
    )


def test_an_answer_of_one_token_is_read_and_not_decoded() -> None:
    """A phase alone may have it, whole requests and pools need another token."""
    for mode, pooled in (("aggregated", False), ("prefill", True), ("decode", True)):
        assert outputs(mode, 2.0, pooled=pooled) == 2.0
        assert outputs(mode, 1.5, pooled=pooled) == 1.5
        with pytest.raises(FieldError, match="leaves nothing to decode; choose mode: prefill"):
            outputs(mode, 1.0, pooled=pooled)
    assert outputs("prefill", 1.0, pooled=False) == 1.0
    assert outputs("decode", 1.0, pooled=False) == 1.0


def test_the_mean_context_is_half_of_the_answer_beyond_the_prompt() -> None:
    """Long answers are decoded longer: of 100 and 300 tokens a step in four is of the short one."""
    assert context(small().workload) == 500 + 50
    # (100 * 50 + 300 * 150) / 400; mean 200, coefficient of variation 1/2.
    spread = small(workload={"output_tokens": {"mean": 200, "cv": 0.5}}).workload
    assert context(spread) == pytest.approx(500 + (100 * 50 + 300 * 150) / 400)


PROMISES = {"ttft": "1 s", "ttft_p95": "2 s", "ttft_p99": "3 s", "tpot": "50 ms", "e2e": "9 s"}
MADE = {"ttft": 1.0, "ttft_p95": 2.0, "ttft_p99": 3.0, "tpot": 0.05, "e2e": 9.0}


@pytest.mark.parametrize(
    ("mode", "pooled", "kept"),
    [
        ("aggregated", False, {"ttft", "ttft_p95", "ttft_p99", "tpot", "e2e"}),
        ("decode", False, {"tpot"}),
        ("decode", True, {"tpot", "e2e"}),
        ("prefill", False, {"ttft", "ttft_p95", "ttft_p99"}),
        ("prefill", True, {"ttft", "ttft_p95", "ttft_p99"}),
    ],
)
def test_a_phase_keeps_the_promises_that_it_can_break(
    mode: str, pooled: bool, kept: set[str]
) -> None:
    """Of two pools the one that decodes ends the request, and caches gather in it."""
    expected = {name: limit for name, limit in MADE.items() if name in kept}
    assert checked_promises(mode, small(promises=PROMISES), pooled=pooled) == expected
    assert checked_promises(mode, small(), pooled=pooled) == {}
    crowds = {} if mode == "prefill" else {"cache_fits": pytest.approx(0.01)}
    loaded = small(promises=PROMISES, **DEMAND)
    assert checked_promises(mode, loaded, pooled=pooled) == {**expected, **crowds}


def test_caches_of_a_load_have_room_for_all_but_a_share_of_the_time() -> None:
    """Where it is said, another one or none; no bound knows of chance."""
    most = checked_promises(
        "aggregated", small(**DEMAND, promises={"cache_fits": 0.75}), pooled=False
    )
    assert most == {"cache_fits": 0.25}
    for changes in (
        {"promises": {"cache_fits": 0}}, {"estimate": "bound"}, {"assumptions": "lecture"}
    ):  # fmt: skip
        assert checked_promises("aggregated", small(**DEMAND, **changes), pooled=False) == {}
    speed = checked_promises("decode", small(promises={"tokens_per_s_per_user": 20}), pooled=False)
    assert speed == {"tpot": 0.05}
