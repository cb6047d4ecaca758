"""`planner fit`: rooms that were logged, starts that were refused, and what contradicts itself."""

import json

import pytest

import planner
from planner.architecture.counts import model_sizes
from planner.catalogue import models
from planner.catalogue.chips import chip
from planner.engines.fit_question import FitOptions, fit
from planner.engines.imported import scenario_from_launch
from planner.memory.engine_fit import FitQuestion, held_requests
from planner.memory.engine_room import EngineLimits, ReplicaLayout
from planner.memory.engine_table import GIB, chip_memory, engine_memory
from planner.text.errors import InputError
from tests.paths import EXAMPLES

SAID = ("system=hgx-h100", "workload.input_tokens=3000", "workload.output_tokens=600")
H100 = {"system": "hgx-h100", "engine": "vllm"}


def asked(**options):
    return fit(None, FitOptions(**{**H100, **options}))


@pytest.mark.parametrize(
    ("model", "tp", "share", "version", "logged"),
    [
        ("llama-3.1-8b", 1, 0.95, "0.19", 58.11),
        ("qwen2.5-72b", 2, 0.95, "0.19", 3.04),
        ("gpt-oss-120b", 1, 0.95, "0.11", 3.33),
        ("qwen3-235b-a22b-fp8", 4, 0.9, "0.9.2", 8.11),
        ("gemma-2-27b", 1, 0.95, "0.19", 20.59),
    ],
)
def test_rooms_that_were_logged(model, tp, share, version, logged):
    """Within the band; none of these coefficients was fitted to a room."""
    result = asked(model=model, tp=tp, share=share, version=version)
    assert result.room / GIB == pytest.approx(logged, abs=0.3)
    assert result.room_range[0] < logged * GIB < result.room_range[1]


@pytest.mark.parametrize(
    "options",
    [
        {"model": "llama-3.1-70b-fp8", "tp": 1, "version": "0.11"},
        {"model": "gpt-oss-120b", "tp": 1, "version": "0.11", "share": 0.95, "context": 131072},
        {"model": "llama-3.1-8b", "system": "rtx-3090", "tp": 1, "version": "0.6.4",
         "context": 29000, "tokens": 29000},
        {"model": "llama-3.1-8b", "tp": 1, "share": 0.995},
    ],
)  # fmt: skip
def test_starts_that_were_refused(options):
    """No room, no room for one request, and more than is free at start."""
    assert asked(**options).verdict == "does not fit"


def test_a_step_outside_the_share():
    """gpt-oss-20b on one H100 dies at 0.95 after its room was found, and serves at 0.90."""
    options = {"model": "gpt-oss-20b", "tp": 1, "version": "0.19"}
    assert asked(**options, share=0.95).verdict == "probably"
    assert asked(**options, share=0.90).verdict == "fits"


def test_one_share_has_three_meanings():
    """235B on four H100: 8.1 GiB in vLLM, 16.5 in SGLang (vllm#21348)."""
    pool = asked(model="qwen3-235b-a22b-fp8", tp=4, engine="sglang", share=0.93)
    assert pool.room / GIB == pytest.approx(16.46, abs=0.5)


def test_fewer_sequences_leave_more_room():
    """A sampler profiled at 64 sequences wins 4.5 GiB of an H100 back (before 0.17)."""
    default, few = (asked(model="llama-3.1-8b", tp=1, version="0.11", seats=x) for x in (None, 64))
    assert (few.room - default.room) / GIB == pytest.approx(4.0, abs=0.6)


def test_least_share_and_chips_are_the_edge():
    """With the least share it holds the request at the low end, with a thousandth less not."""
    options = {"model": "qwen3-32b", "tp": 1, "version": "0.19", "context": 16384}
    least = asked(**options).least_share
    assert asked(**options, share=least).requests[0] >= 1
    assert asked(**options, share=least - 0.001).requests[0] < 1
    assert asked(**options).least_chips == 1
    assert asked(model="llama-3.3-70b", context=8192).layout["tp"] == 4


