"""Numbers out of equations: arrays against single points, SymPy's own lowering and mpmath."""

import pickle

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.algebra.equation import Equation
from formulas.economics.prices import token_cost
from formulas.nomenclature.lecture import (
    B,
    C_tok,
    L_ctx,
    T_comp,
    T_mem,
    T_step,
    T_w,
    W,
    coverage,
    e_c,
    e_kv,
    e_w,
    n_stages,
    sigma,
)
from formulas.nomenclature.symbols import SYMBOLS, SymbolError
from formulas.numerics.evaluate import kernel, scalar
from formulas.numerics.expressions import maximum, minimum, put
from formulas.roofline.experts import expert_coverage, touched_parameters
from formulas.roofline.roofline import compute_time, kv_time, memory_time, step_time
from tests.loops import for_all

NAMES = (e_w, e_kv, e_c, sigma, n_stages)
CASE = {
    "B": 64, "L_ctx": 1e4, "m_pos": 1, "g": 1, "N_active": 37e9, "c_fwd": 2, "F": 2e15,
    "N_total": 671e9, "b_w": 1, "b_kv": 70e3, "W": 3.3e12, "n_chips": 8, "p_chip": 2 / 3600,
}  # fmt: skip


def expressions():
    """Trees over five plain numbers: sums, products, quotients, roots, Max, Min, ceilings."""
    leaves = st.sampled_from(NAMES) | st.integers(1, 9).map(sp.Integer)
    halves = st.sampled_from([sp.Rational(1, 2), sp.Integer(2), sp.Integer(-1), sp.Rational(-3, 2)])

    def grow(inner):
        pairs = st.tuples(inner, inner)
        return (
            pairs.map(lambda p: p[0] + p[1])
            | pairs.map(lambda p: p[0] * p[1])
            | pairs.map(lambda p: p[0] / p[1])
            | pairs.map(lambda p: maximum(*p) if p[0] != p[1] else p[0])
            | pairs.map(lambda p: minimum(*p) if p[0] != p[1] else p[0])
            | st.tuples(inner, halves).map(lambda p: p[0] ** p[1])
            # Away from where digits cancel: of log(1 + exp(-50)) no float has ten left.
            | inner.map(lambda x: sp.exp(-x / (1 + x)))
            | inner.map(lambda x: sp.log(2 + x))
        )

    return st.recursive(leaves, grow, max_leaves=12)


def points(count):
    return st.lists(
        st.lists(st.floats(0.1, 10), min_size=len(NAMES), max_size=len(NAMES)),
        min_size=count, max_size=count,
    )  # fmt: skip


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(expressions(), points(3))
def test_arrays_agree_with_single_points_and_with_fifty_digits(expression, rows):
    """Three ways to the same number: array code, Python floats, mpmath."""
    run = kernel([], {"x": expression})
    columns = {x.name: np.array(c) for x, c in zip(NAMES, zip(*rows, strict=True), strict=True)}
    given_values = {name: columns[name] for name in run.names}
    found = np.broadcast_to(run(**given_values)["x"], 3)
    for index, row in enumerate(rows):
        here = {x.name: v for x, v in zip(NAMES, row, strict=True)}
        alone = scalar([], {"x": expression}, here)["x"]
        assert found[index] == pytest.approx(alone, rel=1e-12)
        with mpmath.workdps(50):
            point = {x: sp.Float(v, 60) for x, v in zip(NAMES, row, strict=True)}
            exact = put(expression, point).evalf(50)
        assert alone == pytest.approx(float(exact), rel=1e-10)


def test_it_agrees_with_the_lowering_of_sympy():
    """lambdify takes another road to NumPy."""
    whole = token_cost.expanded.substitute(step_time.expanded)
    args = sorted(whole.rhs.free_symbols, key=str)
    peer = sp.lambdify(args, whole.rhs, "numpy")
    rng = np.random.default_rng(7)
    values = {x.name: rng.uniform(0.1, 10, 100) for x in args}
    found = kernel([token_cost], [C_tok])(**values)["C_tok"]
    assert found == pytest.approx(peer(*[values[x.name] for x in args]), rel=1e-13)


