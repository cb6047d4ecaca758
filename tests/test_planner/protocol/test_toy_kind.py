"""A problem kind in one file, with one line outside it, has every face: the proof of the house."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import planner
from planner.cli import main
from planner.protocol.elasticity import EVERYTHING_FOLLOWS, LAYOUT_HELD
from planner.protocol.output import output_named
from planner.protocol.problem import get_problem, search, search_many
from planner.scenario import kinds, load
from planner.sensitivity.elasticities import elasticity_table, re_solved_row
from planner.sensitivity.switch_point import break_even, next_switches
from tests.cases import toy
from tests.paths import ROOT

TOY = {"problem": "toy", "units": "base"}
MOST_LINES = 150
SPREAD = {"rent": {"uniform": ["$2/hour", "$4/hour"]}, "weights": {"uniform": [1e11, 2e11]}}


@pytest.fixture(autouse=True)
def room(monkeypatch):
    """The one line outside the room of a kind."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")


@pytest.fixture
def file(tmp_path) -> str:
    """A scenario file of the toy."""
    path = tmp_path / "toy.yaml"
    path.write_text("problem: toy\npromise: 40 ms\n", encoding="utf-8")
    return str(path)


def told(capsys, *words: str) -> str:
    """What a command prints."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    printed = capsys.readouterr()
    assert not end.value.code, printed.err
    return printed.out


def test_a_kind_is_short():
    """Question, equations, search and typed plan of a small kind fit on three pages."""
    assert len(Path(toy.__file__).read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_no_other_file_knows_the_toy():
    """Nothing in the planner was written for it."""
    sources = (ROOT / "planner").rglob("*.py")
    assert not [path for path in sources if "toy" in path.read_text(encoding="utf-8").split()]


def test_solve_prints_text_reasons_and_json(capsys, file):
    """The answer laid out from its outputs, what binds, and a document with its schema's name."""
    text = told(capsys, "solve", file, "--why")
    assert "price: $0.15" in text
    assert "rent  +1.000" in text
    document = json.loads(told(capsys, "solve", file, "--json"))
    assert list(document)[:3] == ["schema", "problem", "status"]
    assert document["schema"] == "toy/1"
    assert document["plan"]["tpot"] <= 0.04


def test_a_plan_is_drawn(capsys, file, tmp_path):
    """`--out` has the picture of what one percent more of each quantity is worth."""
    told(capsys, "solve", file, "--out", str(tmp_path))
    assert "<svg" in (tmp_path / "plan.svg").read_text(encoding="utf-8")


def test_a_plan_without_answer_says_what_falls_short():
    """No chip reads the weights within a millisecond."""
    plan = planner.solve(TOY, ["promise=1 ms"])
    (missed,) = plan.infeasible
    assert plan.status == "infeasible"
    assert missed.short_by == pytest.approx(141e9 / 4.8e12 / 1e-3)
    assert "misses" in repr(plan)


def test_schemas_of_question_and_answer(capsys):
    """Both are made from types: the keys of a scenario, and the plan with its units."""
    assert "ToyQuestion" in json.loads(told(capsys, "schema"))["$defs"]
    answer = json.loads(told(capsys, "schema", "--answer", "toy"))
    assert answer["$defs"]["ToyPoint"]["properties"]["tpot"] == {"type": "number", "unit": "s"}


def test_check_and_mistakes(capsys, file):
    """What the question knows is checked with its place."""
    told(capsys, "check", file)
    with pytest.raises(planner.InputError, match="rent"):
        load({**TOY, "rent": "4 apples"})


def test_the_table_has_all_three_methods_and_they_agree():
    """A dual for the rent, slopes where the choice is held, solving again for the rest."""
    table = elasticity_table(TOY, switches=False)
    rows = {(row.path, each.method): each for row in table.rows for each in (row, *row.beside)}
    assert {method for _, method in rows} == {"dual", "slope", "re-solve"}
    assert rows["rent", "dual"].right == pytest.approx(rows["rent", "slope"].right)
    assert rows["work", "re-solve"].right == pytest.approx(rows["work", "slope"].right, abs=1e-6)
    question, problem = load(TOY), get_problem("toy")
    (rent,) = (row for row in problem.parameters(question) if row.path == "rent")
    again = re_solved_row(problem, question, rent, "price")
    assert again.right == pytest.approx(rows["rent", "dual"].right, abs=1e-6)
    asked = {each.question for each in rows.values()}
    assert asked == {LAYOUT_HELD, EVERYTHING_FOLLOWS}


