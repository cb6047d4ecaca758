"""Neighbouring questions searched together have the answers that each has by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from planner.problems.serving.problem import PROBLEM
from planner.protocol.problem import Search
from planner.scenario import load
from planner.text.errors import InputError
from tests.sizes import first, seldom

NEIGHBOURS = 6  # questions that are searched together
SHARED: dict[str, Any] = {
    "problem": "serving",
    "units": "base",
    "system": "hgx-h200",
    "price": "$2.50/hour",
}
MODELS = ("llama-3.2-1b", "llama-3.1-8b", "qwen3-30b-a3b")
# Paths whose values differ between neighbours, and between what.
PATHS: dict[str, tuple[float, float]] = {
    "workload.input_tokens": (200.0, 8000.0),
    "workload.output_tokens": (30.0, 900.0),
    "price": (1.0 / 3600, 6.0 / 3600),
    "promises.tpot": (0.004, 0.08),
    "promises.ttft": (0.05, 2.0),
    "workload.cached_input": (0.0, 0.6),
}


def neighbours(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Questions of one scenario: one pool or two, loaded or not, some numbers its own each."""
    mode = rng.choice(["aggregated", "disaggregated", "decode", "prefill", "both", "both"])
    promises = {"tpot": 0.03, "ttft": 1.0}
    for name in {"decode": ["ttft"], "prefill": ["tpot"]}.get(mode, []):
        del promises[name]
    if mode in ("disaggregated", "both") and rng.random() < 0.2:
        promises["e2e"] = 20.0
    load_given = rng.choice(["none", "none", "given", "most"])
    scenario = {
        **SHARED,
        "model": str(rng.choice(MODELS)),
        "chips": [[3], [8], [2, 5]][rng.integers(3)],
        "objective": str(rng.choice(["cost", "cost", "throughput", "latency", "energy"])),
        "estimate": str(rng.choice(["calibrated", "calibrated", "bound"])),
        "promises": promises,
    }
    if mode != "both":
        scenario["choose"] = {"mode": str(mode)}
    if rng.random() < 0.15 and load_given == "none":
        scenario["choose"] = {**scenario.get("choose", {}), "batch": int(rng.integers(1, 64))}
    varied = rng.choice(sorted(PATHS), size=2, replace=False)
    for _ in range(NEIGHBOURS):
        numbers = {
            path: float(rng.uniform(*ends)) if path in varied else None
            for path, ends in PATHS.items()
        }
        workload: dict[str, Any] = {
            "input_tokens": numbers["workload.input_tokens"] or 1000.0,
            "output_tokens": numbers["workload.output_tokens"] or 200.0,
            "cached_input": numbers["workload.cached_input"] or 0.0,
        }
        if load_given == "given" or (load_given == "most" and mode == "prefill"):
            workload["demand"] = f"{rng.uniform(0.2, 20.0)} requests/s"
        elif load_given == "most":
            workload["demand"] = "max"
        limits = {name: numbers[f"promises.{name}"] or limit if f"promises.{name}" in PATHS
                  else limit for name, limit in promises.items()}  # fmt: skip
        yield {
            **scenario,
            "price": numbers["price"] or 2.5 / 3600,
            "workload": workload,
            "promises": limits,
        }


def told(search: Search) -> tuple[Any, ...]:
    """What a search chooses and counts, to the last digit."""
    return (search.choice, search.counts, search.ties, search.holds, search.plan)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*first(3, range(20)), *seldom(range(20, 40))])
def test_questions_searched_together_have_their_own_answers(seed: int) -> None:
    """240 questions: choice, counts and ties agree to the last digit, outputs to the last but one.

    Where power counts pairs of pools are computed in arrays of other lengths; scores to 1e-12.
    """
    questions = [load(each) for each in neighbours(np.random.default_rng(seed))]
    try:
        alone = [PROBLEM.search(question) for question in questions]
    except InputError:
        with pytest.raises(InputError):
            PROBLEM.search_many(questions)
        return
    together = PROBLEM.search_many(questions)
    for one, many in zip(alone, together, strict=True):
        assert told(one) == told(many)
        assert dict(many.outputs) == pytest.approx(dict(one.outputs), rel=1e-15, abs=0, nan_ok=True)
        assert many.score == pytest.approx(one.score, rel=1e-12)
        assert many.shortfalls == one.shortfalls


@pytest.mark.slow
def test_most_of_the_questions_have_an_answer() -> None:
    """The property above is not about nothing: over half of its questions have a plan."""
    searched = [
        search
        for seed in range(0, 40, 4)
        for search in PROBLEM.search_many(
            [load(each) for each in neighbours(np.random.default_rng(seed))]
        )
    ]
    assert sum(search.feasible for search in searched) > len(searched) / 2
