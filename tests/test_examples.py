"""Every example answers as the file beside it says, and the README shows an answer that is true."""

import json
from pathlib import Path

import pytest

import planner
from planner.cli.app import main
from tests.cases.frozen import AS_WRITTEN, EXACT, Case, answered, differences, examples, file_of
from tests.paths import ROOT
from tests.sizes import first


def printed(scenario: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, int]:
    """What `planner solve` prints for a scenario, and its exit status."""
    with pytest.raises(SystemExit) as exit_:
        main(["solve", str(scenario), "--quiet"])
    return capsys.readouterr().out, int(exit_.value.code or 0)


@pytest.mark.parametrize("case", first(2, examples()), ids=lambda case: case.name)
def test_an_example_prints_the_output_beside_it(case: Case, tmp_path):
    """`NAME.txt` is what `planner solve NAME.yaml` prints; its document is what it was."""
    answer = answered(case, tmp_path)
    written = (ROOT / case.words[0]).with_suffix(".txt").read_text(encoding="utf-8")
    assert answer["text"] == written.splitlines()
    if AS_WRITTEN:
        frozen = json.loads(file_of(case).read_text(encoding="utf-8"))
        assert not differences(frozen, answer, exact=EXACT)


def test_the_infeasible_example_exits_with_one(capsys):
    """An unanswerable question is answered with status 1."""
    assert printed(ROOT / "examples" / "infeasible.yaml", capsys)[1] == 1


def test_the_lecture_example_reaches_its_critical_batch():
    """300 multiply-accumulates per byte and sparsity 8: the batch is 300 * 8."""
    assert planner.solve(ROOT / "examples" / "lecture.yaml").batch == 2400


def test_the_readme_shows_the_answer_that_is_printed(capsys):
    """The block in the README is the beginning of the first example's output."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    out, _ = printed(ROOT / "examples" / "serve-deepseek-v3-h200.yaml", capsys)
    shown = out.rstrip()
    assert shown in readme
