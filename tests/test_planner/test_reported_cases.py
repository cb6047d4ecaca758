"""Questions that people asked in public, answered as they would ask, against what was right.

The files lie beside the checkout. Right is what an engine logged, a machine was measured at, a
checkpoint holds, or arithmetic gives; `OPEN` says what is right and no test here asserts.
"""

import json
from pathlib import Path

import pytest

import planner
from planner.architecture.counts import ModelSizes, model_sizes
from planner.architecture.huggingface import from_config, read_config
from planner.catalogue import models
from planner.engines.fit_question import FitOptions, fit
from planner.engines.imported import launch_pools, scenario_from_launch
from planner.memory.engine_fit import Fit
from planner.memory.engine_table import GIB
from planner.network.collective_times import collective_time_table
from planner.network.network_source import network
from tests.paths import shared

OPEN = {
    "03-kv-room-gpt-oss-h100.yaml": "1.71 GiB were left, less than the printed range",
    "06-unequal-stages.yaml": "stages of 16 and 32 layers, on unlike cards, cannot be said",
    "12-gpt-oss-mi300x.yaml": "31.4, 36.6, 41.3 and 58.3 ms a token lie above the band",
    "14-closed-loop-beyond-memory.yaml": "456 tokens/s lie above the band",
    "14b-saturated.yaml": "456 tokens/s lie above the band",
    "15b-r1-16-h100.yaml": "23.1 to 24.0 ms a token lie above the band, 190 ms to the first below",
    "20b-fsdp-13b-64-a100.yaml": "twice as many, 2,162 tokens/s a chip; the band is tenfold wide",
    "20c-fsdp-7b-128-h100.yaml": "9,600 tokens/s a chip lie above the band",
}
MEDIAN, EACH = 0.05, 0.15  # what terms of an engine's memory may be off by
SAID = ("system=hgx-h200", "workload.input_tokens=3000", "workload.output_tokens=600", "price=$2/h")


def case(name: str) -> str:
    """The path of a case; without it the test is skipped, and told of."""
    return str(shared(f"cases/{name}"))


def asked(name: str, *sets: str, **options: object) -> Fit:
    """What `planner fit` says of a case."""
    return fit(case(name), FitOptions(**options), sets)


def counted(name: str) -> ModelSizes:
    """What `planner model` counts in a configuration."""
    return model_sizes(read_config(Path(case(name))))


def test_every_case_is_asked():
    """Each file is read by a test here, or told of as open."""
    files = {path.name for path in shared("cases").iterdir()}
    tests = Path(__file__).read_text(encoding="utf-8").partition("def case")[2]
    assert files == OPEN.keys() | {name for name in files if f'"{name}"' in tests}


@pytest.mark.parametrize(
    ("name", "options", "gib", "share"),
    [("01-kv-room-2x4090.yaml", {"version": "0.7.2"}, 8.69, EACH),
     ("02-import-sglang.sh", {"system": "h100"}, 16.46, None),
     ("05-gemma4-int4-a100.yaml", {"version": "0.20"}, 50, EACH),
     ("09-5090-nvfp4.yaml", {}, 5.98, None),
     ("37-v4-flash-2xh20.yaml", {"version": "0.26"}, 7.7, None)],
)  # fmt: skip
def test_room_for_the_cache(name, options, gib, share):
    """GiB a chip that were logged, in the printed range; or as near as any must be."""
    found = asked(name, **options)
    if share is None:
        assert found.room_range[0] < gib * GIB < found.room_range[1]
    else:
        assert found.room / GIB == pytest.approx(gib, rel=share)


@pytest.mark.parametrize(
    ("name", "options", "sets"),
    [("01-kv-room-2x4090.yaml", {"version": "0.7.2"}, ("workload.input_tokens=130072",)),
     ("03-kv-room-gpt-oss-h100.yaml", {"version": "0.11", "tokens": 1024}, None),
     ("35-70b-fp8-one-h100.yaml", {}, ()),
     ("37-v4-flash-2xh20.yaml", {"version": "0.26"}, ())],
)  # fmt: skip
def test_launches_that_the_engine_refused(name, options, sets):
    """14B with 131k on two 4090, gpt-oss with 131k and 70B on one H100, V4 with a million; where
    the memory does not hang on options, the search makes no plan of it either.
    """
    assert asked(name, *(sets or ()), **options).verdict == "does not fit"
    assert sets is None or not planner.solve(case(name), sets).feasible


