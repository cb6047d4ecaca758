"""Values and ranges in rows, a panel for each quantity: what is chosen beside what else is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.report.pictures import style
from planner.text.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, HEAD, PANEL, ROW = 8.5, 0.5, 0.75, 0.27  # inches
WIDER = 8.0  # most over least from which on an axis is logarithmic
FAR = 100.0  # from which on only whole decades have a number
BESIDE = 1.18  # of an axis beyond the most, as a factor or a share


@dataclass(frozen=True)
class ValueRow:
    """One value, or a range with both ends; `words` stand beside it. A `chosen` one is filled.

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
            raise InputError("nothing of this plan stands beside another, so nothing is drawn")
        heights = [PANEL + ROW * len(panel.rows) for panel in self.panels]

        def filled(canvas: Figure) -> None:
            several = canvas.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
            style.headed(canvas, self.title)
            for axes, panel in zip(several, self.panels, strict=True):
                _panel(axes, panel)

        return style.pictured((WIDE, HEAD + sum(heights)), filled, form)


def _panel(axes: Axes, panel: ValuePanel) -> None:
    """One quantity: a dot for a value, a bar for a range, its words at the right end."""
    ends = [x for row in panel.rows for x in (row.low, row.high) if x > 0 and math.isfinite(x)]
    least, most = min(ends), max(ends)
    wide = most > WIDER * least and not panel.linear
    left, right = (least / 2, most * 2) if wide else (0.0, most * BESIDE)
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
    style.ruled(axes)
    decade = () if not wide else style.STEPS if most < FAR * least else (1.0,)
    style.ticked(axes.xaxis, panel.form, decade)
    axes.set_xlabel(panel.unit)
    style.titled(axes, panel.title, size=9)
