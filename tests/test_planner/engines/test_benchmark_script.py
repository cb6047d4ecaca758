"""The load test of a plan: its options are bash, and what its client writes is read back."""

from __future__ import annotations

import json
import subprocess
from functools import cache

import pytest

import planner
from planner.engines import ENGINES, benchmark
from planner.measurements.readers import read
from tests.paths import EXAMPLES


@cache
def plan() -> planner.Plan:
    """gpt-oss on a few chips."""
    sets = (
        "choose.mode=aggregated",
        "choose.tp=2",
        "choose.dp_attention=1",
        "workload.cached_input=0.25",
    )
    return planner.solve(EXAMPLES / "size-gpt-oss-120b.yaml", sets)


def words(script: str, folder) -> list[str]:
    """What the script passes to the client, run with a client that prints its arguments."""
    client = folder / "vllm"
    client.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', "utf-8")
    client.chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    ran = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()


@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_client_writes_is_read_with_its_layout(engine, tmp_path):
    """A result with the client's own keys and the script's metadata becomes one run of the plan."""
    chosen = plan().chosen
    passed = words(benchmark(plan(), engine, None, EXAMPLES), tmp_path)
    assert passed[:2] == ["bench", "serve"]
    concurrency = int(passed[passed.index("--max-concurrency") + 1])
    assert concurrency == chosen["batch_per_replica"]
    lengths = [
        int(passed[passed.index(f"--random-{x}-len") + 1]) for x in ("prefix", "input", "output")
    ]
    assert lengths == [375, 1125, 800]
    start = passed.index("--metadata") + 1
    facts = dict(word.split("=", 1) for word in passed[start:] if "=" in word)
    prompts = int(passed[passed.index("--num-prompts") + 1])
    result = {
        "backend": "openai", "model_id": passed[passed.index("--model") + 1], **facts,
        "num_prompts": prompts, "request_rate": "inf", "max_concurrency": concurrency,
        "completed": prompts, "total_input_tokens": 1500 * prompts,
        "total_output_tokens": 800 * prompts, "mean_ttft_ms": 900.0, "mean_tpot_ms": 20.0,
        "mean_itl_ms": 20.0, "mean_e2el_ms": 16_900.0, "request_throughput": 1.0,
    }  # fmt: skip
    file = tmp_path / "closed.json"
    file.write_text(json.dumps(result), "utf-8")
    rows = read(file).rows
    run = next(row for row in rows if row.quantity == "tpot")
    layout = chosen["layout"]
    assert run.engine == engine
    assert run.seconds == pytest.approx(0.02)
    assert (run.batch, run.prompt, run.output) == (concurrency, 1500, 800)
    assert {x: run.layout[x] for x in ("tp", "pp")} == {x: layout[x] for x in ("tp", "pp")}
    assert run.chips == 2


@pytest.mark.slow
def test_two_pools_and_loads():
    """A load is an open loop at its rate; two pools say that calibrate does not read them."""
    loaded = planner.solve(EXAMPLES / "carry-a-load.yaml")
    script = benchmark(loaded, "vllm", None, EXAMPLES)
    assert "--request-rate 25 --burstiness 1" in script
    assert "it does not read these of two" in script
