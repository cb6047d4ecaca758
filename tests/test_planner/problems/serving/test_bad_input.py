"""Questions that serving cannot answer: each is told in a sentence that says what would work."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner
from planner.text.errors import InputError
from tests.loops import for_all

SMALL = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 4,
    "price": "$2.50/hour", "workload": {"input_tokens": 500, "output_tokens": 100},
}  # fmt: skip
SPARSE = {"model": "deepseek-v3", "system": "hgx-h200", "chips": 16}
INLINE = {"memory": "80 GB", "memory_bandwidth": "3 TB/s", "flops": {"bf16": "900 TFLOP/s"}}


def asked(**changes: Any) -> dict[str, Any]:
    """The small question with some values changed; mappings are merged."""
    found = copy.deepcopy(SMALL)
    for key, value in changes.items():
        merge = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = {**found[key], **value} if merge else value
    return found


def wide(**choose: Any) -> dict[str, Any]:
    """DeepSeek-V3 on two nodes, one layout."""
    return asked(**SPARSE, choose=choose)


HEADS = "tp divides the 32 attention heads"
EXPERTS = r"ep \* tp_expert = tp \* dp_attention"
# What is asked, and what must be said of it.
REFUSED = {
    "heads": (asked(choose={"tp": 3}), HEADS),
    "heads, larger": (asked(chips=12, choose={"tp": 12}), HEADS),
    "heads of a pool": (asked(choose={"mode": "disaggregated", "decode": {"tp": 3}}), HEADS),
    "experts": (wide(tp=1, dp_attention=16, ep=5), EXPERTS),
    "experts twice": (wide(tp=8, dp_attention=2, ep=8, tp_expert=4), EXPERTS),
    "experts of a dense model": (asked(choose={"ep": 2}), "no layout of llama-3.1-8b"),
    "ranks of a dense model": (
        asked(choose={"dp_attention": 2}, engine="vllm"), "choose.dp_attention=1"),
    "stages": (asked(chips=64, choose={"pp": 33}), "pp is at most 32"),
    "chips": (asked(choose={"tp": 4, "replicas": 2}), "needs 8 chips, but chips is 4"),
    "chips of two pools": (
        asked(choose={"mode": "disaggregated", "prefill": {"tp": 4}, "decode": {"tp": 4}}),
        "choose.prefill: the pools need 4 and 4 chips at least, but chips is 4",
    ),
    "a pool of one": (
        asked(choose={"mode": "aggregated", "prefill": {"tp": 4}}),
        "choose.prefill: .* choose mode: disaggregated",
    ),
    "spare": (
        asked(workload={"demand": "1 requests/s", "spare_replicas": 4}),
        "workload.spare_replicas: 4 chips are at most 4 replicas.*give at most 3, or more chips",
    ),
    "no requests": (asked(workload={"demand": "0 requests/s"}), "above zero such as"),
    "no tokens": (asked(workload={"demand": "0 tokens/s"}), "above zero"),
    "fewer than no requests": (asked(workload={"demand": "-1 requests/s"}), "which is negative"),
    "nothing out": (asked(workload={"output_tokens": 0}), "output_tokens: .*above zero"),
    "nothing in": (asked(workload={"input_tokens": 0}), "input_tokens: .*above zero"),
    "one token out": (asked(workload={"output_tokens": 1}), "choose mode: prefill"),
    "one token out of two pools": (
        asked(workload={"output_tokens": 1}, choose={"mode": "disaggregated"}),
        "choose mode: prefill",
    ),
    "bytes requested": (asked(workload={"demand": "5 GB/s"}), "expected a request rate such as"),
    "bytes of tokens": (asked(workload={"input_tokens": "500 GB"}), "expected a token count"),
    "price of bytes": (asked(price="$2.50/GB"), "expected a price per chip and time such as"),
    "memory for bandwidth": (
        asked(system={**INLINE, "memory_bandwidth": "80 GB"}, chips=1), 'did you mean "80 GB/s"',
    ),
    "bandwidth for memory": (
        asked(system={**INLINE, "memory": "3 TB/s"}, chips=1), "expected a size in bytes such as",
    ),
    "bandwidth for arithmetic": (
        asked(system={**INLINE, "flops": {"bf16": "1 TB/s"}}, chips=1), "expected a compute rate",
    ),
    "a rate for a time": (
        asked(promises={"tpot": "50 tokens/s"}), "promises.tpot: expected a time such as",
    ),
    "a time for a rate": (
        asked(promises={"tokens_per_s_per_user": "50 ms"}), "expected a token rate such as",
    ),
}  # fmt: skip


@for_all(("scenario", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_refused_with_what_would_work(scenario, told):
    """The key, what is wrong with it, and the rule or the way out."""
    with pytest.raises(InputError, match=told) as raised:
        planner.solve(scenario)
    assert "Traceback" not in str(raised.value)


TWO = {"mode": "disaggregated"}
# What is asked, the promise that is named, and by how much it falls short at least and at most.
SHORT = {
    # 812 GB of weights on four chips of which 85.0 GB are seen, a tenth of each reserved, and some
    # 5 GB for a profile, graphs and links.
    "memory": (asked(model="llama-3.1-405b"), "memory", 2.5, 2.6),
    "memory of two pools": (asked(model="llama-3.1-405b", choose=TWO), "memory", 2.5, 2.6),
    "a first token in a microsecond": (asked(promises={"ttft": "1 us"}), "ttft", 1e4, 1e5),
    "tokens in a microsecond": (asked(promises={"tpot": "1 us"}, choose=TWO), "tpot", 1e3, 1e4),
    "all in a millisecond": (asked(promises={"e2e": "1 ms"}, choose=TWO), "e2e", 100, 1000),
    "a million requests": (asked(workload={"demand": "1000000 requests/s"}), "demand", 1e3, 1e5),
    "a batch beyond memory": (asked(choose={"batch": 10**6}), "memory", 100, 1000),
}  # fmt: skip


@pytest.mark.parametrize(("scenario", "promise", "low", "high"), SHORT.values(), ids=SHORT.keys())
def test_what_cannot_be_kept_is_named_with_how_much_is_missing(scenario, promise, low, high):
    """An answer without a plan: which promise, and the factor by which it would have to ease."""
    found = planner.solve(scenario)
    assert (found.status, found.document["plan"]) == ("infeasible", None)
    worst = found.document["infeasible"][0]
    assert worst["promise"] == promise
    assert low < worst["short_by"] < high
    words = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "time of a whole request", "demand": "load"}
    nearest = str(found).partition("Closest")[2].split("\n\n")[0]
    assert f"{words.get(promise, promise)} " in nearest


@pytest.mark.parametrize("mode", ["decode", "prefill"])
def test_one_output_token_is_no_obstacle_to_a_phase_alone(mode):
    """Prompts that emit one token, and steps that emit one."""
    plan = planner.solve(asked(workload={"output_tokens": 1}, choose={"mode": mode}))
    assert plan.feasible


@pytest.mark.parametrize("mode", ["aggregated", "disaggregated", "decode", "prefill"])
def test_requests_beyond_the_context_are_told(mode):
    """Llama 3.1 was made for 131,072 tokens, prompt and answer together; one more is one too many.

    A plan is still made, which no engine runs as it stands: a longer context is a matter of
    positions, not of time or memory. Of an engine that is asked for it is refused.
    """
    lengths = {"input_tokens": 130_000, "output_tokens": 1073}
    with pytest.raises(planner.InputError, match="131072"):
        planner.solve(asked(workload=lengths, choose={"mode": mode}, engine="vllm"))
    for output, beyond in ((1072, False), (1073, True)):
        lengths = {"input_tokens": 130_000, "output_tokens": output}
        found = planner.solve(asked(workload=lengths, choose={"mode": mode}))
        assert found.feasible
        assert bool(found.point.engines) == (not beyond)
        told = [warning for warning in found.warnings if "131072" in warning]
        assert len(told) == beyond
        assert all("what would work: at most 131072 tokens" in warning for warning in told)


def test_a_model_of_no_known_context_takes_any():
    """One that is described by its numbers says nothing of its context."""
    described = {
        "total_params": 8e9,
        "weights": "bf16",
        "kv": "bf16",
        "layers": 32,
        "hidden": 4096,
        "kv_bytes_per_token": 131072,
    }
    lengths = {"input_tokens": 400_000, "output_tokens": 100}
    found = planner.solve(asked(model=described, workload=lengths))
    assert not any("longer than" in warning for warning in found.warnings)
    assert found.elasticities["price"] == pytest.approx(1)
