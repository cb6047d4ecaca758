"""A user's own table and the results of load generators become the same measurements."""

import json

import pytest

from planner.measurements.readers import detect_file_kind, own_runs, read
from planner.measurements.readers.own_table import COLUMNS, map_columns
from planner.text.errors import InputError
from tests.loops import for_all

HEAD = "model,system,engine,weights,tp,ep,concurrency,input_tokens,output_tokens,ttft_ms,tpot_ms"
LLAMA = "llama-3.1-70b,hgx-h100,vllm,fp8,4,,32,1024,256,250,21.5"
VLLM = {
    "model_id": "Qwen/Qwen3-32B",
    "request_rate": "inf",
    "max_concurrency": 32,
    "completed": 320,
    "total_input_tokens": 327680,
    "total_output_tokens": 81920,
    "request_throughput": 3.2,
    "mean_ttft_ms": 210.0,
    "mean_tpot_ms": 25.0,
    "mean_itl_ms": 25.2,
}
SGLANG = {
    "backend": "sglang",
    "request_rate": float("inf"),
    "max_concurrency": 16,
    "completed": 100,
    "total_input_tokens": 102400,
    "total_output_tokens": 102400,
    "request_throughput": 1.0,
    "mean_e2e_latency_ms": 12100.0,
    "mean_ttft_ms": 100.0,
    "mean_tpot_ms": 11.7,
    "accept_length": 2.4,
}
GUIDELLM = {
    "metadata": {"version": 2, "guidellm_version": "0.7.3"},
    "config": {"spec": {"backend": {"model": "Qwen/Qwen3-32B"}}},
    "benchmarks": [
        {
            "config": {"strategy": strategy},
            "metrics": {
                name: {"successful": {"mean": mean}}
                for name, mean in (
                    ("request_concurrency", 7.9),
                    ("prompt_token_count", 512.0),
                    ("output_token_count", 128.0),
                    ("time_to_first_token_ms", 80.0),
                    ("inter_token_latency_ms", 14.0),
                    ("time_per_output_token_ms", 14.5),
                )
            },
        }
        for strategy in ({"type_": "concurrent", "streams": 8}, {"type_": "poisson", "rate": 4.0})
    ],
}
PERF = {
    "load_summary": {"count": 480, "concurrency": 24},
    "successes": {
        "count": 480,
        "latency": {
            "request_latency": {"mean": 3.0},
            "time_to_first_token": {"mean": 0.2},
            "time_per_output_token": {"mean": 0.022},
        },
        "throughput": {"requests_per_sec": 8.0},
        "prompt_tokens": {"mean": 512.0},
        "output_tokens": {"mean": 128.0},
    },
    "failures": {"count": 0},
}
PLACE = {"system": "hgx-h100", "tp": 4, "weights": "fp8"}


@pytest.fixture
def table(tmp_path):
    """A maker of tables from lines."""

    def make(*lines):
        path = tmp_path / "mine.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return make


@pytest.fixture
def result(tmp_path):
    """A maker of JSON files, one object or one a line."""

    def make(*objects):
        path = tmp_path / "result.json"
        path.write_text("\n".join(json.dumps(each) for each in objects), encoding="utf-8")
        return path

    return make


def test_a_run_gives_both_of_its_times(table):
    """Times in s, requests in flight, ways, and the machine of the system."""
    first, token = own_runs(table(HEAD, LLAMA)).rows
    assert (first.quantity, token.quantity) == ("ttft", "tpot")
    assert (first.seconds, token.seconds) == (0.25, 0.0215)
    assert (token.id, token.batch, token.chips, token.layout["tp"]) == ("2", 32, 4, 4)
    assert (token.machine, token.sizes.weight_dtype["dense_ffn"]) == ("hgx-h100", "fp8")
    assert token.looped


def test_words_of_others_are_understood(table):
    """Columns as engines and dashboards call them, whatever their case, spaces and brackets."""
    head = "Model ID,GPU,Backend,Precision,TP Size,Max Concurrency,ISL,OSL,Mean TTFT (ms),TPOT [s]"
    rows = own_runs(table(head, "Llama-3.1-70B,H100,vLLM,fp8,4,32,1024,256,250,0.0215")).rows
    assert [row.seconds for row in rows] == [0.25, 0.0215]
    assert rows[0].chip.name == "h100"


def test_every_mistake_of_a_header_is_said_at_once():
    """A misspelt column, a missing one and a doubled one, in one message."""
    with pytest.raises(InputError) as caught:
        map_columns(["model", "tpott_ms", "isl", "input_tokens", "batch"], {}, "mine.csv")
    told = str(caught.value)
    assert "did you mean 'tpot_ms'" in told
    assert "missing column system or chip" in told
    assert "missing column output_tokens" in told
    assert "input_tokens is given twice" in told