def test_a_logged_room_replaces_the_terms():
    """58.11 GiB give 476,016 tokens of Llama 3.1 8B, to a block."""
    result = asked(model="llama-3.1-8b", tp=1, version="0.19", room=58.11)
    assert result.tokens[0] == pytest.approx(476_016, rel=2e-4)


def test_a_question_without_a_price():
    """A chip that nobody rents out answers too."""
    assert asked(model="qwen3-8b", system="rtx-4090", version="0.19").verdict == "fits"


def test_other_problems_have_no_engine():
    """A training scenario is refused by its kind."""
    with pytest.raises(InputError, match="expected serving"):
        fit(str(EXAMPLES / "train-deepseek-v3-h800.yaml"), FitOptions())


def test_a_chip_varied_in_a_scenario_is_that_chip(tmp_path):
    """Memory that a scenario changes is what is shared, seen in the catalogue's proportion."""
    text = (EXAMPLES / "serve-least-energy.yaml").read_text()
    path = tmp_path / "s.yaml"
    path.write_text(text)
    whole, half = (
        fit(str(path), FitOptions(model="qwen3-8b", tp=1, engine="vllm"), sets)
        for sets in ((), ("system={like: hgx-h100, memory: 40 GB}",))
    )
    assert half.visible / 40e9 == pytest.approx(79.19 * 1024 / 81559)
    assert half.room < whole.room


def test_a_card_starts_with_what_was_logged():
    """Two RTX 4090 start with a share of 0.98 (vllm#13061)."""
    result = asked(model="qwen3-8b", system="rtx-4090", tp=2, share=0.98, version="0.7.2")
    assert result.largest_share >= 0.98


SERVE = "vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 4"
DENSE = {"problem": "serving", "model": "llama-3.3-70b", "system": "h100", "price": "$2/hour",
         "workload": {"input_tokens": 4000, "output_tokens": 500}}  # fmt: skip


def test_no_more_chips_than_the_scenario_pays_for(tmp_path):
    """70B in bf16 does not fit on one H100; four are the least."""
    file = tmp_path / "one.json"
    file.write_text(json.dumps(DENSE | {"chips": 1, "engine": "vllm"}), "utf-8")
    one = fit(str(file), FitOptions())
    assert (one.verdict, one.layout["tp"], one.least_chips) == ("does not fit", 1, 4)
    assert fit(str(file), FitOptions(), ["chips=8"]).verdict == "fits"


def test_a_launch_without_a_length_lets_in_the_longest():
    """131,072 tokens, for which a share of a half has no room; requests of 8,192 have."""
    share = f"{SERVE} --gpu-memory-utilization 0.5"
    assert fit(share, FitOptions(system="hgx-h100")).verdict == "does not fit"
    assert fit(share, FitOptions(system="hgx-h100")).context == 131_072
    assert fit(share, FitOptions(system="hgx-h100", context=8_192)).verdict == "fits"


LAUNCHES = [
    f"{SERVE} --max-model-len 8192 --max-num-seqs 64 --max-num-batched-tokens 4096 "
    "--gpu-memory-utilization 0.93 --kv-cache-dtype fp8",
    "docker run vllm/vllm-openai:v0.11.0 --model openai/gpt-oss-120b -tp 2 -ep -dp 2 "
    "--max-model-len 9000 --max-num-seqs 32",
    "python3 -m sglang.launch_server --model meta-llama/Llama-3.3-70B-Instruct --tp 4 "
    "--context-length 8192 --max-running-requests 64 --mem-fraction-static 0.93 "
    "--chunked-prefill-size 4096 --kv-cache-dtype fp8_e4m3",
    "trtllm-serve meta-llama/Llama-3.3-70B-Instruct --tp_size 4 --max_batch_size 64 "
    "--max_num_tokens 8192 --max_seq_len 8192 --free_gpu_memory_fraction 0.85",
]


