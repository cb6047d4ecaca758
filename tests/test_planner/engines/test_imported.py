"""A launch becomes the scenario it came from: what export writes and what people type is read."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import planner
from planner.cli import main
from planner.engines import ENGINES, export
from planner.engines.fit_question import FitOptions, fit
from planner.engines.imported import scenario_from_launch
from planner.problems.serving.advice.current_layout import current_layout
from planner.problems.serving.task.resolve import resolve
from planner.text.errors import Infeasible, InputError
from tests.loops import for_all
from tests.paths import EXAMPLES

SAID = ("system=hgx-h200", "workload.input_tokens=4000", "workload.output_tokens=1000")
AXES = ("tp", "pp", "cp", "dp_attention", "replicas", "overlap")
DEEPSEEK, LLAMA, OSS = "serve-deepseek-v3-h200", "serve-llama-70b-fast", "size-gpt-oss-120b"
ONE = "choose.mode=aggregated"
FEW = "chips={from: 1, to: 64}"
PLANS = [
    (DEEPSEEK, (ONE,)),
    (DEEPSEEK, (ONE, "choose.tp=8", "choose.ep=1", "choose.dp_attention=1")),
    (DEEPSEEK, (ONE, "choose.tp=1", "choose.dp_attention=8", "choose.ep=8")),
    (DEEPSEEK, (ONE, "choose.tp=1", "choose.dp_attention=16", "choose.kv=fp8")),
    (DEEPSEEK, (ONE, "choose.tp=8", "choose.ep=8", "choose.dp_attention=1")),
    (DEEPSEEK, (ONE, "choose.tp=4", "choose.dp_attention=4", "choose.ep=16")),
    (DEEPSEEK, (ONE, "choose.tp=1", "choose.dp_attention=8", "choose.pp=2")),
    (DEEPSEEK, (ONE, "speculation={drafts: 3, acceptance: 0.7}", "choose.overlap=none")),
    (DEEPSEEK, (ONE, "choose.overlap=two-batch")),
    (DEEPSEEK, (ONE, "choose.redundant_experts=32", "choose.ep=32", "choose.tp=1")),
    (LLAMA, (ONE, "choose.tp=8", "choose.dp_attention=1")),
    (LLAMA, (ONE, "choose.tp=4", "choose.pp=2", "choose.dp_attention=1")),
    (LLAMA, (ONE, "choose.weights=fp8", "choose.dp_attention=1")),
    (LLAMA, (ONE, "choose.dp_attention=2")),
    (OSS, (ONE,)),
    (OSS, (ONE, "choose.tp=2")),
    (OSS, (ONE, "choose.chunk=2048")),
]  # fmt: skip


@cache
def solved(name: str, sets: tuple[str, ...]) -> planner.Plan:
    """The plan of an example, of any promise, with a layout that is fixed."""
    return planner.solve(
        EXAMPLES / f"{name}.yaml", ("promises=null", "workload.demand=null", *sets)
    )


def round_trip(plan: planner.Plan, target: str, engine: str | None, folder: Path):
    """The scenario that the files of an export are read as, requests as those of the plan."""
    files = []
    for name, text in export(plan, target, engine, EXAMPLES).files.items():
        (folder / name).write_text(text, "utf-8")
        files += [folder / name] if name.endswith((".sh", "kubernetes.yaml")) else []
    layout = plan.chosen["layout"]
    return scenario_from_launch(files, said(plan), layout and layout["replicas"])


def said(plan: planner.Plan) -> list[str]:
    """What no launch says of a plan."""
    given = {key: plan.scenario.get(key) for key in ("system", "workload", "speculation")}
    price = plan.scenario["price"]
    given["price"] = None if price is None else f"${price * 3600:.15g}/hour"
    return [f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None]


def check(name: str, sets: tuple[str, ...], engine: str, folder: Path) -> bool:
    """Whether an engine runs a plan; if so its launch, and its manifest, give the layout back."""
    try:
        plan = solved(name, (*sets, f"engine={engine}"))  # another takes other memory
    except InputError as error:
        if "no engine that was read runs this" not in str(error):
            raise
        return False
    if not plan.feasible:
        return False
    layout, chosen = plan.chosen["layout"], plan.chosen
    for target, inside in ((engine, None), ("kubernetes", engine)):
        try:
            scenario = round_trip(plan, target, inside, folder)
        except Infeasible:
            continue
        data = scenario.data
        current = data["current"]
        assert {x: current[x] for x in AXES} == {x: layout[x] for x in AXES}
        if "ep" in current:
            assert (current["ep"], current["tp_expert"]) == (layout["ep"], layout["tp_expert"])
        assert current["redundant_experts"] == (chosen["redundant_experts"] or 0)
        if chosen["drafts"]:
            assert any(f"{chosen['drafts']} drafts" in note for note in scenario.notes)
        assert current.get("kv", chosen["kv"]) == chosen["kv"]
        assert current.get("chunk", chosen["chunk"]) == chosen["chunk"]
        # An engine takes whole sequences on each copy of attention.
        copies = layout["dp_attention"] * layout["replicas"]
        assert 0 <= current["batch"] - chosen["batch"] < copies + layout["replicas"]
        assert data["model"] == plan.scenario["model"]
        read = planner.load({**data, "engine": plan.scenario.get("engine", "any")})
        assert read.problem == "serving"
        point = current_layout(read, resolve(read).tasks)
        same_memory(vars(point.memory_per_chip), chosen["memory_per_chip"])
        assert point.drafts == chosen["drafts"]
        assert point.tpot == pytest.approx(chosen["tpot"], rel=0.02)
        return True
    return False


def same_memory(read: dict[str, float], planned: dict[str, float]) -> None:
    """What fills a chip: the same weights, the same part left to the engine, as many sequences."""
    whole = planned["capacity"]
    assert read["weights"] == pytest.approx(planned["weights"], rel=1e-9)
    assert read["reserved"] == pytest.approx(planned["reserved"], abs=0.0011 * whole)
    assert read["kv"] == pytest.approx(planned["kv"], rel=0.2, abs=0.01 * whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_launch_gives_its_layout_back(engine, tmp_path):
    """One plan of each model class, on every engine."""
    assert check(OSS, (ONE,), engine, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_every_plan_that_an_engine_runs_comes_back(engine, tmp_path):
    """Layouts of experts, copies, stages, drafts, formats; those it refuses are not exported."""
    runs = sum(check(name, sets, engine, tmp_path) for name, sets in PLANS)
    assert runs >= 6


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_two_pools_come_back_as_the_only_layouts(engine, tmp_path):
    """Prefill and decode, each with its layout."""
    sets = ("current=null", "choose.mode=disaggregated", f"engine={engine}")
    plan = planner.solve(EXAMPLES / "serve-deepseek-v3-h200.yaml", sets)
    data = round_trip(plan, engine, None, tmp_path).data
    for role in ("prefill", "decode"):
        layout = plan.chosen[role]["layout"]
        found = data["choose"][role]
        same = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "overlap")
        assert {x: found[x] for x in same} == {x: layout[x] for x in same}


TYPED = {
    "vllm serve openai/gpt-oss-120b -tp 2 --max-num-seqs 64": (2, 1, 64),
    "vllm serve openai/gpt-oss-120b --tensor-parallel-size=4 \\\n  -dp 2 -ep "
    "--max-num-seqs 8": (4, 2, 16),
    "python3 -m vllm.entrypoints.openai.api_server --model openai/gpt-oss-120b "
    "--max-num-seqs 9": (1, 1, 9),
    "NAME=openai/gpt-oss-120b\npython -m sglang.launch_server --model $NAME --tp 2 "
    "--max-running-requests 32": (2, 1, 32),
    "mpirun -n 4 trtllm-serve openai/gpt-oss-120b --tp_size 4 --max_batch_size 16": (4, 1, 16),
}  # fmt: skip


@pytest.mark.parametrize("text", TYPED)
def test_a_command_as_people_type_it(text, tmp_path):
    """Short names, equals signs, continued lines, variables, launchers."""
    file = tmp_path / "run.sh"
    file.write_text(text, "utf-8")
    data = scenario_from_launch([file], SAID).data
    found = (data["current"]["tp"], data["current"]["dp_attention"], data["current"]["batch"])
    assert found == TYPED[text]
    assert data["model"] == "gpt-oss-120b"


DOCKER = "docker run --gpus all"
SERVER = "python3 -m sglang.launch_server --model-path openai/gpt-oss-120b --tp 4"
LIMITS = {
    "vllm serve openai/gpt-oss-120b -tp 2 --max-num-seqs 64 --max-num-batched-tokens 4096": (
        64,
        4096,
    ),
    "vllm serve openai/gpt-oss-120b -tp 2 -dp 4 --max_num_seqs=64": (64, None),
    f"{SERVER} --attn-dp-size 4 --max-running-requests 66": (16, None),
    f"{SERVER} --chunked-prefill-size 4096": (None, None),  # answers are no part of these tokens
    "trtllm-serve openai/gpt-oss-120b --max_batch_size 64 --max_num_tokens 2048": (64, 2048),
}


@pytest.mark.parametrize("text", LIMITS)
def test_limits_of_a_copy_are_written(text):
    """By the scenario's keys; as many are in flight as the copies let in."""
    data = scenario_from_launch([text], SAID).data
    assert (data.get("max_num_seqs"), data.get("max_num_batched_tokens")) == LIMITS[text]
    if seats := LIMITS[text][0]:
        assert data["current"]["batch"] == seats * data["current"]["dp_attention"]