def test_sensitivity_is_printed(capsys, file):
    """As a table and as JSON, with switches."""
    assert "rent" in told(capsys, "sensitivity", file)
    document = json.loads(told(capsys, "sensitivity", file, "--json"))
    row = next(each for each in document["rows"] if each["path"] == "rent")
    assert row["by"] == "dual"
    assert row["beside"][0]["by"] == "slope"


def test_a_switch_and_a_break_even_are_solved_on_both_sides():
    """A shorter promise needs the big chip; a price is as good as the other where both say so."""
    question = load(TOY)
    best = search(question)
    (promise,) = (x for x in get_problem("toy").parameters(question) if x.path == "promise")
    (switch,) = next_switches(best, [(promise, False)])
    assert search(promise.to(switch["before"])).choice == "small"
    assert search(promise.to(switch["factor"])).choice == "big"
    (found,) = break_even(TOY, "promise=80 ms,40 ms", "weights=log(20e9..400e9,9)")
    assert found["crossings"]
    for crossing in found["crossings"]:
        leads = [
            (side["first"] or math.inf) < (side["rival"] or math.inf)
            for side in (crossing["below"], crossing["above"])
        ]
        assert leads[0] != leads[1]


def test_a_sweep_has_a_row_for_every_point(capsys, file, tmp_path):
    """Numbers of the plan, and a reason where there is none."""
    table = planner.sweep(TOY, over=["promise=1 ms,40 ms,80 ms"])
    assert table["status"] == ["infeasible", "optimal", "optimal"]
    assert table["price"][1] > table["price"][2]
    out = tmp_path / "rows.csv"
    told(capsys, "sweep", file, "--over", "rent=$2/hour,$4/hour", "--out", str(out))
    assert "price" in out.read_text(encoding="utf-8")


def test_a_study_draws_what_is_uncertain():
    """Sobol indices and the best choices."""
    study = planner.sensitivity({**TOY, "uncertain": SPREAD}, sobol=16).document
    assert study["sobol"].keys() == SPREAD.keys()
    assert sum(each["best"] for each in study["choices"]) == pytest.approx(1)


def test_several_questions_are_searched_together():
    """One after the other where a kind knows nothing better."""
    several = [load({**TOY, "promise": each}) for each in (0.04, 0.08)]
    assert [each.choice for each in search_many(several)] == ["big", "small"]


def test_an_output_is_its_equation():
    """Every output of the plan is what its equation gives at the point."""
    question, answered = load(TOY), planner.solve(TOY)
    plan = answered.answer.plan
    values = {**question.model_dump(), **toy.CHIPS[plan.chip], "B": plan.batch}
    values["rent"] *= values["share"]
    for output in get_problem("toy").outputs:
        expression = output.equation(answered)
        exact = expression.subs({x: values[x.name] for x in expression.free_symbols})
        assert math.isclose(exact, getattr(plan, output.name), rel_tol=1e-12)
    assert output_named(get_problem("toy"), question, "cost").name == "price"


def test_a_notebook_shows_a_page():
    """HTML of the same text."""
    assert "price" in planner.solve(TOY)._repr_html_()


def test_a_frontier_is_the_best_at_each_level(capsys, file, tmp_path):
    """Every row is what `solve` gives for its promise, from the tightest one that is kept on."""
    curve = planner.pareto(file, points=6)
    steps, prices = ([row[name] for row in curve.rows] for name in ("tpot", "price"))
    assert steps == sorted(steps)
    assert prices == sorted(prices, reverse=True)
    for row in curve.rows:
        best = planner.solve({**TOY, "promise": row["tpot"]}).answer.plan
        assert row["price"] == pytest.approx(best.price, rel=1e-12)
    fastest = min(toy.numbers(load(TOY), chip, 1).tpot for chip in toy.CHIPS)
    assert steps[0] == pytest.approx(fastest, rel=0.01)
    assert "Least price at every TPOT" in told(capsys, "pareto", file)
    told(capsys, "pareto", file, "--out", str(tmp_path / "toy.svg"))
    assert "<svg" in (tmp_path / "toy.svg").read_text(encoding="utf-8")