@pytest.mark.parametrize("line", LAUNCHES)
def test_an_imported_launch_fits_as_the_launch_does(line, tmp_path):
    """Ways, formats, sequences, tokens of a step, share and version of the layout in use count."""
    read = scenario_from_launch([line], SAID)
    file = tmp_path / "s.yaml"
    file.write_text(str(read), "utf-8")
    direct, imported = (
        fit(x, FitOptions(system=None if x == str(file) else "hgx-h100")).document
        for x in (line, str(file))
    )
    notes = [x for x in direct.pop("notes") if not x.startswith("read from a launch")]
    assert imported.pop("notes") == tuple(notes)
    assert imported == direct


def test_the_layout_in_use_counts(tmp_path):
    """Sequences in flight must fit at once; two pools, and shared contexts, are no one layout."""
    file = tmp_path / "s.json"
    use = {"tp": 4, "replicas": 1, "batch": 40, "kv": "fp8", "chunk": 2048}

    def answer(**current):
        file.write_text(json.dumps(DENSE | {"chips": 8, "engine": "vllm", "current": current}))
        return fit(str(file), FitOptions())

    small, plain = answer(**use), answer(**use | {"kv": "bf16"})
    assert (small.wanted, small.max_num_seqs, small.max_num_batched_tokens) == (40, 40, 2088)
    assert small.token_bytes == pytest.approx(plain.token_bytes / 2)
    assert (answer(**use | {"batch": 4000}).verdict, small.verdict) == ("does not fit", "fits")
    with pytest.raises(InputError, match="dcp 2: chips share contexts that would hold copies"):
        answer(**use, dcp=2)
    with pytest.raises(InputError, match="two pools; fit asks about one"):
        answer(prefill={"tp": 4}, decode={"tp": 4})


SIZES = [
    (f"{SERVE} --max-model-len 8192 --kv-cache-memory-bytes 1G", "fits", 13_104),
    (f"{SERVE} --max-model-len 8192 --kv-cache-memory-bytes 500M", "does not fit", 6_400),
    (f"{SERVE} --max-model-len 8192 --kv-cache-memory-bytes 60G", "does not fit", 786_432),
    (f"{SERVE} --max-model-len 8192 --num-gpu-blocks-override 1000", "fits", 16_000),
    (f"{SERVE} --max-model-len 8192 --num-gpu-blocks-override 500", "does not fit", 8_000),
    ("python3 -m sglang.launch_server --model meta-llama/Llama-3.3-70B-Instruct --tp 4 "
     "--context-length 8192 --max-total-tokens 8000", "does not fit", 8_000),
    ("python3 -m sglang.launch_server --model meta-llama/Llama-3.3-70B-Instruct --tp 4 "
     "--context-length 8192 --max-total-tokens 50000", "fits", 50_000),
]  # fmt: skip


@pytest.mark.parametrize(("line", "verdict", "tokens"), SIZES)
def test_a_cache_of_the_size_that_the_launch_says(line, verdict, tokens):
    """It is the room: too small for a request, or more than the weights leave."""
    result = fit(line, FitOptions(system="hgx-h100"))
    assert (result.verdict, result.tokens) == (verdict, (tokens, tokens))
    assert not any("not counted" in note for note in result.notes)
    assert any("as large as --" in note for note in result.notes)


def test_sglang_takes_no_more_than_its_share_leaves():
    """A limit of tokens beyond it changes nothing."""
    line = LAUNCHES[2]
    free, limited = (
        fit(f"{line} {more}", FitOptions(system="hgx-h100"))
        for more in ("", "--max-total-tokens 900000000")
    )
    assert limited.room_range == free.room_range


CONTRADICTIONS = [
    ({"tp": 8}, "--tp 8: the launch says 4"),
    ({"engine": "sglang"}, "--engine sglang: the launch says vllm"),
    ({"seats": 32}, "--max-num-seqs 32: the launch says 64"),
    ({"tokens": 2048}, "--max-num-batched-tokens 2048: the launch says 4096"),
    ({"kv": "bf16"}, "--kv bf16: the launch says fp8"),
    ({"model": "llama-3.1-8b"}, "--model llama-3.1-8b: the launch says llama-3.3-70b"),
    ({"context": 9000}, "--context 9000: the launch lets in requests of 8192 tokens at most"),
    ({"share": 0.9}, "--share 0.9: the launch says 0.93"),
]


