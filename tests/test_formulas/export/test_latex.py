"""Works cited, as BibTeX."""

import re
import shutil
import subprocess

import pytest

from formulas.book.book_document import book_references
from formulas.export.latex import bibtex, fragment
from formulas.registry import by_name

ENTRY = re.compile(r"^@(article|misc)\{([\w:-]+),\n(?:  \w+ = \{.+\},\n)+\}$", re.M)


def test_every_work_of_the_catalogue_has_one_entry():
    """By its key, each once; papers with their numbers."""
    written = bibtex(by_name().values())
    keys = [match[2] for match in ENTRY.finditer(written)]
    cited = {x.source.source.key for x in by_name().values() if x.source.source}
    assert cited <= set(keys)
    assert len(keys) == len(set(keys)) == written.count("@")
    assert "  eprint = {2202.01169}," in written
    assert re.search(r"^  doi = \{10\.\d+/\S+\},$", written, re.M)


@pytest.mark.parametrize("few", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex")
def test_a_fragment_compiles_within_a_paper_and_is_referred_to(tmp_path, few):
    """By amsmath alone, every label once, without an undefined reference."""
    named = ("critical_batch", "rule_of_thumb", "step_time", "feistel_inverse")
    entries = [by_name()[name] for name in named] if few else list(by_name().values())
    written = fragment(entries)
    labels = re.findall(r"\\label\{(eq:[^}]+)\}", written)
    assert len(labels) == len(set(labels))
    assert {"eq:critical_batch_3", "eq:step_time", "eq:rule_of_thumb_sigma"} <= set(labels)
    assert "documentclass" not in written
    refers = "\n".join(rf"\eqref{{{label}}}" for label in labels)
    paper = (
        r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{amsmath}"
        rf"\begin{{document}}{refers}\clearpage {written}\end{{document}}"
    )
    (tmp_path / "paper.tex").write_text(paper, encoding="utf-8")
    for _ in range(2):
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert b"undefined" not in done.stdout
    assert b"multiply defined" not in done.stdout


def test_chapters_can_be_cited_by_their_anchors():
    """A chapter, and what it cites."""
    written = book_references(("pipeline",))
    assert "@misc{token-planner:pipeline," in written
    assert "planner derive --book pipeline" in written
    assert len(ENTRY.findall(book_references())) >= 7


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bibtex"), reason="no bibtex")
def test_bibtex_reads_it(tmp_path):
    """Without a warning."""
    (tmp_path / "all.bib").write_text(bibtex(by_name().values()), encoding="utf-8")
    (tmp_path / "all.aux").write_text("\\citation{*}\n\\bibstyle{plain}\n\\bibdata{all}\n")
    done = subprocess.run(["bibtex", "all"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"error" not in done.stdout
