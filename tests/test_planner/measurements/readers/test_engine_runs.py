"""Published runs of whole engines: every line is read, layouts and pools are what ran."""

import csv
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from planner.measurements.published_names import (
    BadRow,
    base_architecture,
    number_format,
    published_sizes,
    resolve_chip,
    resolve_model,
    sizes_on_chip,
)
from planner.measurements.readers import runs
from planner.measurements.readers.engine_runs import run
from planner.measurements.readers.run_layouts import parallel_sizes, run_pools, worker_chips
from planner.measurements.roofline_bound import row_bounds
from planner.text.errors import InputError
from tests.loops import for_all
from tests.paths import SHARED, shared

DATA = SHARED / "serving_runs.csv"
COLUMNS = (
    "model_path,system,backend,backend_version,precision,mode,isl,osl,concurrency,ttft_ms,tpot_ms,"
    "gemm_quant_mode,moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,"
    "moe_ep_size,prefill_batch_size,prefill_num_workers,prefill_tp_size,prefill_pp_size,"
    "prefill_attention_dp_size,prefill_moe_tp_size,prefill_moe_ep_size,decode_batch_size,"
    "decode_num_workers,decode_tp_size,decode_pp_size,decode_attention_dp_size,decode_moe_tp_size,"
    "decode_moe_ep_size,measured_on,wip,image"
)
PLAIN = {
    "model_path": "openai/gpt-oss-120b",
    "system": "h200_sxm",
    "backend": "vllm",
    "mode": "agg",
    "isl": "1024",
    "osl": "1024",
    "concurrency": "64",
    "ttft_ms": "100",
    "tpot_ms": "10",
    "batch_size": "64",
    "tp_size": "4",
}


@pytest.fixture(scope="module")
def open_rows():
    """The table of open runs."""
    shared(DATA.name)
    return runs(DATA)


@pytest.fixture
def table(tmp_path):
    """A maker of tables of runs from what differs from PLAIN, row by row."""

    def make(*rows):
        lines = [COLUMNS]
        for row in rows:
            whole = {**PLAIN, **row}
            lines.append(",".join(whole.get(name, "") for name in COLUMNS.split(",")))
        path = tmp_path / "runs.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return runs(path)

    return make


@for_all(
    ("columns", "experts", "ways"),
    [
        ({"tp": 64, "dp": 1, "moe_tp": 8, "moe_ep": 8}, 256, (8, 1, 8, 1)),
        ({"tp": 8, "dp": 1, "moe_tp": 1, "moe_ep": 8}, 256, (8, 1, 8, 1)),
        ({"tp": 1, "dp": 64, "moe_tp": 8, "moe_ep": 8}, 256, (1, 8, 8, 1)),
        ({"tp": 1, "dp": 8, "moe_tp": 1, "moe_ep": 8}, 256, (1, 8, 8, 1)),
        ({"tp": 4, "dp": 4, "moe_tp": 1, "moe_ep": 16}, 256, (1, 4, 4, 1)),
        ({"tp": 4, "dp": 1, "moe_tp": 2, "moe_ep": 2}, 128, (2, 1, 2, 1)),
        ({"tp": 8, "dp": 0, "moe_tp": 2, "moe_ep": 4}, 256, (8, 1, 4, 2)),
        ({"tp": 8, "dp": 1, "moe_tp": 8, "moe_ep": 1}, 256, (8, 1, 1, 8)),
        ({"tp": 1, "dp": 32, "moe_tp": 32, "moe_ep": 1}, 256, (1, 32, 32, 1)),
        ({"tp": 8, "dp": 0, "moe_tp": 1, "moe_ep": 1}, 0, (8, 1, 1, 1)),
    ],
)
def test_columns_of_both_exports_mean_ways(columns, experts, ways):
    """Products and ways, blank and zero copies, one reading each: tp, copies, ep, expert tp."""
    row = {
        "tp_size": columns["tp"],
        "attention_dp_size": columns["dp"],
        "moe_tp_size": columns["moe_tp"],
        "moe_ep_size": columns["moe_ep"],
    }
    found = parallel_sizes({name: str(value) for name, value in row.items()}, experts)
    assert tuple(found[axis] for axis in ("tp", "dp_attention", "ep", "tp_expert")) == ways


