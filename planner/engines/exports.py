"""A solved plan as what starts it: a script, a configuration file, a manifest; or why not.

And a load test of what runs then, whose results `planner calibrate` reads back. The client is
vLLM's, which speaks to every server of the OpenAI protocol and writes the facts that it is given
beside its result.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from planner.engines.deployment import ROLES, Deployment, checkpoint, deployments
from planner.engines.engine import ENGINES, Engine
from planner.engines.kubernetes import manifest, schedule
from planner.engines.launch import (
    MODEL,
    Launch,
    Option,
    Reason,
    Release,
    array,
    comment,
    configuration,
    script,
)
from planner.problems.serving.question import Scenario
from planner.protocol.plan import Plan
from planner.protocol.problem import HasReplicaHours, get_problem
from planner.scenario import check_tree
from planner.scenario.tree import Tree
from planner.text.errors import Infeasible, InputError, did_you_mean, quote
from planner.text.wording import excess

MANIFEST = "kubernetes"
MAIN = (".sh", "kubernetes.yaml")
TARGETS = (*ENGINES, MANIFEST)
AXES = ("tp", "pp", "dp_attention", "ep", "tp_expert")
CHOSEN_FACTS = (*AXES, "overlap")


@dataclass(frozen=True)
class Export:
    """Files that start a plan, by name, with their target and launches.

    `launches` holds one replica of each pool: one, or the pool that prefills and that which
    decodes; none where the files only say how many replicas run. `text` are the scripts or the
    manifest, which stand alone; `document` is for programs.
    """

    target: str
    launches: tuple[Launch, ...]
    files: Mapping[str, str]

    @property
    def text(self) -> str:
        """The scripts, or the manifest; each writes its own configuration file."""
        return "\n".join(text for name, text in self.files.items() if name.endswith(MAIN))

    @property
    def document(self) -> dict[str, object]:
        """Engine, version, date, options of each pool with their reasons, files; JSON types."""
        if not self.launches:
            return {"target": self.target, "files": dict(self.files)}
        release = self.launches[0].release
        return {
            "target": self.target,
            "engine": release.name,
            "version": release.version,
            "as_of": release.as_of,
            "sources": list(release.sources),
            "pools": [_pool(launch) for launch in self.launches],
            "files": dict(self.files),
        }

    def __str__(self) -> str:
        return self.text


def export(
    plan: Plan, target: str, engine: str | None = None, folder: str | Path | None = None
) -> Export:
    """Export the launch of the plan on an engine, or on Kubernetes with that engine in the pods.

    Args:
        target: vllm, sglang, trtllm or kubernetes.
        engine: which engine Kubernetes runs; vllm when absent.
        folder: where the scenario's paths begin; the working directory when absent.

    Raises InputError if the target is unknown, or the plan has no checkpoint or no named chip;
    Infeasible if there is no plan, or the engine cannot run it: says why, and what would work.
    """
    runs = resolve_engine(target, engine)
    if not plan.chosen:
        lines = ["there is nothing to export, for no plan keeps every promise; the nearest one"]
        lines += [f"  misses {s.promise} by {excess(s.short_by or 1.0)}" for s in plan.infeasible]
        raise Infeasible("\n".join(lines))
    problem = get_problem(plan.problem)
    if isinstance(problem, HasReplicaHours):
        if target != MANIFEST or engine is not None:
            raise InputError(f"this plan is replicas by hour: export it with --engine {MANIFEST}")
        text = schedule(problem.replica_hours(plan))
        return Export(target, (), MappingProxyType({MAIN[1]: text}))
    tree = Tree("scenario", dict(plan.document["scenario"]))
    scenario = check_tree(tree, Path() if folder is None else Path(folder))
    if not isinstance(scenario, Scenario):
        raise InputError(f"plans of problem {plan.problem} start no engine; export a serving plan")
    weights = checkpoint(scenario)
    pools = deployments(scenario, weights, plan.chosen)
    if any(runs.reasons(pool) for pool in pools):
        raise Infeasible(_refusal(runs, pools, scenario, plan.document["alternatives"]))
    launches = tuple(runs.launch(pool) for pool in pools)
    pairs = tuple(zip(launches, pools, strict=True))
    if target == MANIFEST:
        place = f"/models/{Path(weights.place).name}" if weights.folder else weights.place
        heading = [line for launch, pool in pairs for line in (*_heading(pool, launch), "")]
        files = {"kubernetes.yaml": manifest(pairs, place, heading[:-1])}
    else:
        files = {
            f"{launch.role or 'serve'}.sh": script(launch, weights.place, _heading(pool, launch))
            for launch, pool in pairs
        }
        for launch in launches:
            if launch.config:
                files[launch.config_file] = "\n".join(configuration(launch.config)) + "\n"
    return Export(target, launches, MappingProxyType(files))


def benchmark(
    plan: Plan, target: str, engine: str | None = None, folder: str | Path | None = None
) -> str:
    """The script that measures one replica of a plan, or its two pools, once they run.

    What it writes `planner calibrate` reads: lengths, times, and the facts of the layout beside
    them. Raises what `export` raises.
    """
    written = export(plan, target, engine, folder)
    if not written.launches:
        raise InputError("replicas by hour are no launch that a benchmark measures")
    tree = Tree("scenario", dict(plan.document["scenario"]))
    scenario = check_tree(tree, Path() if folder is None else Path(folder))
    assert isinstance(scenario, Scenario)  # or nothing was exported
    pools = deployments(scenario, checkpoint(scenario), plan.chosen)
    # The script: one closed loop at the plan's batch, and an open one where it has a load.
    release = written.launches[0].release
    first = pools[0]
    aggregated = not first.role
    replicas = first.layout["replicas"] if aggregated else 1
    batch = first.pool["batch_per_replica"] if aggregated else first.whole["batch"]
    rate = first.whole["requests_per_s"] / replicas if first.whole["demand"] else None
    system = scenario.system if isinstance(scenario.system, str) else None
    facts: dict[str, object] = {"engine": release.name}
    if aggregated:
        facts |= _facts(first, release, system)
    lines = ["#!/usr/bin/env bash", *comment(_test_heading(pools, release, batch, rate)), ""]
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


def resolve_engine(target: str, engine: str | None) -> Engine:
    """The engine that a target runs; raises InputError for a name that is none."""
    for word, names in ((target, TARGETS), (engine, tuple(ENGINES))):
        if word is not None and word not in names:
            hint = did_you_mean(word, names) or f" (known: {', '.join(names)})"
            raise InputError(f"unknown engine {quote(word)}{hint}")
    if target == MANIFEST:
        return ENGINES[engine or "vllm"]
    if engine not in (None, target):
        raise InputError(f"{target} and {engine} are two engines; give one of them")
    return ENGINES[target]


def _refusal(
    engine: Engine,
    pools: Sequence[Deployment],
    scenario: Scenario,
    others: Sequence[Mapping[str, Any]],
) -> str:
    """Every reason with its remedy, and the best of the runners-up that the engine does run."""
    lines = [f"{engine.release.stamp} cannot run this plan"]
    reasons: dict[Reason, str] = {}
    for pool in pools:
        for reason in engine.reasons(pool):
            reasons[reason] = "" if reason in reasons else pool.role
    for reason, role in reasons.items():
        lines += [f"  {f'to {role}: ' if role else ''}{reason.what}"]
        lines += [f"    what would work: {_placed(reason, role)}"]
    best = pools[0].whole["usd_per_mtok"]
    for runner_up in others:
        its_pools = deployments(scenario, pools[0].checkpoint, runner_up)
        if not any(engine.reasons(pool) for pool in its_pools):
            more = runner_up["usd_per_mtok"] / best - 1
            changes = [*_changes(runner_up), *(["current=null"] if scenario.current else [])]
            sets = " ".join(f"--set {change}" for change in changes)
            lines.append(f"  the best of the runners-up that it runs costs {more:+.1%}: {sets}")
            break
    return "\n".join(lines)


def _placed(reason: Reason, role: str) -> str:
    if not role:
        return reason.remedy
    return re.sub(rf"choose\.({'|'.join(CHOSEN_FACTS)})=", rf"choose.{role}.\1=", reason.remedy)


def _changes(plan: Mapping[str, Any]) -> Iterator[str]:
    yield f"choose.mode={plan['mode']}"
    for role in ROLES[plan["mode"]]:
        layout, place = (plan[role] if role else plan)["layout"], f"{role}." if role else ""
        for axis in (*CHOSEN_FACTS, "replicas"):
            yield f"choose.{place}{axis}={layout[axis]}"


def _pool(launch: Launch) -> dict[str, object]:
    """One pool of an export as plain data."""
    options = (*launch.options, *launch.followers, *launch.config, *launch.environment)
    return {
        "role": launch.role or None,
        "nodes_per_replica": launch.nodes,
        "chips_per_node": launch.local,
        "options": [
            {"name": each.name, "value": each.value, "because": each.because} for each in options
        ],
        "notes": list(launch.notes),
    }


def _heading(pool: Deployment, launch: Launch) -> list[str]:
    """Return the heading of a file: sizes, expected times and cost, scope of the launch, notes."""
    plan, chosen, layout, release = pool.whole, pool.pool, pool.layout, launch.release
    sizes = ", ".join(f"{axis} {layout[axis]}" for axis in AXES if layout[axis] > 1) or "one chip"
    sizes += ", two-batch overlap" if pool.two_batches else ""
    idle = chosen["chips"] - chosen["chips_used"]
    times = [f"{name.upper()} {plan[name] * 1e3:.3g} ms" for name in ("tpot", "ttft")]
    if not plan.get("demand"):
        times[-1] += " without queueing"
    return [
        f"{pool.checkpoint.sizes.name} on {release.stamp}, written by token-planner; options as "
        f"read on {release.as_of} (another version may spell them differently).",
        f"Plan{f', to {pool.role}' if pool.role else ''}: {layout['replicas']} x ({sizes}) on "
        f"{chosen['chips']} {chosen['chip']}{f' ({idle} idle)' if idle else ''}, weights "
        f"{chosen['weights']}, KV cache {chosen['kv']}, {chosen['batch']} sequences in flight.",
        f"Expected: {', '.join(times)}, {plan['tokens_per_s']:,.0f} output tokens/s, "
        f"${plan['usd_per_mtok']:.3g} per million tokens.",
        f"This starts {_which(pool)}, {_where(launch)}.",
        *(f"- {note}" for note in launch.notes),
    ]


def _which(pool: Deployment) -> str:
    count = pool.layout["replicas"]
    many = f"one of {count} replicas" if count > 1 else "the only replica"
    verb = pool.role if count > 1 else f"{pool.role}s"
    return f"{many} that {verb}" if pool.role else many


def _where(launch: Launch) -> str:
    if launch.nodes > 1:
        nodes = f"on {launch.nodes} nodes with {launch.local} chip{'s' * (launch.local > 1)} each"
        return nodes if launch.prefix else f"{nodes}, run on every one of them"
    return f"on one node with {launch.local} chip{'s' * (launch.local > 1)}"


CLIENT = "vllm bench serve"  # vLLM 0.33.0: vllm/benchmarks/serve.py
ROUNDS, MIN_REQUESTS = 8, 200  # requests of a test: per sequence in flight, and the fewest in all


def _run(name: str, batch: int, load: str) -> list[str]:
    prompts = max(MIN_REQUESTS, ROUNDS * batch)
    return [
        f'{CLIENT} "${{options[@]}}" --num-prompts {prompts} {load} \\',
        f"  --save-result --result-filename {name}.json",
    ]


def _test_heading(
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
    layout = pool.layout
    ways = {axis: layout[axis] for axis in ("tp", "pp", "dp_attention", "ep")}
    return {
        "engine": release.name, "engine_version": release.version, "system": system, **ways,
        "n_chips": layout["tp"] * layout["dp_attention"] * layout["cp"] * layout["pp"],
        "overlap": layout["overlap"], "weights": pool.pool["weights"], "kv": pool.pool["kv"],
    }  # fmt: skip
