"""Documents of everything: cover, chapters, values of both cases, in each format."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import islice

import pytest

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.export import FORMATS, export
from formulas.export.latex import latex_words
from formulas.nomenclature.lecture import T_comp, T_mem, T_step
from formulas.nomenclature.symbols import meaning, symbol_unit
from formulas.registry import by_name
from formulas.roofline.batching import critical_batch, critical_batch_with_kv
from formulas.roofline.roofline import memory_time, step_time

CASE = {"F": 6e15, "W": 2e13, "b_w": 1, "c_fwd": 1, "N_total": 8e11, "N_active": 1e11,
        "m_pos": 1, "b_kv": 1666, "B": 2400}  # fmt: skip
CASES = {"short": {**CASE, "L_ctx": 20_000}, "long": {**CASE, "L_ctx": 300_000}}
VOID = {"meta", "link", "br", "wbr", "mspace"}
OWN = Equation("no overlap at all", T_step, T_comp + T_mem)


class Balance(HTMLParser):
    """Which elements are open, and what is asked for from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.asked, self.ids, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if tag == "a" else []
        self.asked += [v for k, v in attrs if k == "src" or (k == "href" and tag != "a")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    """The page, parsed to its end."""
    found = Balance()
    found.feed(page)
    assert not found.open
    return found


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_the_cover_shows_both_cases_where_they_differ(form):
    """One line for the context, which is all that differs, with both values."""
    written = export(critical_batch, form, CASES)
    after = written.partition("Assumptions where they differ")[2]
    table = re.split(r"\n(?:## )?Symbols\n", after)[0]
    for power in (4, 5):
        assert (rf"10}}^{{{power}}}$" if form == "markdown" else f"e{power}") in table
    assert "11" not in table
    assert "F" not in table


@pytest.mark.parametrize("form", FORMATS)
def test_a_case_gives_values_and_the_size_of_what_is_neglected(form):
    """2400 sequences; the caches beside the weights: B·L·b/N = 2400·20000·1666/8e11 = 0.1."""
    written = export(critical_batch, form, CASES)
    assert "2400" in written
    assert re.search(r"\b0\.1\b|0\.09996", written)
    assert "not small" in written  # in the long case it is 1.5


def test_a_positive_symbol_that_comes_out_negative_is_no_value():
    """Beyond the balance context there is no critical batch, and no number is shown for one."""
    written = export(critical_batch_with_kv, "text", CASES)
    assert "value  short: 2" in written
    assert re.search(r"value  long: none: -\S+ is not positive", written)


def test_a_case_that_lacks_a_symbol_says_which():
    """The size is not known, and why."""
    written = export(critical_batch, "text", {"bare": {"N_total": 8e11}})
    assert "bare: not known, missing 'F' (arithmetic rate" in written


def test_nothing_to_write_is_refused():
    """A document needs an entry."""
    with pytest.raises(ValueError, match="nothing to write"):
        export([], "text")


def test_an_object_from_elsewhere_can_be_written_in_every_format():
    """A user's own equation, beside one of ours."""
    for form in FORMATS:
        assert "o overlap at all" in export([OWN, step_time], form)


@pytest.mark.parametrize("form", FORMATS)
def test_words_of_the_caller_stand_on_the_cover(form):
    """Title and paragraphs."""
    written = export([memory_time], form, title="Of memory", about=["What it takes & why"])
    assert "Of memory" in written
    assert "What it takes" in written


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_twice(form):
    """Neither clock nor chance enters."""
    assert export([critical_batch, step_time], form) == export([critical_batch, step_time], form)


@pytest.mark.slow
def test_text_and_markdown_list_every_symbol_with_its_unit():
    """Of everything there is."""
    for form in ("text", "markdown"):
        written = export(by_name().values(), form)
        plain = " ".join(written.replace("\\", "").split())
        for x in {x for equation in by_name().values() for x in equation.rhs.free_symbols}:
            assert x.name in written
            assert meaning(x) in plain
            assert symbol_unit(x).written in written


@pytest.mark.slow
def test_html_is_balanced_and_asks_for_nothing():
    """Every element that opens closes, each link leads to an entry; nothing from elsewhere."""
    page = export(by_name().values(), "html", CASES)
    found = read(page)
    lead_somewhere(found, by_name())
    assert set(found.asked) == {"data:,"}
    assert "<script" not in page
    assert set(re.findall(r"url\((\w+:\w+)", page)) == {"data:font"}
    assert len(page.encode()) < 3_000_000
    assert "@import" not in page
    assert 'name="viewport"' in page
    assert "prefers-color-scheme" in page


def lead_somewhere(page, names):
    """Each entry has an id of its own, and the contents name them all."""
    assert len(set(page.ids)) == len(page.ids)
    assert {link[1:] for link in page.links if link.startswith("#")} == set(names)


def test_html_links_lead_somewhere():
    """Of one entry in ten; of all of them among the slow tests."""
    few = dict(islice(by_name().items(), 0, None, 10))
    lead_somewhere(read(export(few.values(), "html")), few)


def test_html_marks_exact_and_approximate():
    """Of the whole and of each step."""
    page = export(critical_batch, "html")
    assert page.count('class="tag near"') == 1
    assert page.count('<li class="near">') == 1
    assert "proven: put back, symbolically" in page
    exact = export(critical_batch_with_kv, "html")
    assert '<li class="near">' not in exact
    assert 'class="tag exact"' in exact


def test_html_escapes_words():
    """What looks like markup is text."""
    page = export(critical_batch_with_kv, "html", title="<b>&</b>")
    assert "<h1>&lt;b&gt;&amp;&lt;/b&gt;</h1>" in page
    assert "<mo>&lt;</mo>" in page
    assert not re.search(r"<[^a-z/!]", page)


def test_latex_needs_only_what_every_installation_has():
    """The packages of the base system, AMS, booktabs and hyperref."""
    used = re.findall(r"\\usepackage(?:\[[^]]*\])?\{([^}]*)\}", export(critical_batch, "latex"))
    assert set(",".join(used).split(",")) == {
        "inputenc", "geometry", "amsmath", "amssymb", "booktabs", "longtable", "hyperref",
    }  # fmt: skip


def test_latex_words_know_their_letters():
    """Greek, signs and accents; a letter without a rule is refused."""
    assert latex_words("50 % of β ≤ é_x") == (r"50 \% of \ensuremath{\beta} \ensuremath{\le} é\_x")
    with pytest.raises(ValueError, match=r"U\+4E2D"):
        latex_words("中")


def cells(source):
    """Cells of a notebook, after the checks that its format asks for."""
    book = json.loads(source)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in book["cells"]:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", cell["id"])
        assert cell["cell_type"] in ("markdown", "code")
        needed = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            needed |= {"execution_count", "outputs"}
        assert set(cell) == needed
    return book["cells"]


def run(tmp_path, book):
    """Run the code cells of a notebook one after the other, in a Python of their own."""
    code = ["".join(cell["source"]) for cell in cells(book) if cell["cell_type"] == "code"]
    script = tmp_path / "cells.py"
    script.write_text("\n".join(code), encoding="utf-8")
    command = [sys.executable, "-W", "error", str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_a_notebook_checks_again(tmp_path):
    """Its cells run, print LaTeX and the strain of both cases."""
    done = run(tmp_path, export([critical_batch, step_time], "notebook", CASES))
    assert done.returncode == 0, done.stderr
    assert r"\begin{aligned}" in done.stdout
    assert "short {'drop B*L_ctx*b_kv/W': 0.09996}" in done.stdout


def test_a_notebook_without_a_module_to_import_from_has_words_only():
    """A cell never claims to check what it cannot reach."""
    assert [cell["cell_type"] for cell in cells(export(OWN, "notebook"))] == ["markdown"] * 2


@pytest.mark.slow
def test_the_notebook_of_everything_runs(tmp_path):
    """Every equation and derivation is imported and checked."""
    book = export(by_name().values(), "notebook", CASES)
    done = run(tmp_path, book)
    assert done.returncode == 0, done.stderr
    assert book.count(".check()") == len(by_name())


def test_approximate_steps_carry_their_size_in_every_format():
    """As often as there are such steps."""
    near = [d for d in by_name().values() if isinstance(d, Derivation) and not d.exact]
    steps = sum(step.size is not None for d in near for step in d.steps)
    for form in FORMATS:
        assert export(near, form).lower().count("neglected over kept") >= steps > 0