def pod(image: str, words: str) -> str:
    """A pod of one container with a command of its own."""
    command = json.dumps(words.split())
    containers = f"[{{name: a, image: '{image}', command: {command}}}]"
    return f"kind: Pod\nspec: {{containers: {containers}}}"


def service(image: str, words: str) -> str:
    """A compose file of one service whose image starts the engine."""
    return f"services:\n  a:\n    image: {image}\n    command: {words}"


SERVE = "vllm serve openai/gpt-oss-120b"
VERSIONS = {
    f"{DOCKER} vllm/vllm-openai:v0.11.0 --model openai/gpt-oss-120b": "0.11.0",
    f"{DOCKER} mirror:5000/vllm/vllm-openai:v0.11 --model openai/gpt-oss-120b": "0.11",
    f"{DOCKER} vllm/vllm-openai:latest --model openai/gpt-oss-120b": None,
    f"{DOCKER} vllm/vllm-openai:nightly-0.12.1 --model openai/gpt-oss-120b": None,
    f"{DOCKER} vllm/vllm-openai --model openai/gpt-oss-120b": None,
    f"{DOCKER} vllm/vllm-openai:v0.1.2 --model openai/gpt-oss-120b": None,  # older than was read
    f"{DOCKER} lmsysorg/sglang:v0.5.3-cu129 {SERVER}": "0.5.3",
    f"{DOCKER} nvcr.io/nvidia/sglang:25.10-py3 {SERVER}": None,  # a month
    f"{DOCKER} nvcr.io/nvidia/tensorrt-llm/release:1.1.0 trtllm-serve openai/gpt-oss-120b": "1.1.0",
    f"pip install vllm==0.11.1\n{SERVE}": "0.11.1",
    pod("vllm/vllm-openai:v0.11.0", SERVE): "0.11.0",
    pod("lmsysorg/sglang:v0.5.3rc1-cu129", SERVER): "0.5.3",
    service("vllm/vllm-openai:v0.11.0", "--model openai/gpt-oss-120b"): "0.11.0",
}


