"""Kernels and scalar programs that are kept on disk are those that the equations give today."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from typing import Any

import pytest

from formulas.numerics.evaluate import kernel, scalar_program
from formulas.numerics.tape import Tape
from planner.problems.serving.step.equations import ALONE, tabled
from planner.problems.serving.step.kernels import StepModel, lowered, walked
from tests.paths import ROOT

MODELS = [
    StepModel(mode, bound, load, True)
    for mode, bound, load in product(
        ("aggregated", "decode", "prefill"), (False, True), ("none", "given", "most")
    )
]
OTHERS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(ALONE, ()), "slower_rate": (),
    "pools": ("given", "requests", "usd_per_request"), "closed_loop": ("prefill",),
    "prompt": ("T_pf_beside", "T_pf_read"), "waiting": ("aggregated",),
}  # fmt: skip


def through_json(tape: Tape) -> Any:
    """A tape as a file holds it."""
    return json.loads(json.dumps(tape.plain()))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_kept_kernels_of_a_pool_are_those_of_its_equations(model: StepModel) -> None:
    """Every node and every output of what is searched with, and of what a batch follows."""
    for table in ("all_outputs", "work_times", "busyness"):
        fresh = kernel(*tabled(table, *model.key))
        assert through_json(lowered(table, *model.key).tape) == through_json(fresh.tape)
    fresh = kernel(*tabled("batch_times", *model.key, False))
    assert through_json(lowered("batch_times", *model.key, False).tape) == through_json(fresh.tape)


@pytest.mark.parametrize("table", OTHERS)
def test_other_kept_kernels_are_those_of_their_equations(table: str) -> None:
    """Queues, loops, transfers, two pools."""
    fresh = kernel(*tabled(table, *OTHERS[table]))
    assert through_json(lowered(table, *OTHERS[table]).tape) == through_json(fresh.tape)


@pytest.mark.parametrize("model", [m for m in MODELS if m.load == "none"], ids=str)
def test_what_is_walked_again_is_what_the_equations_say(model: StepModel) -> None:
    """The plain trees of the check of a plan, which no kernel takes part in."""
    definitions, outputs = tabled("recomputed", *model.key, "none")
    names = frozenset(lowered("all_outputs", *model.key).names)
    fresh = scalar_program(definitions, outputs, names)
    trees = walked("recomputed", *model.key, "none", names=names)
    assert json.loads(json.dumps(trees.plain())) == json.loads(json.dumps(fresh.plain()))


@pytest.mark.slow
def test_a_plan_from_the_catalogue_needs_no_sympy() -> None:
    """Once its kernels are kept: neither a search nor its check, nor the proof and the text."""
    code = (
        "import sys, planner\n"
        "plan = planner.solve('examples/serve-deepseek-v3-h200.yaml')\n"
        "assert str(plan) and plan.certificate.programs_solved\n"
        "print('sympy' in sys.modules)\n"
    )
    run = [sys.executable, "-c", code]
    for _ in range(2):
        told = subprocess.run(run, cwd=ROOT, check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "False"
