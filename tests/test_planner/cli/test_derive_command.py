"""`planner derive`: the list, several names, all, claims, formats, files, and what is refused."""

import json
import os
import subprocess
import sys

import pytest

from formulas.claims import all_claims
from formulas.registry import by_name
from planner.cli import app as cli
from planner.report.text import derivations


@pytest.fixture
def derive(capsysbinary, monkeypatch):
    """Run `planner derive` here; (exit status, standard output, standard error)."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            cli.main(["derive", *map(str, arguments)])
        out, err = capsysbinary.readouterr()
        return left.value.code or 0, out, err.decode()

    return run


def test_the_list_names_everything_checked(derive):
    """Name, claims, number of steps, exact or approximate, checked; derivations and equations."""
    status, out, _ = derive("--json")
    rows = json.loads(out)
    assert status == 0
    assert [row["name"] for row in rows] == list(by_name())
    assert all(row["checked"] is True for row in rows)
    assert {row["kind"] for row in rows} == {"derivation", "equation"}
    assert all(row["steps"] == 1 and row["exact"] for row in rows if row["kind"] == "equation")
    row = next(row for row in rows if row["name"] == "critical_batch")
    assert (row["steps"], row["exact"], row["claims"]) == (3, False, ["C8", "C55"])


def test_several_names(derive):
    """In the order given, each once; a title or a symbol will do."""
    status, out, _ = derive("step_time", "critical-batch", "step_time", "--json")
    assert status == 0
    assert [row["name"] for row in json.loads(out)] == ["step_time", "critical_batch"]
    status, out, _ = derive("step_time", "critical_batch")
    assert out.decode().count("source  ") == 2


@pytest.mark.slow
def test_a_file_without_names_holds_everything(derive, tmp_path):
    """As --all does; --json writes the list."""
    derive("--out", tmp_path / "a.md")
    derive("--all", "--out", tmp_path / "b.md")
    assert (tmp_path / "a.md").read_text() == (tmp_path / "b.md").read_text()
    derive("--json", "--out", tmp_path / "list.json")
    assert len(json.loads((tmp_path / "list.json").read_text())) == len(by_name())


def test_both_sets_of_assumptions_are_shown(derive):
    """The lecture's 2400, and its 300; a model of the catalogue beside."""
    _, out, _ = derive("critical_batch")
    written = out.decode()
    assert "value  lecture: 2400 [seq]" in written
    assert "value  physical: " in written
    assert "deepseek-v3 on 8 chips h200" in " ".join(written.split())


def test_claims(derive):
    """The acceptance table, as text and as JSON."""
    status, out, _ = derive("claims")
    assert status == 0
    status, found, _ = derive("claims", "--json")
    ids = [row["id"] for row in json.loads(found)]
    assert ids == [claim.id for claim in all_claims()]
    assert all(f"{name} " in out.decode() for name in ids)


def test_claims_as_a_document(derive, tmp_path):
    """The name of the file says the format; a link from each claim to its derivations and back."""
    assert derive("claims", "--out", tmp_path / "claims.html")[0] == 0
    page = (tmp_path / "claims.html").read_text()
    assert '<a href="#critical_batch">' in page
    assert 'id="critical_batch"' in page
    assert page.count('<a href="#C8">') >= 3  # contents, table, each derivation it rests on


def test_a_derivation_names_its_claims(derive):
    """With their verdicts, in a document of its own."""
    out = derive("critical_batch")[1].decode()
    assert "claim  C8, near: The roofs meet at a batch of 300 times the sparsity." in out


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.txt", b"Batch at"), ("a.md", b"# Batch at"), ("a.markdown", b"# "), ("a.ipynb", b"{"),
     ("a.tex", rb"\documentclass"), ("a.HTML", b"<!DOCTYPE html>"), ("a.htm", b"<!DOCTYPE"),
     ("a.typ", b"#set page"), ("a.pdf", b"%PDF-"), ("a.py", b"import math"), ("a.c", b"#define"),
     ("a.js", b'"use strict"'), ("a.jl", b"# batch at which")],
)  # fmt: skip
def test_the_name_of_the_file_says_the_format(derive, tmp_path, name, start):
    """Folders are made; nothing else is left there."""
    if name.endswith("pdf"):
        pytest.importorskip("typst")
    file = tmp_path / "new" / name
    status, out, err = derive("critical_batch", "--out", file)
    assert (status, out) == (0, b"")
    assert str(file) in err
    assert file.read_bytes().startswith(start)
    assert os.listdir(file.parent) == [name]