def test_runs_in_both_exports_have_one_layout():
    """Rows of one run, told apart by nothing but the form of their ways, use the same chips."""
    shared(DATA.name)
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mode"] == "agg"]
    same: dict[tuple[str, ...], set[tuple[int, int]]] = {}
    for row in rows:
        if not row["image"] or "DeepSeek" not in row["model_path"]:
            continue
        key = (f"{float(row['ttft_ms']):.12g}", f"{float(row['tpot_ms']):.12g}")
        ways = parallel_sizes(row, 256)
        same.setdefault(key, set()).add((worker_chips(ways), ways["ep"]))
    assert all(len(layouts) == 1 for layouts in same.values())


def test_experts_that_do_not_divide_the_chips_are_refused():
    """A layout that cannot be is named."""
    with pytest.raises(BadRow, match="3 expert groups on 8 chips"):
        parallel_sizes({"tp_size": "8", "moe_ep_size": "3"}, 256)


def test_replicas_share_the_concurrency(table):
    """Where a copy holds a quarter of the requests, there were four replicas."""
    rows = table({"concurrency": "64", "batch_size": "16"}).rows
    assert {row.batch for row in rows} == {16}


def test_copies_of_attention_are_no_replicas(table):
    """Requests per copy times copies are the requests of the engine."""
    copies = {"attention_dp_size": "4", "moe_ep_size": "16", "batch_size": "16"}
    assert {row.batch for row in table(copies).rows} == {64}


def test_a_run_that_stands_twice_is_one(table):
    """Exports agree to twelve digits: the fuller row counts, the other is read as it is."""
    times = {"ttft_ms": "238.06712345678912", "tpot_ms": "12.345678901234567"}
    pooled = {
        **times,
        "mode": "disagg",
        "system": "b200_sxm",
        "backend": "trtllm",
        "moe_quant_mode": "nvfp4",
        "prefill_tp_size": "4",
        "prefill_moe_ep_size": "4",
        "decode_tp_size": "8",
    }
    bare = {**pooled, "model_path": "deepseek-ai/DeepSeek-R1", "tpot_ms": "12.345678901234569"}
    full = {
        **pooled,
        "model_path": "deepseek-ai/DeepSeek-V3",
        "prefill_num_workers": "1",
        "decode_num_workers": "5",
        "decode_moe_ep_size": "8",
    }
    readings = table(bare, full)
    assert [row.repeats for row in readings.rows] == ["3", "3", "", ""]
    assert {row.pools.decode.workers for row in readings.rows} == {5}
    assert {row.speculated for row in readings.rows} == {False}


def test_round_times_are_no_identity(table):
    """Two runs whose few digits agree are two runs."""
    readings = table({"tp_size": "4"}, {"tp_size": "8"})
    assert sum(not row.repeats for row in readings.rows) == 4


def test_an_export_that_rounds_repeats_the_run_that_it_rounds(table):
    """Its times to the hundredth are those of a fuller row, which counts; others are new."""
    full = {"ttft_ms": "338.3364140507183", "tpot_ms": "6.332719125474412"}
    rounded = {"ttft_ms": "338.34", "tpot_ms": "6.33", "measured_on": ""}
    other = {"ttft_ms": "338.34", "tpot_ms": "6.34", "measured_on": ""}
    readings = table({**full, "measured_on": "2026-03-20"}, rounded, other)
    assert [row.repeats for row in readings.rows] == ["", "", "2", "2", "", ""]


def test_a_run_beside_a_plain_one_of_its_sweep_speculates(table):
    """Same version, layout and concurrency, other times, and not in the export without drafts."""
    common = {"backend": "trtllm", "moe_quant_mode": "fp8", "tp_size": "8", "moe_tp_size": "8"}
    fast = {**common, "model_path": "deepseek-ai/DeepSeek-R1", "tpot_ms": "7"}
    plain = {**common, "model_path": "deepseek-ai/DeepSeek-V3"}
    alone = {**fast, "concurrency": "32", "batch_size": "32"}
    assert [row.speculated for row in table(fast, plain, alone).rows[::2]] == [True, False, None]


