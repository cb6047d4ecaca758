"""Values and ranges in rows, a panel for each quantity: the choice against alternatives.

The tornado: what each quantity does to the answer when it is a little less or more.

Bars of what a scenario can say are the problem solved again, over all choices; those of a model's
or an engine's figures, paler, go along the equations with the choice held.

The picture of a global study: how an output spreads, and which given it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from planner.report.pictures import style
from planner.report.text.sensitivity import with_unit
from planner.text.errors import InputError
from planner.text.wording import output_words, path_words, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FIGURE_WIDTH, HEAD, PANEL, ROW_HEIGHT = 8.5, 0.5, 0.75, 0.27  # inches
WIDER = 8.0  # maximum/minimum above which an axis is logarithmic
DECADE_TICKS_RATIO = 100.0  # maximum/minimum; at or above it, only whole decades are labelled
LABEL_OFFSET = 1.18  # of an axis beyond the most, as a factor or a share


@dataclass(frozen=True)
class ValueRow:
    """A value, or a range with both ends, and its text `words`; a `chosen` row is filled.

    An end that is 0 or infinite is none: the range goes on to the edge.
    """

    label: str
    low: float
    high: float
    words: str
    chosen: bool = False


@dataclass(frozen=True)
class ValuePanel:
    """Rows of one quantity, with the unit of its axis; `form` writes the numbers of its ticks.

    Where it is `linear`, the axis begins at nothing however far the rows lie from each other.
    """

    title: str
    unit: str
    rows: Sequence[ValueRow]
    form: Callable[[float], str] = "{:,g}".format
    linear: bool = False


@dataclass(frozen=True)
class ValueRows:
    """Panels below each other under a title."""

    title: str
    panels: Sequence[ValuePanel]

    def draw(self, form: str) -> bytes:
        """The picture as `svg`, `png` or `pdf`.

        Raises InputError where there is no row to draw; MissingExtra without Matplotlib.
        """
        if not self.panels:
            raise InputError("this plan has no alternatives, so no comparison can be drawn")
        heights = [PANEL + ROW_HEIGHT * len(panel.rows) for panel in self.panels]

        def filled(canvas: Figure) -> None:
            several = canvas.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
            style.figure_title(canvas, self.title)
            for axes, panel in zip(several, self.panels, strict=True):
                _panel(axes, panel)

        return style.render_figure((FIGURE_WIDTH, HEAD + sum(heights)), filled, form)


def _panel(axes: Axes, panel: ValuePanel) -> None:
    """One quantity: a dot for a value, a bar for a range, its words at the right end."""
    ends = [x for row in panel.rows for x in (row.low, row.high) if x > 0 and math.isfinite(x)]
    least, most = min(ends), max(ends)
    wide = most > WIDER * least and not panel.linear
    left, right = (least / 2, most * 2) if wide else (0.0, most * LABEL_OFFSET)
    for place, row in enumerate(panel.rows):
        colour = style.BLUE if row.chosen else style.GREY
        low, high = max(row.low, left), min(row.high, right)
        if low < high:
            axes.plot([low, high], [place, place], color=colour, lw=6, solid_capstyle="butt",
                      alpha=1.0 if row.chosen else 0.55)  # fmt: skip
        else:
            axes.plot(low, place, "o", ms=6, mew=1.4, mec=colour, mfc=colour if row.chosen else "w")
        axes.annotate(row.words, (1.0, place), xycoords=("axes fraction", "data"), fontsize=8,
                      xytext=(6, 0), textcoords="offset points", va="center")  # fmt: skip
    axes.set_xscale("log" if wide else "linear")
    axes.set_xlim(left, right)
    style.labelled_bars(axes, [row.label for row in panel.rows])
    axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    style.grid_lines(axes)
    decade = () if not wide else style.STEPS if most < DECADE_TICKS_RATIO * least else (1.0,)
    style.set_ticks(axes.xaxis, panel.form, decade)
    axes.set_xlabel(panel.unit)
    style.axes_title(axes, panel.title, size=9)


TORNADO_ROW, TORNADO_WIDE, FIGURE_MARGIN = 0.3, 8.5, 1.3  # inches of the tornado
SPREAD_HEIGHT, PAIR = 2.6, 0.42  # inches of the spread, and of the two bars of an index


class TornadoBar(TypedDict):
    """The output with a quantity less and more by the share `swing`; `solved`: over all choices."""

    path: str
    less: float | None
    more: float | None
    swing: float
    solved: bool


def tornado(document: Mapping[str, Any], form: str) -> bytes:
    """The picture of a table of elasticities with its `bars` as `svg`, `png` or `pdf`.

    Raises MissingExtra if Matplotlib is not installed.
    """
    bars: Sequence[TornadoBar] = document["bars"]
    name, value, unit = document["of"], document["value"], document["unit"]

    def filled(canvas: Figure) -> None:
        axes = canvas.subplots()
        _bars(axes, value, bars)
        axes.set_xlabel(f"{output_words(name)} [{unit or '1'}]")
        style.axes_title(axes, f"What moves the {output_words(name)} of {quantity(value, unit)}?")

    return style.render_figure(
        (TORNADO_WIDE, FIGURE_MARGIN + TORNADO_ROW * len(bars)), filled, form
    )


def _bars(axes: Axes, middle: float, bars: Sequence[TornadoBar]) -> None:
    from matplotlib.patches import Patch

    for place, bar in enumerate(bars):
        for value, colour in ((bar["less"], style.BLUE), (bar["more"], style.ORANGE)):
            if value is not None:
                axes.barh(place, value - middle, left=middle, height=0.62, color=colour,
                          alpha=0.9 if bar["solved"] else 0.4, lw=0)  # fmt: skip
    axes.axvline(middle, color="0.25", lw=0.9)
    style.labelled_bars(axes, [path_words(bar["path"]) for bar in bars])
    axes.grid(True, axis="x", color="0.93", lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    style.large_numbers(axes.xaxis, middle)
    share = 100 * bars[0]["swing"] if bars else 0
    names = {f"{share:g}% less": style.BLUE, f"{share:g}% more": style.ORANGE}
    handles = [Patch(color=colour, label=name) for name, colour in names.items()]
    if not all(bar["solved"] for bar in bars):
        handles.append(Patch(color="0.75", label="pale: layout kept"))
    axes.legend(handles=handles, frameon=False, fontsize=8, loc="lower right")


def draw_study(document: Mapping[str, Any], form: str) -> bytes:
    """The picture of a global study as `svg`, `png` or `pdf`.

    Raises InputError for a study by Morris' steps alone, which know no spread; MissingExtra if
    Matplotlib is not installed.
    """
    spread, indices = document["distribution"], document["sobol"] or {}
    if spread is None:
        raise InputError("--plot: steps along one given know no spread; give --sobol as well")
    below = PAIR * len(indices) + 0.8
    name, unit = document["of"], document["unit"]

    def filled(canvas: Figure) -> None:
        axes, under = canvas.subplots(2, 1, height_ratios=[SPREAD_HEIGHT, below])
        histogram = spread["histogram"]
        axes.stairs(histogram["shares"], histogram["edges"], fill=True, color=style.SKY)
        low, middle, high = (spread["quantiles"][q] for q in ("0.05", "0.5", "0.95"))
        for value, dashes in ((low, ":"), (middle, "-"), (high, ":")):
            axes.axvline(value, color="0.25", lw=0.9, ls=dashes)
        axes.set_xlabel(f"{name} [{unit or '1'}]")
        axes.set_ylabel("share of the draws")
        style.large_numbers(axes.xaxis, middle)
        half = f"half of the draws below {with_unit(middle, unit)}"
        style.axes_title(axes, f"{half}; dotted: nine of ten between", size=9)
        _indices(under, indices)

    return style.render_figure((TORNADO_WIDE, SPREAD_HEIGHT + below), filled, form)


def _indices(axes: Axes, indices: Mapping[str, Mapping[str, Any]]) -> None:
    """Two bars for each given: its share alone, and with the others."""
    ranked = sorted(indices.items(), key=lambda pair: -pair[1]["total"])
    for place, (_, index) in enumerate(ranked):
        for value, ends, colour, aside, label in (
            (index["first"], index["first_interval"], style.BLUE, -0.18, "alone"),
            (index["total"], index["total_interval"], style.ORANGE, 0.18, "with the others"),
        ):
            axes.barh(place + aside, max(value, 0.0), height=0.32, color=colour,
                      label=None if place else label)  # fmt: skip
            axes.plot([max(end, 0.0) for end in ends], [place + aside] * 2, color="0.2", lw=1)
    style.labelled_bars(axes, [path for path, _ in ranked])
    axes.set_xlabel("share of the variance, with the interval of nine of ten resamples")
    if ranked:
        axes.legend(frameon=False, fontsize=8, loc="lower right")