def test_a_claim_stands_for_what_it_rests_on(derive):
    """And a suffix for its format; a fragment has labels and no preamble."""
    claim = next(each for each in all_claims() if each.id == "C8")
    out = derive("C8", "--format", "py")[1].decode()
    assert all(f"def {name}(" in out for name in claim.equations)
    for arguments in (["--fragment"], ["--fragment", "--format", "latex"]):
        out = derive("C8", *arguments)[1].decode()
        assert r"\label{eq:critical_batch_3}" in out
        assert "documentclass" not in out


def test_the_format_said_outweighs_the_name(derive, tmp_path):
    """Markdown in a text file."""
    derive("critical_batch", "--format", "markdown", "--out", tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text().startswith("# ")


@pytest.mark.slow
def test_a_pdf_goes_into_a_pipe(derive):
    """Bytes as they are."""
    pytest.importorskip("typst")
    command = [sys.executable, "-m", "planner", "derive", "critical_batch", "--format", "pdf"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert done.stdout.startswith(b"%PDF-")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_pdf_does_not_go_to_a_terminal():
    """One sentence, exit status 2."""
    pytest.importorskip("typst")
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "planner", "derive", "critical_batch", "--format", "pdf"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"a PDF is not for a terminal" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["crtical_batch"], "did you mean 'critical_batch'"),
        (["critical_batch", "--format", "htlm"], "did you mean 'html'"),
        (["critical_batch", "--all"], "not both"),
        (["critical_batch", "--json", "--format", "html"], "leave out --format"),
        (["claims", "critical_batch"], "a table of its own"),
        (["claims", "--format", "htlm"], "did you mean 'html'"),
        (["claims", "--json", "--format", "html"], "leave out --format"),
        (["critical_batch", "--out", "a.docx"], "does not say which format"),
        (["critical_batch", "--out", "a"], "does not say which format"),
        (["critical_batch", "--fragment", "--format", "html"], "leave out --format html"),
        (["critical_batch", "--format", "pyhton"], "did you mean 'python'"),
        (["C51"], "there is no equation 'C51'"),
    ],
)
def test_mistakes(derive, tmp_path, monkeypatch, arguments, told):
    """One line that says what would put it right, exit status 2, no file."""
    monkeypatch.chdir(tmp_path)
    status, out, err = derive(*arguments)
    assert (status, out) == (2, b"")
    assert told in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written(derive, tmp_path):
    """A folder in its place, or a file where a folder should be: exit status 2, no part left."""
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "file").write_text("as it was")
    for place in ("folder.md", "file/a.md"):
        status, _, err = derive("critical_batch", "--out", tmp_path / place)
        assert status == 2
        assert "cannot be written" in err
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.md"]
    assert (tmp_path / "file").read_text() == "as it was"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_device_stays_a_device(derive):
    """What is written to a full one is refused, and it is not replaced by a file."""
    status, _, err = derive("critical_batch", "--format", "text", "--out", "/dev/full")
    assert status == 3
    assert "No space left" in err
    assert not os.path.isfile("/dev/full")


def test_a_link_stays_a_link(derive, tmp_path):
    """What it points to is replaced."""
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to(tmp_path / "real.md")
    derive("critical_batch", "--out", tmp_path / "link.md")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text().startswith("# ")


def test_a_full_disk_leaves_what_was_there(derive, tmp_path, monkeypatch):
    """The new file is only moved into place once it is whole."""
    file = tmp_path / "a.md"
    file.write_text("old")

    def fails(self, content):
        with self.open("wb") as opened:
            opened.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", fails)
    status, _, _ = derive("critical_batch", "--out", file)
    assert status == 3
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.md"]


def test_without_typst_the_extra_is_named(derive, monkeypatch, tmp_path):
    """The command that brings it; exit status 2, no file."""
    monkeypatch.setitem(sys.modules, "typst", None)
    status, _, err = derive("critical_batch", "--out", tmp_path / "a.pdf")
    assert status == 2
    assert "pip install 'token-planner[pdf]'" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_all_of_it_in_text_and_markdown(derive, tmp_path):
    """Every title stands in both."""
    for name in ("all.txt", "all.md"):
        assert derive("--all", "--out", tmp_path / name)[0] == 0
        written = (tmp_path / name).read_text().replace("\\", "")
        assert all(value.name[1:] in written for value in by_name().values())


def test_a_step_that_does_not_check_is_a_fault_of_ours(derive, monkeypatch):
    """Exit status 3, nothing printed."""
    from formulas.algebra.derivation import DerivationError

    def fails(*_args, **_named):
        raise DerivationError("step 2: it does not follow")

    monkeypatch.setattr(derivations, "export", fails)
    status, out, err = derive("critical_batch")
    assert (status, out) == (3, b"")
    assert "step 2" in err
