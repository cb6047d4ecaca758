"""Equations and derivations written out as text, Markdown and LaTeX."""

import re

import pytest

from formulas.export import FORMATS, export
from formulas.nomenclature.symbols import meaning, symbol_unit
from formulas.registry import by_name
from formulas.roofline.batching import critical_batch
from formulas.roofline.roofline import step_time


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_symbols_reasons_and_sources(form):
    """Unit and meaning of each symbol, the why of each step, where it comes from."""
    written = export([critical_batch, step_time], form)
    for x in step_time.givens:
        assert meaning(x) in written
    assert "neither roof is idle" in written
    assert "AI Hardware Economics" in written
    assert "xmkSf5IS-zw" in written
    assert "eglected over kept" in written
    assert "put back, symbolically" in written
    assert "overlap perfectly" in written


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_the_whole_catalogue_can_be_written(form):
    """Every entry's name stands in it."""
    written = export(by_name().values(), form)
    for value in by_name().values():
        assert value.name[1:] in written.replace("\\", "")


def test_an_unknown_format_is_refused():
    """With those that exist."""
    with pytest.raises(ValueError, match="text, markdown, latex"):
        export(step_time, "word")


def test_text_aligns_the_symbols():
    """Name, unit, meaning."""
    line = next(x for x in export(step_time, "text").splitlines() if x.startswith("  L_ctx"))
    assert line.split() == f"L_ctx {symbol_unit('L_ctx')} {meaning('L_ctx')}".split()


def test_latex_is_balanced_and_its_letters_are_known():
    """Each environment and brace that opens closes, no bare special character in words.

    Letters that pdflatex cannot set are replaced.
    """
    written = export(by_name().values(), "latex")
    assert written.startswith(r"\documentclass")
    assert written.rstrip().endswith(r"\end{document}")
    stack = []
    for verb, name in re.findall(r"\\(begin|end)\{(\w+)\}", written):
        if verb == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack
    bare = re.sub(r"\\[\\{}]", "", written)
    assert bare.count("{") == bare.count("}")
    assert written.count(r"\[") == written.count(r"\]")
    assert set(written) - set(map(chr, range(128))) <= set("äöüéèç·")
