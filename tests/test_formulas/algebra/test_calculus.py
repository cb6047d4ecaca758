"""Optima, bounds and means: the condition is derived, and what it claims is shown."""

import re
from fractions import Fraction

import pytest
import sympy as sp

from formulas.algebra.calculus import Exponential, Uniform, second_derivative_value
from formulas.algebra.derivation import Derivation, DerivationError
from formulas.nomenclature.training import q_pull as z
from formulas.nomenclature.training import r_all as k
from formulas.nomenclature.training import x_over as n
from formulas.nomenclature.training import x_shift as y
from formulas.registry import all_derivations, by_name
from tests.loops import for_all


def test_an_optimum_derives_its_condition_and_shows_the_second_order():
    """n + k/n is least where 1 = k/n**2, and nowhere else."""
    start = Derivation("least").begin(y, n + k / n)
    optimum = start.stationary(n)
    assert sp.simplify((optimum.lhs - optimum.rhs) - (n - k / n)) == 0
    assert "second order positive everywhere: the only root" in optimum.proofs[-1]
    assert optimum.solve(n, sp.sqrt(k)).check()
    with pytest.raises(DerivationError, match="does not satisfy"):
        optimum.solve(n, k)


def test_an_optimum_lists_its_root_where_it_was_met():
    """n + k/n is least at the root of k: the line says a root and the values that it is of."""
    optimum = Derivation("least").begin(y, n + k / n).stationary(n)
    met = re.search(r"; x_over = (\S+) at r_all = (\S+)$", optimum.proofs[-1])
    assert float(met[1]) == pytest.approx(float(met[2]) ** 0.5, rel=1e-3)


def test_an_optimum_under_a_constraint_trades_one_symbol_for_another():
    """n**2 * k is largest on n + k = 1 where k is half of n: the slope of either is the same."""
    start = Derivation("largest").begin(y, n**2 * k)
    optimum = start.stationary(n, traded=k, constant=n + k, least=False)
    assert optimum.solve(n, 2 * k).check()
    with pytest.raises(DerivationError, match=r"curvature -.*that of a least value"):
        start.stationary(n, traded=k, constant=n + k).check()


def test_a_saddle_or_a_slope_without_roots_is_refused():
    """Neither is an optimum."""
    with pytest.raises(DerivationError, match="only rises, or only falls, in x_over"):
        Derivation("rises").begin(y, n + k).stationary(n)


def test_a_bound_has_a_direction_which_later_lines_inherit():
    """And which they cannot turn round."""
    bounded = Derivation("bound").begin(y, n / (1 + n)).bound(sp.Integer(1), "<=")
    assert str(bounded) == "x_shift ≤ 1"
    assert bounded.proofs[-1] == "proven: bound, sign of every term"
    assert str(bounded.rewrite(sp.Integer(2) - 1)) == "x_shift ≤ 1"
    assert r"\le" in bounded.latex()
    assert "the most it can be" in bounded.equation().assumes
    with pytest.raises(DerivationError, match="does not turn round"):
        bounded.bound(sp.Integer(0), ">=")
    with pytest.raises(DerivationError, match="a bound is <= or >="):
        Derivation("bound").begin(y, n / (1 + n)).bound(sp.Integer(1), "<")


@pytest.mark.parametrize(
    ("over", "mean"),
    [(Uniform(sp.Integer(0), k), k / 2), (Exponential(k), k)],
    ids=["uniform", "exponential"],
)
def test_a_mean_is_over_a_named_distribution(over, mean):
    """The first moment, and nothing near it."""
    start = Derivation("mean").begin(y, n)
    assert start.mean(n, over, mean).check()
    with pytest.raises(DerivationError, match="the mean of x_over is not"):
        start.mean(n, over, mean * (1 + sp.Rational(1, 10**12)))


OPTIMA = (
    "optimal_tokens kaplan_optimal_tokens fine_grained_optimal_tokens sparse_optimal_tokens "
    "joint_optimal_tokens overtraining equalisation block_size checkpoint_interval best_drain_time "
    "falling_cost serving_shift"
)


@for_all("name", OPTIMA.split())
def test_an_optimum_of_the_catalogue_starts_from_its_objective(name):
    """No first-order condition is typed."""
    verbs = [step.verb for step in by_name()[name].steps]
    assert "stationary" in verbs
    assert verbs.index("stationary") < verbs.index("solve")


def test_conditions_travel_with_what_is_put_in():
    """No derivation loses one of an equation or derivation that it puts in."""
    lost = [
        (derivation.name, assumption)
        for derivation in all_derivations()
        for step in derivation.steps
        for part in step.used
        for assumption in part.assumes
        if assumption not in derivation.assumes
    ]
    assert lost == []


def test_a_curvature_that_cancels_is_decided_with_more_digits():
    """Sixty digits agree: the first precision loses them all, the next sees the sign."""
    near = sp.sqrt(n + sp.Rational(1, 10**60)) - sp.sqrt(n)
    assert second_derivative_value(near, {n: Fraction(2)}) > 0
    assert second_derivative_value(sp.log(n - 3), {n: Fraction(2)}) is None


def test_what_follows_a_driver_moves_both_sides_alike():
    """Where y**2 * n = k and y * n stays, y rises by one percent per percent of k."""
    start = Derivation("path").begin(y**2 * n, k)
    path = start.respond(y, k, z, n, y * n)
    assert (path.lhs, path.rhs) == (2 * z - z, 1)
    assert path.solve(z, sp.Integer(1)).check()
    assert path.proofs[-1].startswith("proven: both sides move alike")


@pytest.mark.slow
def test_how_many_roots_a_slope_has_is_said():
    """Where its curvature has no sign term by term; roots of two signs in a decade are refused."""
    steps = by_name()["kaplan_optimal_tokens"].steps
    optimum = next(step for step in steps if step.verb == "stationary")
    assert "one root at each of 4 points over 120 orders" in optimum.proof(steps[0])
    wells = Derivation("least").begin(y, (n - k) ** 2 * (n - 3 * k) ** 2 / k**4)
    with pytest.raises(DerivationError, match=r"curvature -.*that of a least value"):
        wells.stationary(n).check()
