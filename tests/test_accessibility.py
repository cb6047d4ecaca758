"""Every kind of page is free of what axe-core calls a violation, in light and in dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import planner
from planner.pages.editor_page import PAGE
from planner.protocol.solve import solve_with_question
from planner.report.pages.report_page import report_page
from planner.report.text.derivations import derive_output as derived
from tests.cases.accessibility import auditor
from tests.paths import EXAMPLES

ANSWERS = (
    "lecture",  # sliders
    "infeasible",
    "budget-70b-quality",
    "cache-deepseek-v3",
    "prices-fast-mode",
    "schedule-departing-train",
    "train-llama-405b-h100",
    "lifecycle-7b-on-premises",
)


@pytest.fixture(scope="module")
def violations() -> Iterator[Callable[[str], list[str]]]:
    """One browser for all of them."""
    with auditor() as audited:
        yield audited


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_reports(violations: Callable[[str], list[str]], name: str, tmp_path: Path) -> None:
    """The page of an answer of every kind that is quickly solved."""
    question, plan = solve_with_question(str(EXAMPLES / f"{name}.yaml"))
    page = tmp_path / "report.html"
    page.write_text(report_page(plan, question, f"{name}.yaml"), "utf-8")
    assert violations(page.as_uri()) == []


# Contrast of a thousand formulas takes minutes: claims and the book are for the campaign.
DERIVED = [
    pytest.param(("critical_batch",), False, id="derivation", marks=pytest.mark.slow),
    pytest.param(("claims",), False, id="claims", marks=pytest.mark.campaign),
    pytest.param((), True, id="book", marks=pytest.mark.campaign),
]


@pytest.mark.parametrize(("names", "book"), DERIVED)
def test_derivations(
    violations: Callable[[str], list[str]], names: tuple[str, ...], book: bool, tmp_path: Path
) -> None:
    """One of them, the table of claims, the book."""
    page = tmp_path / "derived.html"
    text = derived(names, every=False, form="html", out=None, json=False, whole_book=book)
    page.write_text(str(text), "utf-8")
    assert violations(page.as_uri()) == []


@pytest.mark.slow
def test_the_editor(violations: Callable[[str], list[str]], tmp_path: Path) -> None:
    """The page of planner serve."""
    page = tmp_path / "editor.html"
    page.write_text(PAGE, "utf-8")
    assert violations(page.as_uri()) == []


@pytest.mark.slow
def test_scores_of_measurements(violations: Callable[[str], list[str]], tmp_path: Path) -> None:
    """The page of planner validate, of runs of one's own."""
    page = tmp_path / "validation.html"
    page.write_text(planner.validate([str(EXAMPLES / "calibrate-own-runs.csv")]).page, "utf-8")
    assert violations(page.as_uri()) == []