@pytest.mark.parametrize("value", ["0", "-3", "nan", "inf", "fast", ""])
def test_a_value_that_is_no_time_is_refused_alone(table, value):
    """The other value of the line stays, and the line is counted."""
    readings = table({"tpot_ms": value})
    assert [row.quantity for row in readings.rows] == ["ttft"]
    assert [(each.id, each.quantity) for each in readings.refused] == [("2", "tpot")]


def test_a_short_line_is_refused(tmp_path):
    """Missing values are named, whatever they are."""
    path = tmp_path / "runs.csv"
    path.write_text(f"{COLUMNS}\nopenai/gpt-oss-120b,h200_sxm,vllm\n", encoding="utf-8")
    assert [x.reason for x in runs(path).refused] == ["isl is not given"]


def test_tokens_of_two_pools_are_made_by_the_decode_pool(table):
    """Layout, chips and batch are those of one worker, the prompts wait at the others."""
    row = {
        "model_path": "deepseek-ai/DeepSeek-V3",
        "mode": "disagg",
        "system": "gb200",
        "backend": "trtllm",
        "moe_quant_mode": "nvfp4",
        "concurrency": "96",
        "prefill_num_workers": "1",
        "prefill_tp_size": "1",
        "prefill_attention_dp_size": "4",
        "prefill_moe_ep_size": "4",
        "decode_num_workers": "4",
        "decode_tp_size": "8",
        "decode_moe_ep_size": "8",
    }
    token, prompt = table(row).rows
    assert (token.chips, token.layout["tp"], token.batch) == (8, 8, pytest.approx(24, rel=0.05))
    assert (prompt.chips, prompt.layout["dp_attention"]) == (4, 4)
    assert token.pools.decode.stated


@pytest.mark.parametrize(
    ("concurrency", "chips", "copies"), [("12", "8", 1), ("4096", "8", 8), ("256", "32", 32)]
)
def test_attention_is_copied_where_the_cache_outweighs(concurrency, chips, copies):
    """Few users share tensors on several workers, many use copies on one."""
    row = {
        "mode": "disagg",
        "isl": "1024",
        "osl": "1024",
        "concurrency": concurrency,
        "prefill_tp_size": "4",
        "prefill_moe_ep_size": "4",
        "decode_tp_size": chips,
    }
    found = run_pools(
        row, published_sizes("DeepSeek-R1", "nvfp4", "fp8"), resolve_chip("gb200")
    ).decode
    assert found.layout["dp_attention"] == copies
    assert found.low <= found.workers <= found.high
    assert (found.workers > 1) == (copies == 1)
    assert not found.stated


def test_chips_of_all_pools_are_taken_apart():
    """An export that writes 36 chips on both sides means four prefill chips and 4 x 8 others."""
    row = {
        "mode": "disagg",
        "isl": "1024",
        "osl": "1024",
        "concurrency": "16",
        **{f"{pool}_{name}_size": "36" for pool in ("prefill", "decode") for name in ("tp",)},
    }
    found = run_pools(row, published_sizes("DeepSeek-R1", "nvfp4", "fp8"), resolve_chip("gb200"))
    assert (found.prefill.chips, found.decode.chips, found.decode.workers) == (4, 8, 4)


@pytest.mark.slow
def test_every_open_row_is_read(open_rows):
    """Both values of all lines, of one pool and of two."""
    lines = Counter(row.id for row in open_rows.rows)
    assert not open_rows.refused
    assert len(lines) == open_rows.lines
    assert set(lines.values()) == {2}


def test_open_repeats_are_marked(open_rows):
    """As many runs stand in the file more than once as it is said to hold, and 47 rounded ones."""
    repeats = {row.id for row in open_rows.rows if row.repeats}
    assert 337 < len(repeats) < 377