def test_definitions_may_come_in_any_order():
    """They are sorted, and only those needed ask for arguments."""
    run = kernel([step_time, kv_time], [T_step])
    again = kernel([kv_time, memory_time, compute_time, step_time], ["T_step"])
    assert set(run.names) == set(again.names)
    values = {name: CASE[name] for name in run.names}
    assert run(**values) == again(**values)


def test_a_circle_is_shown():
    """With the symbols on it."""
    first = Equation("a", T_mem, T_w * 2)
    second = Equation("b", T_w, T_mem / 3)
    with pytest.raises(SymbolError, match=r"circle: T_(mem|w) -> T_(w|mem) -> T_(mem|w)"):
        kernel([first, second], [T_mem])


def test_two_definitions_of_one_symbol_are_refused():
    """Unless they are the same."""
    with pytest.raises(SymbolError, match="defined twice"):
        kernel([memory_time, Equation("other", T_mem, T_w)], [T_mem])
    kernel([memory_time, memory_time], [T_mem])


def test_an_output_nobody_defines_is_refused():
    """With the nearest that is defined."""
    with pytest.raises(SymbolError, match="did you mean 'T_step'"):
        kernel([step_time], ["T_stp"])


def test_arguments_fix_the_names_and_override_definitions():
    """What is given is not computed; what is left out is named."""
    run = kernel([step_time], [T_step], arguments=[T_comp, "T_mem"])
    assert run.names == ("T_comp", "T_mem")
    assert run(T_comp=1, T_mem=3) == {"T_step": 3.0}
    with pytest.raises(SymbolError, match=r"'T_mem'|'W'|'N_total'|'b_w'"):
        kernel([memory_time], [T_mem], arguments=["B"])


def test_integers_do_not_overflow():
    """6·7e10·1.5e13 wraps in 64-bit integers; inputs become floats at the border."""
    run = kernel([], {"x": 6 * B * L_ctx})
    found = run(B=np.array([7 * 10**10]), L_ctx=np.array([15 * 10**12]))["x"]
    assert found == pytest.approx([6.3e24])


def test_a_constant_takes_the_shape_of_the_others():
    """A number among arrays is an array, and alone a float."""
    run = kernel([], {"one": sp.Integer(1), "twice": 2 * B})
    found = run(B=np.ones((3, 2)))
    assert found["one"].shape == (3, 2)
    assert run(B=3) == {"one": 1.0, "twice": 6.0}


def test_an_output_along_one_axis_is_a_view():
    """Nothing is expanded that does not vary; it cannot be written to."""
    run = kernel([], {"x": 2 * B, "y": B * e_c})
    found = run(B=np.ones((500, 1)), e_c=np.ones(400))
    assert found["x"].shape == (500, 400)
    assert found["x"].strides[1] == 0
    assert not found["x"].flags.writeable


@for_all("shape", [(7, 11, 13), (1001,), (1, 77, 13), (91, 1, 11)])
@for_all("block", [1, 10, 64, 500])
def test_blocks_change_nothing(shape, block):
    """Bit for bit, whatever the block and the broadcast."""
    rng = np.random.default_rng(1)
    whole, cut = (kernel([token_cost], [C_tok, T_step], block=b) for b in (10**9, block))
    values = {name: CASE[name] for name in whole.names}
    values["B"] = rng.uniform(1, 1e4, shape)
    values["L_ctx"] = rng.uniform(1, 1e5, (*(1 for _ in shape[1:]), shape[-1]))
    values["W"] = rng.uniform(1e12, 1e13, (shape[0], *(1 for _ in shape[1:])))
    for name, value in whole(**values).items():
        assert np.array_equal(value, cut(**values)[name])


def test_one_kernel_serves_arrays_of_any_length():
    """Lengths may change from call to call, down to one and to none."""
    run = kernel([token_cost], [C_tok], block=100)
    rng = np.random.default_rng(5)
    case = {name: CASE[name] for name in run.names}
    for length in (3, 250, 1, 0, 101, 7, 1000):
        batch, rate = rng.uniform(1, 1e4, length), rng.uniform(1e12, 1e13, length)
        found = run(**case | {"B": batch, "W": rate})["C_tok"]
        alone = [run(**case | {"B": b, "W": w})["C_tok"] for b, w in zip(batch, rate, strict=True)]
        assert found.shape == (length,)
        assert found == pytest.approx(np.array(alone), rel=1e-14)


