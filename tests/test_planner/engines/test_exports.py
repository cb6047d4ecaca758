"""A plan as launch flags and manifests: names an engine knows, sizes that add up, safe to paste."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import planner
from planner.catalogue import models
from planner.catalogue.chips import chip
from planner.cli.app import main
from planner.engines import ENGINES, Export, benchmark, export
from planner.engines.deployment import Deployment, checkpoint, deployments
from planner.engines.launch import OptionRow
from planner.measurements.readers import read
from planner.problems.serving.step.engine_effects import overlaps
from planner.problems.serving.step.memory_terms import pool_context
from planner.scenario import check_tree
from planner.scenario.tree import Tree
from planner.text.errors import Infeasible, InputError
from tests.loops import for_all
from tests.paths import DATA, EXAMPLES, ROOT
from tests.sizes import first

RECORDED = json.loads((DATA / "engine_options.json").read_text("utf-8"))
DEEPSEEK = "serve-deepseek-v3-h200"
WHOLE = "choose.overlap=none"
RACK = ("choose.dp_attention=64", "choose.ep=64", WHOLE)
ONE = "choose.dp_attention=1"
CASES = {
    "one node": (DEEPSEEK, ("choose.tp=1", "choose.pp=1", "choose.dp_attention=8")),
    "two nodes": (DEEPSEEK, ("choose.tp=1", "choose.dp_attention=16", "choose.kv=fp8", WHOLE)),
    "a rack": ("serve-deepseek-v3-gb200", RACK),
    "drafts": (DEEPSEEK, ("speculation={drafts: 3, acceptance: 0.7}", WHOLE)),
    "stages": (DEEPSEEK, ("choose.pp=2", "choose.tp=1", "choose.dp_attention=8", "choose.ep=8")),
    "two batches": (
        DEEPSEEK,
        ("choose.tp=1", "choose.dp_attention=16", "choose.ep=16", "choose.overlap=two-batch"),
    ),
    "dense": ("serve-llama-70b-fast", ("choose.weights=bf16", ONE)),
    "converted": ("serve-llama-70b-fast", ("choose.weights=fp8", ONE)),
    "copies": ("serve-llama-70b-fast", ("choose.dp_attention=2",)),
    "cached": ("size-gpt-oss-120b", ()),
}
REFUSED = {
    ("copies", "vllm"),
    ("copies", "trtllm"),
    ("stages", "drafts"),
    ("converted", "trtllm"),
    ("two batches", "trtllm"),
}


@cache
def solved(name: str, sets: tuple[str, ...] = (), mode: str = "aggregated") -> planner.Plan:
    """The plan of an example with changes, in one pool unless said otherwise."""
    changes = (
        sets if any("choose.mode" in each for each in sets) else (f"choose.mode={mode}", *sets)
    )
    return planner.solve(EXAMPLES / f"{name}.yaml", changes)


def exported(case: str, target: str, engine: str | None = None) -> Export:
    """One of the cases above for a target."""
    return export(solved(*CASES[case]), target, engine, EXAMPLES)


@cache
def deployed(name: str, sets: tuple[str, ...] = ()) -> Deployment:
    """What the engines' pages are asked about."""
    plan = solved(name, sets)
    scenario = check_tree(Tree("scenario", dict(plan.document["scenario"])), EXAMPLES)
    return deployments(scenario, checkpoint(scenario), plan.chosen)[0]


def values(found: Export, pool: int = 0) -> dict[str, Any]:
    """Options and settings of one pool of an export by name."""
    return {each["name"]: each["value"] for each in found.document["pools"][pool]["options"]}


def documents(text: str) -> dict[str, Any]:
    """The manifests of a file by kind."""
    return {each["kind"]: each for each in YAML(typ="safe").load_all(io.StringIO(text))}


def names(*rows: OptionRow) -> set[str]:
    """What some rows may write."""
    return {row.name for row in rows}


PAIRS = [(case, engine) for case in CASES for engine in ENGINES if (case, engine) not in REFUSED]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_option_is_one_the_engine_has(engine):
    """What may be written is in the list recorded from the engine's own parser, of one version."""
    release, recorded = ENGINES[engine].release, RECORDED[engine]
    assert names(*release.options, *release.followers) <= set(recorded["options"])
    assert names(*release.settings) <= set(recorded.get("settings", ()))
    assert names(*release.variables) <= set(recorded.get("variables", ()))
    assert (release.version, release.as_of) == (recorded["version"], recorded["as_of"])
    assert release.sources