def test_windows_keep_the_tokens_of_steps_in_flight():
    """V4-Flash in vLLM 0.22, steps of 16,384 tokens: 6.66 GiB for 30,000 tokens, 13,528 in 5.44
    (vllm 44376, comment of 3 June 2026); from 0.26 a second step is in flight, so that the 7.7 GiB
    of two H20 hold 121,344 tokens and not a million, which steps of 2,048 leave room for.
    """
    said = {"version": "0.22", "tokens": 16_384}
    needs = asked("37-v4-flash-2xh20.yaml", **said, context=30_000)
    assert needs.token_bytes * 30_000 / GIB == pytest.approx(6.66, abs=0.005)
    printed = (5.435, 5.445)  # what rounds to 5.44
    least, most = (
        asked("37-v4-flash-2xh20.yaml", **said, context=30_000, room=x).longest[0] for x in printed
    )
    assert least <= 13_528 <= most < least + 256
    held = {"version": "0.26", "room": 7.7}
    assert asked("37-v4-flash-2xh20.yaml", **held, context=121_344).verdict == "fits"
    assert asked("37-v4-flash-2xh20.yaml", **held).verdict == "does not fit"
    small = planner.solve(case("37-v4-flash-2xh20.yaml"), ("choose.chunk=2048",)).answer.plan
    assert small.holds.verdict != "does not fit"


def test_what_a_format_is_taken_for_is_said():
    """`weights: fp8` converts attention too; the published checkpoint keeps 71.9 GB more of it."""
    notes = planner.solve(case("08-like-fp8-405b.yaml")).answer.notes
    (said,) = (note.text for note in notes if "converts attention too" in note.text)
    assert "71.9 GB more" in said
    assert said in asked("08-like-fp8-405b.yaml").notes


def test_tokens_of_a_cache():
    """81,536 tokens of 14B on two 4090; 4.33 requests of 131k on a 5090.

    50 GiB hold 55,000 tokens of Gemma 4 before vLLM 0.21, and 525,000 then: of what length nobody
    said, so between what is printed at 32,768 tokens and at the longest.
    """
    tokens = asked("01-kv-room-2x4090.yaml", version="0.7.2").tokens
    assert tokens[0] <= 81_536 <= tokens[1]
    requests = asked("09-5090-nvfp4.yaml").requests
    assert requests[0] < 4.33 < requests[1]
    before, after = (asked("05-gemma4-int4-a100.yaml", version=x) for x in ("0.20", "0.21"))
    assert before.longest == pytest.approx((55_000, 55_000), rel=EACH)
    assert after.tokens[0] < 525_000 < after.longest[1]


def test_weights_of_a_chip(tmp_path):
    """13.95 GiB of 14B cut in two; 57.75 of 405B in eight, attention kept as it was."""
    two = asked("01-kv-room-2x4090.yaml").terms["weights"]
    assert two / GIB == pytest.approx(13.95, rel=MEDIAN)
    path = shared("hf_configs/meta-llama--Meta-Llama-3.1-405B_config.json")
    config, blocks = json.loads(path.read_text("utf-8")), [f"model.layers.{x}" for x in range(126)]
    kept = [f"{block}.self_attn.{x}_proj" for block in blocks for x in "qkvo"]
    kept += [f"{blocks[x]}.mlp.{y}_proj" for x in (0, -1) for y in ("gate", "up", "down")]
    stored = {"quant_method": "fbgemm_fp8", "modules_to_not_convert": [*kept, "lm_head"]}
    (tmp_path / "config.json").write_text(json.dumps(config | {"quantization_config": stored}))
    eight = asked("08-like-fp8-405b.yaml", f"model={tmp_path / 'config.json'}").terms["weights"]
    assert eight / GIB == pytest.approx(57.75, rel=MEDIAN)


def test_a_cache_of_unequal_stages_is_what_its_layers_take():
    """24.0 GiB hold 262,144 tokens of 48 layers, wherever a pipeline is cut."""
    model = model_sizes(models.load(planner.load(case("06-unequal-stages.yaml")).model))
    assert sum(x.bytes_per_token for x in model.caches) * 262_144 == pytest.approx(24.0 * GIB)


