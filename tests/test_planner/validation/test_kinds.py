"""Rows of collectives, exchanges and training become bounds and estimates, or reasons."""

from __future__ import annotations

import csv

import pytest

from planner.catalogue.collective_curves import collectives
from planner.measurements.readers.table_entries import step_bound
from planner.validation.estimates import read
from tests.cases.validation import COLLECTIVE_HEAD, EXCHANGE_HEAD, TRAINING_HEAD, written
from tests.paths import shared

SHAPE = {
    "hidden": "12288", "layers": "96", "ffn_hidden": "49152.0", "seq_len": "2048", "vocab": "51200",
    "gpus": "64", "global_batch": "64", "gpu_peak_tflops_bf16": "312",
}  # fmt: skip


def test_the_bound_of_a_training_step_is_its_published_arithmetic():
    """GPT-175B at 51.4 % MFU takes 13.75 s: all but the masked half of attention is in the bound.

    Korthikanti et al. count 72 B s l h^2 (1 + s/6h + V/12lh), attention over whole sequences.
    """
    masked = 0.5 * 2048 / (6 * 12288)
    counted = 1 + 2048 / (6 * 12288) + 51200 / (12 * 96 * 12288)
    expected = 0.514 * 13.75 * (1 - masked / counted)
    assert step_bound(SHAPE) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(("change", "told"), [({"gpus": "0"}, "gpus"), ({"vocab": "x"}, "vocab")])
def test_a_shape_that_is_no_number_is_named(change, told):
    """No bound is guessed."""
    with pytest.raises(ValueError, match=f"{told} is '.'"):
        step_bound({**SHAPE, **change})


def test_a_training_row_has_a_bound_and_says_why_it_has_no_estimate(tmp_path):
    """In whichever column its time stands; a row without one says so."""
    cells = "GPT,12288,96,96,49152,2048,51200,A100,312,64,8,8,1,64,full"
    path = written(
        tmp_path / "t.csv",
        TRAINING_HEAD,
        f"a,{cells},13.75,,s,",
        f"b,{cells},,18.1,s,",
        f"c,{cells},,,s,",
    )
    one, other, none = read(path)[1]
    assert [e.column for e in (one, other)] == ["measured_iter_time_s", "iter_time_derived_s"]
    assert one.bound == pytest.approx(6.99, rel=1e-2)
    assert "not estimated yet" in one.reason
    assert none.bound is None
    assert "not a positive number" in none.reason


def test_a_dispatch_counts_bytes_as_the_table_of_collectives_does(tmp_path):
    """128 tokens to 8 experts at 7,168 values of one byte, and a scale of four for each 128."""
    low = "deepep-v1,u,{op},low-latency RDMA,H800,CX7-400G,16,128,7168,8,{dtype},{us},63,RDMA,"
    path = written(
        tmp_path / "t.csv",
        EXCHANGE_HEAD,
        low.format(op="dispatch", dtype="fp8", us=118),
        low.format(op="combine", dtype="bf16", us=195),
        low.format(op="combine", dtype="bf16", us=""),
        "x,u,allreduce-custom,TP8 NVLink,H100-SXM,,8,,,,fp16,16.71,,,256 KB message",
        "x,u,dispatch,in-situ decode,H100,CX7?,72,256,7168,8,fp8,170,,,",
    )
    dispatch, combine, bare, reduce, situ = read(path)[1]
    assert "7569408 byte" in dispatch.setting
    assert "14680064 byte" in combine.setting
    assert "262144 byte" in reduce.setting
    assert dispatch.prediction.bound < dispatch.prediction.estimate
    assert (bare.reason, bare.prediction) == ("no latency", None)
    assert "waiting included" in situ.reason


def test_rows_of_a_fitted_curve_are_in_sample(tmp_path):
    """A sweep whose curve ships is told apart from a node that no fit saw."""
    sweep = "one node,A100-SXM,8,1.0,all_gather,1048576.0,{us},,,nccl-tests,s,measured"
    path = written(
        tmp_path / "t.csv",
        COLLECTIVE_HEAD,
        sweep.format(us=40),
        "my node,A100-SXM,8,1.0,all_gather,1048576.0,40,,,mine,s,measured",
        "my node,A100-SXM,8,1.0,all_gather,1048576.0,-40,,,mine,s,measured",
        "my node,A100-SXM,8,1.0,all_gather,1048576.0,,,,mine,s,measured",
    )
    fitted, mine, negative, bare = read(path)[1]
    assert any(c.chip == "a100" and c.n == 8 for c in collectives().curves)
    assert (fitted.seen, mine.seen) == (True, False)
    assert fitted.part != mine.part
    assert "not a positive number" in negative.reason
    assert bare.reason == "no time"


def test_a_message_of_a_fitted_curve_is_predicted_as_measured():
    """Of a size that was swept the curve itself is the estimate (open data, one row of it)."""
    path = shared("collectives.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    entries = read(path)[1]
    ring = [e for e in entries if e.seen and e.engine == "ring" and e.prediction]
    off = sorted(abs(e.prediction.estimate / e.seconds - 1) for e in ring)
    assert len(entries) == len(rows)
    assert off[len(off) // 2] < 1e-3
