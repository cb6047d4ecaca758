"""Every example answers as the file beside it says, and the README shows an answer that is true."""

import json
from itertools import chain
from pathlib import Path

import pytest

import planner
from planner.cli.app import main
from planner.protocol.problem import get_problem
from planner.protocol.section import sections_text
from planner.text.terminal import MARGIN
from planner.text.wording import COLUMNS
from tests.cases.frozen import (
    AS_WRITTEN,
    EXACT,
    Case,
    answered_by_plan,
    differences,
    examples,
    file_of,
)
from tests.paths import ROOT
from tests.sizes import first


def printed(scenario: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, int]:
    """What `planner solve` prints for a scenario, and its exit status."""
    with pytest.raises(SystemExit) as exit_:
        main(["solve", str(scenario), "--quiet"])
    return capsys.readouterr().out, int(exit_.value.code or 0)


def fits_every_terminal(plan: planner.Plan) -> None:
    """No line is wider than the terminal, no word of a table is lost; 25 lines at 80, or 30."""
    problem = get_problem(plan.kind)
    assert len(plan.text().splitlines()) <= problem.most_lines <= 30
    for width in (60, 80, 120, 200):
        token = COLUMNS.set(width - MARGIN)
        try:
            lines = [*plan.text().splitlines(), *plan.text("more").splitlines()]
            tables = [(x, sections_text([x])) for x in problem.sections(plan) if x.heads]
        finally:
            COLUMNS.reset(token)
        assert [line for line in lines if len(line) > width] == []
        for section, text in tables:
            assert [x for x in section.heads if x.strip() not in text] == []
            assert [x for x in chain(*section.cells) if width > 60 and x.strip() not in text] == []


# The quickest of each kind, and the one whose tables are widest, in every run.
QUICK = ("budget-lecture-frontier", "cache-deepseek-v3", "lecture", "lifecycle-7b-on-premises",
         "plan-fleet-week", "prices-fast-mode", "rl-qwen3-32b-h100", "schedule-departing-train",
         "serve-deepseek-v3-h200", "train-too-large")  # fmt: skip
CASES = sorted(examples(), key=lambda case: case.name.removeprefix("example-") not in QUICK)


@pytest.mark.parametrize("case", first(len(QUICK), CASES), ids=lambda case: case.name)
def test_an_example_prints_the_output_beside_it_and_fits_every_terminal(case: Case, tmp_path):
    """`NAME.txt` is what `planner solve NAME.yaml` prints; its document and widths hold too."""
    answer, plan = answered_by_plan(case, tmp_path)
    written = (ROOT / case.words[0]).with_suffix(".txt").read_text(encoding="utf-8")
    assert answer["text"] == written.splitlines()
    if AS_WRITTEN:
        frozen = json.loads(file_of(case).read_text(encoding="utf-8"))
        assert not differences(frozen, answer, exact=EXACT)
    assert plan is not None
    fits_every_terminal(plan)


def test_the_infeasible_example_exits_with_one(capsys):
    """An unanswerable question is answered with status 1."""
    assert printed(ROOT / "examples" / "infeasible.yaml", capsys)[1] == 1


def test_the_lecture_example_reaches_its_critical_batch():
    """300 multiply-accumulates per byte and sparsity 8: the batch is 300 * 8."""
    assert planner.solve(ROOT / "examples" / "lecture.yaml").batch == 2400


def test_the_readme_shows_the_answer_that_is_printed():
    """The block in the README is the first example's output, which the test above prints anew."""
    assert "serve-deepseek-v3-h200" in QUICK
    written = (ROOT / "examples" / "serve-deepseek-v3-h200.txt").read_text(encoding="utf-8")
    assert written.rstrip() in (ROOT / "README.md").read_text(encoding="utf-8")
