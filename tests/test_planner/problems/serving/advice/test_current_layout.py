"""The layout in use is judged in its own formats, not in those of the plan beside it."""

from __future__ import annotations

import pytest

import planner
from planner.problems.serving.advice.current_layout import current_layout
from planner.problems.serving.task.resolve import resolve

QUESTION = {
    "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h200", "chips": 8,
    "workload": {"input_tokens": 2000, "output_tokens": 500},
}  # fmt: skip
LAYOUT = {"tp": 8, "batch": 64}


def memory(**current):
    """What fills a chip under the layout in use."""
    scenario = planner.load({**QUESTION, "current": {**LAYOUT, **current}})
    return current_layout(scenario, resolve(scenario).tasks).memory_per_chip


def test_formats_of_the_layout_in_use_are_counted():
    """A cache of 8 bits is half of one of 16, and so are weights; chunks take activations."""
    plain = memory()
    assert memory(kv="fp8").kv == pytest.approx(plain.kv / 2)
    assert memory(weights="fp8").weights < 0.55 * plain.weights
    assert memory(chunk=1024).activations < plain.activations
    assert memory(kv="bf16") == plain