def test_columns_of_something_else_are_left_alone():
    """Remarks and dates stand in no one's way."""
    names = ["model", "chip", "batch", "input_tokens", "output_tokens", "step_ms", "remark"]
    assert "remark" not in map_columns(names, {}, "mine.csv")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tpot_ms": "0"}, "zero or negative"),
        ({"tpot_ms": "nan"}, "not finite"),
        ({"tpot_ms": "-1"}, "zero or negative"),
        ({"tpot_ms": "quick"}, "no number"),
        ({"tpot_ms": "0.0215"}, "below the bound: seconds given as ms"),
        ({"tpot_ms": "21500"}, "times the bound: ms given as seconds"),
        ({"tp": "1", "weights": "bf16"}, "do not fit on 1 h100"),
        ({"ep": "8"}, "model without experts"),
        ({"tp": "3.5"}, "no whole number"),
        ({"concurrency": ""}, "neither concurrency nor batch"),
        ({"model": "HAL-9000"}, "no shape"),
        ({"system": "Cray-1"}, "no chip figures"),
        ({"weights": "fp7"}, "unknown number format"),
        ({"input_tokens": ""}, "input_tokens is not given"),
    ],
)
def test_what_cannot_be_is_refused_by_name(table, change, reason):
    """The line is counted and the reason says what is wrong."""
    row = {**dict(zip(HEAD.split(","), LLAMA.split(","), strict=True)), **change}
    readings = own_runs(table(HEAD, ",".join(row.values()), LLAMA))
    assert reason in next(each.reason for each in readings.refused if each.id == "2")
    assert {row.id for row in readings.rows} >= {"3"}
    assert readings.lines == 2


def test_the_same_line_again_is_a_repeat(table):
    """It is read, and does not count twice."""
    readings = own_runs(table(HEAD, LLAMA, LLAMA))
    assert [row.repeats for row in readings.rows] == ["", "", "2", "2"]
    assert sum(not row.repeats for row in readings.rows) == 2


def test_chips_that_are_a_multiple_are_replicas(table):
    """Eight chips hold two replicas of four, which share the requests."""
    rows = own_runs(table(f"{HEAD},n_chips", f"{LLAMA},8")).rows
    assert (rows[0].chips, rows[0].batch) == (4, 16)


def test_chips_without_ways_are_tensor_parallel(table):
    """What is assumed is said."""
    line = LLAMA.replace(",4,,32", ",,,32")
    row = own_runs(table(f"{HEAD},n_chips", f"{line},4")).rows[0]
    assert row.layout["tp"] == 4
    assert "tensor" in row.assumed


def test_chips_that_are_no_multiple_are_refused(table):
    """Six chips are no replicas of four."""
    assert "no multiple" in own_runs(table(f"{HEAD},n_chips", f"{LLAMA},6")).refused[0].reason


@pytest.mark.parametrize(
    ("columns", "values", "quantity", "seconds"),
    [
        ("batch,step_ms", "64,20", "step", 0.02),
        ("batch,e2e_s", "64,7.5", "e2e", 7.5),
        ("batch,tokens_per_s", "64,3200", "step", 0.02),
        ("concurrency,tokens_per_s", "64,2560", "tpot", 0.025),
        ("concurrency,itl_s", "64,0.025", "tpot", 0.025),
        ("concurrency,ttft_ms,e2e_ms", "64,500,5600", "tpot", 0.02),
    ],
)
def test_every_way_to_tell_a_time(table, columns, values, quantity, seconds):
    """Steps, whole batches and rates, under a fixed batch and under a closed loop."""
    head = f"model,chip,weights,tp,input_tokens,output_tokens,{columns}"
    rows = own_runs(table(head, f"llama-3.1-70b,h100,fp8,4,1024,256,{values}")).rows
    assert (rows[-1].quantity, rows[-1].seconds) == (quantity, pytest.approx(seconds))


@pytest.mark.parametrize(("users", "batch"), [("32", 8), ("4", 1), ("0.5", 1)])
def test_a_timed_request_is_in_its_batch(table, users, batch):
    """Fewer requests than replicas, or than one on average: each is timed alone, never by half."""
    head = "model,chip,weights,tp,n_chips,input_tokens,output_tokens,concurrency,tpot_ms"
    (row,) = own_runs(table(head, f"llama-3.1-70b,h100,fp8,4,16,1024,256,{users},21.5")).rows
    assert row.batch == batch


def test_facts_fill_what_a_table_lacks(table):
    """What holds for all lines need not stand in each; an unknown fact is named."""
    path = table("concurrency,isl,osl,tpot_ms", "32,1024,256,21.5")
    rows = read(path, model="llama-3.1-70b", system="hgx-h100", tp=4, weights="fp8").rows
    assert rows[0].layout["tp"] == 4
    with pytest.raises(InputError, match="did you mean 'system'"):
        read(path, sytem="hgx-h100")


