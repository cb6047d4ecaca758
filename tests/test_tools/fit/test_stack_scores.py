"""Fits of training stacks on rows that they did not see."""

import numpy as np
import pytest

from planner.calibration.cross_validation import quantiles
from planner.catalogue.training.training_stacks import training_stack
from planner.measurements.readers.training_rows import SCORED_SEPARATELY_NOTE, training_rows
from planner.measurements.training_steps import predicted_seconds
from tests.paths import shared
from tools.fit.stack_scores import by_stack, cross_coverage, judged


def test_a_band_holds_its_share_of_rows_to_come():
    rng = np.random.default_rng(5)
    ratios = np.exp(rng.normal(0, 0.1, 400))
    low, high = quantiles(ratios)
    fresh = np.exp(rng.normal(0, 0.1, 20_000))
    assert np.mean((fresh > low) & (fresh < high)) == pytest.approx(0.8, abs=0.03)
    assert cross_coverage(ratios) == pytest.approx(80, abs=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "kind", "median", "mean"),
    [
        ("aa-scaling-2023", "random half", 3.0, 4.5),
        ("aa-scaling-2023", "model out", 4.5, 6.0),
        ("megatron-deepspeed-2022", "model out", 4.0, 6.0),
        ("llm-foundry-2023", "model out", 4.5, 5.0),
        ("megatron-lm-2021", "model out", 3.0, 3.5),
    ],
)
def test_errors_on_rows_left_out_are_below_those_of_a_constant(stack, kind, median, mean):
    rows = by_stack(training_rows(shared("training_layouts.csv")))[stack]
    (stack_scores,) = judged(rows)
    error = stack_scores.scores.errors[kind]
    assert error.median <= median
    assert error.mean <= mean
    assert error.constant_mean > 2 * error.mean
    assert 74 <= stack_scores.coverage[kind] <= 90
    assert stack_scores.below_bound == 0


@pytest.mark.slow
def test_memory_calls_of_the_sweep():
    rows = by_stack(training_rows(shared("training_layouts.csv")))["aa-scaling-2023"]
    memory = judged(rows)[0].memory
    assert memory.n == 295
    assert memory.unfitted >= 92  # the formulas of its sources, nothing fitted
    assert memory.right >= 93
    assert memory.fail_as_fit <= 5


@pytest.mark.slow
def test_small_models_with_layouts_and_widths_left_out():
    rows = by_stack(training_rows(shared("training_vtrain.csv")))["megatron-deepspeed-2021"]
    (stack_scores,) = judged(rows)
    score = stack_scores.scores
    assert score.n == 755
    assert score.errors["random half"].mean < 8
    assert score.errors["width out"].mean < 12
    assert score.errors["width out"].constant_mean > 50


@pytest.mark.slow
def test_fine_tunes_are_scored_by_stacks_that_never_saw_one():
    """LoRA makes two passes of three: five rows of four chips, within a fifth on the mean."""
    rows = [
        row
        for row in training_rows(shared("training_layouts.csv"))
        if row.reason.endswith(SCORED_SEPARATELY_NOTE)
    ]
    assert not any(row.usable for row in rows)
    off = {
        row.id: abs(predicted_seconds(row, training_stack(row.stack)) / row.seconds - 1)
        for row in rows
        if row.trained == 0 and row.stack == "megatron-bridge-2026"
    }
    assert len(off) == 5
    assert np.mean(list(off.values())) < 0.2
