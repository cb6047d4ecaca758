"""Derivations: steps that follow pass, steps that do not are refused, approximations are sized."""

import pickle
from dataclasses import replace

import pytest
import sympy as sp

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.identity import Identity
from formulas.nomenclature.dimensions import UnitError
from formulas.nomenclature.lecture import (
    B_0,
    B,
    B_crit,
    F,
    L_ctx,
    L_star,
    N_active,
    N_total,
    T_comp,
    T_mem,
    T_seq,
    T_step,
    T_w,
    W,
    b_kv,
    b_w,
    c_fwd,
    coverage,
    e_c,
    m_pos,
    n_kv,
    n_layers,
)
from formulas.nomenclature.symbols import SymbolError
from formulas.numerics.expressions import maximum
from formulas.roofline.batching import (
    balance_context,
    cost_floor,
    critical_batch,
    critical_batch_with_kv,
    short_context_batch,
)
from formulas.roofline.roofline import compute_time, memory_time, weight_time

ROOFS = Derivation("batch at which the two roofs meet").begin(compute_time.rhs, weight_time.rhs)
RIGHT = F * N_total * b_w / (N_active * W * c_fwd * m_pos)
TOY = {"m_pos": 1, "N_active": 37e9, "c_fwd": 2, "F": 606, "N_total": 671e9, "b_w": 1,
       "b_kv": 70e3, "W": 1}  # fmt: skip


def test_a_right_solution_is_proven():
    """Put back symbolically, and the only one."""
    found = ROOFS.solve(B, RIGHT)
    assert found.check()
    assert found.proofs[-1] == "proven: put back, symbolically, the only solution"
    assert found.exact


@pytest.mark.parametrize(
    "wrong",
    [
        2 * RIGHT,
        RIGHT + B_0 / m_pos,
        RIGHT * (N_total / N_active),
        RIGHT * (b_w * W / (b_w * W)) / 3,
    ],
    ids=["factor", "addend", "ratio", "third"],
)
def test_a_wrong_solution_is_refused(wrong):
    """With the point and the difference."""
    with pytest.raises(DerivationError, match=r"step 2: B = .* does not satisfy\n") as caught:
        ROOFS.solve(B, wrong)
    assert "the two sides differ by" in str(caught.value)
    assert "batch at which the two roofs meet" in str(caught.value)


def test_a_wrong_exponent_is_a_wrong_unit():
    """Squaring one factor breaks the units before the points."""
    with pytest.raises((DerivationError, UnitError)):
        ROOFS.solve(B, RIGHT * b_w)


def test_a_claim_may_not_hold_its_own_unknown():
    """B = B is true and says nothing."""
    with pytest.raises(DerivationError, match="still contains B"):
        ROOFS.solve(B, B)


def test_a_term_that_is_not_there_cannot_be_dropped():
    """`drop` must find both addends, on one side."""
    start = Derivation("roofs").begin(compute_time.rhs, memory_time.rhs)
    with pytest.raises(DerivationError, match="is not an addend beside"):
        start.drop(2 * B * L_ctx * b_kv / W, beside=N_total * b_w / W)
    with pytest.raises(DerivationError, match="is not an addend beside"):
        start.drop(B * L_ctx * b_kv / W, beside=B * m_pos * N_active * c_fwd / F)


def test_a_rewriting_that_loses_a_term_is_refused():
    """The old form and the new must agree at every point."""
    start = Derivation("memory").begin(memory_time)
    with pytest.raises(DerivationError, match="is not equal to"):
        start.rewrite(N_total * b_w / W)
    assert start.rewrite(N_total * b_w / W + B * L_ctx * b_kv / W).check()


def test_a_substitution_must_change_something():
    """A symbol that does not occur is a slip."""
    with pytest.raises(DerivationError, match="T_comp does not occur"):
        Derivation("memory").begin(memory_time).substitute(compute_time)


def test_a_wrong_limit_is_refused():
    """The claim must be approached."""
    start = Derivation("floor").begin(T_seq, N_total * b_w / (W * B) + L_ctx * b_kv / W)
    assert start.limit(B, sp.oo, L_ctx * b_kv / W).proofs[-1] == "proven: limit, symbolically"
    with pytest.raises(DerivationError, match="does not tend to"):
        start.limit(B, sp.oo, 2 * L_ctx * b_kv / W)
    with pytest.raises(DerivationError, match="does not tend to"):
        start.limit(L_ctx, 0, L_ctx.func("b_kv", positive=True) / W * N_total * b_w / b_kv / B * 3)


