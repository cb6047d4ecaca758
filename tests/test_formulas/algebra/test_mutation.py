"""Broken steps and broken units are refused: mutants of every derivation and every equation.

The whole figure with its survivors: `python -m tests.scripts.mutants`.
"""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import pytest
import sympy as sp

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.equation import Equation
from formulas.nomenclature.dimensions import BASES, UnitError
from formulas.nomenclature.lecture import B, T_comp, T_mem, T_step
from formulas.nomenclature.symbols import symbol_unit
from formulas.numerics.expressions import float_value
from formulas.registry import all_derivations, all_equations, by_name
from formulas.roofline.batching import critical_batch
from tests.loops import for_all
from tests.scripts.mutants import expression_mutants, figure, judged, mutants
from tests.sizes import first, seldom

DERIVED = [name for name, value in by_name().items() if isinstance(value, Derivation)]
LEAST = 0.95


@pytest.mark.parametrize("every", [*first(0, [54]), *seldom([9, 1])])
def test_nearly_every_broken_step_is_refused(every):
    """Of one mutant in twenty-seven of all derivations, or of all of them, 95 in 100 or more."""
    with ProcessPoolExecutor() as pool:
        verdicts = list(pool.map(judged, DERIVED, [every] * len(DERIVED)))
    killed, total = sum(v.killed for v in verdicts), sum(v.total for v in verdicts)
    print(figure(verdicts))
    assert total > 50 * len(DERIVED) / every
    assert killed >= LEAST * total, figure(verdicts)


def test_every_mutant_of_the_critical_batch_is_refused():
    """Terms, exponents, coefficients, symbols: nothing passes."""
    verdict = judged("critical_batch")
    assert verdict.survivors == ()
    assert verdict.killed > 80


@for_all("name", DERIVED)
def test_a_recorded_step_that_was_altered_is_refused(name):
    """Each side of each step; `check` makes every step anew."""
    derivation = by_name()[name]
    for index, step in enumerate(derivation.steps):
        altered = (*derivation.steps[:index], replace(step, rhs=3 * step.rhs))
        with pytest.raises(DerivationError, match="is recorded, but the step gives"):
            replace(derivation, steps=(*altered, *derivation.steps[index + 1 :])).check()


def test_the_mutants_are_those_that_are_meant():
    """Terms dropped, exponents, coefficients, fractions turned over, symbols swapped, flips."""
    made = dict(expression_mutants(2 * T_comp / B + T_mem))
    assert made["drop T_mem"] == 2 * T_comp / B
    assert made["square T_mem"] == 2 * T_comp / B + T_mem**2
    assert made["3 for 2"] == 3 * T_comp / B + T_mem
    assert made["turn over 2*T_comp/B"] == B / (2 * T_comp) + T_mem
    assert made["swap T_comp and T_mem"] == 2 * T_mem / B + T_comp
    flipped = dict(expression_mutants(sp.Piecewise((T_mem, T_mem > T_comp), (T_comp, True))))
    assert sp.Piecewise((T_mem, T_mem < T_comp), (T_comp, True)) in flipped.values()
    largest = sp.Max(T_mem, T_comp, evaluate=False)
    assert sp.Min(T_mem, T_comp) in dict(expression_mutants(largest)).values()


def test_a_flipped_condition_is_refused():
    """`given` is where the two forms are compared."""
    branch = Derivation("branch").begin(T_step, sp.Max(T_comp, T_mem)).rewrite(
        T_mem, relations=(T_mem >= T_comp,)
    )  # fmt: skip
    flips = [each for each in mutants(branch) if "flip T_mem >= T_comp" in each.what]
    assert len(flips) == 1
    with pytest.raises(DerivationError, match="is not equal to"):
        branch.replayed({flips[0].number: flips[0].arguments})


def test_mutants_come_in_one_order():
    """So that the figure is the same wherever it is computed."""
    first, again = ([each.what for each in mutants(critical_batch)] for _ in range(2))
    assert first == again
    assert len(all_derivations()) == len(DERIVED)


@pytest.mark.parametrize("every", [24, *first(0, [12]), *seldom([4, 1])])
def test_equations_of_a_wrong_unit_are_refused(every):
    """Wrong by rescaling: with seconds of an eighth of the length, both sides must change alike.

    One mutant in three of one equation in so many. Only a count left out of an
    exponent can pass, as B for B*m_pos: either is a count.
    """
    refused, passed = 0, []
    for equation in all_equations()[::every]:
        bases = [b for b in BASES if _scales(equation.symbol, equation.rhs, b)]
        for what, changed in islice(expression_mutants(equation.rhs), 0, None, 3):
            if all(_scales(equation.symbol, changed, base) for base in bases):
                continue
            try:
                Equation(f"{equation.name}, {what}", equation.symbol, changed)
                passed.append(f"{equation}: {what}")
            except UnitError:
                refused += 1
    assert refused > 500 / every
    assert all("**(" in each and "leave out" in each for each in passed), passed
    assert len(passed) < refused / 50


def _scales(left: sp.Symbol, right: sp.Expr, base: str) -> bool:
    """Whether the right side changes like the left when a base unit is an eighth as large.

    At two points, so that no share exceeds one at both.
    """
    symbols = sorted(right.free_symbols, key=lambda x: x.name)
    return all(_scales_at(left, right, base, order) for order in (symbols, symbols[::-1]))


def _scales_at(left: sp.Symbol, right: sp.Expr, base: str, symbols: list[sp.Symbol]) -> bool:
    point = {x: 1 + index / 7 for index, x in enumerate(symbols)}
    scaled = {x: value * 8 ** float(_power(x, base)) for x, value in point.items()}
    try:
        before, after = float_value(right, point), float_value(right, scaled)
    except ValueError:
        return True  # it does not exist here; nothing is shown
    return after == pytest.approx(before * 8 ** float(_power(left, base)), rel=1e-6)


def _power(x: sp.Symbol, base: str) -> Fraction:
    return dict(symbol_unit(x).powers).get(base, Fraction(0))
