"""What validation predicts for a row is what a plan says for the question that the row answers."""

from dataclasses import replace
from itertools import islice

import pytest

import planner
from planner.measurements.measurement import Measurement
from planner.measurements.prediction import BANDS, RowStep, predict
from planner.measurements.readers import runs
from planner.measurements.readers.engine_runs import run
from planner.measurements.readers.steady_batches import steady_batch
from tests.paths import SHARED
from tests.test_planner.measurements.test_measurement import RUNS_HEADER

SAME = 1e-9
PROFILES = {
    "vllm-2026": "vllm-2026", "sglang-2026": "sglang-2026", "trtllm-2026": "trtllm-2026",
    "trtllm-2024": "trtllm-2024", "llama.cpp": "llama-cpp-2024", "pope-2022": "palm-2022",
    "fastertransformer-2022": "fastertransformer-2022",
}  # fmt: skip
MODES = {"tpot": "aggregated", "step": "decode"}
UNEVEN = 1e-8  # a spread of lengths too small to change any mean
RUN = {
    "model_path": "meta-llama/Llama-3.1-70B", "system": "h200", "backend": "vllm",
    "backend_version": "0.12.0", "isl": "2000", "osl": "300", "concurrency": "16",
    "precision": "bf16", "tp_size": "4", "ttft_ms": "500", "tpot_ms": "20", "mode": "agg",
}  # fmt: skip
STATIC = {
    "id": "1", "source": "trtllm-0.9.0-static", "model": "Llama-2-70B", "phase": "decode",
    "chip": "H100-SXM", "n_chips": "8", "layout": "TP8", "weight_dtype": "fp16",
    "kv_dtype": "fp16", "context_or_isl": "1024", "batch": "4", "osl": "128",
    "metric": "step_ms", "value": "12", "quality": "clean",
}  # fmt: skip
PROMPT = {"phase": "prefill", "metric": "ttft_ms", "batch": "1", "osl": ""}


def question(row: Measurement) -> dict:
    """The scenario of a row: its layout, its batch or its requests in flight, its profile.

    No engine's rules are asked: what ran is predicted whatever releases that were read run.
    """
    mode = MODES.get(row.quantity, "aggregated" if row.looped else "prefill")
    spread = 0.0 if row.even or not row.looped else UNEVEN
    layout = {axis: [ways] for axis, ways in (row.layout or {}).items()}
    choose = {"mode": mode, "kv": row.sizes.kv_dtype, "replicas": 1, **layout}
    workload = {
        "input_tokens": {"mean": row.prompt, "cv": spread},
        "output_tokens": {"mean": row.output, "cv": spread},
    }
    if row.looped:
        workload["concurrency"] = round(row.batch)
    elif mode in ("decode", "prefill"):  # of prompts those that share a pass
        choose["batch"] = round(row.batch)
    drafts = {"speculation": {"drafts": row.drafts}} if row.drafts else {}
    return {
        "problem": "serving", "model": row.sizes.name, "system": row.machine or row.chip.name,
        "chips": row.chips, "price": "$2/hour", "workload": workload, "choose": choose,
        "profile": PROFILES[row.engine], "engine": "none", **drafts,
    }  # fmt: skip


def agree(row: Measurement) -> bool:
    """Asserts that the prediction and the plan are one number, the engine being the profile's.

    False where there is no plan, because memory does not hold what was run. What the script of a
    run set of its passes is left out: a scenario has the engine's own.
    """
    row = replace(row, version="", as_of="2030-01", chunk=0.0, mixed=False)
    predicted, name = predict([row], PROFILES[row.engine])[0], BANDS.get(row.quantity, "tpot")
    document = planner.solve(question(row)).to_json()
    if document["plan"] is None:
        return False
    assert document["plan"][name] == pytest.approx(predicted.estimate, rel=SAME)
    assert document["band"][name] == pytest.approx([predicted.low, predicted.high], rel=1e-4)
    return True


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"concurrency": "128", "isl": "6000", "osl": "1000"},
        {"isl": "100"},
        {"backend": "sglang", "system": "h100", "tp_size": "8"},
        {"backend": "trtllm", "backend_version": "1.2.0", "concurrency": "64"},
        {"backend": "sglang", "system": "h100", "tp_size": "8", "isl": "1024", "osl": "1024"},
        {"model_path": "openai/gpt-oss-120b", "precision": "", "tp_size": "2"},
    ],
)  # fmt: skip
def test_runs_in_a_closed_loop_are_planned_as_they_are_predicted(changes):
    """TPOT and TTFT of requests kept in flight, waits for the prompts of others included."""
    rows = run({**dict.fromkeys(RUNS_HEADER.split(","), ""), **RUN, **changes}, "2", "", [])
    assert {row.quantity for row in rows} == {"tpot", "ttft"}
    assert all(agree(row) for row in rows)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"batch": "64"},
        {"chip": "A100-SXM-80GB", "model": "Llama-2-7B", "n_chips": "1", "layout": "single"},
        PROMPT,
        {**PROMPT, "chip": "A100-SXM-80GB", "context_or_isl": "256"},
    ],
)
def test_static_batches_are_planned_as_they_are_predicted(changes):
    """Steps with unsplit caches, and a prompt that hides the reading of weights."""
    assert agree(steady_batch({**STATIC, **changes}))


def test_the_effects_of_old_engines_are_felt():
    """What is compared above is not two sums: a small batch reads its caches with few processors,
    and a prompt hides its weights."""
    step, prompt = steady_batch(STATIC), steady_batch({**STATIC, **PROMPT})
    for row, slower in ((step, True), (prompt, False)):
        other = replace(row, engine="vllm-2026")
        values = {"e_w": 0.8, "e_kv": 0.8, "e_c": 0.8, "e_at": 0.8, "e_pf": 0.6, "e_pf_x": 0.6,
                  "e_pf_a": 0.6, "e_ar": 0.8, "e_ar_pf": 0.8, "e_a2a": 0.8}  # fmt: skip
        rest = {name: 0.0 for name in RowStep([row]).step.task.profile.values if name[0] != "e"}
        ours, theirs = (RowStep([each]).times({**rest, **values})[0][0] for each in (row, other))
        assert (ours > theirs * 1.001) == slower
        assert ours != theirs


@pytest.mark.slow
def test_published_runs_are_planned_as_they_are_predicted():
    """Rows of the shared table whose settings and formats a scenario can name, one in thirty."""
    if not SHARED.is_dir():
        pytest.skip("the measurements beside the repository are not there")
    rows = (row for row in runs(SHARED / "serving_runs.csv").rows if _expressible(row))
    sample = list(islice(rows, 0, 600, 30))
    assert sum(agree(row) for row in sample) >= 15


def _expressible(row: Measurement) -> bool:
    """Engines by their defaults, checkpoints as they come, and memory for all requests."""
    if row.pooled or row.layout is None or row.engine not in PROFILES or row.poll or row.hold:
        return False
    stored = planner.catalogue.models.load(row.sizes.name) if row.sizes.name else None
    if stored is None:
        return False
    counted = planner.architecture.counts.model_sizes(stored, None, row.sizes.kv_dtype, None)
    return counted == row.sizes and (RowStep([row]).batch == row.batch).all()