def test_shapes_that_do_not_fit_are_shown():
    """With the symbols that have them."""
    run = kernel([], {"x": B * e_c})
    with pytest.raises(ValueError, match=r"B \(3,\), e_c \(4,\)"):
        run(B=np.ones(3), e_c=np.ones(4))


def test_an_empty_axis_gives_empty_arrays():
    """No points, no error."""
    run = kernel([memory_time], [T_mem])
    values = {name: CASE[name] for name in run.names} | {"B": np.ones(0)}
    assert run(**values)["T_mem"].shape == (0,)


def test_kernels_pickle():
    """A worker gets the compiled form."""
    run = kernel([token_cost], [C_tok])
    again = pickle.loads(pickle.dumps(run))
    values = {name: CASE[name] for name in run.names}
    assert again(**values) == run(**values)
    assert repr(again) == repr(run)


@pytest.mark.parametrize("value", [float("nan"), -1.0, [1.0, float("nan")], [2.0, -3.0], "six"])
def test_values_no_symbol_can_take_are_named(value):
    """NaN, negative numbers and words are refused."""
    run = kernel([memory_time], [T_mem])
    values = {name: CASE[name] for name in run.names} | {"W": value}
    with pytest.raises(SymbolError, match="'W' \\(memory bandwidth of the domain\\)"):
        run(**values)


def test_an_undefined_result_is_refused():
    """0/0 does not pass as a number; a division by zero is infinite."""
    run = kernel([], {"x": B / L_ctx})
    with pytest.raises(SymbolError, match="undefined"):
        run(B=0, L_ctx=0)
    assert run(B=1, L_ctx=0) == {"x": float("inf")}


def test_coverage_is_exact_at_small_shares():
    """1 − (1 − x)^n loses every digit at x = 1e−18 unless lowered through log1p."""
    run = kernel([expert_coverage], [coverage])
    values = {"k_experts": 1.0, "n_experts": 1e18, "B": 1e3, "m_pos": 1.0}
    assert run(**values)["coverage"] == pytest.approx(1e-15, rel=1e-12, abs=0)
    assert scalar([expert_coverage], [coverage], values)["coverage"] == run(**values)["coverage"]


def test_the_scalar_path_names_what_is_missing():
    """As the array path does."""
    with pytest.raises(SymbolError, match="missing 'L_ctx'"):
        scalar([memory_time], [T_mem], {k: v for k, v in CASE.items() if k != "L_ctx"})
    with pytest.raises(SymbolError, match="negative or not a number"):
        scalar([memory_time], [T_mem], CASE | {"W": -1})


def test_the_scalar_path_agrees_on_a_whole_chain():
    """Cost per token through the step to the roofs."""
    run = kernel([token_cost, touched_parameters], [C_tok, T_step, T_comp, T_mem])
    values = {name: CASE[name] for name in run.names}
    found = run(**values)
    alone = scalar([token_cost], [C_tok, T_step, T_comp, T_mem], values)
    assert found == pytest.approx(alone, rel=1e-14)


def test_pieces_and_relations():
    """A choice by a relation, with one side undefined where it is not taken."""
    choice = sp.Piecewise((sp.log(B - L_ctx), L_ctx < B), (B, True))
    run = kernel([], {"x": choice})
    assert run(B=np.array([2.0, 2.0]), L_ctx=np.array([3.0, 1.0]))["x"].tolist() == [2.0, 0.0]
    assert scalar([], {"x": choice}, {"B": 2, "L_ctx": 3})["x"] == 2.0
    ceil = kernel([], {"x": sp.ceiling(B / e_c) + sp.floor(B)})
    assert ceil(B=2.5, e_c=1)["x"] == 5.0


def test_a_node_without_an_array_operation_is_refused():
    """Nothing is lowered by guess."""
    with pytest.raises(TypeError, match="no array operation for sin"):
        kernel([], {"x": sp.sin(e_c)})
    assert {W.name, L_ctx.name} <= set(SYMBOLS)