@pytest.mark.parametrize(
    ("name", "model", "layout", "said"),
    [("02-import-underscores.sh", "01-model.json", {"tp": 2}, {"memory_utilisation": 0.98}),
     ("02-import-docker-run.sh", "", {"tp": 8, "batch": 256}, {"model": "llama-3.3-70b"}),
     ("02-import-memory-share.sh", "01-model.json", {"tp": 2, "kv": "fp8", "batch": 16},
      {"memory_utilisation": 0.98, "max_model_len": 65536}),
     ("02-import-sglang.sh", "", {"tp": 4, "kv": "fp8", "batch": 64, "chunk": 8192},
      {"model": "qwen3-235b-a22b-fp8", "max_model_len": 32768, "engine": "sglang"}),
     ("02-import-trtllm.sh", "", {"tp": 8, "ep": 8, "batch": 161},
      {"model": "deepseek-r1", "max_model_len": 4096, "engine": "trtllm"}),
     ("02-import-compose.yaml", "deepseek-v4-flash",
      {"tp": 4, "ep": 4, "kv": "fp8", "batch": 32}, {"memory_utilisation": 0.9})],
)  # fmt: skip
def test_launches_are_read_as_they_are_written(name, model, layout, said):
    """Underscores, docker, compose; the share of the memory and the longest request with them."""
    path = case(model) if model.endswith(".json") else model
    data = scenario_from_launch([case(name)], (*SAID, *([f"model={path}"] if path else ()))).data
    assert data["chips"] == layout["tp"]
    assert {key: data["current"][key] for key in layout} == layout
    assert {key: data[key] for key in said} == said


def test_fit_reads_a_compose_file():
    """As `import` does: its share of the memory, its chips, its requests at once."""
    found = asked(
        "02-import-compose.yaml", model="deepseek-v4-flash", system="hgx-h20", version="0.26.0"
    )
    said = found.document
    assert (said["layout"]["tp"], said["layout"]["ep"], said["share"]) == (4, 4, 0.9)
    assert (said["max_num_seqs"], said["max_num_batched_tokens"]) == (32, 8192)


def test_a_share_is_kept_in_its_engines_meaning():
    """0.93 of SGLang is of weights and pool, 0.7 of TensorRT-LLM of what is free."""
    (static,), (free,) = (launch_pools(case(f"02-import-{x}.sh")) for x in ("sglang", "trtllm"))
    assert (static.facts["share_pool"], free.facts["share_free"]) == (0.93, 0.7)


def test_a_loop_beyond_memory_waits():
    """512 in flight of a 32.8B where less fit: some run, others wait; the wait is in TTFT."""
    plan = planner.solve(case("14-closed-loop-beyond-memory.yaml"))
    loop = plan.chosen["loop"]
    assert counted("14-model.json").n_total == pytest.approx(32.8e9, rel=2e-3)
    assert loop["waiting"] > 0
    assert plan.chosen["batch"] + loop["waiting"] == pytest.approx(512, abs=1)
    assert plan.ttft > loop["wait"] > 0


@pytest.mark.parametrize(("stages", "free"), [(5, -755e6), (10, 0.95 * GIB)])
def test_a_training_run_at_its_edge(stages, free):
    """70B in FP8 on 32 H100: out of memory at five virtual stages, through at ten."""
    sets = ("choose.offload=none", f"choose.virtual_stages={stages}")
    answer = planner.solve(case("16-70b-fp8-vpp.yaml"), sets).document
    plan = answer["plan"] or answer["nearest"]["plan"]
    assert (answer["status"] == "infeasible") == (free < 0)
    assert plan["memory_per_chip"]["free"] == pytest.approx(free, rel=0.01)


@pytest.mark.parametrize("name", ["23-laguna-s.json", "23-laguna-s-key-removed.json"])
def test_heads_by_layer_and_kept_experts(name):
    """117.6B; 24,576 bytes a token in fp8; shared experts in bf16, for `ignore` says so."""
    model = counted(name)
    assert model.n_total == pytest.approx(117.6e9, rel=1e-3)
    growing = sum(kind.bytes_per_token for kind in model.caches if kind.grows)
    assert (growing, model.kv_dtype, model.weight_dtype["shared"]) == (24_576, "fp8", "bf16")
    assert model.weight_bytes["shared"] == pytest.approx(0.89e9, rel=0.01)