def test_units_are_checked_at_every_step():
    """A step of the wrong unit is refused as such."""
    with pytest.raises(UnitError, match="step 1"):
        Derivation("wrong").begin(T_mem, N_total * b_w)


def test_verbs_leave_the_derivation_as_it_was():
    """Each returns a longer one."""
    longer = ROOFS.solve(B, RIGHT)
    assert len(ROOFS.steps) == 1
    assert len(longer.steps) == 2
    with pytest.raises(DerivationError, match="it has begun already"):
        ROOFS.begin(T_mem, T_w)
    with pytest.raises(DerivationError, match="it has not begun"):
        Derivation("empty").solve(B, RIGHT)


def test_a_rewriting_under_a_condition_is_compared_where_it_holds():
    """Max becomes its branch; the condition is an assumption from then on."""
    start = Derivation("branch").begin(T_step, maximum(T_comp, T_mem))
    found = start.rewrite(T_mem, relations=(T_mem >= T_comp,))
    assert found.assumes == ("T_mem >= T_comp",)
    assert found.proofs[-1] == (
        "tested: at 36 distinct points over 120 decades, exactly with T_mem >= T_comp"
    )
    with pytest.raises(DerivationError):
        start.rewrite(T_mem)
    with pytest.raises(DerivationError):
        start.rewrite(T_mem, relations=(T_mem <= T_comp,))


def test_irrational_identities_are_compared_in_digits_and_say_so():
    """No exact value exists for (1 − x)^(1/3); the proof names the weaker kind."""
    identity = Identity(maximum(sp.exp(e_c), 1), sp.exp(e_c))
    assert identity.difference(thorough=True) is None
    assert identity.proof() == "at 35 distinct points over 120 decades, to 50 digits"
    assert Identity(sp.exp(coverage) ** 2, sp.exp(2 * coverage)).proof() == "symbolically"
    assert Identity(sp.exp(coverage), 1 + coverage).difference() is not None


def test_the_strain_of_the_rule_grows_with_context():
    """37e9 of 671e9 parameters, 70 kB per token, 606 FLOP per byte: 0.07, 0.29, 2.35."""
    name = "drop B*L_ctx*b_kv/W"
    sizes = [critical_batch.strain(TOY | {"L_ctx": L})[name] for L in (128, 512, 4096)]
    assert sizes == pytest.approx([0.073, 0.2935, 2.348], rel=1e-2)
    assert critical_batch.strain(TOY | {"L_ctx": 128, "B": 1})[name] == pytest.approx(
        1.3354e-5, rel=1e-3
    )
    with pytest.raises(SymbolError, match="missing 'L_ctx'"):
        critical_batch.strain(TOY)


def test_the_strain_of_a_limit_is_the_distance_to_it():
    """At the critical batch and short context the step is at its floor; below it is not."""
    case = TOY | {"L_ctx": 0}
    (near,) = cost_floor.strain(case | {"B": 5495}).values()
    (far,) = cost_floor.strain(case | {"B": 549.5}).values()
    assert near == pytest.approx(0, abs=1e-3)
    assert far == pytest.approx(9, rel=1e-3)


def test_an_approximation_says_so():
    """In its text, its LaTeX, and the equation it gives."""
    assert not critical_batch.exact
    assert str(critical_batch).startswith("B_crit ≈ ")
    assert r"\approx" in critical_batch.latex()
    assert critical_batch._repr_latex_().startswith(r"$\displaystyle \begin{aligned}")
    assert any("short context" in a for a in critical_batch.equation().assumes)
    assert critical_batch_with_kv.exact


def test_the_result_computes():
    """As an equation does, with the definitions it was written in."""
    case = {k: v for k, v in TOY.items() if k != "b_kv"}
    assert critical_batch.numpy()(**case) == pytest.approx(5495, abs=1)
    f = critical_batch_with_kv.numpy("L_ctx")
    assert f(512, **TOY) == pytest.approx(7779, rel=1e-3)
    assert f(0, **TOY) == pytest.approx(5495, abs=1)


def test_numbers_are_put_in_exactly():
    """The rule of thumb, and no floats."""
    rule = critical_batch.at({F: 600, W: 1, b_w: 1, c_fwd: 2, m_pos: 1, N_total: 8 * N_active})
    assert rule.result == 300 * 8
    assert rule.check()
    with pytest.raises(DerivationError, match="is not exact"):
        critical_batch.at({F: 0.5})
    with pytest.raises(DerivationError, match="take the equation before"):
        rule.equation()


