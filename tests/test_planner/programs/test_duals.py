"""Multipliers and elasticities against the same problem solved again, and at kinks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.programs.geometric import GeometricProgram, Program
from planner.text.errors import Infeasible

x = sp.symbols("x_0:3", positive=True)
coefficient = sp.symbols("c_0:12", positive=True)
power = sp.Symbol("s", positive=True)
limit = sp.Symbol("limit", positive=True)
STEP = 1e-3

exponents = st.integers(-2, 2)
monomials = st.tuples(exponents, exponents, exponents)
figures = st.floats(-3, 3).map(math.exp)


def term(number: int, powers: tuple[int, ...]) -> sp.Expr:
    return coefficient[number] * sp.Mul(*(v**e for v, e in zip(x, powers, strict=True)))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, dict[sp.Symbol, float]]:
    """A posynomial objective and two posynomial constraints that hold at x = 1."""
    problem = GeometricProgram("random")
    for variable in x:
        problem.choose(variable, within=(1e-2, 1e2))
    given = {coefficient[i]: draw(figures) for i in range(9)} | {power: draw(st.floats(0.2, 2))}
    groups = [[term(3 * g + i, draw(monomials)) for i in range(3)] for g in range(3)]
    ones = dict.fromkeys(x, 1)
    for number, group in enumerate(groups[1:]):
        room = coefficient[9 + number]
        given[room] = 1.5 * float(sum(each.subs(ones).subs(given) for each in group))
        problem.subject(f"constraint {number}", sp.Le(sum(group), room))
    problem.minimise(sum(groups[0]) + x[0] ** power)
    used = [each for group in groups for each in group]
    given = {
        p: v
        for p, v in given.items()
        if p is power or p in coefficient[9:] or any(u.has(p) for u in used)
    }
    return problem.compile(given), given


def shifted(program: Program, figures: dict[sp.Symbol, float], p: sp.Symbol, by: float) -> float:
    return math.log(program.solve(figures | {p: figures[p] * math.exp(by)}).value)


@settings(max_examples=25, deadline=None)
@given(programs())
def test_elasticities_are_the_slopes_of_problems_solved_again(
    case: tuple[Program, dict[sp.Symbol, float]],
) -> None:
    """Every given, exponent and right side, between the slopes to the left and to the right."""
    program, figures = case
    solution = program.solve(figures)
    here = math.log(solution.value)
    for p, elasticity in solution.elasticities().items():
        left = (here - shifted(program, figures, p, -STEP)) / STEP
        right = (shifted(program, figures, p, STEP) - here) / STEP
        room = 1e-3 + abs(right - left)
        assert min(left, right) - room <= elasticity <= max(left, right) + room
        if abs(right - left) < 1e-3:
            assert elasticity == pytest.approx((left + right) / 2, abs=1e-3)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(programs(), st.integers(0, 2**32 - 1))
def test_no_feasible_point_is_below_the_bound(
    case: tuple[Program, dict[sp.Symbol, float]], seed: int
) -> None:
    """Two thousand random points of the box, those that satisfy everything."""
    program, figures = case
    solution = program.solve(figures)
    structure = program.structure
    at = solution._solved.at
    rng = np.random.default_rng(seed)
    points = rng.uniform(at.low, at.high, (2000, len(at.low)))
    points[:, :3] = solution._solved.logs[:3] + rng.normal(size=(2000, 3)) * 0.3
    points = points[(points[:, :3] >= at.low[:3]).all(1) & (points[:, :3] <= at.high[:3]).all(1)]
    points[:, -1] = 0
    sums = np.zeros((len(points), len(structure.rows)))
    for number, row in enumerate(structure.table.rows):
        sums[:, row] += np.exp(at.logs[number] + points @ at.matrix[number])
    feasible = (sums[:, :-1] <= 1).all(axis=1)
    assert (sums[feasible, -1] >= solution.lower_bound).all()
    assert solution.lower_bound == pytest.approx(solution.value, rel=1e-5)


def test_a_multiplier_is_the_gain_from_easing_the_constraint() -> None:
    """-d ln value / d ln s for a right side times s: sign and size."""
    problem = GeometricProgram("sign")
    problem.choose(x[0], within=(1e-3, 1e3))
    problem.choose(x[1], within=(1e-3, 1e3))
    problem.subject("room", sp.Le(x[0] + 2 * x[1], limit))
    problem.minimise(1 / (x[0] * x[1] ** 2))
    solution = problem.compile().solve({limit: 6.0})
    assert solution.multipliers["room"] == pytest.approx(3.0, rel=1e-9)
    assert solution.elasticities()[limit] == pytest.approx(-3.0, rel=1e-9)
    assert solution.binding == (("room", pytest.approx(3.0)),)


def tied() -> Program:
    """Two roofs over T that are the same where a equals b."""
    a, b = coefficient[:2]
    problem = GeometricProgram("tie")
    problem.choose(x[0], within=(1, 10))
    problem.choose(x[1], within=(1e-6, 1e6))
    problem.roof(x[1], compute=a * x[0], memory=b * x[0])
    problem.minimise(x[1] * x[0] + 1 / x[0])
    return problem.compile()


def side(program: Program, at: dict[sp.Symbol, float], symbol: sp.Symbol, step: float) -> float:
    """d ln value / d ln symbol on one side, to second order, by solving again."""
    here, near, far = (
        math.log(program.solve({**at, symbol: at[symbol] * math.exp(k * step)}).value)
        for k in range(3)
    )
    return (4 * near - 3 * here - far) / (2 * step)


def sides(program: Program, at: dict[sp.Symbol, float], symbol: sp.Symbol) -> tuple[float, float]:
    """The same to the left and to the right."""
    return side(program, at, symbol, -STEP), side(program, at, symbol, STEP)


def test_at_a_tie_the_elasticity_lies_between_those_of_a_maximum() -> None:
    """max(a, b) at a = b has the slopes 0 and 1; more of either alone costs, less saves nothing."""
    a, b = coefficient[:2]
    program, at = tied(), {a: 2.0, b: 2.0}
    slopes = program.solve(at).elasticities()
    share = 2.0 / (2.0 + 1.0)
    for symbol in (a, b):
        minus, plus = sides(program, at, symbol)
        assert (minus, plus) == pytest.approx((0.0, share), abs=1e-5)
        assert -1e-9 <= slopes[symbol] <= share + 1e-9


def test_away_from_a_tie_both_sides_agree() -> None:
    """One value, that of the envelope theorem."""
    a, b = coefficient[:2]
    program, at = tied(), {a: 2.0, b: 1.0}
    slopes = program.solve(at).elasticities()
    for symbol in (a, b):
        assert sides(program, at, symbol) == pytest.approx((slopes[symbol],) * 2, abs=1e-5)


def test_where_nothing_gives_way_a_side_has_no_solution() -> None:
    """A choice between a and b with a = b: raising a leaves no solution."""
    a, b = coefficient[:2]
    problem = GeometricProgram("pinched")
    problem.choose(x[0], within=(a, b))
    problem.minimise(x[0])
    program = problem.compile()
    assert side(program, {a: 2.0, b: 2.0}, a, -STEP) == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(Infeasible):
        program.solve({a: 2.0 * math.exp(STEP), b: 2.0})


def test_a_given_inside_a_rounding_or_a_maximum_has_a_slope() -> None:
    """Zero through a ceiling, the chosen branch's through a maximum."""
    a, b, c = coefficient[:3]
    problem = GeometricProgram("corners")
    problem.choose(x[0], within=(1e-3, 1e3))
    problem.minimise(sp.ceiling(a) * x[0] + sp.Max(b, c**2, sp.Min(a, 1)) / x[0])
    slopes = problem.compile().solve({a: 2.5, b: 3.0, c: 2.0}).elasticities()
    assert slopes == pytest.approx({a: 0.0, b: 0.0, c: 1.0}, abs=1e-9)