@pytest.mark.parametrize(("options", "words"), CONTRADICTIONS)
def test_options_that_a_launch_contradicts(options, words):
    """Both are named; the same again, and what the launch leaves open, are taken."""
    with pytest.raises(InputError, match=words):
        fit(LAUNCHES[0], FitOptions(**{"system": "hgx-h100"} | options))
    same = FitOptions(system="hgx-h100", tp=4, engine="vllm", kv="fp8", pp=2, context=4000,
                      model="meta-llama/Llama-3.3-70B-Instruct")  # fmt: skip
    assert fit(LAUNCHES[0], same).layout == {
        "tp": 4, "pp": 2, "dp_attention": 1, "ep": 1, "dcp": 1,
    }  # fmt: skip


def test_drafts_take_memory():
    """The blocks of the checkpoint, as logs show; a note said so without counting them."""
    line = "vllm serve deepseek-ai/DeepSeek-V3 -tp 8 --max-model-len 8192"
    more = """ --speculative-config '{"method": "mtp", "num_speculative_tokens": 1}'"""
    plain, drafts = (fit(x, FitOptions(system="hgx-h200")) for x in (line, line + more))
    assert drafts.room < plain.room - GIB


@pytest.mark.parametrize("kept", ["fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla"])
def test_a_cache_of_eight_bits_by_any_name(kept):
    """Half the bytes of a token; a format that is not known is named."""
    plain, small = (
        fit(f"{SERVE} {more}", FitOptions(system="hgx-h100"))
        for more in ("", f"--kv-cache-dtype {kept}")
    )
    assert small.token_bytes == pytest.approx(plain.token_bytes / 2)
    unread = fit(f"{SERVE} --kv-cache-dtype int4 --quantization awq", FitOptions(system="hgx-h100"))
    assert "not counted: --kv-cache-dtype, --quantization" in unread.notes


def test_settings_that_an_engine_refuses():
    """Ways that heads do not divide by, more than all of the memory, a version without quotes."""
    for ways, model in ((3, "llama-3.3-70b"), (5, "llama-3.3-70b"), (8, "qwen2.5-7b")):
        with pytest.raises(InputError, match="attention heads do not divide"):
            asked(model=model, tp=ways)
    with pytest.raises(InputError, match="expects 0 to 1"):
        fit(f"{SERVE} --gpu-memory-utilization 1.2", FitOptions(system="hgx-h100"))
    with pytest.raises(InputError, match="in quotes"):
        planner.check(DENSE | {"chips": 4, "engine": {"name": "vllm", "version": 0.18}})


def test_a_share_that_is_not_free_at_start_is_refused():
    """0.99 of an H100, of which the context takes 0.6 % and links of four ranks 2 %."""
    asks = {"name": "vllm", "version": "0.18"}
    full = DENSE | {"chips": 4, "engine": asks, "memory_utilisation": 0.99}
    with pytest.raises(InputError, match=r"memory_utilisation: .* not free .*=0\.974"):
        planner.solve(full | {"choose": {"tp": 4, "mode": "aggregated"}})
    of_one = planner.solve(full | {"choose": {"tp": [2, 4, 1], "weights": "fp8"}}).answer
    assert of_one.plan.layout.tp == 1
    assert not any(note.severity == "broken" for note in of_one.notes)


def test_an_engine_without_the_architecture_or_the_chip_is_said():
    """Of the version whose rules were read it is refused, of an older one noted."""
    options = {"model": "minimax-m1", "system": "hgx-h200", "tp": 8}
    with pytest.raises(InputError, match=r"vLLM 0\.33\.0: minimax_m1 models .* another engine"):
        asked(**options)
    assert "minimax_m1 models are not among" in asked(**options, version="0.18").notes[0]
    with pytest.raises(InputError, match="does not run on chips as old as NVIDIA Tesla V100"):
        asked(model="qwen3-0.6b", system="v100", tp=1)
    assert asked(model="qwen3-0.6b", system="v100", tp=1, version="0.18").verdict == "fits"
    with pytest.raises(InputError, match="AMD MI300X is not among the chips"):
        asked(model="llama-3.1-8b", system="mi300x", engine="trtllm", tp=1)


