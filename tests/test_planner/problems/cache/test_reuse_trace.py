"""Hit rates of a published trace, and of small ones by following every block."""

import json

import numpy as np
import pytest

import planner
from planner.problems.cache.reuse_trace import trace_of_requests
from planner.text.errors import InputError
from tests.paths import shared
from tests.test_planner.problems.cache.test_tiers_of_a_cache import H200

LIFETIMES = {10: 0.043, 60: 0.103, 300: 0.288, 600: 0.343, 3600: 0.366}
CAPACITIES = {10_000: 0.211, 30_000: 0.326}


def test_the_hit_rates_of_the_conversation_trace_are_those_published():
    """12,031 requests, blocks of 512 tokens: within a point of what is published."""
    reuse = {"trace": str(shared("mooncake_conversation.csv")), "block": 512}
    trace = planner.solve({**H200, "reuse": reuse}).answer.plan.trace
    assert trace.requests == 12_031
    assert {x.ttl: x.hit_rate for x in trace.ttl} == pytest.approx(LIFETIMES, abs=0.001)
    assert {x.blocks: x.hit_rate for x in trace.lru} == pytest.approx(CAPACITIES, abs=0.001)
    lives = {x.tier: x.ttl for x in trace.best_ttl}
    assert lives["HBM"] < lives["dram"] < lives["nvme"] < lives["cold"]


def random_trace(seed: int) -> tuple[list[float], list[list[str]]]:
    """Conversations that go on, at random times."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(3.0, 150)).round(3).tolist()
    talks: dict[int, list[str]] = {}
    prompts = []
    for number in range(len(times)):
        talk = int(rng.integers(12))
        grown = talks.setdefault(talk, ["system"])
        grown.append(f"{talk}-{number}")
        prompts.append(list(grown[: int(rng.integers(1, len(grown) + 1))]))
    return times, prompts


@pytest.mark.parametrize("seed", range(5))
def test_lifetimes_are_those_of_blocks_followed_one_by_one(seed):
    """Each block has a clock that use sets back; a prompt is found up to its first lost block."""
    times, prompts = random_trace(seed)
    trace = trace_of_requests(times, prompts)
    for lifetime in (1.0, 7.5, 40.0, 200.0):
        clock: dict[str, float] = {}
        hits = uses = 0
        stored = 0.0
        for now, prompt in zip(times, prompts, strict=True):
            whole = True
            for block in prompt:
                uses += 1
                whole = whole and block in clock and round(now - clock[block], 9) <= lifetime
                hits += whole
                stored += min(now - clock[block], lifetime) if block in clock else 0.0
            clock |= dict.fromkeys(prompt, now)
        stored += lifetime * len(clock)
        assert trace.hit_rate(lifetime) == pytest.approx(hits / uses)
        assert trace.stored(np.array([lifetime]))[0] == pytest.approx(stored)


def test_the_best_lifetime_is_that_of_a_search_over_all(tmp_path):
    """Net savings of every lifetime on a fine grid are no more than at the one that is given."""
    times, prompts = random_trace(3)
    file = tmp_path / "talks.csv"
    rows = (f"{t},{' '.join(p)}" for t, p in zip(times, prompts, strict=True))
    file.write_text("timestamp_s,block_hashes\n" + "\n".join(rows), encoding="utf-8")
    plan = planner.solve({**H200, "reuse": {"trace": str(file), "block": 64}}).answer.plan
    trace, dram = trace_of_requests(times, prompts), plan.trace.best_ttl[1]
    price = 0.004e-9 / 3600 * plan.kv_bytes_per_token * 1e6

    def saved(lifetime: float) -> float:
        held = trace.stored(np.array([lifetime]))[0]
        return trace.hit_rate(lifetime) - held * price / (len(trace.blocks) * plan.miss)

    grid = [saved(lifetime) for lifetime in np.linspace(0.1, 450, 3000)]
    assert dram.saved == pytest.approx(saved(dram.ttl))
    assert dram.saved >= max(grid) - 1e-12


def test_json_lines_are_read_too(tmp_path):
    """The same trace in both forms."""
    rows = [(0, [1, 2]), (5000, [1, 2, 3]), (9000, [1, 4])]
    lines = [json.dumps({"timestamp": t, "hash_ids": h}) for t, h in rows]
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    trace = planner.solve(
        {**H200, "reuse": {"trace": str(file), "ttl": ["4 s", "5 s"]}}
    ).answer.plan.trace
    assert [x.hit_rate for x in trace.ttl] == pytest.approx([1 / 7, 3 / 7])


@pytest.mark.parametrize("text", [
    "time,block_hashes\n0,1", "timestamp_ms,blocks\n0,1", "timestamp_ms,block_hashes\nx,1",
    "timestamp_ms,block_hashes\n5,1\n2,1", "timestamp_ms,block_hashes\n0,", "",
])  # fmt: skip
def test_what_is_no_trace_is_refused_by_its_name(text, tmp_path):
    """No column, no number, no order, no block."""
    file = tmp_path / "trace.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="trace"):
        planner.solve({**H200, "reuse": str(file)})