@pytest.mark.parametrize("name", ["24-v4-flash-mixed.json", "24-v4-flash-mixed-key-removed.json"])
def test_two_groups_of_formats(name):
    """What group_0 names is fp8: 43 layers of four matrices, and a query of 21 indexers."""
    model = counted(name)
    layer = 4096 * (1024 + 512) + 1024 * 64 * 512 + 4096 * 8 * 1024 + 8 * 1024 * 4096
    whole = 2 * model.params["attention"]  # in bf16
    assert whole == pytest.approx(10.2e9, rel=0.01)
    fp8 = 43 * layer + 21 * 1024 * 64 * 128
    assert whole - model.weight_bytes["attention"] == pytest.approx(fp8, rel=1e-3)
    assert model.weight_dtype["routed"] == "nvfp4"


def test_the_language_part_of_a_wrapper():
    """671B, as the same text alone; tower and projector are told of."""
    model, path = counted("25-wrapper-kimi-k25.json"), Path(case("25-wrapper-kimi-k25.json"))
    text = json.loads(path.read_text("utf-8"))["text_config"]
    assert model.n_total == 671_026_419_200 == model_sizes(from_config(text, "text")).n_total
    assert all(any(word in x for x in model.excluded) for word in ("vision", "projector"))


@pytest.mark.parametrize(
    ("name", "chips", "cards"), [("26-nvidia-smi-topo.txt", 4, 2), ("26-nccl-topology.xml", 2, 1)]
)
def test_what_a_machine_prints_of_itself_is_a_network(name, chips, cards):
    """18 NVLinks of 25 GB/s from each chip, cards of 400 Gbit/s."""
    report = planner.topology(case(name)).document
    (up,) = (x for x in report["links"] if x["tier"] == "scale_up")
    (out,) = (x for x in report["links"] if x["ends"] == ["network", "nic"])
    assert (report["chips"], up["cables"], up["bandwidth"]) == (chips, 18, 450e9)
    assert (out["links"], out["bandwidth"]) == (cards, 50e9)


def test_four_cards_for_eight_chips():
    """A ring over 16 chips takes 75 ms at least; by levels it takes 40; 86 GB/s were measured."""
    file = case("27-four-cards-for-eight-chips.yaml")
    levels, ring = collective_time_table(network(file), "all-reduce", [16], [4e9])
    assert (levels["algorithm"], ring["algorithm"]) == ("two-level", "ring")
    assert (levels["bound"], ring["bound"]) == (pytest.approx(0.040), pytest.approx(0.075))
    assert ring["low"] < 2 * 15 / 16 * 4e9 / 86e9 < ring["high"]


@pytest.mark.parametrize(
    ("name", "price"),
    [("30-plan-in-the-gap.yaml", 0.88), ("32-batch-share.yaml", 0.6 * 0.88 + 0.4 * 0.44)],
)
def test_renting_against_an_api(name, price):
    """$20 an hour over the price of a million tokens; two chips are the least that do it."""
    plan = planner.solve(case(name))
    buy, pools = plan.chosen["buy"], [plan.chosen[x] for x in ("prefill", "decode")]
    assert buy["hosts"]["median"] == pytest.approx(price)
    assert buy["break_even"]["tokens_per_day"] == pytest.approx(24 * 20 / price * 1e6)
    assert buy["smallest_fleet"]["chips"] == 2
    parts = pools if all(pools) else [plan.chosen]
    assert {part["holds"]["verdict"] for part in parts} == {"fits"}  # the engine starts on them


def test_writes_of_a_cache():
    """They pay after 1.28 and 2.11 requests; holding costs $2.45 an hour, 0.909 reads of it."""
    read = {}
    for line in planner.solve(case("31-cache-writes.yaml")).document["plan"]["inferences"]:
        read.setdefault(line["name"], []).append(line["mid"])
    assert read["break_even_requests"] == pytest.approx([1.28, 2.11], rel=0.005)
    assert read["write_surcharge"] == pytest.approx([0.182], rel=0.005)
    assert read["hold_price"] == pytest.approx([2.45e-6 / 3600], rel=0.005)
    assert read["break_even_reads"] == pytest.approx([0.909 / 3600], rel=0.001)