def test_a_configuration_of_ones_own_is_a_model(table, tmp_path):
    """A path that ends in .json is read as a published configuration."""
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "intermediate_size": 8192,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "torch_dtype": "bfloat16",
    }
    own = tmp_path / "config.json"
    own.write_text(json.dumps(config), encoding="utf-8")
    line = LLAMA.replace("llama-3.1-70b", str(own)).replace(",fp8,4,", ",,1,")
    assert own_runs(table(HEAD, line)).rows[0].sizes.n_layers == 16


def test_results_of_vllm_are_read(result):
    """Means of lengths, requests in flight, and the id of the model."""
    first, token = read(result(VLLM), **PLACE).rows
    assert (first.seconds, token.seconds) == (0.21, 0.025)
    assert (token.batch, token.prompt, token.output) == (32, 1024, 256)
    assert (token.model, token.engine, token.speculated) == ("qwen3-32b", "vllm", False)


def test_an_open_loop_holds_rate_times_latency(result):
    """With a finite rate the mean number in flight counts, and it is said so."""
    row = read(result({**VLLM, "request_rate": 3.2}), **PLACE).rows[0]
    assert row.batch == pytest.approx(3.2 * (0.21 + 255 * 0.025))
    assert "in flight" in row.assumed


def test_speculation_is_told_by_vllm(result):
    """Drafts per step from the counters that the engine writes."""
    told = {
        "spec_decode_acceptance_length": 2.1,
        "spec_decode_num_drafts": 1000,
        "spec_decode_draft_tokens": 3000,
    }
    row = read(result({**VLLM, **told}), **PLACE).rows[0]
    assert (row.drafts, row.speculated) == (3, True)


def test_results_of_sglang_are_read_line_by_line(result):
    """One run a line; an acceptance length above one means speculation."""
    path = result(SGLANG, {**SGLANG, "max_concurrency": 4, "accept_length": None})
    rows = read(path, model="Qwen/Qwen3-32B", **PLACE).rows
    assert detect_file_kind(path) == "sglang"
    assert [row.batch for row in rows] == [16, 16, 4, 4]
    assert [row.speculated for row in rows] == [True, True, False, False]


def test_what_sglang_says_of_its_server_is_taken(result):
    """Its tensor ways are the experts' under copies of attention, else copies are replicas."""
    server = {
        "model_path": "Qwen/Qwen3-235B-A22B", "version": "0.5.9", "tp_size": 8, "dp_size": 4,
        "ep_size": 8, "enable_dp_attention": True, "kv_cache_dtype": "fp8_e4m3",
        "quantization": "modelopt_fp4", "speculative_num_steps": 3,
    }  # fmt: skip
    copied = {**SGLANG, "server_info": server}
    plain = {**server, "tp_size": 4, "ep_size": 1, "enable_dp_attention": False, "dp_size": 2}
    plain |= {"kv_cache_dtype": "auto", "quantization": None}
    replicas = {**SGLANG, "accept_length": None, "server_info": plain}
    rows = read(result(copied, replicas), system="hgx-b200").rows
    row, other = (one for one in rows if one.quantity == "ttft")
    ways = [row.layout[name] for name in ("tp", "dp_attention", "ep", "tp_expert")]
    assert (ways, row.chips, row.drafts, row.version) == ([2, 4, 8, 1], 8, 3, "0.5.9")
    assert row.sizes.weight_dtype["routed"] == "nvfp4"
    assert row.sizes.kv_dtype == "fp8"
    assert (other.layout["tp"], other.chips, other.batch, other.drafts) == (4, 4, 8, 0)
    assert other.sizes.kv_dtype == "bf16"


def test_a_fact_wins_over_what_a_client_takes_for_granted(result):
    """A client may speak to another engine than its own; metadata may name the layout."""
    assert read(result({**VLLM, "backend": "openai"}), **PLACE).rows[0].engine == "vllm"
    assert read(result({**VLLM, "backend": "sglang"}), **PLACE).rows[0].engine == "sglang"
    assert read(result(VLLM), engine="trtllm", **PLACE).rows[0].engine == "trtllm"
    told = {**VLLM, "tp": "4", "system": "hgx-h100", "weights": "fp8"}
    assert read(result(told)).rows[0].chips == 4
    assert read(result(told), tp=8).rows[0].chips == 8


def test_a_sweep_of_guidellm_is_a_run_per_benchmark(result):
    """Its time per output token holds the first one, so the inter-token latency is taken."""
    path = result(GUIDELLM)
    readings = read(path, **PLACE)
    assert detect_file_kind(path) == "guidellm"
    tokens = [row for row in readings.rows if row.quantity == "tpot"]
    assert [(row.id, row.batch, row.seconds) for row in tokens] == [
        ("2", 8, 0.014),
        ("3", 7.9, 0.014),
    ]
    assert [bool(row.assumed) for row in tokens] == [False, True]


