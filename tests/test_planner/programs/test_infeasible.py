"""What is said when no choice satisfies every constraint."""

from __future__ import annotations

import math

import pytest
import sympy as sp

from planner.programs.geometric import GeometricProgram, InfeasibleProgram, Program
from planner.text.errors import Infeasible

B, T = sp.symbols("B T", positive=True)
W, M, T_max, least, weights = sp.symbols("W M T_max least weights", positive=True)

GIVEN = {W: 10.0, M: 100.0, T_max: 5.0, least: 4.0, weights: 20.0}


def layout(*, limits: bool = False) -> Program:
    """A step that reads weights and a cache, in little memory and little time."""
    problem = GeometricProgram("decode layout")
    problem.choose(B, within=(1e-3, 1e6))
    problem.choose(T, within=(1e-15, 1e6))
    problem.roof(T, memory=(weights + B) / W)
    problem.subject("weights and cache fit", sp.Le(weights + B, M), promise=not limits)
    problem.subject("step is fast enough", sp.Le(T, T_max), promise=not limits)
    problem.subject("batch is large enough", sp.Ge(B, least))
    problem.minimise(T / B)
    return problem.compile()


def shortage(**changes: float) -> InfeasibleProgram:
    given = GIVEN | {symbol: changes[str(symbol)] for symbol in GIVEN if str(symbol) in changes}
    with pytest.raises(InfeasibleProgram) as caught:
        layout().solve(given)
    return caught.value


def test_one_promise_is_short_by_the_factor_that_would_do() -> None:
    """A step of 2.4 s against 0.5 s allowed: 4.8 times."""
    short = shortage(T_max=0.5)
    assert short.common == pytest.approx(4.8, rel=1e-6)
    (only,) = short.shortfalls
    assert (only.name, only.text) == ("step is fast enough", "T <= T_max")
    assert (only.factor, only.alone) == pytest.approx((4.8, 4.8), rel=1e-6)


def test_two_promises_are_each_short_by_their_own_factor() -> None:
    """Each is what that promise needs, not the larger of the two; neither alone is enough."""
    short = shortage(T_max=0.5, M=16.0)
    factors = {each.name: each.factor for each in short.shortfalls}
    assert factors == pytest.approx(
        {"weights and cache fit": 24 / 16, "step is fast enough": 4.8}, rel=1e-6
    )
    assert [each.alone for each in short.shortfalls] == [None, None]
    assert short.common == pytest.approx(4.8, rel=1e-6)


def test_the_message_is_the_one_people_read() -> None:
    """Where; what is short, by how much, in which inequality."""
    assert str(shortage(T_max=0.5, M=16.0)) == (
        "decode layout: no plan satisfies every constraint.\n"
        "  The nearest plan\n"
        "    misses weights and cache fit by 50%   (B + weights <= M)\n"
        "    misses step is fast enough by a factor of 4.8   (T <= T_max)"
    )


def test_either_of_two_promises_may_give_way() -> None:
    """x >= a and x <= b with a = 4 b: together by 2 each, or one alone by 4."""
    a, b = sp.symbols("a b", positive=True)
    problem = GeometricProgram("tug")
    problem.choose(B, within=(1e-3, 1e3))
    problem.subject("large", sp.Ge(B, a), promise=True)
    problem.subject("small", sp.Le(B, b), promise=True)
    problem.minimise(B)
    with pytest.raises(
        Infeasible,
        match=r"Easing one alone would do: large by a factor of 4, or small by a factor of 4",
    ):
        problem.compile().solve({a: 4.0, b: 1.0})


def test_a_step_back_by_the_shortfall_is_feasible() -> None:
    """Eased by the factors named, a hair more, the problem has a solution; a hair less, none."""
    short = shortage(T_max=0.5, M=16.0)
    fit, fast = (each.factor for each in short.shortfalls)
    eased = GIVEN | {T_max: 0.5 * fast * (1 + 1e-6), M: 16.0 * fit * (1 + 1e-6)}
    assert layout().solve(eased).choices[B] == pytest.approx(4.0, rel=1e-4)
    with pytest.raises(Infeasible):
        layout().solve(eased | {M: 16.0 * fit * (1 - 1e-4)})


def test_laws_and_limits_are_never_eased() -> None:
    """Without promises the contradiction is named, and no factor is offered."""
    with pytest.raises(InfeasibleProgram) as caught:
        layout(limits=True).solve(GIVEN | {T_max: 0.5})
    assert caught.value.common is None
    assert caught.value.shortfalls == ()
    names = {name for name, _ in caught.value.conflict}
    assert names == {"T: memory", "step is fast enough", "batch is large enough"}
    assert "misses" not in str(caught.value)


def test_promises_that_cannot_help_are_not_blamed() -> None:
    """When a limit is the matter, easing promises is not suggested."""
    problem = GeometricProgram("wall")
    problem.choose(B, within=(1, 10))
    problem.subject("promise", sp.Le(B, M), promise=True)
    problem.subject("wall", sp.Ge(B, least))
    problem.minimise(B)
    with pytest.raises(
        InfeasibleProgram, match=r"No easing of the promises helps(.|\n)*wall"
    ) as caught:
        problem.compile().solve({M: 100.0, least: 20.0})
    assert "promise   (" not in str(caught.value)


def test_magnitudes_do_not_blur_the_factor() -> None:
    """Bytes of 1e18 against seconds of 1e-12."""
    scale = {W: 1e18, M: 1e17, T_max: 1e-12, least: 1e3, weights: 1e9}
    with pytest.raises(InfeasibleProgram) as caught:
        layout().solve(scale)
    assert caught.value.common == pytest.approx((1e9 + 1e3) / 1e18 / 1e-12, rel=1e-6)


def test_a_program_recovers_after_an_infeasible_question() -> None:
    """The next figures are solved as if nothing had been."""
    program = layout()
    with pytest.raises(Infeasible):
        program.solve(GIVEN | {T_max: 0.5})
    assert program.solve(GIVEN).value == pytest.approx(layout().solve(GIVEN).value, rel=1e-12)
    assert math.isfinite(program.solve(GIVEN).lower_bound)
