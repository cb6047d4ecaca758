"""Equations turned round: put back, each solution satisfies the equation it came from."""

import pytest
import sympy as sp

from formulas.algebra.equation import Equation
from formulas.nomenclature.lecture import (
    B,
    T_comp,
    T_mem,
    T_step,
    W,
    coverage,
    k_experts,
    n_experts,
    sigma,
)
from formulas.numerics.expressions import float_value
from formulas.registry import find
from formulas.roofline.roofline import memory_time, step_time


@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("memory_time", "B L_ctx N_total W b_kv b_w"),
        ("token_cost", "B T_step g n_chips p_chip"),
        ("expert_coverage", "k_experts n_experts"),
        ("fast_price", "s_fast w_fix"),
        ("chinchilla_loss", "A_N B_D D_pt N_active loss_min"),
    ],
)
def test_a_solution_put_back_gives_what_it_came_from(name, symbols):
    """At a point, in floats, with nothing of the algebra in common."""
    found = find(name)
    equation = found if isinstance(found, Equation) else found.equation()
    point = {x: 0.3 + index / 17 for index, x in enumerate(equation.symbols)}
    if coverage in {equation.symbol}:
        point |= {k_experts: 2.0, n_experts: 8.0}
    left = float_value(equation.rhs, point)
    for each in symbols.split():
        solved = equation.solve_for(each)
        (x,) = [y for y in point if y.name == each]
        again = float_value(solved.rhs, {**point, equation.symbol: left})
        assert again == pytest.approx(point[x], rel=1e-9), each


def test_the_left_side_needs_no_solving():
    """The equation as it stands."""
    assert memory_time.solve_for("T_mem") is memory_time


def test_several_solutions_are_listed():
    """None is picked in silence."""
    square = Equation("a square", coverage, (sigma - 1) ** 2)
    with pytest.raises(ValueError, match=r"2 solutions for 'sigma' .*: .*sqrt\(coverage\)"):
        square.solve_for(sigma)


def test_no_closed_form_is_said():
    """x + log x has none among the functions that equations are written in."""
    mixed = Equation("mixed", coverage, sigma + sp.log(sigma))
    with pytest.raises(ValueError, match="no solution in closed form for 'sigma'"):
        mixed.solve_for(sigma)


def test_a_quartic_is_not_solved():
    """SymPy looks for its roots for minutes; of the second degree in the square there is one."""
    quartic = Equation("a quartic", coverage, sigma * sp.sqrt(sigma**6 + sigma**2 + n_experts))
    with pytest.raises(ValueError, match="no solution in closed form for 'sigma'"):
        quartic.solve_for(sigma)
    square = Equation("a square", coverage, sigma * sp.sqrt(sigma**2 + 2)).solve_for(sigma)
    assert float_value(square.rhs, {coverage: 3**0.5}) == pytest.approx(1.0)


def test_the_branches_of_a_max_are_named_with_their_solutions():
    """Each holds where its branch decides."""
    with pytest.raises(ValueError, match="has branches") as caught:
        step_time.solve_for(W)
    assert "where T_comp decides, W does not occur" in str(caught.value)
    assert "where T_mem decides, W = " in str(caught.value)
    short = Equation("step", T_step, sp.Max(T_comp, T_mem))
    with pytest.raises(ValueError, match="where T_comp decides, T_comp = T_step"):
        short.solve_for(T_comp)


def test_a_solution_is_of_the_symbols_unit():
    """A ratio raised to a symbol stays whole, so that its unit can be seen."""
    solved = find("chinchilla_loss").solve_for("N_active")
    assert solved.check()
    assert B not in solved.symbols
