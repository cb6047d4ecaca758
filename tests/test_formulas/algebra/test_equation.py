"""Equation: what it refuses, how it reads, and its algebra."""

import pickle

import numpy as np
import pytest
import sympy as sp

from formulas.algebra.equation import Equation, slug
from formulas.economics.prices import token_cost
from formulas.nomenclature.lecture import (
    B,
    F,
    L_ctx,
    N_active,
    N_total,
    T_comp,
    T_floor,
    T_mem,
    T_step,
    T_w,
    W,
    b_kv,
    b_w,
    c_fwd,
    m_pos,
)
from formulas.nomenclature.sources import lecture_notes
from formulas.nomenclature.symbols import SymbolError
from formulas.numerics.expressions import maximum, minimum
from formulas.roofline.roofline import memory_time, step_time, time_per_sequence, weight_time

CASE = {
    "m_pos": 1, "N_active": 37e9, "c_fwd": 2, "F": 2e15, "N_total": 671e9, "b_w": 1,
    "b_kv": 70e3, "W": 3.3e12,
}  # fmt: skip


def test_it_reads_as_on_the_board():
    """One line of text, LaTeX, and LaTeX for a notebook."""
    assert str(step_time) == "T_step = max(T_comp, T_mem)"
    assert repr(step_time) == "<Equation time of one step: T_step = max(T_comp, T_mem)>"
    assert step_time.latex().startswith(r"T_{\mathrm{step}} = \max")
    assert step_time._repr_latex_() == rf"$\displaystyle {step_time.latex()}$"
    assert slug("Bytes read, in one step") == "bytes-read-in-one-step"


def test_conditions_are_sentences():
    """A citation or a tuple in their place is a mistake, not a condition of that name."""
    for odd in (lecture_notes, ("one", "two")):
        with pytest.raises(TypeError, match="conditions are sentences"):
            Equation.of(T_step, T_comp, "one", odd)


def test_a_float_is_refused():
    """Numbers in equations are exact; measured ones belong elsewhere."""
    with pytest.raises(ValueError, match="is not exact"):
        Equation("half", T_mem, sp.Float(0.5) * T_w)


def test_equations_compare_and_pickle_by_value():
    """A worker gets the same equation back."""
    again = pickle.loads(pickle.dumps(step_time))
    assert again == step_time
    assert hash(again) == hash(step_time)


def test_solving_undoes_the_equation():
    """The solution put back gives the left side."""
    solved = memory_time.solve_for(b_kv)
    assert solved.symbol == b_kv
    assert sp.simplify(memory_time.rhs.subs(b_kv, solved.rhs) - T_mem) == 0
    assert memory_time.solve_for("L_ctx").symbol == L_ctx


def test_what_cannot_be_solved_is_said():
    """Branches, several roots, and symbols that do not occur."""
    with pytest.raises(ValueError, match="has branches"):
        step_time.solve_for(B)
    with pytest.raises(SymbolError, match="does not occur in time of the memory traffic"):
        memory_time.solve_for(N_active)
    with pytest.raises(ValueError, match="2 solutions"):
        Equation("two roots", T_step, T_w + T_mem**2 / T_w).solve_for(T_w)


def test_the_elasticities_of_a_product_are_its_exponents():
    """One percent more bandwidth is one percent less time."""
    assert weight_time.elasticity(W) == -1
    assert weight_time.elasticity("N_total") == 1


def test_elasticities_of_a_max_are_given_by_branch():
    """There is one answer where each branch is the bottleneck."""
    by_branch = step_time.elasticity(B)
    assert by_branch["T_comp"] == 1
    share = B * L_ctx * b_kv / (B * L_ctx * b_kv + N_total * b_w)
    assert sp.simplify(by_branch["T_mem"] - share) == 0


def test_elasticity_is_the_slope_of_the_logarithm():
    """Against a central difference."""
    expression = memory_time.elasticity(L_ctx)
    point = {**CASE, "B": 64, "L_ctx": 1e4}
    slope = expression.subs({x: point[x.name] for x in expression.free_symbols})
    f = memory_time.numpy("L_ctx")
    given = {k: v for k, v in point.items() if k in {"B", "b_kv", "W", "N_total", "b_w"}}
    up, down = f(1e4 * 1.0001, **given), f(1e4 / 1.0001, **given)
    assert float(slope) == pytest.approx(
        (np.log(up) - np.log(down)) / (2 * np.log(1.0001)), rel=1e-6
    )


