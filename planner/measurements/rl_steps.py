"""Measured steps of reinforcement learning: each row as a question of `problem: rl`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from planner.measurements.entry import Entry, Prediction
from planner.measurements.published_names import Refused
from planner.measurements.readers.sheets import MeasurementTable, positive_or_none
from planner.measurements.readers.training_rows import NAMES as NAMED
from planner.problems import rl
from planner.text.errors import PlannerError
from planner.text.tables import table as named

NEEDED = ("policy", "steps_off", "rollouts_per_step", "gen_tp", "train_tp", "step_s")
LAYOUT = {"tp": "train_tp", "cp": "train_cp", "pp": "train_pp", "ep": "train_ep",
          "virtual_stages": "train_vpp"}  # fmt: skip
LABELS = frozenset({"id", "source", "date", "licence", "notes"})
TOTAL = "tokens_per_s_chip"  # of prompts and answers together
NAMES: Mapping[str, Any] = named("planner.measurements", NAMED)


def rl_entries(table: MeasurementTable) -> list[Entry]:
    """The step time of every run, predicted by the pools of its layouts and the best split."""
    entries, repeats = [], table.repeats(LABELS)
    for index, line, cells in table.numbered:
        seconds, prediction, reason = positive_or_none(cells["step_s"]), None, ""
        if seconds is None:
            reason = f"step_s is {cells['step_s']!r}, not a positive number"
        else:
            try:
                prediction = step_prediction(cells)
            except (Refused, PlannerError) as why:
                reason = " ".join(str(why).split())
        made = (cells.get("model", ""), cells.get("chip", ""), cells.get("framework", ""))
        setting = f"{cells['policy']} policy, {cells.get('chips', '')} chips"
        entries.append(Entry(
            index, line, "step_s", "step", f"{cells['policy']} policy", *made,
            cells.get("version", ""), setting, measured=seconds, seconds=seconds,
            prediction=prediction, bound=prediction.bound if prediction else None,
            roofline=prediction.bound if prediction else None, reason=reason,
            repeat=index in repeats, profile=FRAMEWORKS.get(cells.get("framework", ""), "none"),
        ))  # fmt: skip
    return entries


FRAMEWORKS: Mapping[str, str] = NAMES["framework"]


def step_prediction(cells: Mapping[str, str], framework: str = "") -> Prediction:
    """Bound and estimate of a row's step [s]; no band: too few rows say how far they are off.

    Raises Refused for a cell that is not understood, PlannerError for what a planner refuses.
    """
    question = question_of(cells, framework)
    search = rl.PROBLEM.search(question)
    if not search.feasible:
        raise Refused("; ".join(miss.expression for miss in search.shortfalls))
    estimate = float(search.plan.step_time)
    return Prediction(rl.least_seconds(question), estimate, estimate, estimate)


def pools_of(
    cells: Mapping[str, str],
) -> tuple[np.ndarray, Callable[[np.ndarray, tuple[float, float, float]], np.ndarray]]:
    """Times of rollouts, learning and weights sent (n, 3) [s] of every split, and their step.

    Raises Refused for a cell that is not understood, PlannerError for what a planner refuses, or
    where no split fits.
    """
    question = question_of(cells, "none")
    rows = rl.pool_times(question)
    if not rows:
        raise Refused("none of the pools holds the model")
    return np.array(rows), rl.step_function(question)


def question_of(cells: Mapping[str, str], framework: str = "") -> Any:
    """A row as a question; prompts are what the rate of tokens leaves beside the answers.

    Raises Refused for a cell that is missing or not understood.
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
        raise Refused("; ".join(words)) from error


def _number(cells: Mapping[str, str], name: str) -> float:
    """A positive number, or zero as it is written."""
    text = cells.get(name, "").strip()
    value = 0.0 if text == "0" else positive_or_none(text)
    if value is None:
        raise Refused(f"{name} is {text!r}, not a positive number")
    return value


def _name(part: str, word: str) -> str:
    """What a word of a table means here."""
    if word not in NAMES[part]:
        raise Refused(f"unknown {part} {word!r}")
    return str(NAMES[part][word])
