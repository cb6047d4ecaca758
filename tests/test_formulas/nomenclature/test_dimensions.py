"""Units: how they are read, multiplied and refused."""

import pytest
import sympy as sp

from formulas.algebra.equation import Equation, check_units
from formulas.nomenclature.dimensions import DIMENSIONLESS, UnitError, expression_unit, unit
from formulas.nomenclature.lecture import (
    B,
    F,
    L_ctx,
    N_active,
    N_total,
    T_comp,
    T_mem,
    T_w,
    W,
    b_kv,
    b_w,
    c_fwd,
    coverage,
    m_pos,
    n_experts,
)
from formulas.nomenclature.symbols import symbol_unit
from formulas.numerics.expressions import maximum
from tests.loops import for_all


def of(expression):
    return expression_unit(sp.sympify(expression), symbol_unit)


@pytest.mark.parametrize(
    "text",
    ["s", "byte*s/flop", "flop/(param*token)", "flop*seq/token**2", "1", "1/s", "seq**(1/2)"],
)
def test_a_unit_reads_back_as_it_prints(text):
    """Parsing and printing are inverse."""
    assert str(unit(text)) == text


@for_all("text", ["bytes", "s*", "s/(byte", "byte^2", "", "s s", "s**", "2*s"])
def test_a_word_that_is_no_unit_is_refused(text):
    """Only the nine bases, products, quotients, powers and brackets."""
    with pytest.raises(UnitError):
        unit(text)


def test_powers_cancel():
    """A unit over itself is a plain number."""
    assert unit("byte/s") / unit("byte/s") == DIMENSIONLESS
    assert unit("byte/s") ** 0 == DIMENSIONLESS


@for_all(
    ("expression", "expected"),
    [
        (N_total * b_w / W, "s"),
        (B * m_pos * N_active * c_fwd / F, "s"),
        (maximum(T_mem, N_total * b_w / W), "s"),
        (sp.Min(T_mem, T_comp, evaluate=False), "s"),
        (sp.sqrt(B), "seq**(1/2)"),
        (sp.ceiling(B), "seq"),
        (sp.log(L_ctx * b_kv / (N_total * b_w) * B), "1"),
        (sp.exp(coverage), "1"),
        ((1 - coverage) ** (B * m_pos), "1"),
        (T_mem + 0, "s"),
        (3 * T_mem / 2, "s"),
        (sp.Piecewise((T_mem, B > 2 * B), (T_comp, True)), "s"),
    ],
    ids=str,
)
def test_the_unit_of_an_expression(expression, expected):
    """One rule for each kind of node."""
    assert of(expression) == unit(expected)


@for_all(
    "expression",
    [
        T_mem + W,
        T_mem + 1,
        maximum(T_mem, W),
        sp.exp(T_mem),
        sp.log(B),
        coverage**T_mem,
        B**coverage,
        sp.sin(T_mem),
        sp.Piecewise((T_mem, T_mem > W), (T_comp, True)),
        sp.Piecewise((T_mem, coverage > 1), (W, True)),
        sp.ceiling(T_mem + B),
    ],
    ids=str,
)
def test_what_has_no_unit_is_refused(expression):
    """Unlike terms, units in exponents or logarithms, and unknown functions do not pass."""
    with pytest.raises(UnitError):
        of(expression)


def test_zero_and_infinity_fit_any_unit():
    """They carry none of their own."""
    assert of(sp.Integer(0)) is None
    assert of(maximum(T_mem, sp.oo)) == unit("s")
    check_units("nothing", T_mem, sp.Integer(0))


def test_both_sides_are_shown():
    """The message says where, which units, and the equation."""
    with pytest.raises(UnitError) as caught:
        Equation("bytes over rate", T_mem, N_total * b_w / F)
    assert str(caught.value) == (
        "T_mem: bytes over rate: left side is [s], right side is [byte*s/flop]\n"
        "    T_mem = N_total*b_w/F"
    )


def test_the_terms_that_clash_are_shown():
    """Inside a sum the two terms are named, with their units."""
    with pytest.raises(UnitError, match=r"T_w is \[s\] but B is \[seq\]|B is \[seq\] but T_w is"):
        Equation("mixed", T_mem, T_w + B)


def test_sequences_are_not_tokens():
    """Leaving out the positions per sequence is an error, not a factor of one."""
    with pytest.raises(UnitError):
        Equation("no positions", T_comp, B * N_active * c_fwd / F)
    assert symbol_unit(n_experts) == DIMENSIONLESS