def test_a_share_of_what_is_free_is_free():
    """TensorRT-LLM's is of the memory that the peak of a step leaves, not of all of it."""
    whole = asked(model="llama-3.1-8b", engine="trtllm", tp=1, share=0.999)
    assert (whole.verdict, whole.largest_share) == ("fits", 1.0)


def test_ranks_that_share_contexts_hold_as_many_more():
    """Blocks of latent attention, of which eight ranks keep copies, or each its own."""
    line = "vllm serve deepseek-ai/DeepSeek-V3 -tp 8 --max-model-len 65536"
    copied = fit(line, FitOptions(system="hgx-h200"))
    shared = fit(f"{line} --decode-context-parallel-size 8", FitOptions(system="hgx-h200"))
    assert shared.layout["dcp"] == 8
    assert shared.room == copied.room
    assert shared.token_bytes == copied.token_bytes / 8
    assert shared.requests[1] == 8 * copied.requests[1]
    assert shared.ideal_token_bytes == copied.ideal_token_bytes / 8
    with pytest.raises(InputError, match="dcp 8: no rule was read of blocks beside an index"):
        fit("vllm serve deepseek-ai/DeepSeek-V3.2 -tp 8 -dcp 8", FitOptions(system="hgx-b200"))


LOG = """(Worker_TP0 pid=7) INFO [gpu_worker.py:298] Available KV cache memory: 61.58 GiB
(Worker_TP1 pid=8) INFO [gpu_worker.py:298] Available KV cache memory: 61.21 GiB
(EngineCore pid=5) INFO [kv_cache_utils.py:1087] GPU KV cache size: {} tokens
"""
POOL = "KV Cache is allocated. #tokens: 984023, K size: 30.03 GB, V size: 30.03 GB"


def test_a_log_is_the_room(tmp_path):
    """The rank that has least counts; tokens that do not follow from it are said."""
    file = tmp_path / "vllm.log"
    file.write_text(LOG.format("1,002,864"))
    result = asked(model="llama-3.1-8b", tp=2, room=str(file))
    assert result.room_range == (61.21 * GIB, 61.21 * GIB)
    assert result.tokens == (1_002_864, 1_002_864)
    assert not any("the log has" in note for note in result.notes)
    odd = asked(model="llama-3.1-8b", tp=2, room=LOG.format("501,432"))
    assert "the log has 501,432 tokens" in " ".join(odd.notes)
    assert asked(model="llama-3.1-8b", engine="sglang", tp=2, room=POOL).tokens[0] == 984_023
    freed = "[MemUsageChange] Allocated 45.60 GiB for max tokens in paged KV cache (373555)"
    assert asked(model="llama-3.1-8b", engine="trtllm", tp=1, room=freed).tokens[0] == 373_555
    with pytest.raises(InputError, match="no line of vLLM says it"):
        asked(model="llama-3.1-8b", tp=2, room=POOL)
    with pytest.raises(InputError, match=r"--room 200: expected GiB above 0 and below 79\.19"):
        asked(model="llama-3.1-8b", tp=1, room="200")


@pytest.mark.parametrize("experts", [(1, 8), (8, 1), (4, 2)])
def test_fewer_chips_hold_all_experts(experts):
    """However they lie over eight: on one or two their weights alone are more than there is."""
    ep, cut = experts
    sizes = model_sizes(models.load("qwen3-235b-a22b-fp8"))
    layout = ReplicaLayout(8, 1, 1, ep, cut)
    question = FitQuestion(sizes, chip_memory(chip("h100")), "h100", engine_memory("vllm"), layout,
                           EngineLimits(8), 8_192)  # fmt: skip
    assert question.on(1).left.terms["weights"] > sizes.total_weight_bytes
    assert question.on(8).left == question.left
    assert held_requests(question).least_chips == 4
