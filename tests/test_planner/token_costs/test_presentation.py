"""Heads of budgets and of whole lives: rows and tables hold the numbers of the answer."""

import re
from html import unescape

import pytest

import planner
from planner.protocol.problem import get_problem
from planner.protocol.section import MAX_LINES
from planner.report.pages.report_page import report_page
from planner.text.wording import increase, percent
from planner.token_costs.presentation import dollars, ends_text, scale_text
from tests.loops import for_all
from tests.paths import EXAMPLES

KINDS = ("budget", "lifecycle", "prices", "plan-fleet")
PRIVATE = re.compile(
    r"this budget|beside it|equal pools|over laws|NO .* does that|rows of one's own|"
    r"never fixes|refused|holds the size|starts at once|measured runs|a hundredth more"
)
PHASES = {"pretrain": {"system": "hgx-h100", "mfu": 0.4, "price": "$2.50/hour"},
          "inference": {"system": "hgx-h200", "mfu": 0.2, "price": "$3.50/hour"}}  # fmt: skip
MONEY = {"problem": "budget", "quality": {"like": {"n_active": 13e9}}, "objective": "cost",
         "phases": PHASES, "inference": {"tokens": 2e12}}  # fmt: skip


@pytest.fixture(scope="module")
def life() -> planner.Plan:
    """A whole life on one's own machines."""
    return planner.solve(EXAMPLES / "lifecycle-7b-on-premises.yaml")


def rows(plan: planner.Plan) -> dict[str, str]:
    """The head's rows, each in one line."""
    head = get_problem(plan.kind).head(plan)
    return {label: " ".join(words) for label, words in head.rows()}


@for_all("file", sorted(EXAMPLES.glob("[blp]*.txt")), ids=lambda file: file.stem)
def test_an_example_of_these_kinds_is_short_and_in_plain_words(file):
    """No more lines than a screen, none over 80 columns, a head of ten rows, a proof at the end."""
    if file.stem.startswith(KINDS) and file.with_suffix(".yaml").exists():
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= MAX_LINES
        assert max(map(len, text.splitlines())) <= 80
        assert not PRIVATE.search(text)
        blocks = text.split("\n\n")
        assert {"How sure", "Next"} <= {*re.findall(r"^\S+(?: \S+)?", blocks[1], re.MULTILINE)}
        assert re.search("^(Proven|Within|Nothing proved)", blocks[-1], re.MULTILINE)


def test_a_budget_says_what_most_would_build_in_dollars_and_percent():
    """Range, another model and the price of a percent are the answer's own."""
    plan = planner.solve(MONEY)
    whole, told = plan.answer, rows(plan)
    usual, (bound,) = whole.compute_optimal, whole.binding
    assert told["Build"].startswith(f"{scale_text(plan.n_active)} parameters on ")
    assert told["Cost"].startswith(f"{dollars(plan.cost)} ({ends_text(whole.band.cost, dollars)}):")
    assert f"{dollars(usual.cost)} ({increase(usual.worse_by)})" in told["Instead"]
    worth = -bound.elasticity / 100
    assert f"costs {percent(worth)} more ({dollars(worth * plan.cost)})" in told["Limit"]
    assert f"{len(whole.over_laws.laws)} laws: " in told["How sure"]
    assert told["How sure"].startswith("EXTRAPOLATED") == any("fitted" in x for x in plan.warnings)
    _, table, costs, *_ = get_problem(plan.kind).sections(plan)
    assert table.heads == ("", "expected", "80% of law fits", "over 10 laws")
    assert sum(value for _, value in costs.parts) == pytest.approx(plan.cost)
    assert plan.between == "80% of law fits lie between"
    limited = rows(planner.solve({"problem": "budget", "cost": "$5M", "phases": PHASES}))
    assert limited["Cost"].startswith("$5.00M: ")  # no range where the cost is given
    assert limited["Limit"].startswith("cost binds: 1% more lowers the loss by 0.0")


def test_without_an_answer_the_head_and_the_sections_say_what_falls_short():
    """The promise, by how much, what was asked and why; on the card and the page too."""
    plan = planner.solve({**MONEY, "quality": {"loss": 1.7}})
    told = rows(plan)
    assert str(plan).startswith(
        "✗ NO PLAN: loss missed by 6.89%\n\nAsked     Smallest total cost for a"
    )
    assert told["Why"] == plan.infeasible[0].expression
    (section,) = get_problem(plan.kind).sections(plan)
    assert [line.words for line in section.lines] == [told["Why"]]


def test_a_life_beside_other_sizes_is_the_cheapest_of_its_table(life):
    """The plan stands in the middle; another size is dearer by what its row says."""
    whole, told = life.answer, rows(life)
    table = next(x for x in get_problem("lifecycle").sections(life) if x.shown)
    place = [cells[-1] for cells in table.cells].index("plan")
    assert table.cells[place][-2] == dollars(life.cost)
    assert all(cells[-1].startswith("+") for cells in table.cells if cells[-1] != "plan")
    usual = min(whole.evaluated, key=lambda each: each.training_usd or float("inf"))
    assert told["Instead"].endswith(f"({increase(usual.total_usd / life.cost - 1)})")
    assert "(likely, 70%)" in told["Promises"]
    assert whole.outside[0].words in told["How sure"]


def test_every_face_has_the_rows_of_the_head(life):
    """The notebook's card and the report's page, word by word."""
    page = report_page(life, life.question, "life.yaml")
    head = get_problem("lifecycle").head(life)
    for text in (unescape(page), unescape(life._repr_html_())):
        assert all("; ".join(words) in text for _, words in head.rows())
        assert "measured runs" not in text