def test_definitions_can_be_put_in():
    """The expanded step names only what is given."""
    whole = step_time.expanded
    assert whole.rhs.free_symbols == set(step_time.givens)
    assert whole.where == ()
    assert set(whole.branches) == {"T_comp", "T_mem"}
    assert "attention is small beside the weights" in whole.assumes


def test_the_bottleneck_is_named():
    """Arithmetic at large batch, memory at small."""
    assert step_time.bottleneck(B=1, L_ctx=0, **CASE) == "T_mem"
    assert step_time.bottleneck(B=1e5, L_ctx=0, **CASE) == "T_comp"
    which, names = step_time.bottlenecks(B=np.array([1, 1e5]), L_ctx=0, **CASE)
    assert [names[i] for i in which] == ["T_mem", "T_comp"]
    with pytest.raises(ValueError, match="one point"):
        step_time.bottleneck(B=[1, 2], L_ctx=0, **CASE)
    with pytest.raises(ValueError, match="has no branches"):
        memory_time.bottleneck(B=1, L_ctx=0, b_kv=1, W=1, N_total=1, b_w=1)


def test_a_product_with_a_max_keeps_the_names_of_its_branches():
    """The cost of a token has the bottleneck of its step."""
    assert set(token_cost.elasticity("B")) == {"T_comp", "T_mem"}
    assert token_cost.elasticity("B")["T_comp"] == 0
    more = {"g": 1, "n_chips": 8, "p_chip": 1}
    assert token_cost.bottleneck(B=1, L_ctx=0, **CASE, **more) == "T_mem"
    assert token_cost.bottleneck(B=1e5, L_ctx=0, **CASE, **more) == "T_comp"


def test_the_smallest_branch_of_a_min_decides():
    """And a Max inside a sum has no branches of the whole."""
    least = Equation("shorter", T_step, minimum(T_comp, 2 * T_mem))
    assert set(least.branches) == {"T_comp", "2*T_mem"}
    assert least.bottleneck(T_comp=1, T_mem=1) == "T_comp"
    assert least.bottleneck(T_comp=3, T_mem=1) == "2*T_mem"
    assert Equation("sum", T_step, T_w + maximum(T_comp, T_mem)).branches is None


def test_branches_keep_the_names_they_were_given():
    """And names for other branches are refused."""
    assert set(time_per_sequence.branches) == {"arithmetic", "memory"}
    with pytest.raises(ValueError, match="named branches"):
        Equation("wrong", T_step, maximum(T_comp, T_mem), branches={"a": T_comp, "b": T_w})


def test_the_function_of_the_library_page():
    """Axes by position, others by name, broadcast against each other."""
    f = step_time.numpy("B", "L_ctx")
    batches, contexts = np.array([1.0, 64.0, 4096.0])[:, None], np.array([1e3, 1e5])
    found = f(batches, contexts, **CASE)
    arithmetic = batches * 37e9 * 2 / 2e15 * np.ones(2)
    memory = (671e9 + batches * contexts * 70e3) / 3.3e12
    assert found == pytest.approx(np.maximum(arithmetic, memory), rel=1e-14)
    assert isinstance(f(64, 1e4, **CASE), float)


def test_arguments_amiss_are_named():
    """Missing, misspelt, given twice, too many."""
    f = step_time.numpy("B", "L_ctx")
    with pytest.raises(SymbolError, match=r"missing 'L_ctx' \(tokens of context held per"):
        f(64, **CASE)
    with pytest.raises(SymbolError, match="no argument 'Lctx'; did you mean 'L_ctx'"):
        f(64, 1e4, Lctx=3, **CASE)
    with pytest.raises(TypeError, match="given twice"):
        f(64, 1e4, B=2, **CASE)
    with pytest.raises(TypeError, match="by position"):
        f(64, 1e4, 3, **CASE)
    with pytest.raises(SymbolError, match="does not occur"):
        step_time.numpy("n_experts")


def test_an_intermediate_can_be_given_in_place_of_its_definition():
    """Then what it was computed from is no longer asked for."""
    f = step_time.numpy("T_comp", "T_mem")
    assert f(1.0, 2.0) == 2.0


def test_a_citation_names_work_and_place():
    """And links to it."""
    cited = lecture_notes.at("section 1")
    assert "section 1" in str(cited)
    assert cited.link.startswith("https://")
    assert Equation("floor", T_floor, N_total * b_w / W).source.link == ""
    assert {F, c_fwd, m_pos} <= set(step_time.givens)
