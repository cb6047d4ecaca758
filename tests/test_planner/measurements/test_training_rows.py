"""Tables of training runs: which rows count, which are refused, and why."""

from pathlib import Path

import pytest

from planner.measurements.readers import detect_file_kind
from planner.measurements.readers.file_kinds import table
from planner.measurements.readers.sheets import open_tables
from planner.measurements.readers.training_rows import training_rows
from planner.measurements.training_steps import min_step_seconds, row_stack, training_layout_entries
from tests.loops import for_all
from tests.paths import shared

COLUMNS = (
    *("id", "source", "date", "model", "layers", "hidden", "heads", "kv_heads", "ffn", "gated"),
    *("vocab", "experts", "topk", "expert_ffn", "seq", "chip", "chips", "precision"),
    *("global_batch", "micro_batch", "tp", "pp", "vp", "dp", "cp", "ep", "zero", "recompute"),
    *("framework", "version", "status", "metric", "value", "tflops_chip_published"),
)
GPT = {
    "source": "a table", "date": "2023-11", "model": "gpt", "layers": "24", "hidden": "2048",
    "heads": "16", "ffn": "8192", "gated": "0", "vocab": "51200", "seq": "2048",
    "chip": "A100-80GB", "chips": "8", "precision": "BF16", "global_batch": "64",
    "micro_batch": "4", "tp": "1", "pp": "1", "vp": "1", "dp": "8", "recompute": "none",
    "framework": "llm-foundry", "status": "measured", "metric": "step_time_s", "value": "8",
}  # fmt: skip


def read(tmp_path: Path, *rows: dict[str, str]):
    """The rows of a table, each the usual one with changes."""
    path = tmp_path / "runs.csv"
    lines = [",".join(COLUMNS)]
    lines += [",".join({**GPT, **row}.get(name, "") for name in COLUMNS) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert detect_file_kind(open_tables(path)) == "training layouts"
    return training_rows(path)


@for_all(
    ("changes", "reason"),
    [
        ({"hidden": ""}, "hidden is not given"),
        ({"value": "-3"}, "value is zero or negative"),
        ({"chips": "16"}, "tp, pp, dp and cp make 8 chips, the row says 16"),
        ({"global_batch": "16"}, "a batch of 16 is less than dp x micro_batch = 32"),
        ({"chip": "A100-8GB"}, "chip 'A100-8GB' is not known; did you mean 'A100-80GB'?"),
        ({"precision": "FP7"}, "precision 'FP7' is not known"),
        ({"vp": "3"}, "3 virtual stages without a pipeline"),
        ({"experts": "8", "ep": "16"}, "ep 16 does not divide tp x cp x dp = 8"),
        ({"metric": "samples_per_s"}, "metric 'samples_per_s' is no step_time_s"),
        ({"status": "suspect"}, "the table itself says suspect"),
    ],
)
def test_what_cannot_be_is_refused_by_line_and_reason(tmp_path, changes, reason):
    sound, refused = read(tmp_path, {"value": "7"}, changes)
    assert (sound.line, refused.line) == (2, 3)
    assert sound.reason == ""
    assert sound.usable
    assert refused.reason.startswith(reason)
    assert not refused.usable


def test_repeats_and_contradictions_name_the_earlier_line(tmp_path):
    rows = read(tmp_path, {}, {}, {"status": "oom", "metric": "fits", "value": "0"}, {"value": "9"})
    reasons = [row.reason for row in rows]
    says = "says that it does not fit, line 2 the opposite"
    assert reasons == ["", "the same as line 2", says, ""]  # a second time is another day's


def test_a_rate_is_a_step_time(tmp_path):
    (row,) = read(tmp_path, {"metric": "tokens_per_s_chip", "value": "2048"})
    assert row.seconds == pytest.approx(64 * 2048 / (2048 * 8))


def test_flop_per_second_outside_of_its_sets_convention_are_suspect(tmp_path):
    """Three rows counted with full attention, one of them slipped by half."""
    times = ("8", "9", "10")
    rates = [read(tmp_path, {"value": time})[0].flop_rates()[0] / 1e12 for time in times]
    rates[1] *= 1.5
    rows = read(
        tmp_path,
        *(
            {"value": t, "tflops_chip_published": f"{r:.3f}"}
            for t, r in zip(times, rates, strict=True)
        ),
    )
    assert [bool(row.reason) for row in rows] == [False, True, False]
    assert rows[1].reason == (
        "suspect: published FLOP/s are 1.50 of those that its rate gives in the convention of its "
        "set (full attention)"
    )


def test_another_count_of_a_model_is_no_slip(tmp_path):
    """All rows of one model are off by the same factor, in a set where others agree."""
    rows = []
    for model, factor in (("gpt", 1.0), ("gpt", 1.0), ("gpt", 1.0), ("other", 0.6), ("other", 0.6)):
        value = str(8 + len(rows))
        rate = read(tmp_path, {"value": value})[0].flop_rates()[1] / 1e12
        rows.append(
            {"value": value, "model": model, "tflops_chip_published": f"{rate * factor:.4f}"}
        )
    assert not any(row.reason for row in read(tmp_path, *rows))


def test_no_row_is_faster_than_its_arithmetic_at_peak():
    """Every timed row of the shared table, its bound counted from causal halves."""
    rows = [row for row in training_rows(shared("training_layouts.csv")) if row.usable]
    assert len(rows) > 350
    shares = [min_step_seconds(row) / row.seconds for row in rows]
    assert max(shares) < 0.75
    assert min(shares) > 0.01


def test_utilisation_of_selective_recomputation_is_korthikantis():
    """41.65, 51.39, 56.05 and 56.27 % in that paper's convention; fewer with the causal half."""
    usable = [row for row in training_rows(shared("training_layouts.csv")) if row.usable]
    rows = [row for row in usable if row.layout.words()["recompute"] == "selective"]
    rows = [row for row in rows if row.era == "korthikanti"]
    both = sorted(tuple(rate / row.machine.peak for rate in row.flop_rates()[:2]) for row in rows)
    assert [100 * full for full, _ in both] == pytest.approx([41.65, 51.39, 56.05, 56.27], abs=0.2)
    assert [100 * half for _, half in both] == pytest.approx([40.6, 50.7, 55.6, 55.9], abs=0.2)


def test_predictions_are_in_the_unit_of_the_row(tmp_path):
    """A row of a rate is predicted as a rate, one of a time as a time; both are one step."""
    rate = 64 * 2048 / (8 * 8)  # tokens of a step over 8 s and 8 chips
    read(tmp_path, {}, {"metric": "tokens_per_s_chip", "value": str(rate), "micro_batch": "2"})
    time, speed = training_layout_entries(table(tmp_path / "runs.csv", {}))
    assert (time.measured, speed.measured) == (8, rate)
    assert time.seconds == speed.seconds == 8
    assert time.in_unit(time.prediction.estimate) == pytest.approx(time.prediction.estimate)
    estimate = speed.prediction.estimate
    assert speed.in_unit(estimate) == pytest.approx(rate * 8 / estimate)


@pytest.mark.parametrize(("chip", "named"), [("A100-80GB", True), ("B200", False)])
def test_a_framework_counts_on_chips_that_it_was_fitted_on(tmp_path, chip, named):
    """On others of the same name the stack is that of a plan on the chip."""
    (row,) = read(tmp_path, {"chip": chip, "framework": "Megatron-LM", "version": "2021"})
    chosen = row_stack(row)
    assert row.machine.chip in chosen.chips
    assert (chosen.name == row.stack) is named
