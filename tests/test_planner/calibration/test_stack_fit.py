"""Fits of training steps: what rows move and what stays physics, and errors on rows never seen."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.stack_file import network_form, power_scores, stack_table, stack_text
from planner.calibration.stack_fit import (
    NOISE,
    ROUTED_NOISE,
    MemorySample,
    StepSample,
    coefficient_estimates,
    fit_memory,
    fit_steps,
    robust,
    robust_slope,
    shipped_findings,
    stack_priors,
)
from planner.catalogue.systems import system
from planner.catalogue.training.training_stacks import (
    coefficient_priors,
    parse_stack,
    training_stack,
)
from planner.measurements.readers.training_rows import TrainingRow
from planner.measurements.training_steps import predicted_seconds
from planner.problems.training.step.step_times import run_kernel
from planner.problems.training.step.training_counts import shape_counts
from planner.problems.training.step.training_task import LayoutTable, training_machine


def run(stack, width, experts=0, **layout):
    """A run of a made model whose step time is what a stack says of it."""
    routed = {"experts": experts, "topk": 2, "expert_ffn": width} if experts else {}
    counts = shape_counts(
        f"made-{width}-{experts}", layers=32, hidden=width, heads=width // 128,
        kv_heads=width // 128, head_dim=128, ffn=4 * width, gates=1, vocab=50000, **routed,
    )  # fmt: skip
    ways = LayoutTable.of(**layout)
    chips = int(ways.tp * ways.pp * ways.dp)
    row = TrainingRow(
        line=2, id="made", set="made", date="2024-01", stack="made", era="", counts=counts,
        machine=training_machine(system("hgx-a100"), "bf16"), layout=ways, batch=512.0,
        sequence=2048.0, chips=chips, seconds=1.0,
    )  # fmt: skip
    return replace(row, seconds=predicted_seconds(row, stack))


@pytest.fixture(scope="module")
def made():
    """A stack with slow products and all-reduces, and 64 runs by it."""
    physical = training_stack("physical")
    values = {**physical.values, "k_mat": 1.5, "k_tp": 2.2}
    stack = replace(physical, values=values)
    rows = [
        run(stack, width, tp=tp, pp=pp, dp=64 // (tp * pp), micro_batch=micro, zero=1)
        for width in (2048, 4096, 8192)
        for tp in (1, 2, 4, 8)
        for pp in (1, 4)
        for micro in (1, 4)
    ]
    return stack, rows


def test_a_fit_recovers_what_the_rows_tell(made):
    rows = made[1]
    sample = StepSample.of(rows, training_stack("physical"))
    fit = fit_steps(sample)
    off = np.abs(np.log(fit.predicted(sample) / sample.seconds))
    assert np.median(off) < NOISE / 2
    assert fit.values()["k_mat"] == pytest.approx(1.5, rel=0.1)
    assert fit.values()["k_tp"] > coefficient_priors()["k_tp"].value  # a small part of these steps


@pytest.mark.slow
def test_routed_rows_count_less_where_layouts_do_not_explain_them(made):
    """Steps of routed models up to 2.5 times too long; models left out are predicted better."""
    stack, dense = made
    exact = [run(stack, width, experts, dp=64, ep=8, zero=1)
             for width in (1024, 2048, 4096) for experts in (8, 16, 32)]  # fmt: skip
    off = 2.5 ** np.random.default_rng(3).uniform(0.3, 1.0, len(exact))
    strange = [replace(row, seconds=row.seconds * x) for row, x in zip(exact, off, strict=True)]
    some, physics = dense[::4], coefficient_priors()
    form = network_form([*some, *strange])
    assert form.routed_noise == ROUTED_NOISE
    errors = [
        sum(score.n * score.errors["model out"].mean
            for score in power_scores([*some, *strange], replace(form, routed_noise=noise),
                                      physics))
        for noise in (NOISE, ROUTED_NOISE)
    ]  # fmt: skip
    assert errors[1] < 0.95 * errors[0]
    assert network_form(some).routed_noise == NOISE


def test_what_no_row_moves_stays_physics(made):
    """No row is routed or in eight bits."""
    fit = fit_steps(StepSample.of(made[1], training_stack("physical")))
    priors = coefficient_priors()
    for name in ("k_expert", "k_ep", "k_quant", "k_cp"):
        assert fit.values()[name] == pytest.approx(priors[name].value)
        assert fit.spreads()[name] == pytest.approx(priors[name].spread, rel=1e-6)
    assert fit.spreads()["k_mat"] < 0.5 * priors["k_mat"].spread


def test_a_prior_after_other_stacks_is_that_of_all_logarithms_together():
    """Means of three stacks and of all, as one Gaussian whose covariance is written out."""
    physics = coefficient_priors()["k_tp"]
    says = {"one": {"k_tp": (0.4, 0.1)}, "two": {"k_tp": (0.1, 0.3)}, "mine": {"k_tp": (9.0, 0.01)}}
    prior = stack_priors("mine", says)["k_tp"]
    variance = physics.spread**2
    observed = variance * (np.full((2, 2), 0.5) + 0.5 * np.eye(2)) + np.diag([0.1**2, 0.3**2])
    shared = np.full(2, 0.5 * variance)  # of the stack that is asked about with either
    gain = np.linalg.solve(observed, shared)
    assert np.log(prior.value / physics.value) == pytest.approx(gain @ [0.4, 0.1])
    assert prior.spread**2 == pytest.approx(variance - gain @ shared)
    for name, lone in stack_priors("mine", {"mine": says["mine"]}).items():
        physics = coefficient_priors()[name]
        assert lone.value == pytest.approx(physics.value)
        assert lone.spread == pytest.approx(physics.spread)


def test_findings_are_the_rows_without_their_prior(made):
    """Of coefficients that no row moves they say nothing; of others what made the rows."""
    sample = StepSample.of(made[1], training_stack("physical"))
    alone = coefficient_estimates(fit_steps(sample))
    assert set(alone) >= {"k_mat", "k_tp"}
    assert not {"k_expert", "k_ep", "k_quant"} & set(alone)
    mean, deviation = alone["k_mat"]
    physics = coefficient_priors()["k_mat"]
    assert abs(physics.value * np.exp(mean) - 1.5) < 3 * 1.5 * deviation


def test_a_row_far_off_hardly_decides(made):
    _, rows = made
    spoiled = [replace(rows[0], seconds=5 * rows[0].seconds), *rows[1:]]
    fits = [fit_steps(StepSample.of(each, training_stack("physical"))) for each in (rows, spoiled)]
    assert fits[1].values()["k_mat"] == pytest.approx(fits[0].values()["k_mat"], rel=0.03)


def test_the_slope_of_the_robust_residual_is_its_difference():
    x, step = np.array([-7.0, -0.5, 0.3, 2.0, 30.0]), 1e-6
    difference = (robust(x + step) - robust(x - step)) / (2 * step)
    assert robust_slope(x) == pytest.approx(difference, rel=1e-6)


def test_a_fitted_stack_is_what_its_file_says(made, tmp_path):
    """The text is TOML; read back it predicts what the fit predicts, to the digits it keeps."""
    rows = made[1]
    table = stack_table("mine", rows)
    read = parse_stack("mine", tomllib.loads(stack_text(table)))
    sample = StepSample.of(rows, training_stack("physical"))
    form = replace(sample.tasks[0].stack, pooled_cards=read.pooled_cards)
    fit = fit_steps(StepSample.of(rows, form), stack_priors("mine", shipped_findings()))
    for row, seconds in zip(rows[::9], fit.predicted(sample)[::9], strict=True):
        assert predicted_seconds(row, read) == pytest.approx(seconds, rel=0.02)
    path = tmp_path / "mine.toml"
    path.write_text(stack_text(table), encoding="utf-8")
    assert training_stack(str(path)).values == read.values
    assert read.bands["dense"]["known"].n == len(rows)


def test_memory_follows_runs_that_fail():
    """Activations twice those of the formula: the fit learns it from failures and fits alone."""
    stack = training_stack("physical")
    twice = replace(stack, values={**stack.values, "k_act": 2.3})
    rows = [
        run(stack, width, tp=tp, pp=1, dp=8 // tp, micro_batch=micro, zero=1)
        for width in (2048, 3072, 4096, 6144) for tp in (1, 2, 4, 8) for micro in (1, 2, 4, 8, 16)
    ]  # fmt: skip
    sample = MemorySample.of(rows, stack)
    used = np.asarray(run_kernel("used", {**sample.symbols, **twice.values})["used"])
    marked = [replace(r, fits=bool(u < r.machine.memory)) for r, u in zip(rows, used, strict=True)]
    fit = fit_memory(MemorySample.of(marked, stack))
    calls = fit.used(sample) <= sample.capacity
    assert np.mean(calls == [row.fits for row in marked]) > 0.95
    assert fit.values()["k_act"] * fit.factors()[0][3] == pytest.approx(2.3, rel=0.2)
