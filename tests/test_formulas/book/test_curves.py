"""Figures: curves lie on their equations, kinks and marks where they belong."""

import numpy as np
import pytest

from formulas.book.book_values import BarRow, BookError, evaluate_expression, exact
from formulas.book.curves import bars, draw_figure, idle_share, sample_curve, short_number, ticks
from formulas.book.prose import chapters
from formulas.export.drawing import Label, Spot, characters, pdf_strokes, svg
from tests.loops import for_all

FIGURES = {figure.name: (chapter, figure) for chapter in chapters() for figure in chapter.figures}
CURVES = [(name, k) for name, (_, figure) in FIGURES.items() for k in range(len(figure.curves))]


def values(name):
    """The set of values of a figure."""
    chapter, figure = FIGURES[name]
    return {**chapter.sets[figure.case], **exact(figure.values)}


@for_all(("name", "number"), CURVES)
def test_a_curve_is_its_equation(name, number):
    """At a few of its points, worked one by one from the expression tree."""
    figure = FIGURES[name][1]
    curve = figure.curves[number]
    line = sample_curve(figure, curve, values(name))
    assert np.isfinite(line.y).all()
    case = {**values(name), **exact(curve.values)}
    scale = evaluate_expression(curve.over, case) * {"ms": 1e-3, "us": 1e-6, "GB": 1e9}.get(
        figure.unit, 1
    )
    for k in (0, 57, len(line.x) - 1):
        value = evaluate_expression(curve.of, {**case, figure.axis: float(line.x[k])}) / scale
        assert line.y[k] == pytest.approx(value, rel=1e-9)


def test_the_kink_of_the_roofline_is_the_critical_batch():
    """3000 positions without caches, a third more with them at a quarter of the balance context."""
    figure = FIGURES["roofline"][1]
    ((x, y, words),) = sample_curve(figure, figure.curves[0], values("roofline")).kinks
    assert x == pytest.approx(4000, rel=1e-6)
    assert y == pytest.approx(10, rel=1e-6)
    assert words == "T_mem = T_comp"
    spots = [
        part for part in draw_figure(figure, values("roofline")).parts if isinstance(part, Spot)
    ]
    assert len(spots) == 3


def test_a_timetable_has_the_idle_share_of_its_equation():
    """Eight microbatches on four stages: three slots of eleven; other numbers as well."""
    figure = FIGURES["timetable"][1]
    case = values("timetable")
    assert idle_share(bars(figure, case), 4) == pytest.approx(3 / 11)
    assert idle_share(bars(figure, {**case, "n_stages": 2, "n_micro": 5}), 2) == pytest.approx(
        1 / 6
    )


@pytest.mark.parametrize(
    ("start", "words"),
    [("j*t_fwd/2", "does two pieces of work at once"), ("(i + 2*j)*t_fwd", "idle")],
)
def test_a_timetable_that_is_none_is_refused(start, words):
    """Two pieces of work at a time, or an idle share that the equation does not give."""
    chapter, figure = FIGURES["timetable"]
    first = BarRow(start, "t_fwd", "forward")
    changed = figure.__class__(**{**vars(figure), "bars": (first,)})
    with pytest.raises(BookError, match=words):
        bars(changed, chapter.sets["teaching"])


@for_all("name", FIGURES)
def test_a_drawing_is_written_in_every_form(name):
    """Vector in SVG and PDF, letters on a terminal; all words within the sheet."""
    drawing = draw_figure(FIGURES[name][1], values(name))
    assert svg(drawing).startswith("<svg")
    assert "nan" not in svg(drawing)
    assert "nan" not in pdf_strokes(drawing)
    assert max(map(len, characters(drawing).splitlines())) <= 76
    for part in drawing.parts:
        if isinstance(part, Label):
            assert -1 <= part.at[0] <= drawing.width
            assert 0 <= part.at[1] <= drawing.height


def test_ticks_are_round():
    """Decades where there are many, a handful of round numbers else."""
    assert ticks(1, 1e4, True) == [1, 10, 100, 1000, 10000]
    assert ticks(0, 33, False) == [0, 5, 10, 15, 20, 25, 30]
    assert [short_number(x) for x in (0.05, 20, 2000, 3e12, 1e23)] == [
        "0.05",
        "20",
        "2k",
        "3T",
        "10²³",
    ]