@pytest.mark.parametrize("engine", ENGINES)
def test_every_word_for_a_dtype_is_one_the_engine_takes(engine):
    """Caches and conversions are called as the engine's own lists call them."""
    page, choices = ENGINES[engine], RECORDED[engine]["choices"]
    caches = choices.get("--kv-cache-dtype", choices.get("kv_cache_config.dtype"))
    assert set(page.release.caches.values()) <= set(caches)
    assert set(page.release.online.values()) <= set(choices.get("--quantization", ()))


@for_all(("case", "engine"), PAIRS)
def test_every_choice_is_one_the_engine_takes(case, engine):
    """An option with a list of values has one of them."""
    choices = RECORDED[engine]["choices"]
    for name, value in values(exported(case, engine)).items():
        assert name not in choices or value in choices[name]


@for_all(("case", "engine"), PAIRS)
def test_only_options_of_the_page_are_written(case, engine):
    """An option that is written stands in the page's list, with the reason it is there."""
    found = exported(case, engine)
    release = ENGINES[engine].release
    for option in found.document["pools"][0]["options"]:
        assert option["name"] in names(*release.options, *release.settings, *release.followers)
        assert option["because"]
    assert f"{release.title} {release.version}" in found.text
    assert release.as_of in found.text


@for_all(("case", "engine"), PAIRS)
def test_sizes_multiply_to_the_chips_of_a_replica(case, engine):
    """The engine's own product of sizes is tp * dp_attention * pp, and nodes share it evenly."""
    layout = solved(*CASES[case]).layout
    found = exported(case, engine)
    given = values(found)
    chips = layout["tp"] * layout["dp_attention"] * layout["pp"]
    if engine == "vllm":
        world = given["--tensor-parallel-size"] * given.get("--data-parallel-size", 1)
        world *= given.get("--pipeline-parallel-size", 1)
        assert ("--enable-expert-parallel" in given) == (layout["ep"] > 1)
    else:
        tp, pp = ("--tp-size", "--pp-size") if engine == "sglang" else ("--tp_size", "--pp_size")
        world = given[tp] * given.get(pp, 1)
        ep = given.get("--ep-size", given.get("--ep_size", 1))
        assert ep == layout["ep"]
        if solved(*CASES[case]).document["plan"]["layout"]["tp_expert"] > 1:
            assert given[tp] // ep == layout["tp_expert"]
    assert world == chips
    assert found.launches[0].nodes * found.launches[0].local == chips
    assert found.launches[0].local <= 8


BOTH = [case for case in CASES if (case, "vllm") not in REFUSED]  # vLLM copies no dense attention


