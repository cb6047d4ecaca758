"""Equations and derivations in a notebook: one block of HTML each, with everything on it."""

from html.parser import HTMLParser

from formulas.registry import by_name
from formulas.roofline.batching import critical_batch, critical_batch_with_kv
from formulas.roofline.roofline import step_time
from tests.loops import for_all

VOID = {"br", "hr"}


class Balance(HTMLParser):
    """Tags that are open, and the words outside of tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@for_all("name", list(by_name()))
def test_every_entry_shows_itself(name):
    """Balanced, with title, source and every symbol; no dollar sign is left open."""
    value = by_name()[name]
    page = Balance()
    page.feed(value._repr_html_())
    assert page.open == []
    assert value.name[1:] in page.words
    assert str(value.source) in page.words
    assert page.words.count("$") % 2 == 0
    for x in value.rhs.free_symbols:
        assert f"{x.name}" in page.words


def test_a_card_has_the_table_of_symbols():
    """Those computed on the way among them."""
    html = step_time._repr_html_()
    assert "<code>W</code>" in html
    assert "memory bandwidth of the domain" in html
    assert "where $T_{\\mathrm{comp}}" in html


def test_a_card_has_every_step_with_its_proof():
    """And the size of what an approximate step neglects."""
    html = critical_batch._repr_html_()
    assert html.count("<b>") == len(critical_batch.steps)
    assert "neglected over kept: $" in html
    assert r"\approx" in html
    assert "put back, symbolically, the only solution" in html


def test_words_are_escaped():
    """`L_ctx < L_star*m_pos` opens no tag."""
    assert "L_ctx &lt; L_star*m_pos" in critical_batch_with_kv._repr_html_()


def test_latex_stands_beside_it():
    """For notebooks that are printed."""
    assert step_time._repr_latex_().startswith(r"$\displaystyle T_{\mathrm{step}} = \max")