def test_the_model_of_a_report_of_guidellm_stands_where_its_version_has_it(result):
    """The report's arguments, a benchmark's configuration, or the worker before 0.4."""
    model = "Qwen/Qwen3-32B"
    told = [
        {"args": {"model": model}},
        {"benchmarks": [{"config": {"backend": {"model": model}}}]},
        {"benchmarks": [{"worker": {"backend_model": model}}]},
    ]
    for each in told:
        one = {**GUIDELLM["benchmarks"][0], **each.get("benchmarks", [{}])[0]}
        path = result({**GUIDELLM, "config": {}, **each, "benchmarks": [one]})
        assert read(path, **PLACE).rows[0].model == "qwen3-32b"


def test_results_of_inference_perf_are_in_seconds(result):
    """A stage names its concurrency; a summary holds rate times latency requests."""
    stage = result(PERF)
    assert detect_file_kind(stage) == "inference-perf"
    first, token = read(stage, model="Qwen/Qwen3-32B", **PLACE).rows
    assert (first.seconds, token.seconds, token.batch) == (0.2, 0.022, 24)
    summary = result({**PERF, "load_summary": {}})
    assert read(summary, model="Qwen/Qwen3-32B", **PLACE).rows[0].batch == pytest.approx(24)
    counters = {"load_summary": {}, "successes": {"count": 480, "rate": 8.0}, "failures": {}}
    with pytest.raises(InputError, match="no known load generator"):
        detect_file_kind(result(counters))


def test_results_of_two_generators_are_told_apart(result):
    """Each in a file of its own."""
    with pytest.raises(InputError, match="results of sglang, vllm in one file"):
        detect_file_kind(result(VLLM, SGLANG))


def test_a_result_without_a_request_is_refused(result):
    """Nothing completed, nothing measured."""
    nothing = {**VLLM, "completed": 0}
    with pytest.raises(InputError, match="missing column"):
        read(result(nothing), **PLACE)
    readings = read(result(nothing, VLLM), **PLACE)
    assert [each.id for each in readings.refused] == ["2"]


@for_all(
    ("name", "text", "reason"),
    [
        ("a.csv", "foo,bar\n1,2\n", "no known table"),
        ("a.csv", "", "is empty, expected a header"),
        ("a.csv", "model,model\n", "twice"),
        ("a.csv", "model,chip\x00\n", "zero bytes"),
        ("a.json", '{"a": 1}', "no known load generator"),
        ("a.json", "[1, 2]", "expected JSON objects"),
        ("a.json", "{", "neither JSON"),
        ("a.json", "", "expected JSON objects"),
        ("a.json", "[" * 100_000, "neither JSON"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, name, text, reason):
    """The message says what was looked for."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=reason):
        detect_file_kind(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    """As is one that is not text."""
    with pytest.raises(InputError, match="cannot be read"):
        detect_file_kind(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        detect_file_kind(tmp_path / "bytes.csv")


def test_a_table_that_nearly_is_one_names_what_it_lacks(tmp_path):
    """One column short of a published set."""
    path = tmp_path / "steady.csv"
    path.write_text("model,chip,phase,metric,value\n", encoding="utf-8")
    with pytest.raises(InputError, match="steady batches without the column 'batch'"):
        detect_file_kind(path)


def test_a_table_of_collectives_is_no_serving(tmp_path):
    """It is recognised, and said to be something else."""
    path = tmp_path / "rings.csv"
    path.write_text("accelerator,ranks,operation,size_bytes,time_us\n", encoding="utf-8")
    assert detect_file_kind(path) == "collectives"
    with pytest.raises(InputError, match="not measurements of serving"):
        read(path)


def test_words_mean_one_column_each():
    """No spelling stands for two columns."""
    words = [word for name, others in COLUMNS.items() for word in (name, *others)]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(("word", "halves"), [("two-batch", 2), ("true", 2), ("", 1), ("no", 1)])
def test_two_batches_are_a_column(tmp_path, word, halves):
    """Under the names that engines have for it."""
    path = tmp_path / "own.csv"
    head = "model,system,dp,ep,enable_two_batch_overlap,batch,input_tokens,output_tokens,step_ms"
    row = f"deepseek-v3,hgx-h200,8,8,{word},512,2000,200,60"
    path.write_text(f"{head}\n{row}\n", encoding="utf-8")
    assert [each.halves for each in own_runs(path).rows] == [halves]
    path.write_text(f"{head}\n{row.replace(f',{word},512', ',maybe,512')}\n", encoding="utf-8")
    assert "unknown overlap 'maybe'" in own_runs(path).refused[0].reason
