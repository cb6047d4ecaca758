"""A page's search run in Node, and the file opened in a browser; skipped where absent."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest

import planner
from planner.problems.serving.problem import PROBLEM
from planner.protocol.live_page import LivePage
from planner.scenario import load

DENSE = {
    "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 8,
    "price": "$3.50/hour", "workload": {"input_tokens": 2000, "output_tokens": 500},
    "promises": {"ttft": "1 s", "tpot": "40 ms"}, "choose": {"mode": "aggregated"},
}  # fmt: skip


def scenario(model: str, **changes: Any) -> dict[str, Any]:
    """The scenario of a dense model with another one, and changes of its keys."""
    return {**DENSE, "model": model, **changes}


def live(question: Mapping[str, Any]) -> tuple[planner.Plan, LivePage]:
    """The plan of a scenario, and what its kind offers to a page."""
    read = load(question)
    plan = planner.solve(question)
    return plan, PROBLEM.live_page(read, plan)


def in_node(page: LivePage, states: Sequence[Mapping[str, float]], code: str = "") -> list[Any]:
    """What the page chooses at each state, or what other `code` gives for `states`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, to run the page's search outside a browser")
    asked = code or "STATES.map((state) => MODEL.choose(state))"
    script = (
        f"{page.script}\nconst DATA = {json.dumps(page.data, allow_nan=False)};\n"
        f"const KERNELS = {page.kernels}, STATES = {json.dumps(list(states))};\n"
        "const MODEL = pageModel(DATA, KERNELS);\n"
        f"process.stdout.write(JSON.stringify({asked}));"
    )
    run = subprocess.run([node], input=script, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    chosen: list[Any] = json.loads(run.stdout)
    return chosen


@cache
def browser() -> tuple[str, str]:
    """The paths of Chromium and of its driver."""
    paths = shutil.which("chromium"), shutil.which("chromedriver")
    if not all(paths):
        pytest.skip("needs chromium and chromedriver, to open the page")
    return str(paths[0]), str(paths[1])