@for_all("case", BOTH)
def test_batch_and_chunk_are_per_copy_or_whole_as_the_engine_counts(case):
    """vLLM and TensorRT-LLM count per copy of attention, SGLang over all copies."""
    plan = solved(*CASES[case])
    copies, batch = plan.layout["dp_attention"], plan.chosen["batch_per_replica"]
    one = values(exported(case, "vllm"))
    all_ = values(exported(case, "sglang"))
    assert batch <= one["--max-num-seqs"] * copies < batch + copies
    assert all_["--max-running-requests"] == one["--max-num-seqs"] * copies
    assert all_["--chunked-prefill-size"] == plan.chosen["chunk"] * copies
    drafts = (plan.document["scenario"]["speculation"] or {"drafts": 0})["drafts"]
    steps = -(-one["--max-num-seqs"] // plan.layout["pp"])
    assert one["--max-num-batched-tokens"] == plan.chosen["chunk"] + steps * (1 + drafts)


def test_copies_of_a_dense_model_are_counted_over_all_by_the_one_engine_that_runs_them():
    """SGLang's limits are of all copies; vLLM and TensorRT-LLM say what would run there."""
    plan, whole = solved(*CASES["copies"]), values(exported("copies", "sglang"))
    running, chunks = whole["--max-running-requests"], whole["--chunked-prefill-size"]
    assert 0 <= running - plan.chosen["batch_per_replica"] < 2
    assert (running % 2, chunks, whole["--attn-dp-size"]) == (0, 2 * plan.chosen["chunk"], 2)
    for engine in ("vllm", "trtllm"):
        with pytest.raises(Infeasible, match=r"what would work: choose\.dp_attention=1"):
            exported("copies", engine)


@for_all("case", CASES)
def test_shares_of_memory_leave_the_plans_reserve(case):
    """What an engine may take holds the plan's weights and caches, and leaves its reserve."""
    memory = solved(*CASES[case]).chosen["memory_per_chip"]
    kept = memory["capacity"] - memory["reserved"]
    used = memory["weights"] + memory["kv"] + memory["state"]
    if case in BOTH:
        share = values(exported(case, "vllm"))["--gpu-memory-utilization"]
        assert share == solved(*CASES[case]).scenario["memory_utilisation"]
        assert used <= share * memory["capacity"]
    pool = memory["capacity"] - pool_context(chip(solved(*CASES[case]).chosen["chip"]))
    static = values(exported(case, "sglang"))["--mem-fraction-static"]
    assert used <= static * pool <= kept - memory["activations"]


def test_every_request_of_the_scenario_fits_the_longest_length():
    """Input, output and drafts are let in; spread lengths up to their 99.9th percentile."""
    fixed = values(exported("one node", "vllm"))["--max-model-len"]
    assert 5000 <= fixed < 5000 + 128
    spread = ("workload.input_tokens={mean: 4000, cv: 0.5}",)
    wide = values(export(solved(DEEPSEEK, spread), "vllm"))["--max-model-len"]
    # exp(mu + 3.09 sigma) with sigma^2 = ln(1.25): 4000 * 3.854, and 1000 of output
    assert wide == pytest.approx(4000 * 3.854 + 1000, rel=0.01)


def test_the_longest_length_is_the_models_at_most():
    """Spread lengths are cut at the context the model was made for."""
    spread = ("workload.input_tokens={mean: 60000, cv: 2}", "promises.ttft=null", "choose.ep=32")
    assert values(export(solved(DEEPSEEK, spread), "vllm"))["--max-model-len"] == 163840
    longer = solved(DEEPSEEK, ("workload.input_tokens={mean: 170000, cv: 2}", *spread[1:]))
    with pytest.raises(
        Infeasible, match="171000 tokens is longer than the context of deepseek-v3, 163840"
    ):
        export(longer, "vllm")


def layouts() -> list[dict[str, int]]:
    """Every split of 16 chips of a stage between attention and experts."""
    powers = (1, 2, 4, 8, 16)
    return [{"tp": tp, "dp_attention": 16 // tp, "ep": ep, "tp_expert": 16 // ep}
            for tp in powers for ep in powers]  # fmt: skip


@for_all("sizes", layouts(), ids=str)
def test_each_engine_refuses_just_what_it_cannot_split(sizes):
    """vLLM: all or no expert parallelism; TensorRT-LLM: all or no copies; SGLang: any."""
    base = deployed(DEEPSEEK, ("choose.tp=1", "choose.dp_attention=16", WHOLE))
    plan = replace(base, layout={**base.layout, **sizes})
    runs = {name: not list(page.reasons(plan)) for name, page in ENGINES.items()}
    assert runs["vllm"] == (sizes["ep"] in (1, 16))
    assert runs["trtllm"] == (sizes["tp"] in (1, 16))
    assert runs["sglang"]


OWN = "engine=none"  # any layout that arithmetic allows
DRAFTS = "speculation={drafts: 2, acceptance: 0.6}"
REASONS = {
    "ep and expert tp": (
        "vllm", DEEPSEEK, ("choose.tp=1", "choose.dp_attention=8", "choose.ep=4"), "choose.ep=8"),
    "tp and copies": (
        "trtllm", DEEPSEEK, ("choose.tp=4", "choose.dp_attention=2"), "choose.tp=8"),
    "conversion": (
        "trtllm", "serve-llama-70b-fast", ("choose.weights=fp8",), "choose.weights=bf16"),
    "uneven experts": (
        "sglang", "serve-deepseek-v3-gb200", ("choose.ep=72", OWN), "choose.dp_attention=64"),
    "a family": (
        "trtllm", DEEPSEEK, ("model=glm-5.2", "choose.weights=bf16"), "another engine"),
    "copies of experts": (
        "trtllm", DEEPSEEK, ("choose.redundant_experts=32",), "choose.redundant_experts=0"),
    "stages and drafts": (
        "sglang", DEEPSEEK, (DRAFTS, "choose.pp=2"), "choose.pp=1"),
    "no prediction blocks": (
        "vllm", "serve-llama-70b-fast", (DRAFTS,), "leave speculation out"),
    "int8 weights": (
        "vllm", "serve-llama-70b-fast", ("choose.weights=int8",), "choose.weights=bf16"),
    "int8 cache": ("vllm", DEEPSEEK, ("choose.kv=int8", OWN), "choose.kv=bf16 or fp16 or fp8"),
    "fp4 cache": ("sglang", DEEPSEEK, ("choose.kv=nvfp4", OWN), "choose.kv=bf16 or fp8"),
    "head count": (
        "vllm", "serve-llama-70b-fast",
        ("model=phi-4", "choose.tp=4", "choose.weights=bf16", OWN), "choose.tp=2"),
    "not a gpu": (
        "vllm", "serve-llama-70b-fast",
        ("system=tpu-v5p", "promises.ttft=null", "price=$4/hour", "choose.weights=bf16"),
        "NVIDIA and AMD"),
    "not nvidia": (
        "trtllm", "serve-llama-70b-fast",
        ("system=mi300x-8", "price=$2/hour", "choose.weights=bf16"), "NVIDIA"),
    "fp4 on hopper": (
        "trtllm", DEEPSEEK,
        ("model=deepseek-v3.1-nvfp4", "choose.activations=bf16"), "a Blackwell chip"),
    "one phase": ("vllm", DEEPSEEK, ("choose.mode=decode",), "choose.mode=aggregated"),
}  # fmt: skip


@pytest.mark.parametrize("case", first(6, REASONS))
def test_a_refusal_says_what_would_work(case):
    """What an engine cannot run is named with the change that makes it run."""
    engine, name, sets, remedy = REASONS[case]
    with pytest.raises(Infeasible, match=r"what would work: .*" + re.escape(remedy)) as refused:
        export(solved(name, sets), engine, folder=EXAMPLES)
    assert refused.value.exit_status == 1


def test_fp4_weights_are_unpacked_where_the_engine_can():
    """Weight-only kernels run NVFP4 checkpoints on chips without FP4 arithmetic."""
    plan = solved(DEEPSEEK, ("model=deepseek-v3.1-nvfp4", "choose.activations=bf16"))
    assert plan.chosen["weights"] == "nvfp4"
    assert "--quantization" not in values(export(plan, "vllm"))


def test_a_refusal_names_a_runner_up_that_runs():
    """The changes that a refusal gives lead to a plan that the engine takes."""
    slower = "promises.ttft=3 s"
    sets = ("choose.tp=1", "choose.dp_attention=8", "choose.tp_expert=[4, 8]", slower)
    with pytest.raises(Infeasible, match="runners-up") as refused:
        export(solved(DEEPSEEK, sets), "vllm")
    again = re.findall(r"--set (\S+)", str(refused.value).splitlines()[-1])
    plan = solved(DEEPSEEK, (*again, slower))
    assert plan.layout["tp_expert"] == 8
    assert "--enable-expert-parallel" not in values(export(plan, "vllm"))


def test_what_has_no_checkpoint_or_no_maker_is_a_mistake_of_the_input():
    """A model or a chip that is only numbers cannot be launched; exit status 2."""
    with pytest.raises(InputError, match="no checkpoint"):
        export(solved("lecture", ("choose.mode=aggregated",)), "vllm")
    described = (
        'system={memory: 80 GB, memory_bandwidth: 3 TB/s, flops: {bf16: 900 TFLOP/s}, '
        "chips_per_domain: 8, scale_up: 400 GB/s}"
    )  # fmt: skip
    sets = (described, "price=$2/hour", "choose.weights=bf16")
    with pytest.raises(InputError, match="no maker"):
        export(solved("serve-llama-70b-fast", sets), "vllm")


def test_nothing_is_exported_where_there_is_no_plan():
    """The promises that fall short are named."""
    with pytest.raises(Infeasible, match=r"(?s)no plan keeps every promise.*misses memory by \d"):
        export(solved("infeasible"), "vllm")


@for_all("name", models.model_names())
def test_a_model_is_loaded_from_where_it_was_published(name):
    """A catalogue name leads to a repository; models nobody published have none."""
    asked = {
        "problem": "serving", "units": "base", "model": name, "system": "hgx-h200", "chips": 8,
        "workload": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip
    scenario = check_tree(Tree("scenario", asked), ROOT)
    if name.split("-")[0] in ("gpt", "palm", "mt") and "oss" not in name:
        with pytest.raises(InputError, match="not published"):
            checkpoint(scenario)
        return
    place = checkpoint(scenario).place
    assert re.fullmatch(r"[\w-]+/[\w.-]*\w", place)
    family = name.split("-")[0].rstrip("0123456789.")
    assert family in place.lower()


HOSTILE = ["$(touch pwned)", "a'; touch pwned; '", "`touch pwned`", "a b\n# c", '"$HOME"', "-rf"]


def hostile(folder: Path, name: str) -> Export:
    """The vLLM export of a model whose folder is called `name`."""
    (folder / name).mkdir()
    config = dict(models.record("qwen3-8b").config)
    (folder / name / "config.json").write_text(json.dumps(config), "utf-8")
    asked = {
        "problem": "serving", "units": "base",
        "model": f"{name}/config.json", "system": "hgx-h100", "chips": 1,
        "price": "$2/hour", "workload": {"input_tokens": 100, "output_tokens": 100},
    }  # fmt: skip
    file = folder / "scenario.json"
    file.write_text(json.dumps(asked), "utf-8")
    return export(planner.solve(file), "vllm", folder=folder)


def run(script: str, folder: Path, program: str, **environment: str) -> list[str]:
    """The words that a script passes to its program, run by bash with a stand-in for it."""
    tool = folder / "bin" / program
    tool.parent.mkdir(exist_ok=True)
    tool.write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\0" "$word"; done\n', "utf-8")
    tool.chmod(0o755)
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash"], input=script, text=True, capture_output=True, cwd=folder, check=True,
        env={"PATH": path, **environment},
    )  # fmt: skip
    assert not done.stderr
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_pasted_script_runs_nothing_but_the_engine(name, tmp_path):
    """Whatever a model's folder is called, it reaches the engine as one word."""
    found = hostile(tmp_path, name)
    words = run(found.text, tmp_path, "vllm")
    assert words[:2] == ["serve", f"./{name}" if name.startswith("-") else name]
    assert "--max-num-seqs" in words
    assert not (tmp_path / "pwned").exists()
    assert not (tmp_path / "-rf").is_file()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_manifest_holds_any_name_as_text(name, tmp_path):
    """YAML quotes the name, the kubelet expands nothing of it, and object names stay legal."""
    found = hostile(tmp_path, name)
    text = export(planner.solve(tmp_path / "scenario.json"), "kubernetes", folder=tmp_path).text
    kinds = documents(text)
    command = kinds["Deployment"]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[-1].replace("$$(", "$(") == f"/models/{name}"
    assert not re.search(r"(?<!\$)\$\(", command[-1])
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,61}[a-z0-9]", kinds["Service"]["metadata"]["name"])
    assert found.launches[0].nodes == 1


@for_all(("case", "engine"), PAIRS)
def test_a_script_passes_just_the_options_it_names(case, engine, tmp_path):
    """bash reads the array as it is meant: the words are the options, in order."""
    found = exported(case, engine)
    program = [*found.launches[0].prefix, *found.launches[0].release.program][0]
    where = {"NODE_RANK": "1", "MASTER_ADDR": "10.0.0.1"}
    words = run(found.text, tmp_path, program, **where)
    expected = []
    for option in (*found.launches[0].options, *found.launches[0].followers):
        expected.append(option.name)
        if option.value is not None:
            value = str(option.value).replace("@RANK@", "1").replace("@LEADER@", "10.0.0.1")
            model = solved(*CASES[case]).document["provenance"]["data"][0]["source"]
            expected.append(value if value != "@MODEL@" else re.search(r"\S+/[\w.-]+", model)[0])
    assert words[-len(expected):] == expected  # fmt: skip


def test_drafts_are_passed_as_json(tmp_path):
    """What vLLM reads of the drafts is an object with their number."""
    words = run(exported("drafts", "vllm").text, tmp_path, "vllm")
    asked = json.loads(words[words.index("--speculative-config") + 1])
    assert asked == {"method": "mtp", "num_speculative_tokens": 3}
    assert asked["method"] in RECORDED["vllm"]["choices"]["method"]


@for_all("case", CASES)
def test_the_file_of_tensorrt_llm_is_the_yaml_the_script_writes(case, tmp_path):
    """Both are the same mapping, and no key is one the engine does not have."""
    if (case, "trtllm") in REFUSED:
        pytest.skip("TensorRT-LLM does not convert weights")
    found = exported(case, "trtllm")
    run(found.text, tmp_path, [*found.launches[0].prefix, *found.launches[0].release.program][0])
    name = "extra-llm-api.yaml"
    assert (tmp_path / name).read_text("utf-8") == found.files[name]
    read = YAML(typ="safe").load(found.files[name])
    flat = {f"{k}.{inner}" for k, v in read.items() if isinstance(v, dict) for inner in v}
    flat |= {key for key, value in read.items() if not isinstance(value, dict)}
    assert flat == {option.name for option in found.launches[0].config}
    assert read["kv_cache_config"]["free_gpu_memory_fraction"] < 1


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_a_manifest_starts_every_replica_with_its_chips(engine):
    """Replicas and chips of the plan; the service finds the pods by their labels and port."""
    plan = solved(*CASES["one node"])
    kinds = documents(exported("one node", "kubernetes", engine).text)
    spec, service = kinds["Deployment"]["spec"], kinds["Service"]["spec"]
    pod = spec["template"]
    box = pod["spec"]["containers"][0]
    assert kinds["Deployment"]["apiVersion"] == "apps/v1"
    assert spec["replicas"] == plan.layout["replicas"]
    assert box["resources"]["limits"] == {"nvidia.com/gpu": 8}
    for wanted in (spec["selector"]["matchLabels"], service["selector"]):
        assert wanted.items() <= pod["metadata"]["labels"].items()
    assert service["ports"][0]["targetPort"] == box["ports"][0]["name"]
    port = box["ports"][0]["containerPort"]
    assert f"--port={port}" in box["args"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert box[probe]["httpGet"] == {"path": "/health", "port": "http"}
    mounted = {each["name"] for each in box["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["spec"]["volumes"]}
    assert ("ConfigMap" in kinds) == (engine == "trtllm")


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_replica_of_several_nodes_is_a_group_of_pods(engine):
    """LeaderWorkerSet: a pod per node; only the first answers, and each knows its place."""
    plan = solved(*CASES["two nodes"])
    kinds = documents(exported("two nodes", "kubernetes", engine).text)
    group = kinds["LeaderWorkerSet"]
    template = group["spec"]["leaderWorkerTemplate"]
    leader, worker = (template[f"{who}Template"] for who in ("leader", "worker"))
    boxes = [each["spec"]["containers"][0] for each in (leader, worker)]
    assert group["apiVersion"] == "leaderworkerset.x-k8s.io/v1"
    assert group["spec"]["replicas"] == plan.layout["replicas"]
    chips = template["size"] * boxes[0]["resources"]["limits"]["nvidia.com/gpu"]
    assert chips == plan.chosen["chips_used"] // plan.layout["replicas"] == 16
    assert all("--node-rank=$(LWS_WORKER_INDEX)" in box["args"] for box in boxes)
    selected = kinds["Service"]["spec"]["selector"].items()
    assert selected <= leader["metadata"]["labels"].items()
    assert not selected <= worker["metadata"]["labels"].items()
    assert ("--headless" in boxes[1]["args"]) == (engine == "vllm")
    assert "--headless" not in boxes[0]["args"]
    assert "readinessProbe" not in boxes[1]


TWO = (
    "current=null",
    "choose.prefill.tp=1",
    "choose.prefill.pp=1",
    "choose.prefill.dp_attention=8",
    "choose.prefill.ep=8",
    "choose.decode.tp=1",
    "choose.decode.dp_attention=16",
    "choose.decode.ep=16",
    WHOLE,
)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_pools_are_two_servers_that_know_their_part(engine, tmp_path):
    """Each pool has its own layout, batch and role, and a script that bash reads so."""
    plan = solved(DEEPSEEK, TWO, "disaggregated")
    found = export(plan, engine)
    release = ENGINES[engine].release
    assert [launch.role for launch in found.launches] == ["prefill", "decode"]
    assert {"prefill.sh", "decode.sh"} <= found.files.keys()
    for index, launch in enumerate(found.launches):
        pool, given = plan.chosen[launch.role], values(found, index)
        variables = {variable.name for variable in launch.environment}
        written = names(*release.options, *release.settings, *release.followers)
        assert given.keys() - variables <= written
        assert variables <= names(*release.variables)
        copies = pool["layout"]["dp_attention"]
        most = {"vllm": "--max-num-seqs", "trtllm": "--max_batch_size"}.get(engine)
        running = given[most] * copies if most else given["--max-running-requests"]
        assert pool["batch_per_replica"] <= running < pool["batch_per_replica"] + copies
        place = {"NODE_RANK": "0", "MASTER_ADDR": "10.0.0.1", "NODE_ADDRESS": "10.0.0.2"}
        program = [*launch.prefix, *launch.release.program][0]
        words = run(found.files[f"{launch.role}.sh"], tmp_path, program, **place)
        told = {
            "vllm": {"prefill": "kv_producer", "decode": "kv_consumer"},
            "sglang": {"prefill": "prefill", "decode": "decode"},
            "trtllm": {
                "prefill": "prefill-extra-llm-api.yaml",
                "decode": "decode-extra-llm-api.yaml",
            },
        }
        assert any(told[engine][launch.role] in word for word in words)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_manifest_of_two_pools_has_a_service_for_each(engine):
    """Names, labels and replicas of the pools stay apart."""
    plan = solved(DEEPSEEK, TWO, "disaggregated")
    text = export(plan, "kubernetes", engine).text
    found = list(YAML(typ="safe").load_all(io.StringIO(text)))
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(names) == len(set(names))
    for role, kind in (("prefill", "Deployment"), ("decode", "LeaderWorkerSet")):
        name = f"deepseek-v3-{engine}-{role}"
        pods = next(e for e in found if (e["kind"], e["metadata"]["name"]) == (kind, name))
        assert pods["spec"]["replicas"] == plan.chosen[role]["layout"]["replicas"]
        assert ("Service", name) in names


def test_a_pool_that_an_engine_cannot_run_is_named_with_its_own_change():
    """A remedy for one of two pools is a choice of that pool."""
    sets = (
        "current=null",
        "choose.prefill.tp=1",
        "choose.prefill.dp_attention=8",
        "choose.prefill.ep=8",
        "choose.decode.dp_attention=8",
        "choose.decode.ep=4",
    )
    with pytest.raises(Infeasible, match=r"(?s)to decode: .*choose\.decode\.ep=8") as refused:
        export(solved(DEEPSEEK, sets, "disaggregated"), "vllm")
    assert "to prefill" not in str(refused.value)


def test_an_mpi_launcher_has_no_manifest():
    """TensorRT-LLM over several nodes is started by MPI; the refusal names engines that are not."""
    assert exported("two nodes", "trtllm").launches[0].prefix[0] == "srun"
    with pytest.raises(Infeasible, match="vllm or sglang"):
        exported("two nodes", "kubernetes", "trtllm")


def test_chips_of_amd_are_asked_for_by_their_own_resource():
    """The resource and the image follow the maker of the chip."""
    plan = solved(
        "serve-llama-70b-fast", ("system=mi300x-8", "price=$2/hour", "choose.weights=bf16")
    )
    pod = documents(export(plan, "kubernetes").text)["Deployment"]["spec"]["template"]["spec"]
    assert list(pod["containers"][0]["resources"]["limits"]) == ["amd.com/gpu"]
    assert "rocm" in pod["containers"][0]["image"]


def command(*words: str) -> int:
    """The exit status of `planner export`."""
    with pytest.raises(SystemExit) as exit_:
        main(["export", *words, "--quiet"])
    return int(exit_.value.code or 0)


ONE = ["--set", "choose.mode=aggregated", "--set", WHOLE]


@pytest.mark.parametrize(
    ("name", "words", "status"),
    [
        (DEEPSEEK, ["--engine", "vllm", *ONE], 0),
        (DEEPSEEK, ["--to", "kubernetes", "--engine", "sglang", *ONE], 0),
        ("infeasible", ["--engine", "vllm"], 1),
        ("lecture", ["--engine", "vllm"], 2),
        (DEEPSEEK, ["--engine", "vlm"], 2),
        (DEEPSEEK, ["--to", "vllm", "--engine", "sglang"], 2),
        (DEEPSEEK, [], 2),
    ],
)
def test_the_command_exits_with_what_the_house_says(name, words, status, capsys):
    """0 exported; 1 no plan, or none the engine runs; 2 a mistake in the words."""
    assert command(str(EXAMPLES / f"{name}.yaml"), *words) == status
    out, err = capsys.readouterr()
    assert bool(out) == (status == 0)
    assert bool(err) == (status != 0)
    assert "Traceback" not in err


def test_an_unknown_engine_is_answered_with_the_nearest():
    """The mistake is found before anything is solved."""
    with pytest.raises(InputError, match="did you mean 'sglang'"):
        export(solved(DEEPSEEK), "slang")


def test_two_batches_overlap_by_an_option_or_not_at_all():
    """vLLM calls it dual batch, SGLang two-batch overlap; TensorRT-LLM 1.2 has none."""
    switch = {"vllm": "--enable-dbo", "sglang": "--enable-two-batch-overlap"}
    for engine, name in switch.items():
        assert name in values(exported("two batches", engine))
        assert name not in values(exported("one node", engine))
    with pytest.raises(Infeasible, match=r"half-batches overlap(?s:.*)choose\.overlap=none"):
        exported("two batches", "trtllm")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_named_engine_is_planned_for_as_its_release_runs(engine):
    """Overlap is chosen freely only where an option of the engine starts it."""
    release = ENGINES[engine].release
    assert overlaps(engine) == release.overlaps
    sets = ("choose.tp=1", "choose.dp_attention=16", f"profile={engine}-2026")
    kinds = [rival.kind for rival in solved(DEEPSEEK, sets).answer.rivals]
    assert any("overlapped half-batches" in kind for kind in kinds) == release.overlaps
    assert solved(DEEPSEEK, (*sets, "choose.overlap=two-batch")).layout["overlap"] == "two-batch"


def test_files_are_written_where_they_are_wanted(tmp_path, capsys):
    """`--out` is a folder; the script and the file it writes lie there, the same as printed."""
    file = str(EXAMPLES / f"{DEEPSEEK}.yaml")
    assert command(file, "--engine", "trtllm", *ONE, "--out", str(tmp_path / "run")) == 0
    assert {each.name for each in (tmp_path / "run").iterdir()} == {
        "serve.sh",
        "extra-llm-api.yaml",
    }
    capsys.readouterr()
    assert command(file, "--engine", "trtllm", *ONE) == 0
    assert capsys.readouterr().out == (tmp_path / "run" / "serve.sh").read_text("utf-8")


def test_the_same_for_programs(capsys):
    """`--json` prints one document: version, date, options with reasons, files."""
    assert command(str(EXAMPLES / f"{DEEPSEEK}.yaml"), "--engine", "vllm", "--json", *ONE) == 0
    read = json.loads(capsys.readouterr().out)
    assert (read["engine"], read["version"]) == ("vllm", ENGINES["vllm"].release.version)
    assert read["files"].keys() == {"serve.sh"}
    assert all(option["because"] for pool in read["pools"] for option in pool["options"])


@pytest.mark.parametrize(("version", "told"), [("0.18", True), ("0.33", False), (None, False)])
def test_another_version_than_that_of_the_options_is_told(version, told):
    """In the script, the manifest and for programs; its own, written shorter, is no other."""
    engine = {"name": "vllm"} | ({"version": version} if version else {})
    solution = planner.solve({
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 1,
        "engine": engine, "workload": {"input_tokens": 2000, "output_tokens": 500},
        "choose": {"mode": "aggregated"},
    })  # fmt: skip
    for target in ("vllm", "kubernetes"):
        text = " ".join(export(solution, target).text.replace("#", "").split())
        words = "the scenario names version 0.18 of the engine, and memory is planned"
        assert (words in text) == told
        assert ("these options are those of 0.33.0: see that 0.18 has them all" in text) == told


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
    assert run.chips == layout["tp"] * layout["pp"]


@pytest.mark.slow
def test_two_pools_and_loads():
    """A load is an open loop at its rate; two pools say that calibrate does not read them."""
    loaded = planner.solve(EXAMPLES / "carry-a-load.yaml", ["choose.mode=disaggregated"])
    script = benchmark(loaded, "vllm", None, EXAMPLES)
    assert "--request-rate 25 --burstiness 1" in script
    assert "it does not read these of two" in script
