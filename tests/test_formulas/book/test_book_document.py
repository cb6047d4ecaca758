"""The book: nothing used before it is said, links that lead somewhere, every format written."""

import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import replace

import pytest

from formulas.book import book_document as module
from formulas.book.book_document import book, book_document, printed_symbols
from formulas.book.book_values import BookError, DerivationPart
from formulas.book.prose import chapters, prose
from formulas.export.blocks import BookTable, Heading, Picture, Proof, Statement
from formulas.export.plain_text import TEXT_MARKUP
from formulas.export.words import Formula
from formulas.nomenclature.symbols import SYMBOLS
from formulas.registry import all_derivations, by_name
from tests.sizes import first

SECTIONS = ("assumptions", "derivation", "numbers", "fails", "verdict", "exercises")


@pytest.fixture(scope="module")
def whole():
    """Every block of the book."""
    return book_document()


@pytest.mark.slow
def test_a_symbol_is_listed_before_it_is_used(whole):
    """In a table of its chapter or of one before."""
    listed = set()
    for block in whole.blocks:
        if isinstance(block, Heading) and block.anchor == "all":
            break
        if isinstance(block, BookTable) and block.heads[1] == "meaning":
            listed |= {x for row in block.rows for x in row[0][0].symbols}
        missing = {x for x in printed_symbols(block) if SYMBOLS.get(x.name) == x} - listed
        assert not missing, (block, missing)


@pytest.mark.slow
def test_what_a_step_puts_in_was_stated(whole):
    """A definition, or the result of a derivation, ahead of the derivation that uses it."""
    stated = set()
    for block in whole.blocks:
        if isinstance(block, Proof):
            for inner in module.required_entries(block.entry.item):
                assert inner.name in stated or inner.name in later(whole, block), inner.name
        if isinstance(block, Proof | Statement):
            stated.add(block.entry.item.name)


def later(whole, block):
    """Names of the derivations that the book tells after a block."""
    place = whole.blocks.index(block)
    return {x.entry.item.name for x in whole.blocks[place:] if isinstance(x, Proof)} - {
        block.entry.item.name
    }


@pytest.mark.slow
def test_chapters_keep_the_order_of_their_sections(whole):
    """Question, figure, assumptions, derivation, numbers, where it fails, verdict, exercises."""
    anchors = [x.anchor for x in whole.blocks if isinstance(x, Heading | Picture) and x.anchor]
    for chapter in chapters():
        figures = [figure.name for figure in chapter.figures]
        wanted = [chapter.anchor, *figures, *(f"{chapter.anchor}-{name}" for name in SECTIONS)]
        start = anchors.index(chapter.anchor)
        assert anchors[start : start + len(wanted)] == wanted


@pytest.mark.slow
def test_every_derivation_has_one_anchor(whole):
    """Its name in Python, in a chapter or in the appendix."""
    anchors = [block.anchor for block in whole.blocks if getattr(block, "anchor", "")]
    assert len(anchors) == len(set(anchors))
    names = {name for name, x in by_name().items() if x in all_derivations()}
    assert names <= set(anchors)


@pytest.mark.slow
def test_the_teaching_set_prints_finite_numbers(whole):
    """No infinity, no zero, nothing negative, and no neglected term that is not small."""
    tables = [x for x in whole.blocks if isinstance(x, BookTable) and x.heads[-1] == "teaching"]
    assert len(tables) == 3 * 7
    for spans in (row[-1] for table in tables for row in table.rows):
        cell = "".join(x.typed if isinstance(x, Formula) else x.text for x in spans)
        assert not re.search(r"\binf\b|\bnan\b|not small|not stated", cell), cell
        assert cell not in ("0", "-0")


@pytest.mark.slow
def test_the_lecture_lies_on_its_balances(whole):
    """What it prints there is why there is a second set."""
    text = book("text", ("prices",))
    assert re.search(r"context of the kink, tokens +0 +20,000", text)
    assert "outside: 2,400 against 2,400" in " ".join(text.split())


