"""What stands on the pages: every letter, line and heading has a meaning of its own."""

import re
from collections import defaultdict
from itertools import pairwise

import pytest

from formulas.export import export
from formulas.export.formula_blocks import fragment_blocks
from formulas.export.formula_document import Chapter, document
from formulas.export.html import HTML
from formulas.export.typesetting.layout import layout, relation
from formulas.export.words import split_prose
from formulas.nomenclature.dimensions import unit
from formulas.nomenclature.symbols import GREEK, SYMBOLS, latex_names, symbol_unit
from formulas.registry import MODULES, all_derivations, by_name, description
from tests.loops import for_all


def test_no_printed_letter_means_two_things():
    """`B` is the batch and no cost: each symbol has a look of its own, whatever it is called."""
    by_name()  # every symbol is registered with the equations that use it
    looks = defaultdict(list)
    for x in latex_names():
        looks[layout(x)].append(x.name)
    assert [names for names in looks.values() if len(names) > 1] == []


@pytest.mark.parametrize(
    ("name", "latex"),
    [("phi_mixed", r"\phi_{\mathrm{mixed}}"), ("gamma_c", r"\gamma_{\mathrm{c}}"),
     ("A_sigma", r"A_{\sigma}"), ("one_chip", r"1_{\mathrm{chip}}"),
     ("L_ctx", r"L_{\mathrm{ctx}}")],
)  # fmt: skip
def test_a_name_is_printed_as_it_is_spoken(name, latex):
    """A Greek letter is one, above and below the line."""
    by_name()
    assert latex_names()[SYMBOLS[name]] == latex


def test_no_greek_letter_is_spelled_out():
    """In roman it would be a word."""
    by_name()
    spelled = [x.name for x, look in latex_names().items() if {*look.split("mathrm{")} & {*GREEK}]
    assert spelled == []


@pytest.mark.parametrize(
    ("text", "written"),
    [("s/byte**(1/2)", "s/√byte"), ("flop/(param*token)", "FLOP/(param·token)"),
     ("flop*seq/token**2", "FLOP·seq/token²"), ("token/seq", "token/seq"), ("1", "1")],
)  # fmt: skip
def test_units_are_written_as_the_field_writes_them(text, written):
    """No sign of a program."""
    assert unit(text).written == written


def test_no_unit_on_the_pages_is_code():
    """Of all symbols."""
    by_name()
    assert not [x for x in SYMBOLS.values() if "*" in symbol_unit(x).written]


@for_all("derivation", all_derivations(), ids=lambda each: each.name)
def test_no_step_repeats_the_line_before(derivation):
    """A step that changes nothing is a reason of the step before it."""
    lines = [relation(step.lhs, step.relation, step.rhs) for step in derivation.steps]
    assert all(line != before for before, line in pairwise(lines))


@for_all(
    ("words", "formulas"),
    [("B*m_pos > B_0; below it every context is memory-bound", ["B*m_pos > B_0"]),
     ("a share, with c_fwd = 2 FLOP", ["Eq(c_fwd, 2)"]), ("see (k_most)", ["k_most"]),
     ("0 < u_arr <= 1", ["(u_arr <= 1) & (0 < u_arr)"]), ("f of a batch B, and a rate", []),
     ("4096 to 8192, or 2/3", []), ("__import__(n_chips)", ["n_chips"]), ("", [])],
)  # fmt: skip
def test_formulas_among_words(words, formulas):
    """Relations and symbols are set, words stay words, and nothing is run or lost."""
    by_name()
    split = list(split_prose(words))
    assert [str(x) for x in split if not isinstance(x, str)] == formulas
    if not formulas:
        assert "".join(split) == words


def test_no_assumption_or_reason_is_printed_as_code():
    """Neither a name with its underscore nor a star is left between the formulas."""
    for name, entry in by_name().items():
        reasons = [step.why for step in getattr(entry, "steps", ())]
        for words in (*entry.assumes, *reasons):
            left = " ".join(x for x in split_prose(words) if isinstance(x, str))
            assert not re.search(r"\w_\w|\*", left), f"{name}: {left}"


def test_no_heading_stands_twice():
    """Two equations for one symbol say what sets them apart."""
    titles = [entry.name for entry in by_name().values()]
    titles += [Chapter("", description(name.rpartition(".")[2]), ()).title for name in MODULES]
    assert len({title.lower() for title in titles}) == len(titles)


@pytest.mark.parametrize("form", ["html", "markdown", "latex", "typst"])
def test_the_title_of_one_derivation_stands_once(form):
    """The heading of the document is that of the derivation."""
    assert export(by_name()["critical_batch"], form).count("Batch at which the two roofs meet") <= 2


def test_chapters_say_what_they_are_about_in_the_order_of_their_pages():
    """Not the name of a module, nor the order of names."""
    chapter = Chapter("speculation", description("speculation"), ())
    assert chapter.title == "Speculative decoding"
    assert chapter.about.startswith("How many tokens a step emits")
    names = list(by_name())
    assert names.index("compute_time") < names.index("compute_time_attention")
    assert names.index("short_context_batch") < names.index("balance_context")
    assert names.index("passes_worth") < names.index("passes_convexity")


def test_a_fragment_is_the_body_of_a_page_without_its_head():
    """A site puts it inside a page of its own: steps, symbols and sources, no style, no title."""
    entry = by_name()["critical_batch"]
    inner, page = HTML.written(fragment_blocks(document([entry], {}))), export(entry, "html")
    assert inner.count('<p class="proof">') == page.count('<p class="proof">') >= len(entry.steps)
    assert inner.count("<tr>") == page.count("<tr>") > len(entry.rhs.free_symbols)
    assert "<style" not in inner
    assert "<h1" not in inner
    assert str(entry.source) in inner.replace("&amp;", "&")
