"""What a solved program says in the words of a scenario, by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from planner.problems.serving.bounds import programs
from planner.problems.serving.bounds.binding_limits import (
    binding,
    continuous,
    parameter_elasticities,
    propagate_slopes,
    relaxable,
    synchronized_ranks_warning,
)
from planner.programs.geometric import Program

PROMISES = frozenset({"ttft", "tpot"})


def plain_of(program: Program) -> Any:
    """A program as a file holds it."""
    return json.loads(json.dumps(program.structure.plain()))


def test_kept_programs_are_those_of_the_equations() -> None:
    """Rows, exponents and coefficients of both programs, lowered afresh and as they were kept."""
    kept = relaxable(
        bound=False, objective="cost", promises=PROMISES, given_batch=False, mode="aggregated"
    )
    fresh = programs.relaxed_layouts(False, "cost", PROMISES, "aggregated", given_batch=False)
    assert plain_of(kept) == plain_of(fresh)
    layout = continuous(bound=False, objective="cost", promises=PROMISES, mode="aggregated")
    P = programs.GeometricProgram("serving plan")
    P.minimise(
        programs.layout(P, bound=False, objective="cost", promises=PROMISES, mode="aggregated")
    )
    assert plain_of(layout) == plain_of(P.compile())


def solved(slopes: dict[str, float], *multipliers: tuple[str, float]) -> Any:
    """A solution as a program gives it."""
    return SimpleNamespace(elasticities=lambda: slopes, binding=multipliers)


def planned(prefill: float, ranks: int = 8, mode: str = "aggregated") -> Any:
    """A plan whose steps take 100 ms, of which `prefill`."""
    parts = SimpleNamespace(kv=0.06 - prefill, weights=0.04, prefill=prefill)
    layout = SimpleNamespace(dp_attention=ranks)
    return SimpleNamespace(mode=mode, layout=layout, time_per_step=parts)


def test_ranks_that_wait_for_each_other_are_worth_a_word_where_prompts_take_long():
    """From four ranks and a twentieth of a step on, with both figures."""
    (told,) = synchronized_ranks_warning(planned(0.02))
    assert "8 DP ranks prefill together" in told
    assert "prefill is 20% of a step" in told
    assert len(synchronized_ranks_warning(planned(0.0051, ranks=4))) == 1
    for plan in (planned(0.0049), planned(0.02, ranks=3), planned(0.02, mode="decode")):
        assert synchronized_ranks_warning(plan) == ()
    unknown = planned(0.02)
    unknown.time_per_step = None
    assert synchronized_ranks_warning(unknown) == ()
    unlaid = planned(0.02)
    unlaid.layout = None
    assert synchronized_ranks_warning(unlaid) == ()


def test_what_binds_is_told_in_words_and_costs_with_its_sign():
    """One percent more time to first token saves a quarter of one; a roof is nobody's limit."""
    rows = binding(solved({}, ("ttft", 0.25), ("T_dec: memory", 0.2), ("memory", 0.1)))
    assert [row.elasticity for row in rows] == [-0.25, -0.1]
    assert all("T_dec" not in str(row) for row in rows)


def test_a_quantity_is_worth_what_its_symbols_are_together():
    """Rent twice, bandwidth once, promises by the step's names, and nothing below noise."""
    slopes = {"p_chip": 0.75, "p_rent": 0.25, "W_chip": -0.5, "ttft_": -0.2, "latency_": -0.1,
              "M_cap": 4e-7, "b_kv": 6e-7, "e_w": -0.3, "t_ar": 0.01}  # fmt: skip
    told = parameter_elasticities(solved(slopes))
    assert told == pytest.approx({
        "price": 1.0, "system.memory_bandwidth": -0.5, "promises.ttft": -0.2,
        "promises.e2e": -0.1, "model.kv_bytes_per_token": 6e-7, "engine.efficiency": -0.3,
        "engine.overhead": 0.01,
    })  # fmt: skip
    # An efficiency that rises by half with bandwidth passes on half of what it is worth.
    told = parameter_elasticities(
        solved(slopes), {"e_w": {"W_chip": 0.5, "M_cap": 2.0}, "e_c": {"W_chip": 9.0}}
    )
    assert told["system.memory_bandwidth"] == pytest.approx(-0.5 - 0.15)
    assert told["system.memory"] == pytest.approx(-0.6 + 4e-7)
    assert told["engine.efficiency"] == pytest.approx(-0.3)
    assert propagate_slopes({"a": 1.0}, {"a": {"b": 3.0}}) == {"a": 1.0, "b": 3.0}
