"""Geometric programs with known answers, numbers that change, and awkward magnitudes."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
import sympy as sp

from planner.programs.geometric import GeometricProgram
from planner.programs.geometric.cone import ExponentTable, LogProgram, solved_by_cvxpy
from planner.text.errors import SolverError

x, y, z, T = sp.symbols("x y z T", positive=True)
a, b, c, s = sp.symbols("a b c s", positive=True)


def box(*, floor: float = 600.0) -> tuple[GeometricProgram, dict[sp.Symbol, float]]:
    """Boyd et al. 2007, the largest box for given walls, floor and proportions."""
    wall, ground = sp.symbols("A_wall A_floor", positive=True)
    h, w, d = x, y, z
    problem = GeometricProgram("box")
    for side in (h, w, d):
        problem.choose(side, within=(1e-3, 1e4))
    problem.subject("walls", sp.Le(2 * (h * w + h * d), wall), promise=True)
    problem.subject("floor", sp.Le(w * d, ground))
    problem.subject("not too low", sp.Ge(h / w, a))
    problem.subject("not too high", sp.Le(h / w, b))
    problem.subject("not too deep", sp.Le(d / w, c))
    problem.minimise(1 / (h * w * d))
    return problem, {wall: 200.0, ground: floor, a: 0.5, b: 2.0, c: 3.0}


def test_largest_box_is_that_of_cvxpys_own_geometric_program() -> None:
    """The same box, declared to CVXPY with gp=True: volume and every dual agree."""
    problem, given = box()
    solution = problem.compile().solve(given)
    h, w, d = (cp.Variable(pos=True) for _ in range(3))
    constraints = [2 * (h * w + h * d) <= 200, w * d <= 600, 0.5 * w / h <= 1, h / w <= 2]
    constraints.append(d / w <= 3)
    other = cp.Problem(cp.Minimize(1 / (h * w * d)), constraints)
    other.solve(gp=True, solver=cp.CLARABEL)
    assert solution.value == pytest.approx(other.value, rel=1e-7)
    names = ("walls", "floor", "not too low", "not too high", "not too deep")
    duals = [float(each.dual_value) for each in constraints]
    assert [solution.multipliers[name] for name in names] == pytest.approx(duals, abs=1e-5)


def test_can_of_least_tin_is_as_high_as_wide() -> None:
    """For a given volume the cheapest cylinder has its height equal to its diameter."""
    r, h, volume = sp.symbols("r h V", positive=True)
    problem = GeometricProgram("can")
    problem.choose(r, within=(1e-6, 1e6))
    problem.choose(h, within=(1e-6, 1e6))
    problem.subject("holds enough", sp.Ge(sp.pi * r**2 * h, volume))
    problem.minimise(2 * sp.pi * r**2 + 2 * sp.pi * r * h)
    choices = problem.compile().solve({volume: 0.33e-3}).choices
    assert choices[h] == pytest.approx(2 * choices[r], rel=1e-9)


def test_arithmetic_mean_is_above_the_geometric() -> None:
    """min a x + b / x is 2 sqrt(a b)."""
    problem = GeometricProgram("means")
    problem.choose(x, within=(1e-9, 1e9))
    problem.minimise(a * x + b / x)
    assert problem.compile().solve({a: 3.0, b: 7.0}).value == pytest.approx(
        2 * math.sqrt(21), rel=1e-12
    )


def chinchilla() -> tuple[GeometricProgram, dict[sp.Symbol, float]]:
    n, d, alpha, beta, gap = sp.symbols("n d alpha beta gap", positive=True)
    problem = GeometricProgram("loss")
    problem.choose(n, within=(1, 1e18))
    problem.choose(d, within=(1, 1e18))
    problem.subject("loss", sp.Le(a * n**-alpha + b * d**-beta, gap), promise=True)
    problem.minimise(6 * n * d)
    return problem, {a: 406.4, b: 410.7, alpha: 0.34, beta: 0.28, gap: 0.3}


def test_exponents_may_be_givens() -> None:
    """Least compute for a loss a/n^alpha + b/d^beta, against the closed form."""
    problem, given = chinchilla()
    A, B, alpha, beta, gap = given.values()
    n = (A * (alpha + beta) / (beta * gap)) ** (1 / alpha)
    d = (B * (alpha + beta) / (alpha * gap)) ** (1 / beta)
    assert problem.compile().solve(given).value == pytest.approx(6 * n * d, rel=1e-9)


def test_numbers_change_without_compiling_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many different figures, exponents among them, go through one lowered program."""
    problem, given = chinchilla()
    program = problem.compile()
    program.solve(given)
    monkeypatch.setattr("sympy.lambdify", None)
    monkeypatch.setattr("planner.programs.geometric.solver.LogProgram", None)
    before = program._program._indices
    for factor in (0.5, 1.1, 2.0):
        alpha, _, gap = list(given)[2:]
        now = given | {alpha: 0.3 * factor**0.1, gap: 0.3 * factor}
        A, B, al, be, g = now.values()
        n = (A * (al + be) / (be * g)) ** (1 / al)
        d = (B * (al + be) / (al * g)) ** (1 / be)
        assert program.solve(now).value == pytest.approx(6 * n * d, rel=1e-8)
    assert program._program._indices is before


