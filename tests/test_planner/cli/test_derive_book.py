"""`planner derive --book` and `--at`: chapters, formats, files, and what is refused."""

import json

import pytest

from planner.cli import app as cli


@pytest.fixture
def derive(capsysbinary, monkeypatch):
    """Run `planner derive` here; (exit status, standard output, standard error)."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            cli.main(["derive", *map(str, arguments)])
        out, err = capsysbinary.readouterr()
        return left.value.code or 0, out.decode(), err.decode()

    return run


def test_a_chapter_is_printed_by_name_or_number(derive):
    """The same text either way."""
    status, out, _ = derive("--book", "pipeline")
    assert status == 0
    assert "4. A pipeline divides weights, not caches" in out
    assert derive("--book", "4")[1] == out


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.html", "<!DOCTYPE html>"), ("a.tex", "\\documentclass"), ("a.md", "# Keep"),
     ("a.bib", "@misc{token-planner:reversible"), ("a.lean", "/- Identities")],
)  # fmt: skip
def test_the_name_of_the_file_says_the_format(derive, tmp_path, name, start):
    """Of the book as of everything else."""
    status, _, err = derive("--book", "reversible", "--out", tmp_path / name)
    assert status == 0
    assert name in err
    assert (tmp_path / name).read_text("utf-8").startswith(start)


def test_derivations_have_references_and_theorems(derive):
    """As formats of their own."""
    assert derive("overtraining", "--format", "bibtex")[1].startswith("@")
    assert "theorem bubble_share_4" in derive("bubble_share", "--format", "lean")[1]


def test_values_of_a_plan_are_put_in(derive, tmp_path):
    """In place of the lecture's; without a name, every equation that they give a value."""
    plan = {"n_active": 2e10, "n_total": 24e10}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"plan": plan, "scenario": {}}))
    _, out, _ = derive("sparsity", "--at", file)
    assert "value  the plan: 12" in out
    assert "lecture" not in out.split("Sources")[0]
    assert "sparsity                   12" in derive("--at", file)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--book", "pipline"], "did you mean 'pipeline'"),
        (["--book", "--all"], "--book is a text of its own"),
        (["--book", "--json"], "--book is a text of its own"),
        (["--book", "--format", "htlm"], "did you mean 'html'"),
        (["sparsity", "--at", "none.json"], "name a plan.json of planner solve"),
        (["claims", "--at", "none.json"], "name no claims"),
    ],
)
def test_mistakes(derive, tmp_path, monkeypatch, arguments, words):
    """One line that says what would put it right, exit status 2."""
    monkeypatch.chdir(tmp_path)
    status, out, err = derive(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