def test_inferred_workers_are_near_the_given_ones(open_rows):
    """Without the counts, two thirds of the decode pools have the right number of workers.

    The median error is nil; the stated range holds nine in ten.
    """
    with DATA.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    ratios, held, copied = [], [], []
    for row in table:
        if not row["decode_num_workers"] or not row["concurrency"]:
            continue
        pools = open_rows_pools(row)
        bare = {**row, "decode_num_workers": "", "prefill_num_workers": ""}
        for pool in ("prefill", "decode"):
            whole = float(row[f"{pool}_tp_size"]) * float(row[f"{pool}_attention_dp_size"] or 1)
            bare[f"{pool}_tp_size"], bare[f"{pool}_attention_dp_size"] = str(whole), "1"
        found = open_rows_pools(bare)
        ratios.append(found.decode.workers / pools.decode.workers)
        held.append(found.decode.low <= pools.decode.workers <= found.decode.high)
        same = (found.decode.layout["dp_attention"] > 1) == (
            pools.decode.layout["dp_attention"] > 1
        )
        copied.append(same)
    assert np.median(np.abs(np.log2(ratios))) == 0
    assert np.mean(np.array(ratios) == 1) > 0.6
    assert np.mean(held) > 0.85
    assert np.mean(copied) > 0.85


def test_scripts_start_the_workers_that_the_table_gives():
    """Runs whose workers the table gives, read as if it did not: scripts start the same."""
    with DATA.open(encoding="utf-8", newline="") as file:
        every = list(csv.DictReader(file))
    table = [row for row in every if row["decode_num_workers"] and row["concurrency"]]
    counts, layouts = [], []
    for row in table:
        bare = {**row, "decode_num_workers": "", "prefill_num_workers": ""}
        given, read = (run(each, "2", "", [], False)[0].pools for each in (row, bare))
        if read.decode.stated:
            counts.append(given.prefill.workers == read.prefill.workers)
            counts.append(given.decode.workers == read.decode.workers)
            layouts.append(given.decode.layout == read.decode.layout)
    assert len(layouts) > 140
    assert all(counts)
    assert all(layouts)


def open_rows_pools(row):
    """Pools of a raw row."""
    weights = "nvfp4" if row["gemm_quant_mode"] == "nvfp4" else "fp8"
    sizes = published_sizes(row["model_path"], weights, "fp8")
    return run_pools(row, sizes, resolve_chip(row["system"]))


def test_open_runs_meet_the_bound(open_rows):
    """No run is faster than the bound of those of its requests that decode.

    Three are faster than that of all that were sent. In rows 1865 and 2331 half of the requests and
    more wait in prefill. In row 818 two workers of four H100 would decode 448 requests of a dense
    model in 8.7 ms, where the cache alone takes longer, and eight prompts are read at a time.
    """
    rows = open_rows.rows
    assert all(row.seconds >= bound for row, bound in zip(rows, row_bounds(rows), strict=True))
    sent = zip(rows, row_bounds(rows, sent=True), strict=True)
    assert {row.id for row, bound in sent if row.seconds < bound} == {"818", "1865", "2331"}


def test_only_requests_that_decode_count_in_a_bound(open_rows):
    """By hand: of 128 that are sent 48 decode in row 1865, a bound of so many sent alike."""
    both = [row for row in open_rows.rows if row.id == "1865"]
    tokens, prompt = (next(r for r in both if r.quantity == name) for name in ("tpot", "ttft"))
    decode = (tokens.output - 1) * tokens.seconds
    inside = 128 * decode / (decode + prompt.seconds)
    assert inside == pytest.approx(48, abs=1)
    bound = dict(zip([row.quantity for row in both], row_bounds(both), strict=True))["tpot"]
    assert bound == pytest.approx(row_bounds([replace(tokens, batch=inside)])[0])
    assert bound < tokens.seconds < row_bounds([tokens])[0]