def test_coefficients_need_not_be_posynomials_of_the_givens() -> None:
    """(tp - 1)/tp, logarithms, ceilings and maxima of givens are one number to the solver."""
    problem = GeometricProgram("coefficients")
    problem.choose(x, within=(1e-6, 1e6))
    first = (a - 1) / a + sp.log(b)
    second = sp.ceiling(b) * sp.Max(a, b, 1 / a)
    problem.minimise(first * x + second / x)
    value = problem.compile().solve({a: 4.0, b: 2.5}).value
    assert value == pytest.approx(2 * math.sqrt((0.75 + math.log(2.5)) * 12), rel=1e-10)


def test_a_zero_coefficient_drops_its_term() -> None:
    """With a = 1 the term (a - 1) x vanishes, with no second compilation; its slope does not."""
    problem = GeometricProgram("drop")
    problem.choose(x, within=(1, 1e6))
    problem.choose(T, within=(1e-9, 1e9))
    problem.roof(T, one=(a - 1) * x + b, two=c / x)
    problem.minimise(T)
    program = problem.compile()
    at_zero = program.solve({a: 1.0, b: 2.0, c: 1.0})
    assert at_zero.value == pytest.approx(2.0, rel=1e-9)
    beside = program.solve({a: 1.1, b: 2.0, c: 40.0})
    root = (-2 + math.sqrt(4 + 4 * 0.1 * 40)) / 0.2
    assert beside.value == pytest.approx(40 / root, rel=1e-9)


def test_elasticity_to_a_given_that_makes_a_coefficient_zero() -> None:
    """d ln(b + (a-1) x)/d ln a at a = 1 is a x / b, though the term itself is zero."""
    problem = GeometricProgram("slope at zero")
    problem.choose(x, within=(b, 2 * b))
    problem.minimise((a - 1) * x + c * x)
    solution = problem.compile().solve({a: 1.0, b: 3.0, c: 2.0})
    assert solution.elasticities()[a] == pytest.approx(0.5, rel=1e-9)


def test_what_stands_in_zero_terms_only_does_not_drift() -> None:
    """A maximum times nothing: its slope is that of the first little of it, and nothing overflows.

    At y = 1, d ln(c + (a - 1) max(y, b)) / d ln a at a = 1 is max(1, b) / c.
    """
    problem = GeometricProgram("wide")
    problem.choose(y, within=(1, 1e300))
    problem.minimise(c * y + (a - 1) * sp.Max(y**200, b))
    solution = problem.compile().solve({a: 1.0, b: 3.0, c: 2.0})
    assert solution.elasticities()[a] == pytest.approx(1.5, rel=1e-6)


def test_a_given_may_be_zero() -> None:
    """An overhead of nothing is a figure like another."""
    problem = GeometricProgram("no overhead")
    problem.choose(x, within=(1e-3, 1e3))
    problem.minimise(b / x + a + x)
    assert problem.compile().solve({a: 0.0, b: 4.0}).value == pytest.approx(4.0, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e9, 1e18])
def test_the_unit_of_a_quantity_does_not_matter(unit: float) -> None:
    """Bytes in other units change neither the other choices nor any multiplier."""
    problem = GeometricProgram("units")
    problem.choose(x, within=(1e-2 * c, 1e2 * c))
    problem.choose(T, within=(1e-9, 1e9))
    problem.roof(T, memory=(a + x) / b, compute=c / x)
    problem.minimise(T * (1 + x / c) ** 2)
    program = problem.compile()
    reference = program.solve({a: 2.0, b: 3.0, c: 1.0})
    scaled = program.solve({a: 2.0 * unit, b: 3.0 * unit, c: unit})
    assert scaled.value == pytest.approx(reference.value, rel=1e-9)
    assert scaled.choices[x] == pytest.approx(reference.choices[x] * unit, rel=1e-7)
    assert list(scaled.multipliers.values()) == pytest.approx(
        list(reference.multipliers.values()), abs=1e-7
    )


