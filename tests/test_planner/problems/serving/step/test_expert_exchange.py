"""Expert dispatch and combine against DeepEP's published low-latency times on H800."""

import csv

import numpy as np
import pytest

from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve
from planner.scenario import load
from tests.paths import FACTS

TABLE = FACTS / "alltoall_measured.csv"
SCENARIO = {
    "problem": "serving",
    "model": "deepseek-v3",
    "system": "hgx-h800",
    "chips": 128,
    "price": "$2/hour",
    "workload": {"input_tokens": 1000, "output_tokens": 100},
    "choose": {"mode": "decode"},
}


def measured(chips: int) -> float:
    """Dispatch and combine of 128 tokens per chip over `chips` chips [s]."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["source"] == "deepep-v1"
            and row["topology"].startswith("low-latency")
            and row["ep"] == str(chips)
            and row["tokens_per_gpu"] == "128"
        ]
    times = {row["op"]: float(row["latency_us"]) * 1e-6 for row in rows}
    return times["dispatch"] + times["combine"]


def estimated(chips: int) -> float:
    """The same of one layer by our equations, with nothing of an engine around it [s]."""
    task = resolve(load(SCENARIO)).tasks[0]
    one = np.ones(1, dtype=int)
    layouts = Layouts(one, one, one, chips * one, chips * one, one, one, 128 * one, one)
    alone = {**task.profile.values, "e_a2a": 1.0, "t_a2a": 0.0}
    step = Step(task, layouts, bound=False).under(alone)
    found = step(np.array([128.0 * chips]))
    return float(np.ravel(found["part.collectives"])[0]) / task.sizes.n_moe_layers


@pytest.mark.parametrize("chips", [16, 32, 64, 128])
def test_an_exchange_over_network_cards_takes_what_was_published(chips):
    """Floor and bytes together are within 12 % of DeepEP's table."""
    assert estimated(chips) == pytest.approx(measured(chips), rel=0.12)
