"""A load test of a plan that runs: commands whose results `planner calibrate` reads back.

The client is vLLM's, which speaks to every server of the OpenAI protocol and writes the facts that
it is given beside its result.
"""

import shlex
from collections.abc import Iterator, Sequence

from planner.engines.deployment import Deployment
from planner.engines.launch import MODEL, Option, array, comment
from planner.engines.release import Release
from planner.problems.serving.question import Scenario

CLIENT = "vllm bench serve"  # vLLM 0.33.0: vllm/benchmarks/serve.py
ROUNDS, LEAST = 8, 200  # requests of a test: so many for each sequence in flight, and at least


def benchmark_script(pools: Sequence[Deployment], release: Release, scenario: Scenario) -> str:
    """The script: one closed loop at the plan's batch, and an open one where it has a load."""
    first = pools[0]
    aggregated = not first.role
    replicas = first.layout["replicas"] if aggregated else 1
    batch = first.pool["batch_per_replica"] if aggregated else first.whole["batch"]
    rate = first.whole["requests_per_s"] / replicas if first.whole["demand"] else None
    system = scenario.system if isinstance(scenario.system, str) else None
    facts: dict[str, object] = {"engine": release.name}
    if aggregated:
        facts |= _facts(first, release, system)
    lines = ["#!/usr/bin/env bash", *comment(_heading(pools, release, batch, rate)), ""]
    lines += [f"model={shlex.quote(first.checkpoint.place)}", ""]
    shared = list(_options(first, release, scenario, facts))
    lines += ["options=(", *(f"  {line}" for line in array(shared)), ")", ""]
    lines += _run("closed", batch, f"--max-concurrency {batch}")
    if rate is not None:
        lines += _run("load", batch, f"--request-rate {rate:.6g} --burstiness 1")
    words = "" if system or not aggregated else " --fact system=YOUR-SYSTEM"
    if aggregated:
        lines += ["", f"# then: planner calibrate closed.json --name ours --out ours.toml{words}"]
    else:
        lines += ["", "# planner calibrate fits steps of one pool; it does not read these of two"]
    return "\n".join(lines) + "\n"


def _run(name: str, batch: int, load: str) -> list[str]:
    """One test, at a load."""
    prompts = max(LEAST, ROUNDS * batch)
    return [
        f'{CLIENT} "${{options[@]}}" --num-prompts {prompts} {load} \\',
        f"  --save-result --result-filename {name}.json",
    ]


def _heading(
    pools: Sequence[Deployment], release: Release, batch: int, rate: float | None
) -> Iterator[str]:
    plan, role = pools[0].whole, pools[0].role
    yield (
        f"Load test of {pools[0].checkpoint.sizes.name} on {release.stamp}, written by "
        "token-planner. Run it beside the server, or against a router before two pools."
    )
    what = "the two pools" if role else "one replica"
    tpot = f"TPOT {plan['tpot'] * 1e3:.3g} ms"
    yield f"The plan expects of {what}, {batch} requests in flight: {tpot}."
    if rate is not None:
        yield f"Under its load, {rate:.3g} requests/s: TTFT {plan['ttft'] * 1e3:.3g} ms on average."
    yield "Prompts are of one length, the mean; the plan's spread of lengths is not played."


def _options(
    pool: Deployment, release: Release, scenario: Scenario, facts: dict[str, object]
) -> Iterator[Option]:
    load = scenario.workload
    cached = round(load.input_tokens.mean * load.cached_input)
    yield Option("--backend", "openai", "the protocol of every server here")
    yield Option("--base-url", f"http://127.0.0.1:{release.port}", "where it answers")
    yield Option("--model", MODEL, "the checkpoint")
    yield Option("--dataset-name", "random", "random tokens, of these lengths")
    if cached:
        yield Option(
            "--random-prefix-len", cached, f"{load.cached_input:.0%} of the input is shared"
        )
    yield Option("--random-input-len", round(load.input_tokens.mean) - cached, "input tokens")
    yield Option("--random-output-len", round(load.output_tokens.mean), "output tokens")
    yield Option("--ignore-eos", None, "answers are as long as that")
    yield Option("--percentile-metrics", "ttft,tpot,itl,e2el", "what is written")
    words = [f"{name}={value}" for name, value in facts.items() if value is not None]
    yield Option(f"--metadata {shlex.join(words)}", None, "facts that planner calibrate reads")


def _facts(pool: Deployment, release: Release, system: str | None) -> dict[str, object]:
    """What a result does not say of the server, by the columns of a table of runs."""
    layout = pool.layout
    ways = {axis: layout[axis] for axis in ("tp", "pp", "dp_attention", "ep")}
    return {
        "engine": release.name, "engine_version": release.version, "system": system, **ways,
        "n_chips": layout["tp"] * layout["dp_attention"] * layout["cp"] * layout["pp"],
        "overlap": layout["overlap"], "weights": pool.pool["weights"], "kv": pool.pool["kv"],
    }  # fmt: skip
