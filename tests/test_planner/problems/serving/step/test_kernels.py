"""Kernels and scalar programs that are kept on disk are those that the equations give today."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

from formulas.numerics.evaluate import kernel, scalar_program
from formulas.numerics.tape import Tape
from planner.problems.serving.step.equations import NAMED_TABLES, equation_table
from planner.problems.serving.step.kernels import (
    MAX_NAME_LENGTH,
    StepModel,
    get_kernel,
    load_scalar_program,
    load_share,
    pools_recomputed,
    pools_values,
    replica_rates,
    split_values,
)
from tests.loops import for_all
from tests.paths import ROOT

MODELS = [
    StepModel(mode, bound, load, True)
    for mode, bound, load in product(
        ("aggregated", "decode", "prefill"), (False, True), ("none", "given", "most")
    )
]
OTHERS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(NAMED_TABLES, ()), "slower_rate": (),
    "pools": ("given", "requests", "usd_per_request"), "closed_loop": ("prefill",),
    "prompt": ("T_pf_beside", "T_pf_read"), "waiting": ("aggregated",),
}  # fmt: skip


def through_json(tape: Tape) -> Any:
    """A tape as a file holds it."""
    return json.loads(json.dumps(tape.plain()))


@for_all("model", MODELS, ids=str)
def test_kept_kernels_of_a_pool_are_those_of_its_equations(model: StepModel) -> None:
    """Every node and every output of what is searched with, and of what a batch follows."""
    for table in ("all_outputs", "work_times", "occupancy_outputs"):
        fresh = kernel(*equation_table(table, *model.key))
        assert through_json(get_kernel(table, *model.key).tape) == through_json(fresh.tape)
    fresh = kernel(*equation_table("batch_times", *model.key, False))
    assert through_json(get_kernel("batch_times", *model.key, False).tape) == through_json(
        fresh.tape
    )


@for_all("table", OTHERS)
def test_other_kept_kernels_are_those_of_their_equations(table: str) -> None:
    """Queues, loops, transfers, two pools."""
    fresh = kernel(*equation_table(table, *OTHERS[table]))
    assert through_json(get_kernel(table, *OTHERS[table]).tape) == through_json(fresh.tape)


@pytest.mark.parametrize("model", [m for m in MODELS if m.load == "none"], ids=str)
def test_what_is_walked_again_is_what_the_equations_say(model: StepModel) -> None:
    """The plain trees of the check of a plan, which no kernel takes part in."""
    definitions, outputs = equation_table("recheck_outputs", *model.key, "none")
    names = frozenset(get_kernel("all_outputs", *model.key).names)
    fresh = scalar_program(definitions, outputs, names)
    trees = load_scalar_program("recheck_outputs", *model.key, "none", names=names)
    assert json.loads(json.dumps(trees.plain())) == json.loads(json.dumps(fresh.plain()))


# Two replicas that read 3 prompts a second each, five that decode one: four chips and ten.
POOLS = {
    "n_pf": 2.0, "X_pf": 3.0, "n_dec": 5.0, "X_dec": 1.0, "L_in": 100.0, "L_out": 40.0,
    "n_chips_pf": 4.0, "p_chip_pf": 2.0, "p_power_pf": 0.5, "n_chips_dec": 10.0, "p_chip_dec": 1.0,
    "p_power_dec": 0.25, "T_move": 0.1, "T_ttft": 0.5, "T_wait": 0.2, "T_tpot": 0.02, "L_dec": 39.0,
    "one_seq": 1.0,
}  # fmt: skip
POWERED = {"P_chip_pf": 700.0, "P_chip_dec": 350.0, "m_grid": 2e-4}


@pytest.mark.parametrize(("load", "rate"), [("none", 5.0), ("given", 4.0)])
def test_what_two_pools_give_by_hand(load: str, rate: float) -> None:
    """The slower pool, or the load, sets the rate; 18 USD a second are paid for both."""
    symbols = {**POOLS, "X_arr": 4.0}
    expected = {
        "requests": rate, "usd_per_s": 4 * 2.0 + 10 * 1.0, "power_usd_per_s": 4 * 0.5 + 10 * 0.25,
        "usd_per_request": 18 / rate, "usd_per_token": 18 / rate / 140,
        "usd_per_input_token": 8 / (rate * 100), "usd_per_output_token": 10 / (rate * 40),
        "ttft": 0.8, "latency": 0.8 + 39 * 0.02, "tokens_per_s": rate * 40,
        "input_tokens_per_s": rate * 100, "tokens_per_s_per_chip": rate * 40 / 14,
        "tokens_per_s_per_user": 50, "in_flight": rate * (0.8 + 39 * 0.02),
    }  # fmt: skip
    drawn = 4 * 700.0 + 10 * 350.0
    energy = {
        "joule_per_request": drawn / rate, "joule_per_token": drawn / rate / 140,
        "grams_per_request": drawn / rate * 2e-4, "grams_per_token": drawn / rate / 140 * 2e-4,
        "watts": drawn / 14,
    }  # fmt: skip
    for given, every in ((symbols, expected), ({**symbols, **POWERED}, {**expected, **energy})):
        assert pools_values(load, given) == pytest.approx(every)
        assert pools_recomputed(load, given) == pytest.approx(every)
        assert all(type(value) is float for value in pools_values(load, given).values())
    split = split_values(load, {**symbols, "n_chips_pf": np.array([4.0, 6.0])})
    assert split["usd_per_request"].tolist() == pytest.approx([18 / rate, 22 / rate])
    assert np.broadcast_to(split["requests"], 2).tolist() == [rate, rate]


def test_rates_of_replicas_by_hand() -> None:
    """Busy nine tenths of the time, a fifth of the slots left free; three share a load."""
    rates = replica_rates(np.array([2.0, 4.0]), 0.9, 0.2)
    assert rates == pytest.approx([0.9 * 0.8 / 2, 0.9 * 0.8 / 4])
    assert load_share(6.0, 0.25, 3) == pytest.approx(0.5)


def test_which_symbols_no_load_changes() -> None:
    """Times; energies too where power follows from the work, that of a decode step where one is."""
    times = ("T_slot", "T_pf_busy", "T_out", "T_ttft", "T_tpot")
    for powered, mode, energy in (("", "decode", ()), ("given", "prefill", ()),
                                  ("counted", "prefill", ("E_run",)),
                                  ("billed", "decode", ("E_run", "E_w")),
                                  ("counted", "aggregated", ("E_run", "E_w"))):  # fmt: skip
        model = StepModel(mode, False, "none", powered)
        assert model.work == (*times, *energy)
        assert model.key == (mode, False, "none", powered)
    assert (
        len("aggregated-False-given-billed") < MAX_NAME_LENGTH
    )  # usual keys stand in names of files


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
