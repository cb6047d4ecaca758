"""Small serving scenarios, for what is asked of them before anything is searched."""

from __future__ import annotations

from typing import Any

from planner.problems.serving.question import Scenario
from planner.scenario import load

SMALL: dict[str, Any] = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 4,
    "price": "$3.60/hour", "workload": {"input_tokens": 500, "output_tokens": 100},
}  # fmt: skip


def small(**changes: Any) -> Scenario:
    """The small scenario with some values changed; mappings are merged."""
    found = load(small_values(**changes))
    assert isinstance(found, Scenario)
    return found


def small_values(**changes: Any) -> dict[str, Any]:
    """The same as it stands in a file."""
    merged = {
        key: {**SMALL[key], **value} if isinstance(SMALL.get(key), dict) else value
        for key, value in changes.items()
    }
    return {**SMALL, **merged}
