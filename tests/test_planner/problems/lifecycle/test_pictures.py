"""Pictures of budgets and lifecycles: the same bytes, the right numbers, beside the other files."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import planner
from planner.cli.app import main
from planner.protocol.problem import get_problem
from planner.token_costs.picture import LifePicture
from tests.cases.lifecycle import scenario

BUDGET = {
    "problem": "budget",
    "law": "sardana-2024",
    "quality": {"like": {"n_active": 13e9}},
    "inference": {"tokens": 2e12},
    "draws": 0,
}


def picture(plan) -> LifePicture:
    """The picture of an answer of any kind."""
    return get_problem(plan.problem).picture(plan)


@pytest.fixture(scope="module", params=["budget", "lifecycle"])
def plan(request):
    """An answer of either problem."""
    return planner.solve(BUDGET if request.param == "budget" else scenario(draws=40))


@pytest.mark.slow
def test_the_same_plan_draws_the_same_picture(plan):
    """No date, no random name: a scalable picture is the same twice, and sound XML."""
    first = picture(plan).draw("svg")
    assert first == picture(plan).draw("svg")
    assert ET.fromstring(first).tag.endswith("svg")


@pytest.mark.slow
def test_a_picture_is_written_in_pixels_too(plan):
    """A PNG begins as one."""
    assert picture(plan).draw("png").startswith(b"\x89PNG")


def test_the_plan_lies_at_the_bottom_of_the_curve(plan):
    """No size on the curve is cheaper, whole numbers and straight lines aside."""
    along = picture(plan).curve
    total = plan.chosen["cost"]["total"]
    best = total["usd"] if plan.chosen["objective"] == "usd" else total["flop_paid"]
    assert along.total.min() == pytest.approx(best, rel=0.02)
    near = along.sizes[np.argmin(along.total)]
    assert near == pytest.approx(plan.chosen["n_active"], rel=0.15)


def test_the_curve_of_a_budget_is_fine_enough_to_look_smooth():
    """Two neighbouring sizes are a few percent apart over all that is shown."""
    along = picture(planner.solve(BUDGET)).curve
    assert np.diff(np.log(along.sizes)).max() < 0.04
    assert along.total[[0, -1]] == pytest.approx(8 * along.total.min(), rel=0.5)


def test_loss_and_cost_on_the_plane_are_those_of_the_plan(plan):
    """The middle of the plane is the plan."""
    around = picture(plan).plane()
    middle = tuple(length // 2 for length in around.loss.shape)
    total = plan.chosen["cost"]["total"]
    best = total["usd"] if plan.chosen["objective"] == "usd" else total["flop_paid"]
    assert around.loss[middle] == pytest.approx(plan.chosen["loss"], rel=1e-6)
    assert around.cost[middle] == pytest.approx(best, rel=0.02)


def test_curves_of_equal_loss_and_cost_touch_at_the_plan():
    """Along the curve of equal loss no neighbour of the plan costs less."""
    plan = planner.solve(BUDGET)
    document, around = plan.document, picture(plan).plane()
    as_good = around.loss <= document["plan"]["loss"] * (1 + 1e-9)
    best = document["plan"]["cost"]["total"]["flop_paid"]
    assert around.cost[as_good].min() >= best * (1 - 1e-6)


def test_a_plan_of_given_choices_lies_above_the_curve():
    """The curve is that of free tokens at the same loss, so nothing given is below it."""
    given = planner.solve({**BUDGET, "choose": {"n_active": 7e9, "pretrain": 2e12}})
    best = given.chosen["cost"]["total"]["flop_paid"]
    assert picture(given).curve.total.min() <= best * (1 + 1e-6)


def test_solve_writes_the_picture_beside_the_plan(tmp_path, capsys):
    """`planner solve FILE --out DIR`: plan.json, plan.txt and plan.svg."""
    file = tmp_path / "budget.yaml"
    file.write_text(
        "problem: budget\nquality: {like: {n_active: 13e9}}\ninference: {tokens: 2e12}\n",
        encoding="utf-8",
    )
    with pytest.raises(SystemExit) as exit_:
        main(["solve", str(file), "--out", str(tmp_path / "out"), "--quiet"])
    assert exit_.value.code in (0, None)
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == ["plan.json", "plan.svg", "plan.txt"]
    capsys.readouterr()