def test_roofs_tell_how_full_each_branch_is() -> None:
    """A branch's share is its time over the roof; the largest is one."""
    problem = GeometricProgram("shares")
    problem.choose(x, within=(1, 4))
    problem.choose(T, within=(1e-9, 1e9))
    problem.roof(T, arithmetic=x / 10, memory=(3 + x) / 10)
    problem.minimise(T / x)
    shares = problem.compile().solve({}).shares
    assert shares == {T: {"arithmetic": pytest.approx(4 / 7), "memory": pytest.approx(1.0)}}


def test_bounds_that_meet_fix_a_choice() -> None:
    """A choice held between a and a is a."""
    problem = GeometricProgram("fixed")
    problem.choose(x, within=(a, a))
    problem.choose(y, within=(1e-3, 1e3))
    problem.minimise(x * y + b / y)
    solution = problem.compile().solve({a: 4.0, b: 9.0})
    assert solution.value == pytest.approx(12.0, rel=1e-7)
    assert solution.elasticities()[a] == pytest.approx(0.5, abs=1e-6)


def test_definitions_are_put_in() -> None:
    """Definitions of definitions, of givens and of choices, in any order."""
    total, half, factor = sp.symbols("total half factor", positive=True)
    problem = GeometricProgram("defined")
    problem.choose(x, within=(1e-3, 1e3))
    problem.define(sp.Eq(total, half * 2 + factor / x), sp.Eq(half, x / 2), sp.Eq(factor, a * b))
    problem.minimise(total)
    assert problem.compile().solve({a: 2.0, b: 8.0}).value == pytest.approx(8.0, rel=1e-10)


def test_the_bound_is_below_every_point_of_a_fine_grid() -> None:
    """The dual bound against 250,000 feasible points, and close to the best of them."""
    problem = GeometricProgram("grid")
    problem.choose(x, within=(0.1, 10))
    problem.choose(y, within=(0.1, 10))
    problem.subject("together", sp.Le(x * sp.sqrt(y) + 1 / y, 2))
    problem.minimise(1 / (x * y) + sp.Max(x, y**2) / 3)
    solution = problem.compile().solve({})
    X, Y = np.meshgrid(*[np.geomspace(0.1, 10, 500)] * 2)
    feasible = X * np.sqrt(Y) + 1 / Y <= 2
    best = (1 / (X * Y) + np.maximum(X, Y**2) / 3)[feasible].min()
    assert solution.lower_bound <= best
    assert best == pytest.approx(solution.lower_bound, rel=2e-2)
    assert solution.lower_bound == pytest.approx(solution.value, rel=1e-8)


@pytest.mark.parametrize("floor", [False, True])
def test_the_cone_program_is_the_one_that_cvxpy_writes(floor: bool) -> None:
    """Linear and curved rows, exponents that are givens: the same optimum and multipliers."""
    table = ExponentTable(
        np.array([0, 1, 1, 2, 3, 3, 3]),
        np.array([[1.0, 0, 0], [2, 0, -1], [0, 3, -1], [0, -1, 0], [0.5, -1, -1], [1, 1, -1],
                  [-1, 0, -1]]),
        np.array([2, 5]), np.array([1, 0]), np.array([0, 1]),
    )  # fmt: skip
    numbers = np.linspace(-3, 0.4, 7), np.array([0.25, 0.5]), np.array([0.1, 0.2, 0.3])
    mine = LogProgram(table, floor=floor).solve(*numbers)
    theirs = solved_by_cvxpy(table, *numbers, floor=floor, solver="CLARABEL")
    assert mine.status == theirs.status == "optimal"
    assert mine.logs[-1] == pytest.approx(theirs.logs[-1], abs=1e-7)
    assert mine.multipliers == pytest.approx(theirs.multipliers, abs=1e-4)


def test_a_second_solver_takes_over_where_the_first_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer is the same, and says who found it."""
    problem, given = chinchilla()
    program = problem.compile()
    expected = program.solve(given)

    def gives_up(*_: object) -> None:
        raise SolverError("the convex solver gave up: NumericalError")

    monkeypatch.setattr(program._program, "solve", gives_up)
    again = program.solve(given)
    assert (expected.solver, again.solver) == ("Clarabel", "SCS")
    assert again.value == pytest.approx(expected.value, rel=1e-9)
    assert again.lower_bound == pytest.approx(expected.lower_bound, rel=1e-6)
