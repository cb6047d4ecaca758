"""Kernels that read weights while they multiply: between the longer of both times and their sum."""

from dataclasses import replace

import numpy as np
import pytest

from formulas.numerics.evaluate import kernel
from formulas.serving.older_kernels import reading_beside
from planner.catalogue.profile import COEFFICIENTS, NEUTRAL, profile
from planner.measurements.prediction import RowStep, features, unknowns
from planner.measurements.readers.steady_batches import steady_batch


def step_reading(row, tokens):
    """Reading the weights as they are kept, once for every pass of 512 tokens [s]."""
    passes = np.ceil(tokens / 512)
    return passes * sum(row.sizes.streamed_bytes.values()) / row.chip.memory_bandwidth


ROW = {
    "id": "1",
    "source": "trtllm-0.9.0-static",
    "model": "Llama-2-7B",
    "phase": "prefill",
    "chip": "H100-SXM",
    "n_chips": "1",
    "layout": "single",
    "weight_dtype": "fp16",
    "kv_dtype": "fp16",
    "context_or_isl": "1024",
    "batch": "1",
    "osl": "",
    "metric": "ttft_ms",
    "value": "12",
    "quality": "clean",
}
TIMES = np.array([1e-6, 1e-3, 1.0])


def part(name, engine="", **changes):
    """What one coefficient contributes to a prompt at full efficiency [s]."""
    row = steady_batch({**ROW, **changes})
    row = replace(row, engine=engine) if engine else row
    return features([row]).matrix[0, COEFFICIENTS.index(name)]


def added(beside, reading, math, wide=0.0):
    """What reading weights adds to arithmetic, both at full efficiency [s]."""
    times = kernel([reading_beside], ["T_pf_beside"])
    return times(
        e_w=1.0, n_pr=1.0, x_wide=wide, x_beside=beside, T_pf_read=reading, T_pf_peak=math
    )["T_pf_beside"]


def test_both_together_take_between_the_longer_and_the_sum():
    """What reading adds to arithmetic is what it sticks out, up to all of it."""
    reading, math = np.repeat(TIMES, len(TIMES)), np.tile(TIMES, len(TIMES))
    together = math + added(1.0, reading, math)
    assert (together >= np.maximum(reading, math) * (1 - 1e-12)).all()
    assert (together <= (reading + math) * (1 + 1e-12)).all()


def test_engines_of_the_runs_add_both():
    """Their coefficients were fitted as a sum, and so they stay."""
    assert added(0.0, TIMES, TIMES) == pytest.approx(TIMES)
    row = replace(steady_batch(ROW), engine="vllm")
    assert features([row]).matrix[0, COEFFICIENTS.index("e_w")] == pytest.approx(
        part("e_w", engine="vllm", context_or_isl="1")
    )


def test_long_prompts_hide_reading_and_short_ones_do_not():
    """A prompt of one token waits for the weights; one of 4,096 tokens hardly."""
    short, long = (part("e_w", context_or_isl=n) for n in ("1", "4096"))
    whole = part("e_w", engine="vllm", context_or_isl="1")
    assert 0.9 * whole < short <= whole
    assert long < 0.1 * whole


def test_widening_a_pass_hides_nothing():
    """llama.cpp writes four-bit weights out, 2 bytes each: that comes on top of any arithmetic."""
    row = steady_batch({**ROW, "source": "llama.cpp-XiongjieDai", "weight_dtype": "q4_k_m"})
    stored = sum(row.sizes.streamed_bytes.values())
    narrow = sum(
        n for part, n in row.sizes.params.items() if row.sizes.weight_dtype[part] == "int4"
    )
    share = 2.0 * narrow / stored
    assert added(share, 1.0, 1e9, 2 * share) == pytest.approx(1 + share, rel=1e-6)
    reading = RowStep([replace(row, prompt=4e6)]).times({**NEUTRAL, "e_w": 1.0})[0][0]
    kept = step_reading(row, 4e6)
    assert (1 + share) * kept < reading < (1 + 2 * share) * kept


WIDE = {
    "source": "lmsys-96h100", "model": "DeepSeek-V3", "n_chips": "16", "layout": "EP16/DP16+TBO",
    "weight_dtype": "fp8", "kv_dtype": "bf16", "batch": "1024",
}  # fmt: skip
HALVED = [
    steady_batch({**ROW, **WIDE, "phase": phase, "metric": metric, "context_or_isl": length})
    for phase, metric, length in (("prefill", "ttft_ms", "1024"), ("decode", "step_ms", "2048"))
]


@pytest.mark.parametrize("row", HALVED, ids=lambda row: row.quantity)
@pytest.mark.parametrize("network", [0.05, 0.9])
def test_columns_of_two_batches_make_the_time_of_the_step(row, network):
    """Whether work or sending is the shorter, columns and step agree, and so do their slopes."""
    values = {**profile("engines-2026").values, "e_a2a": network, "e_ovl": 0.6}
    columns, x = features([row]), unknowns(values)[None]
    assert columns.times(x)[0] == pytest.approx(RowStep([row]).times(values)[0][0], rel=1e-9)
    ends = [
        np.array([columns.times(x * (1 + sign * 1e-6 * here))[0] for here in np.eye(len(values))])
        for sign in (1, -1)
    ]
    slopes = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(columns.parts(x)[0], slopes, rtol=1e-4, atol=1e-8)
