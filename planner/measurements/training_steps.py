"""Measured steps of training as the equations see them: the task and the symbols of a row."""

import numpy as np

from planner.catalogue.training.training_stacks import (
    TrainingStack,
    choose_training_stack,
    training_stack,
    training_stack_names,
)
from planner.measurements.entry import Entry, Prediction
from planner.measurements.readers.sheets import MeasurementTable
from planner.measurements.readers.training_rows import TrainingRow, training_rows
from planner.problems.training.step.step_times import fed, layout_symbols, shared_symbols, usable
from planner.problems.training.step.training_task import TrainingTask

TRAINING = "training layouts"  # the kind of such a table
SHARES = 9  # of layers that run again, tried where a table does not say


def era_of(row: TrainingRow) -> str:
    """The release, patches left out; routed models have eras of their own."""
    release = ".".join(row.era.split(".")[:2])
    return f"{release} routed" if row.counts and row.counts.n_experts else release


def task_of(row: TrainingRow, stack: TrainingStack) -> TrainingTask:
    """The task of a row."""
    assert row.counts is not None
    assert row.machine is not None
    return TrainingTask(
        counts=row.counts,
        machine=row.machine,
        stack=stack,
        batch=row.batch,
        sequence=row.sequence,
        precision=row.precision,
        kernel=row.kernel,
        norm=row.norm,
        state=row.state,
        era=era_of(row),
        trained=row.trained,
    )


def symbols_of(row: TrainingRow, task: TrainingTask) -> dict[str, float]:
    """The symbols of a row.

    Where recomputation is not stated, the least share of the layers with which it fits runs again.
    """
    assert row.layout is not None
    layout = {name: float(value) for name, value in layout_symbols(task, row.layout).items()}
    symbols = {**shared_symbols(task), **layout}
    if not row.latent:
        return symbols
    shares = np.linspace(0, 1, SHARES)
    used = fed("used", {**symbols, **task.coefficients, "x_again": shares})["used"]
    fitting = np.flatnonzero(used <= usable(task))
    return {**symbols, "x_again": float(shares[fitting[0]]) if fitting.size else 1.0}


def stack_of(row: TrainingRow, profile: str = "auto") -> TrainingStack:
    """The shipped stack of a row's framework, or the one that a plan on its chip would take."""
    if profile != "auto":
        return training_stack(profile)
    if row.stack in training_stack_names():
        return training_stack(row.stack)
    assert row.counts is not None
    assert row.machine is not None
    routed = bool(row.counts.n_experts)
    return choose_training_stack("auto", row.machine.chip, routed=routed)[0]


def predicted_seconds(row: TrainingRow, stack: TrainingStack) -> float:
    """The step time of a row by a stack [s]."""
    task = task_of(row, stack)
    return float(fed("step", {**symbols_of(row, task), **task.coefficients})["step"])


def step_prediction(row: TrainingRow, profile: str = "auto") -> Prediction:
    """Bound, estimate and band of a row's step time [s]."""
    assert row.counts is not None
    assert row.machine is not None
    stack = stack_of(row, profile)
    estimate = predicted_seconds(row, stack)
    band = stack.band(
        routed=bool(row.counts.n_experts), model=row.counts.name, chip=row.machine.chip
    )
    return Prediction(least_seconds(row), estimate, estimate * band.low, estimate * band.high)


def least_seconds(row: TrainingRow) -> float:
    """The causal arithmetic of a row at the peak of its chips [s]."""
    assert row.counts is not None
    assert row.machine is not None
    return row.counts.flop(row.batch, row.sequence) / (row.chips * row.machine.peak)


def _routed_or_dense(row: TrainingRow) -> str:
    return "routed" if row.counts and row.counts.n_experts else "dense"


NO_TIME = "states no step time: only whether it fits"


def training_layout_entries(table: MeasurementTable, profile: str = "auto") -> list[Entry]:
    """The step time of every run, by the stack that ran it or by one that is named, in row order.

    Raises CatalogueError if there is no such stack.
    """
    if profile != "auto":
        training_stack(profile)
    read = {row.line: row for row in training_rows(table.sheet)}
    entries = []
    for index, line, cells in table.numbered:
        row = read[line]
        made = (cells.get("model", ""), cells.get("chip", ""), row.stack or "other")
        setting = " ".join(
            f"{name}{cells.get(name, '')}" for name in ("tp", "pp", "dp", "micro_batch")
        )
        if not row.usable:
            why = row.reason or NO_TIME
            entries.append(
                Entry(index, line, "value", "step", "", *made, row.era, setting, reason=why)
            )
            continue
        prediction = step_prediction(row, profile)
        seconds = row.seconds
        entries.append(
            Entry(
                index, line, "value", "step", _routed_or_dense(row), *made,
                row.era, setting, measured=seconds, seconds=seconds, prediction=prediction,
                bound=prediction.bound, roofline=prediction.bound,
                profile=stack_of(row, profile).name,
            )
        )  # fmt: skip
    return entries