@pytest.mark.parametrize("text", VERSIONS)
def test_the_version_in_a_tag_is_that_of_the_engine(text, tmp_path):
    """Of an image or a package; none in tags that say none."""
    file = tmp_path / "launch"
    file.write_text(text, "utf-8")
    engine = scenario_from_launch([file], SAID).data["engine"]
    version = VERSIONS[text]
    assert engine["version"] == version if version else isinstance(engine, str)
    read = scenario_from_launch([file], SAID)
    (tmp_path / "s.yaml").write_text(str(read), "utf-8")
    assert planner.load(tmp_path / "s.yaml").engine_version == version
    asked = FitOptions(system="hgx-h100")
    if version:
        assert f" {version}" in fit(str(file), asked).engine
    assert ("0.1.2 is not written" in " ".join(read.notes)) == ("0.1.2" in text)


@pytest.mark.parametrize("share", [0.9, 0.93, 0.887, 0.8])
def test_a_share_that_is_given_stays(share):
    """SGLang's is of its pool: read as the share of all and told again it is the same."""
    line = f"{SERVER} --max-running-requests 64 --mem-fraction-static {share}"
    said = (*SAID, "price=$3/hour")
    data = scenario_from_launch([line], said).data
    current = {key: data["current"][key] for key in ("tp", "pp", "dp_attention", "batch", "chunk")
               if key in data["current"]}  # fmt: skip
    plan = planner.solve({**data, "choose": {"mode": "aggregated", "cp": 1, "ep": 1, **current}})
    words = {x.name: x.value for x in export(plan, "sglang").launches[0].options}
    assert words["--mem-fraction-static"] == share
    line = line.replace("--max-running-requests 64 ", "")  # activations of a chunk stand for those
    read = scenario_from_launch([line], said)
    assert read.data["memory_utilisation"] == pytest.approx(data["memory_utilisation"], abs=0.006)
    note = f"--mem-fraction-static {share} is of weights and caches"
    assert any(note in each for each in read.notes)


