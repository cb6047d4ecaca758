"""Tables of equations: which outputs and symbols each has, and that parts add up to the whole."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sympy as sp

from formulas.algebra.notation import P_chip, T_first, T_pf_busy, T_slot, n_chips, x_pf
from formulas.numerics.evaluate import kernel
from formulas.serving.queues import CAPACITY_EQUATIONS
from planner.problems.serving.step import equations
from planner.problems.serving.step.equations import NAMED_TABLES, equation_table
from planner.problems.serving.step.kernels import OF_A_STEP, STEP_PARTS, StepModel, feed, get_kernel
from planner.problems.serving.step.occupancy import TAILS, arrival_values
from planner.problems.serving.step.step import Step
from tests.cases.serving import columns, question, sparse
from tests.loops import for_all

MODES, LOADS = ("aggregated", "decode", "prefill"), ("none", "given", "most")
KEYS = [*product(MODES, (False, True), LOADS, ("", "given")),
        *product(MODES, (False,), LOADS, ("counted", "billed"))]  # fmt: skip
ALWAYS = {
    "ttft", "first", "tpot", "slot", "busy", "latency", "need", "memory.weights", "memory.kv",
    "memory.activations", "memory.reserved", "load", "fill", "arrivals", "requests", "in_flight",
    "sequences", "usd_per_request", "usd_per_s", "power_usd_per_s", "mixed", "usd_per_token",
    *OF_A_STEP,
}  # fmt: skip
DECODES = {"usd_per_output_token", "tokens_per_s", "tokens_per_s_per_chip", "tokens_per_s_per_user"}
READS = {"usd_per_input_token", "input_tokens_per_s"}
ENERGY = {"joule_per_request", "joule_per_token", "grams_per_request", "grams_per_token", "watts",
          "site_watts"}  # fmt: skip
PARTS = {"step", *(f"part.{name}" for name in STEP_PARTS)}
ROOFS = {"roof.memory", "roof.compute", "roof.network"}


@for_all("key", KEYS, ids=str)
def test_a_pool_says_each_thing_once(key):
    """Outputs of its phases; every symbol by one equation, in two halves that share no output."""
    mode, bound, _, powered = key
    defined, outputs = equation_table("all_outputs", *key)
    symbols = [equation.symbol for equation in defined]
    assert len(set(symbols)) == len(symbols)
    expected = ALWAYS | (ROOFS if bound else PARTS) | (ENERGY if powered else set())
    expected |= DECODES if mode != "prefill" else set()
    expected |= READS if mode != "decode" else set()
    expected |= {"together"} if mode == "prefill" else set()
    expected |= {"chip_price", "chip_power_price"} if powered == "billed" else set()
    assert outputs.keys() == expected
    assert (outputs["mixed"] == 0) is bound
    assert outputs["busy"] == x_pf * T_pf_busy
    if powered:
        assert outputs["site_watts"] == P_chip * n_chips
    assert set(equation_table("every_symbol", *key)[1]) == {symbol.name for symbol in symbols}
    (whole, fixed), (rest, follows) = (
        equation_table("work_times", *key),
        equation_table("occupancy_outputs", *key),
    )
    work = StepModel(*key).work
    assert fixed.keys() - set(work) == expected - follows.keys()
    assert set(work) <= fixed.keys()
    assert set(rest) <= set(whole) == set(defined)
    changed = {equation.symbol for equation in rest}
    assert not changed & {symbol for word in fixed for symbol in fixed[word].free_symbols}
    assert {"usd_per_request", "requests", "latency"} <= follows.keys()
    given = {s for e in defined for s in e.rhs.free_symbols} - set(symbols)
    if powered:
        assert (P_chip in given) is (powered == "given")


@pytest.mark.parametrize("mode", MODES)
def test_what_is_computed_again_begins_with_the_price(mode):
    """All outputs; in a closed loop with its own first token, under a load with what waits are."""
    key = (mode, False, "given", "given")
    plain = equation_table("all_outputs", *key)[1]
    for wait in ("none", "loop", "queue"):
        defined, outputs = equation_table("recheck_outputs", *key, wait)
        assert next(iter(outputs)) == "usd_per_token"
        more = {"rho_pf", "T_wait", "T_line", "T_join", "T_dec", "S_occ", "v_occ", "x_load",
                "x_heavy", "r_both"} if wait == "queue" else set()  # fmt: skip
        assert outputs.keys() == plain.keys() | more
        first = [e for e in defined if e.symbol == T_first]
        assert len(first) == 1
        assert ("T_loop" in {s.name for s in first[0].rhs.free_symbols}) is (wait == "loop")
        names = [e.symbol.name for e in defined]
        assert ("T_loop" in names) is (wait == "loop")
        assert ("T_line" in names) is (wait == "queue")
        # Two pools in a closed loop are met as their burst has it, one pool as its own number.
        assert ("n_ahead" in names) is (wait == "loop" and mode != "prefill")


def test_small_tables_hold_what_they_are_asked_for():
    """Nothing that gives its symbols is missing or twice, and words are those of all outputs."""
    for name, (defined, given) in NAMED_TABLES.items():
        symbols = [equation.symbol.name for equation in defined]
        assert len(set(symbols)) == len(symbols)
        assert set(given) <= set(symbols), name
        assert equation_table(name)[1].keys() == set(given)
    assert {x.symbol.name for x in NAMED_TABLES["seen_keys"][0]} == {"L_seen", "L_seen_pf"}
    shares = [e for e in NAMED_TABLES["expert_share"][0] if e.symbol.name == "coverage"]
    assert len(shares) == 1
    names = [e.symbol.name for e in equation_table("prompt", "T_pf_read")[0]]
    assert {"T_ttft", "T_pf_busy"}.isdisjoint(names)
    assert {"T_pf_read", "T_batch", "T_hop_pf"} <= set(names)
    for mode in ("aggregated", "prefill"):
        names = [e.symbol.name for e in equation_table("closed_loop", mode)[0]]
        assert {"coverage", "b_slice", "b_stage"} <= set(names)
        assert ("n_ahead" in names) is (mode == "aggregated")
        names = {e.symbol.name for e in equation_table("passes", mode)[0]}
        assert {"n_shared"} <= names <= {"n_new", "n_shared"}
    words = equation_table("pool_from_times", "decode", "none", "latency", "usd_per_input_token")
    assert words[1].keys() == {"latency"}
    assert T_first not in {e.symbol for e in words[0]}
    assert equation_table("slower_rate")[1].keys() == {"requests"}
    whole = equation_table("whole_pools", "none", True)[1].keys()
    assert whole - equation_table("whole_pools", "none", False)[1].keys() == ENERGY - {"site_watts"}
    assert next(iter(whole)) == "usd_per_token"
    assert equation_table("pools", "given", "watts")[1].keys() == {"watts"}
    for bound, mode in product((False, True), MODES):
        slots = [e for e in equations.pool(mode, bound, "none") if e.symbol == T_slot]
        assert len(slots) == 1
    assert {e.symbol.name for e in equations.work_equations("prefill")} >= {"E_run"}
    assert "T_math_bound" not in {e.symbol.name for e in equations.work_equations("prefill")}


@pytest.mark.parametrize(("powered", "more"), [("given", set()), ("counted", {"watts"}),
                                               ("billed", {"watts", "chip_price",
                                                           "chip_power_price"})])  # fmt: skip
@pytest.mark.parametrize("queued", [False, True])
def test_what_a_batch_follows(powered, more, queued):
    """Times of which all outputs are made, those of a queue under a load, power if it follows."""
    outputs = equation_table("batch_times", "aggregated", False, "given", powered, queued)[1]
    times = {"tpot", "slot", "busy", "need", "mixed", "ttft", *OF_A_STEP}
    assert outputs.keys() == times | ({"step", "arrivals"} if queued else set()) | more
    assert outputs["ttft"] == sp.Symbol("T_ttft", **outputs["ttft"].assumptions0)


@pytest.mark.parametrize("mode", ["aggregated", "decode"])
@pytest.mark.parametrize(("load", "arrivals"), [("none", None), ("given", 20.0)])
def test_what_a_page_computes_is_what_the_step_does(mode, load, arrivals):
    """With the queue before prompts and its tails, and how many decode where caches lack room."""
    spread = {"input_spread": 1.0, "output_spread": 0.5, "arrivals": arrivals}
    task = question(sparse(), mode=mode, headroom=0.1, **spread)
    step = Step(task, columns([(2, 1, 1, 1, 2, 1, 2, 4)]), bound=False)
    batch = np.array([16.0])
    expected, symbols = step(batch), step.values(batch)
    defined, outputs = equation_table("page_outputs", *step.model.key, True)
    waits = load == "given" and mode != "decode"
    names = {equation.symbol.name for equation in defined}
    assert ("T_wait" in names) is waits
    room = ("n_dealt", "n_met", "x_need")
    words = [word for word in expected if word in outputs]
    assert {"usd_per_token", "ttft", "requests"} <= set(words)
    assert ({*TAILS, "readers"} <= outputs.keys()) is waits
    if load == "given" and mode == "decode":
        assert outputs["readers"] == 0
    compiled = kernel(defined, {word: outputs[word] for word in (*words, *room)})
    arrives = arrival_values(step, expected)
    met = {**arrives, **symbols, "n_flat": step.occupancy.flat, "x_free": task.headroom}
    values = compiled(**{name: met[name] for name in compiled.names})
    for word in words:
        if word != "crowded":
            both = np.ravel(values[word]), np.ravel(expected[word])
            assert both[0] == pytest.approx(both[1], rel=1e-9), word
    flight = feed(get_kernel("flight"), {**met, **arrives})
    for name in room:
        assert np.ravel(values[name]) == pytest.approx(np.ravel(flight[name]), rel=1e-9)
    bare = {equation.symbol.name for equation in equation_table("page_outputs", *step.model.key)[0]}
    assert bare == names - {equation.symbol.name for equation in CAPACITY_EQUATIONS}
