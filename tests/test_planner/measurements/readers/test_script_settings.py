"""Settings of published scripts are data by run."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from planner.measurements.readers import runs
from planner.measurements.readers.script_settings import (
    ScriptPool,
    ScriptSettings,
    script_pools,
    script_settings,
)
from tests.loops import for_all
from tests.paths import shared

RUN = {
    "source": "", "engine": "sglang", "version": "", "model": "deepseek-v3", "weights": "fp8",
    "architecture": "blackwell", "lengths": "1024/1024", "requests": 64.0, "tp": 8, "copies": 1,
    "ranks": 8, "day": "2026-02-01", "pooled": "no",
}  # fmt: skip
POOLED = {"engine": "trtllm", "pooled": "yes", "lengths": "1024/1024"}
SHORT = {"engine": "trtllm", "version": "1.0.0rc3", "lengths": "1024/128"}


def test_a_run_that_no_script_made_has_the_usual_settings():
    """A run of one's own: nothing is drawn, held back, or looked for less often."""
    made = script_settings({**RUN, "source": "mine"})
    assert made == ScriptSettings(drafts=3)


@for_all(
    ("change", "setting", "value"),
    [
        ({}, "poll", 30.0),
        ({"requests": 4.0}, "poll", 10.0),
        ({"tp": 4, "ranks": 4}, "poll", 10.0),
        ({"architecture": "hopper"}, "poll", 0.0),
        ({}, "cache", "fp8"),
        ({"architecture": "hopper"}, "cache", ""),
        ({"architecture": "hopper", "model": "gpt-oss-120b"}, "cache", "fp8"),
        ({"engine": "trtllm"}, "hold", 40.0),
        ({"engine": "trtllm", "day": "2026-01-28"}, "hold", 0.0),
        ({"engine": "trtllm", "copies": 8}, "poll", 60.0),
        ({"engine": "trtllm", "lengths": "1000/1000"}, "cache", "fp8"),
        ({"lengths": "1000/1000"}, "even", True),
        ({"lengths": "1000/1000"}, "beyond", 1500.0),
        ({"engine": "trtllm", "lengths": "1024/1024", "day": "2025-11-20"}, "beyond", 64.0),
        ({"engine": "trtllm", "lengths": "1024/1024"}, "beyond", 0.0),
        ({"engine": "trtllm", "lengths": "8192/1024"}, "beyond", 64.0),
        ({**POOLED, "chip": "gb200", "weights": "nvfp4"}, "chunk", 16384.0),
        ({**POOLED, "chip": "b300", "weights": "nvfp4"}, "chunk", 10240.0),
        ({**POOLED, "chip": "h200"}, "chunk", 0.0),
        ({**POOLED, "chip": "gb200", "day": "2025-12-19"}, "chunk", 4608.0),
        ({**POOLED, "engine": "sglang", "chip": "gb300"}, "chunk", 0.0),
        ({**POOLED, "engine": "sglang", "chip": "gb300", "requests": 512.0}, "chunk", 16384.0),
        ({**SHORT, "model": "llama-3.1-8b"}, "reserved", 1.0),
        ({**SHORT, "model": "qwen3-32b"}, "reserved", 0.0),
        ({"lengths": "1000/1000", "version": "0.5.6.post2"}, "mixed", True),
        ({"lengths": "1000/1000", "version": "0.5.1.post1"}, "mixed", False),
        ({"version": "0.5.6.post2"}, "mixed", False),
        ({}, "beyond", 0.0),
        ({}, "chunk", 32768.0),
        ({"weights": "nvfp4"}, "chunk", 16384.0),
        ({"tp": 4, "ranks": 4}, "chunk", 8192.0),
        ({"pooled": "yes"}, "chunk", 0.0),
        ({"engine": "vllm"}, "chunk", 0.0),
        ({"engine": "trtllm", "model": "gpt-oss-120b"}, "chunk", 20000.0),
        ({"model": "qwen3.5-397b-a17b", "version": "0.5.10.post1"}, "poll", 10.0),
        ({"model": "qwen3.5-397b-a17b", "version": "0.5.9"}, "poll", 30.0),
        ({"source": "sgl-cookbook", "lengths": "496/510"}, "even", False),
        ({"source": "atom-vllm-dashboard"}, "chunk", 16384.0),
        ({"source": "atom-vllm-dashboard", "lengths": "5000/500"}, "length", 1.0),
        ({"source": "atom-sglang-dashboard", "lengths": "8192/1024"}, "length", 0.9),
    ],
)
def test_settings_are_those_of_the_script(change, setting, value):
    """What the published scripts say, one by one."""
    assert getattr(script_settings({**RUN, **change}), setting) == value


def test_one_request_more_than_places_waits_for_an_answer():
    """Of N requests and N - 1 places one waits: 1/(N - 1) of what longer answers take more."""
    rows = [row for row in runs(shared("serving_runs_2.csv")).rows if row.version == "1.0.0rc3"]
    tokens = {row.id: row.seconds for row in rows if row.quantity == "tpot"}
    alike = defaultdict(list)
    for row in rows:
        if row.quantity == "ttft" and row.batch <= 64:
            assert row.most == (row.batch - 1 if row.model == "llama-3.1-8b" else 0)
            key = (bool(row.most), row.model, row.batch, row.prompt, str(row.layout))
            alike[key].append((row.output, row.seconds, row.output * tokens[row.id]))
    shares = defaultdict(list)
    for (reserved, _, batch, *_), made in alike.items():
        (_, first, answer), (_, later, longer) = min(made), max(made)
        if len(made) > 1:
            shares[reserved].append((later - first) / (longer - answer) * (batch - 1))
    assert (len(shares[True]), len(shares[False])) == (24, 17)
    assert np.median(shares[True]) == pytest.approx(1.0, abs=0.15)
    assert np.median(shares[False]) == pytest.approx(0.0, abs=0.15)


SWEPT = {
    **RUN, "engine": "trtllm", "chip": "gb200", "weights": "nvfp4", "requests": 192.0,
    "pooled": "yes", "day": "2026-03-23",
}  # fmt: skip


def test_a_script_says_how_many_workers_it_starts_and_how_many_requests_they_run():
    """Four workers of 32 places for 192 requests, as the recipe is called: gen4_tep8_batch32."""
    (made,) = script_pools(SWEPT)
    assert (made.drafts, made.chunk) == (0, 16384)
    assert made.pools == (ScriptPool(1, 4, 4, 4), ScriptPool(4, 8, 1, 8, places=32))


@pytest.mark.parametrize(
    "change",
    [
        {"source": "mine"}, {"pooled": "no"}, {"requests": 193.0}, {"day": "2026-09-01"},
        {"day": ""}, {"model": "qwen3-32b"}, {"weights": "fp8"},
    ],
)  # fmt: skip
def test_a_run_that_no_script_made_has_no_pools_of_one(change):
    """Another table, another number of requests, another day."""
    assert script_pools({**SWEPT, **change}) == []
