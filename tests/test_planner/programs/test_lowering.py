"""What is brought to a geometric program, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import minimize_scalar

from planner.programs.geometric import GeometricProgram, ProblemError
from tests.loops import for_all

x, y, T = sp.symbols("x y T", positive=True)
a, b, c, s, k = sp.symbols("a b c s k", positive=True)

SHAPES = {
    "maximum in a sum": sp.Max(x, 2 / x) + x / 4,
    "maximum with zero": sp.Max(0, x - sp.Rational(1, 4) * x) + 1 / x,
    "maximum of sums": sp.Max(x + 1, 3 / x) ** 2,
    "root of a sum": sp.sqrt(x + 1) + 2 / x,
    "square of a sum": (x + 1 / x + 1) ** 2,
    "high power of a sum": (x + 3 / x) ** 7,
    "one over a difference": 1 / (5 - x) + 2 / x,
    "power of one over a difference": (5 - x) ** -2 + 1 / x,
    "one over a minimum": x / 4 + 1 / sp.Min(x, 3),
    "nested": sp.Max(sp.sqrt(1 + x) / x, sp.Max(x, 2) / 3) + x / 10,
    "long product of sums": sp.Mul(*(x**i + x + 4 / x + i for i in range(2, 7)), 1 / x**9),
    "product of sums": (x + 1) * (1 + 2 / x),
}


@for_all("name", SHAPES)
def test_convex_shapes_reach_the_minimum_that_a_line_search_finds(name: str) -> None:
    """Functions that are convex in ln x, minimised with no geometric program at all."""
    shape = SHAPES[name]
    problem = GeometricProgram(name)
    problem.choose(x, within=(0.01, 4.9))
    problem.minimise(shape)
    solution = problem.compile().solve({})
    plain = sp.lambdify(x, shape, "numpy")
    grid = np.geomspace(0.01, 4.9, 2001)
    start = int(np.argmin([plain(each) for each in grid]))
    ends = (grid[max(start - 1, 0)], grid[min(start + 1, 2000)])
    found = minimize_scalar(plain, bounds=ends, method="bounded", options={"xatol": 1e-12})
    assert solution.value == pytest.approx(min(found.fun, plain(grid[start])), rel=1e-7)
    assert solution.lower_bound <= found.fun


@pytest.mark.parametrize(
    ("larger", "least"),
    [
        (sp.Min(x, 4 / x), 1 / 2),
        (3 - x, 1 / (3 - 0.1)),
        (1 / (1 + x), 1.1),
        (x / (1 + x), (1 + 10) / 10),
        (sp.sqrt(3 - x), 1 / math.sqrt(2.9)),
        (a * (1 - x / 20) * x, 1 / 5),
    ],
    ids=str,
)
def test_what_may_stand_on_the_larger_side(larger: sp.Expr, least: float) -> None:
    """1/y below a function whose logarithm is concave in ln x."""
    problem = GeometricProgram("larger side")
    problem.choose(x, within=(0.1, 10))
    problem.choose(y, within=(1e-3, 1e3))
    problem.subject("held", sp.Le(1 / y, larger))
    problem.minimise(y)
    given = {a: 1.0} if larger.has(a) else {}
    assert problem.compile().solve(given).value == pytest.approx(least, rel=1e-7)


@for_all(
    ("smaller", "larger", "reason"),
    [
        (x, 1 + y, "a sum on the side that must stay large"),
        (x - y, a, "a sum on the side that must stay large"),
        (sp.ceiling(x), a, r"rounding is not convex.*\n    ceiling\(x\)"),
        (
            1 - (1 - k) ** x,
            a,
            r"a decision variable appears in an exponent, in\n    \(1 - k\)\*\*x",
        ),
        (sp.log(x), a, "log of a choice"),
        (x, sp.Max(y, 2), "would help here"),
        (sp.Min(x, y), a, "would help here"),
        (1 / (x + y), a, "would help here"),
        (sp.sqrt(x + y - 1), a, "negative terms"),
        (x, -a * y, "not positive"),
    ],
    ids=str,
)
def test_refusals_name_the_constraint_the_expression_and_the_way_out(
    smaller: sp.Expr, larger: sp.Expr, reason: str
) -> None:
    """Nothing that is not convex in logarithms passes."""
    problem = GeometricProgram("refused")
    problem.choose(x, within=(1, 10))
    problem.choose(y, within=(1, 10))
    problem.subject("offending", sp.Le(smaller, larger, evaluate=False))
    problem.minimise(x)
    with pytest.raises(ProblemError, match=f"(?s)refused: offending: .*{reason}.*relax="):
        problem.compile()


def test_an_under_estimate_takes_the_place_of_what_is_no_posynomial() -> None:
    """Coverage is replaced by its chord; the bound stays below the true cost everywhere."""
    coverage, cost = sp.symbols("coverage cost", positive=True)
    true = 1 - (1 - sp.Rational(1, 32)) ** x
    first, last = (float(true.subs(x, end)) for end in (1, 64))
    power = math.log(last / first) / math.log(64)
    problem = GeometricProgram("experts")
    problem.choose(x, within=(1, 64))
    problem.define(
        sp.Eq(coverage, true),
        sp.Eq(cost, (1 + 9 * coverage) / x + x / 400),
        relax={coverage: c * x**s},
    )
    problem.minimise(cost)
    solution = problem.compile().solve({c: first, s: power})
    points = np.geomspace(1, 64, 500)
    truth = (1 + 9 * (1 - (31 / 32) ** points)) / points + points / 400
    assert solution.lower_bound < truth.min() < 1.2 * solution.lower_bound


def test_an_under_estimate_is_refused_where_it_would_over_estimate() -> None:
    """One over an under-estimate is no under-estimate."""
    coverage = sp.Symbol("coverage", positive=True)
    problem = GeometricProgram("backwards")
    problem.choose(x, within=(1, 64))
    problem.define(sp.Eq(coverage, 1 - 2**-x), relax={coverage: x / 64})
    problem.minimise(1 / coverage)
    with pytest.raises(ProblemError, match="a larger coverage would help here"):
        problem.compile()


def test_a_ceiling_may_be_relaxed_in_place() -> None:
    """Any expression can be given its under-estimate: here ceil(u) >= max(1, u)."""
    problem = GeometricProgram("tiles")
    problem.choose(x, within=(0.1, 10))
    problem.define(relax={sp.ceiling(x / 4): sp.Max(1, x / 4)})
    problem.minimise(sp.ceiling(x / 4) / x)
    solution = problem.compile().solve({})
    assert solution.value == pytest.approx(0.25, rel=1e-8)


def test_definitions_that_run_in_a_circle_are_refused() -> None:
    """The circle is spelled out."""
    p, q = sp.symbols("p q", positive=True)
    problem = GeometricProgram("circle")
    problem.choose(x, within=(1, 2))
    problem.define(sp.Eq(p, q + x), sp.Eq(q, 2 * p))
    problem.minimise(p)
    with pytest.raises(ProblemError, match="circle: p -> q -> p"):
        problem.compile()


def test_a_negative_coefficient_is_named_when_it_appears() -> None:
    """a - b may be positive or not: only the figures tell."""
    problem = GeometricProgram("sign")
    problem.choose(x, within=(1, 2))
    problem.subject("net", sp.Le((a - b) * x, 5))
    problem.minimise(x)
    program = problem.compile()
    assert program.solve({a: 2.0, b: 1.0}).value == pytest.approx(1.0)
    with pytest.raises(ProblemError, match=r"sign: net: the coefficient a - b is -1"):
        program.solve({a: 1.0, b: 2.0})


def test_a_right_side_that_is_not_positive_is_named() -> None:
    """Nothing fits into a memory that the reserve has used up."""
    problem = GeometricProgram("memory")
    problem.choose(x, within=(1, 2))
    problem.subject("fits", sp.Le(x, a - b), promise=True)
    problem.minimise(x)
    with pytest.raises(ProblemError, match=r"memory: fits: a - b is -1: nothing positive"):
        problem.compile().solve({a: 1.0, b: 2.0})


def test_values_that_are_missing_strange_or_impossible_are_refused() -> None:
    """A forgotten given, a symbol of the same name, and not a number."""
    problem = GeometricProgram("values")
    problem.choose(x, within=(a, 10))
    problem.minimise(x)
    program = problem.compile()
    with pytest.raises(ProblemError, match="no value for a"):
        program.solve({sp.Symbol("a"): 1.0})
    with pytest.raises(ProblemError, match="other assumptions"):
        program.solve({a: 1.0, sp.Symbol("a"): 1.0})
    with pytest.raises(ProblemError, match="not a number it can take"):
        program.solve({a: math.nan})
    with pytest.raises(ProblemError, match="a bound must be positive"):
        program.solve({a: 0.0})


def test_declarations_that_cannot_be_meant_are_refused() -> None:
    """Twice the same name, a relation that is always true, a roof over nothing chosen."""
    problem = GeometricProgram("slips")
    problem.choose(x, within=(1, 2))
    with pytest.raises(ProblemError, match="x is chosen or defined twice"):
        problem.choose(x, within=(1, 3))
    with pytest.raises(ProblemError, match="always true"):
        problem.subject("nothing", sp.Ge(x, 0))
    with pytest.raises(ProblemError, match="choose T before"):
        problem.roof(T, only=x)
    with pytest.raises(ProblemError, match="nothing to minimise"):
        problem.compile()
    problem.minimise(x + a)
    with pytest.raises(ProblemError, match="neither chosen, defined nor given: a"):
        problem.compile([b])


def test_an_objective_of_nothing_is_refused() -> None:
    """Zero has no logarithm."""
    problem = GeometricProgram("free")
    problem.choose(x, within=(1, 2))
    problem.minimise(a * x)
    with pytest.raises(ProblemError, match="the objective is zero"):
        problem.compile().solve({a: 0.0})