@pytest.mark.parametrize(
    ("form", "start"),
    [("text", "Keep or"), ("markdown", "# Keep"), ("latex", "\\documentclass"),
     ("html", "<!DOCTYPE html>"), ("notebook", "{"), ("typst", "#set page")],
)  # fmt: skip
def test_every_format_is_written(form, start):
    """One chapter of it."""
    written = book(form, ("reversible",))
    assert written.startswith(start)
    assert "Keep or compute again" in written


def test_answers_fold_where_a_page_can_fold_them():
    """Below each exercise in HTML, behind the chapter in LaTeX."""
    page, paper = book("html", ("step",)), book("latex", ("step",))
    assert page.count("<details><summary>answer to 1.") == 5
    assert paper.count("Answers") == 1
    assert paper.index("1.5") < paper.index("Answers")


def test_what_cannot_be_set_is_said(monkeypatch):
    """A format, a chapter, a name of the catalogue, a link; one sentence each."""
    with pytest.raises(BookError, match="no format 'docx'; there are text"):
        book("docx")
    with pytest.raises(BookError, match="no chapter 'x'"):
        book("text", ("x",))
    first = chapters()[0]
    for part, words in (
        (DerivationPart("", "no_such"), "chapter step: no_such is not in the catalogue"),
        (
            DerivationPart("[there](nowhere)"),
            "a link leads to nowhere, which the book does not hold",
        ),
        (DerivationPart("$no_such$"), "no_such in 'no_such' is neither a symbol nor an equation"),
        (DerivationPart("{critical_batch:mine}"), "there is no set of values 'mine'"),
    ):
        changed = replace(first, parts=(part, *first.parts))  # a book of one chapter
        monkeypatch.setattr(
            module.text, "chosen_chapters", lambda names, changed=changed: (changed,)
        )
        with pytest.raises(BookError) as refused:
            book("text", (first.anchor,))
        assert words in str(refused.value)


def test_questions_need_no_symbols():
    """They stand ahead of every definition."""
    for chapter in chapters():
        spans = prose(chapter.question, chapter.sets)
        assert not [span for span in spans if isinstance(span, Formula)]


def test_a_result_is_worked_in_numbers_and_units():
    """By the numbers that stand in the line; an approximate one with its sign."""
    case = chapters()[0].sets["teaching"]
    line = TEXT_MARKUP.line(module.text.worked_line(by_name()["compute_time"], case))
    put_in = {x: float(v.replace(",", "")) for x, v in re.findall(r"(\w+) = ([\d.,e+]*\d)", line)}
    result = put_in.pop("T_comp")
    assert result == pytest.approx(by_name()["compute_time"].numpy()(**put_in), rel=1e-3)
    assert "F = 1.6e+16 FLOP/s" in line
    near = TEXT_MARKUP.line(module.text.worked_line(by_name()["critical_batch"], case))
    assert near.startswith("In numbers: B_crit ≈ 3,000 seq with F = ")
    assert not module.text.worked_line(by_name()["critical_batch"], {})


def test_a_verdict_says_what_decides_and_why():
    """Word, deciding number and reason, from the rows of the acceptance table."""
    rows = {"C9": {"verdict": "off: farthest: h20, 37 for 300, by 8.11", "why": "A reason."}}
    written = book("text", ("step",), rows)
    flat = " ".join(written.split())
    assert "Verdict: off: farthest: h20, 37 for 300, by 8.11. A reason." in flat


@pytest.mark.parametrize("chapter", first(1, [x.anchor for x in chapters()]))
def test_the_notebook_of_a_chapter_computes(chapter):
    """Its cells run; figures are drawn and numbers printed from values that a reader can change."""
    cells = json.loads(book("notebook", (chapter,)))["cells"]
    sources = ["".join(each["source"]) for each in cells if each["cell_type"] == "code"]
    drawn = [each for each in sources if "draw_figure(row" in each]
    (row,) = [each for each in chapters() if each.anchor == chapter]
    assert len(drawn) == len(row.figures)
    room: dict = {}
    with redirect_stdout(io.StringIO()) as printed:
        for source in sources:
            exec(source, room)  # noqa: S102  a cell as a notebook runs it
    assert all(number.what in printed.getvalue() for number in row.numbers)
    exec(drawn[0].replace("\ndraw", "\npicture = draw"), room)  # noqa: S102
    picture = room["picture"]
    assert picture._repr_svg_().startswith("<svg")
