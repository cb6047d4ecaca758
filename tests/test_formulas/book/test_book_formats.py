"""The book opened by what people open it with: a browser, TeX, Typst."""

import re
import shutil
import subprocess

import pytest

from formulas.book.book_document import book
from formulas.book.prose import chapters
from planner.report.files import pdf
from tests.test_formulas.export.test_opened_documents import browser, opened

__all__ = ["browser"]

PAGES = 70  # as the contract of certificates says; worked lines take a page beyond the former 60
latex_needed = pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex")
browser_needed = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")), reason="no chromium"
)


@browser_needed
@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_fits_the_window(browser, tmp_path, width):
    """No sideways scrolling, no request; every link leads somewhere, every figure is seen."""
    assert not opened(browser, tmp_path / "book.html", book("html"), width)
    wide, inner = browser.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert wide <= inner
    lost = browser.execute_script(
        "return [...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1))"
        ".filter(id => !document.getElementById(id))"
    )
    assert not lost
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('figure svg')].map(x => {"
        " const r = x.getBoundingClientRect(); return [r.width, r.height]; })"
    )
    assert len(sizes) == sum(len(chapter.figures) for chapter in chapters())
    assert all(300 < w <= width and h > 100 for w, h in sizes)


@latex_needed
@pytest.mark.slow
def test_latex_says_nothing(tmp_path):
    """No warning in the second run, below sixty pages."""
    (tmp_path / "book.tex").write_text(book("latex"), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "book.tex"]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=False)
        words = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, words[-2000:]
    assert not re.search(r"Warning|Overfull|Underfull|undefined", words)
    pages = re.search(r"Output written on book.pdf \((\d+) pages", words)
    assert int(pages[1]) < PAGES


@pytest.mark.slow
def test_typst_makes_a_pdf_of_few_pages():
    """Below sixty pages, the first formula on one of the first four."""
    typst = pytest.importorskip("typst")
    source = book("typst")
    assert pdf(source).startswith(b"%PDF")
    pages = typst.compile(source.encode(), ignore_system_fonts=True, format="svg")
    assert len(pages) < PAGES
    begun = re.sub(r"#link\(<\w+>\)", "", source[: source.index("#block(above: 1.2em)")])
    ahead = typst.compile(begun.encode(), ignore_system_fonts=True, format="svg")
    assert len(ahead if isinstance(ahead, list) else [ahead]) <= 4
