"""One voice: the head of every example, and the same head and notes on every face."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

import planner
from planner.pages.operations import run_operation
from planner.protocol.page import plan_page
from planner.protocol.problem import get_problem
from planner.text.terminal import MARGIN, encodable
from planner.text.wording import COLUMNS
from tests.paths import EXAMPLES

MOST_ROWS = 10  # labelled rows of a head
WHAT = {
    "Run",
    "Do",
    "Build",
    "Buy",
    "Finding",
    "Wait",
    "Closest",
}  # what to do, in each kind's word
# Kinds without a bill of their own, and examples without a plan.
NO_COST = ("cache", "prices", "schedule", "infeasible", "train-too-large")
QUICK = ("cache-deepseek-v3", "schedule-departing-train", "prices-fast-mode")
WIDTHS = (60, 80, 120, 200)


def test_every_example_begins_with_a_head():
    """At most ten labelled rows: what to do, what it costs, what is promised, how sure that is."""
    wrong = []
    for file in sorted(EXAMPLES.glob("*.yaml")):
        text = file.with_suffix(".txt").read_text(encoding="utf-8")
        head = text.split("\n\n")[1]
        labels = re.findall(r"^([A-Z][A-Za-z]+(?: sure)?) ", head, re.MULTILINE)
        wanted = [] if file.stem.startswith(NO_COST) else ["Cost", "Promises", "How sure"]
        lacking = [label for label in wanted if label not in labels]
        if not labels or not WHAT & {*labels} or lacking or len(labels) > MOST_ROWS:
            wrong.append((file.stem, labels, lacking))
        wrong += [(file.stem, line) for line in text.splitlines() if len(line) > 80]
    assert wrong == []


@pytest.mark.parametrize("name", QUICK)
def test_every_face_has_the_same_head_and_notes(name):
    """Terminal at four widths, ASCII, JSON, an agent's tool, the notebook's card and the page."""
    plan = planner.solve(EXAMPLES / f"{name}.yaml")
    head = get_problem(plan.kind).head(plan)
    assert head is not None
    rows = {label: list(lines) for label, lines in head.rows()}
    notes = [note.text for note in plan.answer.notes]
    source = {"scenario": plan.document["scenario"], "detail": "head"}
    agent = json.loads(run_operation("solve", source).text)
    assert agent["head"] == rows
    assert [note["text"] for note in agent["notes"]] == notes[:3]
    assert [note["text"] for note in plan.document["notes"]] == notes
    card = unescape(re.sub(r"<[^>]+>", " ", plan_page(plan)))
    wrong = [("card", x) for x in rows if x not in card]
    for width in WIDTHS:
        token = COLUMNS.set(width - MARGIN)
        shown = plan.text("more")
        COLUMNS.reset(token)
        flat = " ".join(shown.split())
        wrong += [(width, line) for line in shown.splitlines() if len(line) > width]
        wrong += [(width, note) for note in notes if " ".join(note.split()) not in flat]
        said = [" ".join(line.split()) for lines in rows.values() for line in lines]
        wrong += [(width, line) for line in said if line not in flat]
        assert encodable(shown, "ascii").isascii()
    assert wrong == []