@for_all(
    ("published", "entry", "weights"),
    [
        ("nvidia/DeepSeek-R1-0528-NVFP4-v2", "deepseek-r1", "nvfp4"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b", None),
        ("Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b-fp8", None),
        ("nvidia/Kimi-K2.5-NVFP4", "kimi-k2.5-nvfp4", None),
        ("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2", None),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b", None),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "llama-4-maverick", "fp8"),
        ("RedHatAI/Qwen3-32B-quantized.w4a16", "qwen3-32b", "int4"),
        ("zai-org/GLM-5-FP8", "glm-5-fp8", None),
        ("LLAMA2-70b", "llama-2-70b", None),
        ("amd/Llama-3.1-70B-Instruct-FP8-KV", "llama-3.1-70b-fp8", None),
    ],
)
def test_model_ids_are_resolved_by_their_parts(published, entry, weights):
    """Organisation, tuning, release and format are told from the shape."""
    found = resolve_model(published)
    assert (found.name, found.weights) == (entry, weights)


@pytest.mark.parametrize("published", ["Qwen/Qwen3-14B", "mistralai/Mistral-Large", "DeepSeek", ""])
def test_a_model_without_a_shape_is_refused(published):
    """Another size is another model: nothing is guessed from a family."""
    with pytest.raises(BadRow, match="no shape"):
        resolve_model(published)


def test_tunings_of_one_shape_are_one_model():
    """Rows of one are no unseen model to rows of the other."""
    assert (
        base_architecture("deepseek-r1")
        == base_architecture("deepseek-v3")
        == base_architecture("deepseek-v3.1-nvfp4")
    )
    assert base_architecture("qwen3-32b-fp8") == "qwen3-32b"


def test_a_checkpoint_is_taken_as_published():
    """Told its own format, or a wider one that it does not exist in, its parts keep theirs."""
    own = published_sizes("openai/gpt-oss-120b", None, "fp8")
    assert published_sizes("openai/gpt-oss-120b", "nvfp4", "fp8") == own
    assert published_sizes("openai/gpt-oss-120b", "fp8", "fp8") == own
    assert published_sizes("Qwen/Qwen3-32B", "fp8", "fp8").weight_dtype["head"] == "bf16"


def test_formats_that_a_chip_only_stores_are_multiplied_in_bf16():
    """NVFP4 weights run on Hopper, at its bf16 rate."""
    found = sizes_on_chip(resolve_chip("h200"), "nvidia/Kimi-K2.5-NVFP4", None, "fp8")
    assert found.activation_dtype == "bf16"
    assert found.weight_dtype["routed"] == "nvfp4"
    assert (
        sizes_on_chip(resolve_chip("b200"), "nvidia/Kimi-K2.5-NVFP4", None, "fp8").activation_dtype
        != "bf16"
    )


@pytest.mark.parametrize(
    ("told", "name"),
    [("fp8_block", "fp8"), ("w4afp8", "int4"), ("float16", "fp16"), ("w4a16_mxfp4", "mxfp4")],
)
def test_formats_of_other_tables_are_understood(told, name):
    """Modes of TensorRT-LLM and aiconfigurator by the format that is stored."""
    assert number_format(told) == name


def test_a_table_without_a_needed_column_is_refused(tmp_path):
    """All that are missing are named."""
    path = tmp_path / "runs.csv"
    path.write_text("model_path,system,backend\n", encoding="utf-8")
    with pytest.raises(InputError, match="isl, osl, concurrency, tp_size, tpot_ms or ttft_ms"):
        runs(path)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("NVIDIA H100 80GB HBM3", "h100"), ("H200", "h200"), ("h20_sxm", "h20"), ("gb300", "gb300")],
)
def test_chips_are_found_under_their_usual_spellings(spelling, name):
    """Vendor, capacity and mounting say nothing that the catalogue does not."""
    assert resolve_chip(spelling).name == name


@pytest.mark.slow
def test_lengths_of_the_catalogue_suit_runs_that_draft(open_rows):
    """Tokens of a step come from other tables, drafting is charged: runs known to draft are met."""
    import numpy as np

    from planner.measurements.prediction import predict

    rows = [
        row for row in open_rows.rows if row.drafts and row.speculated and row.quantity == "tpot"
    ]
    assert len(rows) > 80
    ratios = np.array([p.estimate / r.seconds for p, r in zip(predict(rows), rows, strict=True)])
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert np.median(ratios[half]) == pytest.approx(1, abs=0.12)
        assert np.median(np.abs(ratios[half] - 1)) < 0.18
