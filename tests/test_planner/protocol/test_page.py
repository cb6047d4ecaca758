"""A plan in a notebook: a page of its numbers, whatever its kind, that needs nothing else."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from html.parser import HTMLParser

import pytest

import planner
from planner.protocol.page import plan_page
from planner.protocol.problem import get_problem
from planner.protocol.section import Line, Section
from planner.protocol.solve import solve_with_question
from planner.report.pages.report_page import report_page
from planner.text.wording import excess, quantity
from tests.paths import EXAMPLES
from tests.sizes import first

KINDS = ("serve-llama-70b-fast", "budget-70b-quality", "lifecycle-7b-on-premises", "carry-a-load")
HEADED = {
    "train-llama-405b-h100": "within measurements; median error", "train-too-large": "data sheets",
    "train-deepseek-v3-h800": "EXTRAPOLATED: H800", "rl-qwen3-32b-h100": "EXPERIMENTAL",
    "cache-deepseek-v3": "given: arithmetic", "schedule-departing-train": "exact",
}  # fmt: skip
TAGS = {"div", "span", "table", "tr", "td", "th", "details", "summary", "ul", "li", "b"}


class Page(HTMLParser):
    """Tags that are open, all that were seen, and the text between them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@cache
def solved(name: str) -> planner.Plan:
    """The plan of an example."""
    return planner.solve(str(EXAMPLES / f"{name}.yaml"))


def parsed(html: str) -> Page:
    """The fragment read; every tag that opens is closed in its turn."""
    page = Page()
    page.feed(html)
    assert not page.open
    return page


@pytest.mark.parametrize("name", first(3, KINDS))
def test_every_number_of_the_plan_stands_on_its_page(name):
    """Question, outputs with range and bound, parts, limits: what the sections of the kind hold."""
    plan = solved(name)
    page = parsed(plan._repr_html_())
    for section in get_problem(plan.kind).sections(plan):
        assert section.title in page.text
        for line in section.lines:
            if section.adds_up and not line.value:
                continue
            assert quantity(line.value, line.unit) in page.text
            for end in line.ends or ():
                assert quantity(end, line.unit) in page.text
    for limit in plan.document["binding"]:
        assert limit["name"] in page.text


@pytest.mark.parametrize("name", HEADED)
def test_every_face_has_the_rows_of_the_head(name):
    """The text in few lines of 80 columns, a notebook's card and the page of a report."""
    question, plan = solve_with_question(str(EXAMPLES / f"{name}.yaml"))
    lines, most = str(plan).splitlines(), 30 if plan.kind in ("training", "rl") else 25
    assert len(lines) <= most
    assert max(map(len, lines)) <= 80
    faces = [str(plan), parsed(plan_page(plan)).text, unescape(report_page(plan, question, name))]
    rows = [*get_problem(plan.kind).head(plan).rows()]
    assert dict(rows)["How sure"][0].startswith(HEADED[name])
    for label, words in rows:
        for text in (label, *words):
            assert all(" ".join(text.split()) in " ".join(face.split()) for face in faces), text


@pytest.mark.parametrize("name", first(3, KINDS))
def test_parts_of_a_bar_fill_it(name):
    """The widths of the parts of each bar add up to the whole."""
    bars = re.findall(r'overflow:hidden">(.*?)</div></div>', plan_page(solved(name)))
    widths = [[float(w) for w in re.findall(r"width:([\d.]+)%", bar)] for bar in bars]
    assert widths
    assert all(sum(parts) == pytest.approx(100, abs=0.01) for parts in widths)


@pytest.mark.parametrize("name", [*first(3, KINDS), "infeasible"])
def test_a_page_needs_no_script_and_fetches_nothing(name):
    """No scripts, links, pictures or styles but those in the elements."""
    html = plan_page(solved(name))
    assert parsed(html).seen <= TAGS
    assert "url(" not in html
    assert not re.search(r"<[^>]*https?:", html)


def test_an_infeasible_page_says_what_is_missed():
    """Each promise that no plan keeps, and by which factor."""
    plan = solved("infeasible")
    text = parsed(plan_page(plan)).text
    assert plan.document["infeasible"]
    for missed in plan.document["infeasible"]:
        assert f"{missed['promise']}: missed by {excess(missed['short_by'])}" in text


def test_names_are_text_not_markup(monkeypatch):
    """What looks like a tag in a question or a label is shown as it is written."""
    plan = solved("budget-70b-quality")
    evil = Section("<script>1</script>", (Line("<img onerror=1>", "<b>bold"), Line("<i>", 1.0)))
    monkeypatch.setattr(type(get_problem(plan.kind)), "sections", lambda self, plan: (evil, evil))
    page = parsed(plan_page(plan))
    assert page.seen <= TAGS
    assert "<img onerror=1>" in page.text