BAD = {
    "echo hello": "starts no engine that is known",
    "vllm serve --tensor-parallel-size 2": "without a model",
    "vllm serve openai/gpt-oss-120b -pcp 2": "a scenario has no key for prompts that are cut",
    "vllm serve openai/gpt-oss-120b -tp 2 -dcp 4": "2 chips of a stage do not divide by 4",
    "vllm serve openai/gpt-oss-120b -tp two": "run.sh:1:32  .*size expects a whole number",
    "vllm serve a/b \\\n -pp 0": "run.sh:2:2  .*at least 1, got '0'",
    "vllm serve a/b -dp 2.5": "at least 1, got '2.5'",
    "vllm serve a/b -tp 1.e999": "at least 1, got '1.e999'",
    f"vllm serve {'x' * 5000} -tp 2 ": "unknown model",
    "python3 -m sglang.launch_server --model x/y --tp 8 --attn-dp-size 3": "do not divide by 3",
    "trtllm-serve openai/gpt-oss-120b --extra_llm_api_options more.yaml": "reads more.yaml",
    "vllm serve 'openai/gpt-oss-120b": "cannot be split into words",
    "kind: Deployment\nspec: [": "run.sh:2:8  not YAML",
    "kind: Deployment\nspec: [1]": "run.sh:2:7  expected spec: keys, got a list of 1 items",
    "kind: A\n---\nkind: B\nspec: {replicas: -1}": "run.sh:4:18  replicas: expected 1 or more",
    "kind: A\nspec: {template: {spec: {containers: 5}}}": "containers: a list, got 5",
    "kind: ConfigMap\ndata: [x]": "run.sh:2:7  expected data: names of files",
    "kind: A\nkind: B": "run.sh:2:1  duplicate key 'kind'",
    f"kind: A\nspec: {'[' * 9999}": "levels deep",
}


@for_all("text", BAD)
def test_what_cannot_be_read_is_refused(text, tmp_path):
    """One sentence with what is wrong; nothing is guessed."""
    file = tmp_path / "run.sh"
    file.write_text(text, "utf-8")
    with pytest.raises(InputError, match=BAD[text]):
        scenario_from_launch([file], SAID)


def test_what_a_launch_does_not_say_is_asked_for(tmp_path, capsys):
    """Every key that is missing, and how to give it; then the file solves beside its layout."""
    file, out = tmp_path / "run.sh", tmp_path / "scenario.yaml"
    file.write_text("vllm serve openai/gpt-oss-120b -tp 2 --max-num-seqs 64\n", "utf-8")
    with pytest.raises(SystemExit) as end:
        main(["import", str(file)])
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert "'system'" in err
    assert "--set system=hgx-h200" in err
    words = [word for change in SAID for word in ("--set", change)]
    with pytest.raises(SystemExit) as end:
        main(["import", str(file), *words, "--out", str(out)])
    assert not end.value.code
    plan = planner.solve(out, ["estimate=bound"])
    assert plan.document["current"]["layout"]["tp"] == 2
    assert plan.document["current"]["batch"] == 64


def test_json_is_a_scenario(tmp_path, capsys):
    """What --json prints loads as it stands."""
    file = tmp_path / "run.sh"
    file.write_text("vllm serve openai/gpt-oss-120b -tp 2 --max-num-seqs 64\n", "utf-8")
    words = [word for change in SAID for word in ("--set", change)]
    with pytest.raises(SystemExit):
        main(["import", str(file), *words, "--json"])
    assert planner.load(json.loads(capsys.readouterr().out)).problem == "serving"
