"""Measured steps of training and of reinforcement learning as questions to the planners."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from planner.catalogue.training import training_stacks
from planner.measurements.entry import Entry, Prediction
from planner.measurements.published_names import BadRow
from planner.measurements.readers.sheets import Measurements, positive_or_none
from planner.measurements.readers.training_rows import AXES, RATE, TrainingRow, training_rows
from planner.measurements.readers.training_rows import NAMES_FILE as NAMED
from planner.problems import rl
from planner.problems.training.step.step_times import row_symbols, run_kernel, run_symbols, usable
from planner.problems.training.step.training_task import TrainingTask
from planner.text.errors import PlannerError
from planner.text.tables import table as named

TRAINING = "training layouts"  # the kind of such a table
SHARES = 9  # of layers that run again, tried where a table does not say


def stack_version(row: TrainingRow) -> str:
    """The release, patches left out; routed models have eras of their own."""
    release = ".".join(row.era.split(".")[:2])
    return f"{release} routed" if row.part == "routed" else release


def training_task(row: TrainingRow, stack: training_stacks.TrainingStack) -> TrainingTask:
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
        era=stack_version(row),
        trained=row.trained,
    )


def training_symbols(row: TrainingRow, task: TrainingTask) -> dict[str, float]:
    """The symbols of a row.

    Where recomputation is not stated, the least share of the layers with which it fits runs again.
    """
    assert row.layout is not None
    layout = {name: float(value) for name, value in row_symbols(task, row.layout).items()}
    symbols = {**run_symbols(task), **layout}
    if not row.latent:
        return symbols
    shares = np.linspace(0, 1, SHARES)
    used = run_kernel("used", {**symbols, **task.coefficients, "x_again": shares})["used"]
    fitting = np.flatnonzero(used <= usable(task))
    return {**symbols, "x_again": float(shares[fitting[0]]) if fitting.size else 1.0}


def row_stack(row: TrainingRow, profile: str = "auto") -> training_stacks.TrainingStack:
    """Shipped stack of a row's framework if fitted on the chip, else the stack a plan would take.

    A framework of one name is another one years later: it counts where it was fitted on the chip.
    """
    if profile != "auto":
        return training_stacks.training_stack(profile)
    assert row.counts is not None
    assert row.machine is not None
    if row.stack in training_stacks.training_stack_names():
        named = training_stacks.training_stack(row.stack)
        if row.machine.chip in named.chips:
            return named
    routed = bool(row.counts.n_experts)
    return training_stacks.choose_training_stack("auto", row.machine.chip, routed=routed)


def predicted_seconds(row: TrainingRow, stack: training_stacks.TrainingStack) -> float:
    """The step time of a row by a stack [s]."""
    task = training_task(row, stack)
    return float(run_kernel("step", {**training_symbols(row, task), **task.coefficients})["step"])


def min_step_seconds(row: TrainingRow) -> float:
    """The causal arithmetic of a row at the peak of its chips [s]."""
    assert row.counts is not None
    assert row.machine is not None
    return row.counts.flop(row.batch, row.sequence) / (row.chips * row.machine.peak)


NO_TIME = "states no step time: only whether it fits"


def training_layout_entries(table: Measurements, profile: str = "auto") -> list[Entry]:
    """The step time of every run, by the stack that ran it or by one that is named, in row order.

    Raises CatalogueError if there is no such stack.
    """
    if profile != "auto":
        training_stacks.training_stack(profile)
    read = {row.line: row for row in training_rows(table.sheet)}
    entries = []
    for index, line, cells in table.numbered:
        row = read[line]
        made = (cells.get("model", ""), cells.get("chip", ""), row.stack or "other")
        setting = " ".join(f"{name}{cells.get(name, '')}" for name in (*AXES, "micro_batch"))
        entry = Entry(index, line, "value", "step", "", *made, row.era, setting)
        if not row.usable:
            entries.append(replace(entry, reason=row.reason or NO_TIME))
            continue
        assert row.counts is not None
        assert row.machine is not None
        stack = row_stack(row, profile)
        estimate = predicted_seconds(row, stack)
        band = stack.band(
            routed=bool(row.counts.n_experts), model=row.counts.name, chip=row.machine.chip
        )
        bound = min_step_seconds(row)
        prediction = Prediction(bound, estimate, estimate * band.low, estimate * band.high)
        entry = replace(entry, part=row.part, rate=cells["metric"] == RATE, profile=stack.name)
        entry = replace(entry, measured=float(cells["value"]), seconds=row.seconds)
        entries.append(replace(entry, prediction=prediction, bound=bound, roofline=bound))
    return entries


RL_NEEDED = ("policy", "steps_off", "rollouts_per_step", "gen_tp", "train_tp", "step_s")
LAYOUT = {"tp": "train_tp", "cp": "train_cp", "pp": "train_pp", "ep": "train_ep",
          "virtual_stages": "train_vpp"}  # fmt: skip
LABELS = frozenset({"id", "source", "date", "licence", "notes"})
TOTAL = "tokens_per_s_chip"  # of prompts and answers together
NAME_TABLE: Mapping[str, Any] = named("planner.measurements", NAMED)


def rl_entries(table: Measurements) -> list[Entry]:
    """The step time of every run, predicted by the pools of its layouts and the best split."""
    entries, repeats = [], table.repeats(LABELS)
    for index, line, cells in table.numbered:
        seconds, prediction, reason = positive_or_none(cells["step_s"]), None, ""
        if seconds is None:
            reason = f"step_s is {cells['step_s']!r}, not a positive number"
        else:
            try:
                question = rl_scenario(cells)
                search = rl.PROBLEM.search(question)
                if not search.feasible:
                    raise BadRow("; ".join(miss.expression for miss in search.shortfalls))
                estimate = float(search.plan.step_time)
                prediction = Prediction(rl.min_step_seconds(question), estimate, estimate, estimate)
            except (BadRow, PlannerError) as why:
                reason = " ".join(str(why).split())
        made = (cells.get("model", ""), cells.get("chip", ""), cells.get("framework", ""))
        setting = f"{cells['policy']} policy, {cells.get('chips', '')} chips"
        bound = prediction.bound if prediction else None
        entries.append(Entry(
            index, line, "step_s", "step", f"{cells['policy']} policy", *made,
            cells.get("version", ""), setting, measured=seconds, seconds=seconds,
            prediction=prediction, bound=bound, roofline=bound, reason=reason,
            repeat=index in repeats, profile=FRAMEWORKS.get(cells.get("framework", ""), "none"),
        ))  # fmt: skip
    return entries


FRAMEWORKS: Mapping[str, str] = NAME_TABLE["framework"]


def rl_scenario(cells: Mapping[str, str], framework: str = "") -> Any:
    """Scenario of a row; the prompt is the total tokens of a rollout minus the answer.

    Raises BadRow for a cell that is missing or not understood.
    """
    chips, rollouts, answer, most, step = (
        _number(cells, name) for name in ("chips", "rollouts_per_step", "mean_seq", "max_seq",
                                          "step_s")
    )  # fmt: skip
    rate = positive_or_none(cells.get(TOTAL, ""))
    prompt = 1.0 if rate is None else max(1.0, round(rate * step * chips / rollouts - answer))
    choose = {
        key: int(value) for key, name in LAYOUT.items()
        if (value := positive_or_none(cells.get(name, ""))) is not None
    }  # fmt: skip
    if choose.get("ep") == 1:  # a dense model has no such choice
        del choose["ep"]
    off = cells["policy"] == "off"
    try:
        return rl.QUESTION.model_validate({
            "problem": "rl", "model": cells["model"],
            "system": _name("chip", cells["chip"]), "chips": int(chips),
            "policy": cells["policy"],
            "lag": max(1, int(_number(cells, "steps_off"))) if off else 1,
            "framework": framework or FRAMEWORKS.get(cells.get("framework", ""), "none"),
            "work": {"rollouts": int(rollouts), "prompt": prompt, "answer": answer,
                     "most": max(answer, most - prompt),
                     "global_batch": int(_number(cells, "train_global_batch"))},
            "rollout": {"tp": int(_number(cells, "gen_tp")),
                        "pp": int(positive_or_none(cells.get("gen_pp", "")) or 1),
                        "weights": _name("precision", cells["precision_generation"])},
            "training": {"precision": _name("precision", cells["precision_training"]),
                         "choose": choose},
        })  # fmt: skip
    except ValidationError as error:
        words = (f"{'.'.join(map(str, x['loc']))}: {x['msg']}" for x in error.errors())
        raise BadRow("; ".join(words)) from error


def _number(cells: Mapping[str, str], name: str) -> float:
    text = cells.get(name, "").strip()
    value = 0.0 if text == "0" else positive_or_none(text)
    if value is None:
        raise BadRow(f"{name} is {text!r}, not a positive number")
    return value


def _name(part: str, word: str) -> str:
    if word not in NAME_TABLE[part]:
        raise BadRow(f"unknown {part} {word!r}")
    return str(NAME_TABLE[part][word])