def test_new_symbols_are_compared_through_their_definitions():
    """A form in B_0 and L_star is the old form with these put in."""
    wrong = B_0 / m_pos / (1 - 2 * L_ctx / (m_pos * L_star))
    start = Derivation("with caches").begin(B_crit, critical_batch_with_kv.steps[1].rhs)
    with pytest.raises(DerivationError, match="is not equal to"):
        start.rewrite(wrong, where=(short_context_batch, balance_context))


def test_the_text_shows_reason_form_and_proof():
    """Three lines a step."""
    lines = critical_batch.text().splitlines()
    assert len(lines) == 1 + 3 * len(critical_batch.steps)
    assert lines[1] == "  1. begin: neither roof is idle"
    assert "neglected over kept: B*L_ctx*b_kv/(N_total*b_w)" in lines[6]


def test_derivations_pickle():
    """With their steps."""
    again = pickle.loads(pickle.dumps(critical_batch))
    assert again == critical_batch
    assert again.check()


def test_a_derivation_is_made_anew_with_other_arguments():
    """The same verbs; what is changed must still follow."""
    solved = ROOFS.solve(B, RIGHT)
    assert solved.replayed() == solved
    assert solved.replayed({2: {"claim": RIGHT * W / W}}) == solved
    with pytest.raises(DerivationError, match="does not satisfy"):
        solved.replayed({2: {"claim": 2 * RIGHT}})
    with pytest.raises(DerivationError, match="does not satisfy"):
        solved.replayed({1: {"lhs": 3 * compute_time.rhs}})


@pytest.mark.parametrize("number", range(len(critical_batch_with_kv.steps)))
def test_a_recorded_form_that_its_verb_does_not_give_is_refused(number):
    """`check` trusts no record."""
    steps = list(critical_batch_with_kv.steps)
    steps[number] = replace(steps[number], rhs=2 * steps[number].rhs)
    with pytest.raises(DerivationError, match=rf"step {number + 1}: .* is recorded, but the step"):
        replace(critical_batch_with_kv, steps=tuple(steps)).check()


def test_what_puts_in_an_approximation_is_approximate():
    """And its strain is that of what it puts in."""
    after = Derivation("time at the crossing").begin(compute_time).substitute(short_batch())
    assert not after.exact
    assert after.proofs[-1] == (
        "taken: by definition, of an approximation: drop B*L_ctx*b_kv/W, "
        "from what is taken of short"
    )
    assert "drop B*L_ctx*b_kv/W: short" in after.equation().assumes
    size = after.strain(TOY | {"L_ctx": 512})["drop B*L_ctx*b_kv/W"]
    assert size == pytest.approx(0.2935, rel=1e-2)


def test_a_limit_that_exists_nowhere_is_refused():
    """Nothing compared is nothing shown."""
    start = Derivation("nowhere").begin(coverage, sp.sqrt(1 + 1 / n_layers))
    with pytest.raises(DerivationError, match="no point near the limit"):
        start.limit(n_layers, sp.oo, sp.sqrt(-n_kv))
    with pytest.raises(DerivationError, match="no point near the limit"):
        start.limit(n_layers, sp.oo, sp.sqrt(-1 - n_kv))


def test_every_branch_of_a_limit_is_met():
    """A wrong branch that is seldom the largest does not pass."""
    before = maximum(n_kv, (e_c + 1 / n_layers) / 9)
    start = Derivation("seldom").begin(coverage, before)
    assert start.limit(n_layers, sp.oo, maximum(n_kv, e_c / 9)).check()
    with pytest.raises(DerivationError, match="does not tend to"):
        start.limit(n_layers, sp.oo, maximum(n_kv, e_c / 8))


def short_batch():
    """The critical batch, as a value of B and without the caches."""
    return (
        Derivation("short")
        .begin(compute_time.rhs, memory_time.rhs)
        .drop(B * L_ctx * b_kv / W, beside=N_total * b_w / W, why="short")
        .solve(B, RIGHT)
    )


def test_a_root_below_zero_is_refused():
    """It satisfies the equation, and no symbol is negative."""
    start = Derivation("root").begin(n_layers**2, n_kv)
    assert start.solve(n_layers, sp.sqrt(n_kv)).check()
    with pytest.raises(DerivationError, match="is positive at no point"):
        start.solve(n_layers, -sp.sqrt(n_kv))


def test_a_solution_that_is_positive_somewhere_stands():
    """Elsewhere there is none, which is a condition and not a mistake."""
    start = Derivation("somewhere").begin(n_layers + n_kv, coverage)
    assert start.solve(n_layers, coverage - n_kv).check()
