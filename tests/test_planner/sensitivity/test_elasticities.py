"""Tables and bars of a toy whose answers are known in closed form, and of rows by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from planner.protocol.elasticity import EVERYTHING_FOLLOWS, LAYOUT_HELD, Elasticity
from planner.protocol.parameter import Parameter
from planner.protocol.problem import get_problem
from planner.scenario import kinds, load
from planner.sensitivity import elasticities, switch_point
from planner.sensitivity.elasticities import (
    Elasticities,
    elasticity_rows,
    elasticity_table,
    re_solved_row,
    tornado_bars,
)
from planner.text.errors import Infeasible, InputError

TOY = {"problem": "toy"}
# A small chip at a fifth of the rent is bound by 140e9 flop a token over 0.3e15 flop/s.
PRICE = 4 / 3600 * 0.2 * 140e9 / 0.3e15 * 1e6


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy is a kind of its own."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")


def row(path: str, left: float, right: float | None = None, **changes: Any) -> Elasticity:
    """A row of a table."""
    right = left if right is None else right
    return Elasticity(path, 1.0, "1", "chip", left, right, "slope", "by hand", **changes)


def test_a_table_ranks_by_what_matters_and_prints_in_columns():
    """Largest first whatever the sign, then by path; what is not known comes last."""
    nan = math.nan
    rows = [row("b", 0.1), row("long", -0.5), row("a", 0.1), row("gone", nan), row("c", 0.0)]
    table = Elasticities.of(rows)
    assert list(table) == ["long", "a", "b", "c", "gone"]
    assert [each.path for each in table.rows] == list(table)
    assert str(table).splitlines()[:2] == ["long  -0.500", "a     +0.100"]
    assert Elasticities().rows == ()
    assert str(Elasticities()) == ""
    assert table.document is None


def test_the_table_of_a_toy_in_closed_form():
    """Rent is all of a price, work too; weights and the promise move a batch of no price."""
    table = elasticity_table(TOY, switches=False)
    assert table.document["value"] == pytest.approx(PRICE)
    assert {path: table[path] for path in ("rent", "work")} == pytest.approx(
        {"rent": 1.0, "work": 1.0}, abs=1e-6
    )
    assert table["weights"] == pytest.approx(0, abs=1e-6)
    assert table["promise"] == pytest.approx(0, abs=1e-6)
    document = table.document
    assert (document["problem"], document["of"], document["status"]) == ("toy", "price", "optimal")
    assert (document["unit"], document["choice"]) == ("USD per million tokens", "small")
    assert document["counts"] == ""
    assert [each["path"] for each in document["rows"]] == list(table)
    assert document["bars"] is None
    assert all(each.switches is None for each in table.rows)
    steps = elasticity_table(TOY, "tpot", switches=False)
    assert steps["rent"] == pytest.approx(0, abs=1e-6)


def test_switches_are_sought_where_a_search_is_quick_or_asked_for(monkeypatch):
    """A shorter promise needs the big chip; no bar is drawn unless it is to be shown."""
    asked: list[tuple[Any, ...]] = []

    def switched(best: Any, parameters: Any, rows: Any, *, shown: bool) -> dict[str, Any]:
        asked.append((best.choice, len(parameters), shown))
        return {"promise": ({"factor": 0.9},)}

    monkeypatch.setattr(switch_point, "switch_points", switched)
    table = elasticity_table(TOY)
    switches = {each.path: each.switches for each in table.rows}
    assert switches == {"promise": ({"factor": 0.9},), "rent": None, "work": None, "weights": None}
    elasticity_table(TOY, shown=True)
    monkeypatch.setattr(type(get_problem("toy")), "slow", True)
    elasticity_table(TOY)
    elasticity_table(TOY, switches=True)
    assert asked == [("small", 4, False), ("small", 4, True), ("small", 4, False)]


def test_bars_are_the_toy_solved_again():
    """A tenth less and more of rent is a tenth of the price; longest first."""
    bars = {bar["path"]: bar for bar in elasticity_table(TOY, swing=0.1).document["bars"]}
    assert bars.keys() == {"rent", "work"}
    for bar in bars.values():
        assert (bar["less"], bar["more"]) == pytest.approx((0.9 * PRICE, 1.1 * PRICE), rel=1e-9)
        assert (bar["solved"], bar["swing"]) == (True, 0.1)
    alone = elasticity_table(TOY, switches=False, swing=0.1).document["bars"]
    assert all(bar["solved"] for bar in alone)


def test_a_toy_without_a_plan_has_no_table():
    """And it is said where to look."""
    with pytest.raises(Infeasible, match="planner solve"):
        elasticity_table(TOY, sets=["promise=1 ms"])


def test_a_kind_has_duals_slopes_and_else_is_solved_again():
    """Where a parameter has two of them the first stands, the other beside it."""
    question, problem = load(TOY), get_problem("toy")
    rows = {each.path: each for each in elasticity_rows(problem, question, "price")}
    methods = {path: (x.method, *(y.method for y in x.beside)) for path, x in rows.items()}
    assert methods == {
        "rent": ("dual", "slope"), "work": ("re-solve", "slope"),
        "weights": ("re-solve", "slope"), "promise": ("re-solve",),
    }  # fmt: skip
    asked = {x.method: x.question for each in rows.values() for x in (each, *each.beside)}
    assert asked == {"dual": EVERYTHING_FOLLOWS, "re-solve": EVERYTHING_FOLLOWS,
                     "slope": LAYOUT_HELD}  # fmt: skip
    own = SimpleNamespace(elasticities=lambda *_: [row("a", 1.0), row("b", 2.0), row("a", 3.0)])
    first, second = elasticity_rows(own, question, "price")
    assert (first.left, first.beside[0].left, second.left) == (1.0, 3.0, 2.0)


def counted(factor: float) -> Any:
    """A question whose output is the cube of a factor; none beyond one and a half."""
    if factor > 1.5:
        raise InputError("too many")
    return SimpleNamespace(outputs={"x": 7 * factor**3})


def test_a_parameter_is_solved_again_on_either_side(monkeypatch):
    """A cube has an elasticity of three: of a real number, and of a count of fifty or of one."""
    monkeypatch.setattr(elasticities, "search", lambda question: question)
    problem = SimpleNamespace(search=lambda question: counted(1.0))
    real = re_solved_row(problem, None, Parameter("p", 2.0, "s", "g", counted), "x")
    assert (real.left, real.right) == pytest.approx((3, 3), abs=1e-5)
    whole = Parameter("n", 50.0, "", "g", counted, whole=True)
    row = re_solved_row(problem, None, whole, "x")
    assert (row.left, row.right) == pytest.approx((3, 3), abs=1e-9)
    assert (row.value, row.method, row.question) == (50.0, "re-solve", EVERYTHING_FOLLOWS)
    assert row.basis != real.basis
    lone = re_solved_row(problem, None, Parameter("n", 1.0, "", "g", counted, whole=True), "x")
    assert (lone.left, lone.right) == (0, 0)


def test_a_tornado_has_a_bar_of_all_that_matters(monkeypatch):
    """Fourteen at most, none below a thousandth; what no scenario moves goes by its slope."""
    monkeypatch.setattr(elasticities, "search", lambda question: question)
    parameters = [Parameter("cube", 2.0, "s", "g", counted),
                  Parameter("whole", 2.0, "s", "g", counted, whole=True),
                  Parameter("known", 2.0, "s", "g")]  # fmt: skip
    rows = [row("known", -2.0, -1.0), row("cube", 3.0), row("whole", 0.5), row("absent", 0.25),
            row("tiny", 9e-4), row("just", 1.1e-3), row("gone", math.nan)]  # fmt: skip
    document = {"of": "x", "value": 7.0}
    bars = tornado_bars(parameters, rows, document, 0.2)
    assert [bar["path"] for bar in bars] == ["cube", "known", "whole", "absent", "just"]
    by_path = {bar["path"]: (bar["less"], bar["more"], bar["solved"]) for bar in bars}
    assert by_path["cube"] == pytest.approx((7 * 0.8**3, 7 * 1.2**3, True))
    assert by_path["known"] == pytest.approx((7 * 0.8**-2, 7 / 1.2, False))
    assert by_path["whole"] == pytest.approx((7 * 0.8**0.5, 7 * 1.2**0.5, False))
    # Beyond one and a half nothing keeps the promises; the bar still has its other side.
    (far,) = tornado_bars(parameters[:1], rows[1:2], document, 0.6)
    assert (far["less"], far["more"]) == (pytest.approx(7 * 0.4**3), None)
    # The longest first, whichever side it is on.
    for rows, order in (
        ([row("x", 0.0, 1.9), row("y", -1.8, 0.0)], ["y", "x"]),
        ([row("x", 3.0, 0.0), row("y", 0.0, 2.0)], ["x", "y"]),
    ):
        assert [bar["path"] for bar in tornado_bars([], rows, document, 0.2)] == order
    many = [row(f"r{k}", 1.0 - k / 100) for k in range(20)]
    assert [bar["path"] for bar in tornado_bars([], many, document, 0.1)] == [
        f"r{k}" for k in range(14)
    ]
