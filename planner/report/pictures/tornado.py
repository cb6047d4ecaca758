"""The tornado: what each quantity does to the answer when it is a little less or more.

Bars of what a scenario can say are the problem solved again, over all choices; those of a model's
or an engine's figures, paler, go along the equations with the choice held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.report.pictures.canvas import pictured
from planner.report.text.sensitivity import valued

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LARGE", "tornado"]

LESS, MORE = "#0072B2", "#D55E00"  # safe for readers who see red and green alike
LARGE = 1e4  # from which on an axis is in thousands, millions, ...
ROW, WIDE, AROUND = 0.3, 8.5, 1.3  # inches


def tornado(document: Mapping[str, Any], bars: Sequence[Mapping[str, Any]], form: str) -> bytes:
    """The picture as `svg`, `png` or `pdf`; `bars` largest first.

    Raises
    ------
    MissingExtra
        If Matplotlib is not installed.
    """
    inches = (WIDE, AROUND + ROW * len(bars))
    return pictured(inches, lambda canvas: _filled(canvas.subplots(), document, bars), form)


def _filled(axes: Axes, document: Mapping[str, Any], bars: Sequence[Mapping[str, Any]]) -> None:
    from matplotlib.patches import Patch
    from matplotlib.ticker import EngFormatter

    middle, unit = document["value"], document["unit"]
    for place, bar in enumerate(bars):
        for value, colour in ((bar["less"], LESS), (bar["more"], MORE)):
            if value is not None:
                axes.barh(place, value - middle, left=middle, height=0.62, color=colour,
                          alpha=0.9 if bar["solved"] else 0.4, lw=0)  # fmt: skip
    axes.axvline(middle, color="0.25", lw=0.9)
    axes.set_yticks(range(len(bars)), [bar["path"] for bar in bars])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x", color="0.93", lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"{document['of']} [{unit or '1'}]")
    if middle >= LARGE:
        axes.xaxis.set_major_formatter(EngFormatter())
    share = 100 * bars[0]["swing"] if bars else 0
    axes.set_title(f"{document['of']} = {valued(middle, unit)}", loc="left", fontsize=10.5,
                   fontweight="bold")  # fmt: skip
    names = {f"{share:g} % less": LESS, f"{share:g} % more": MORE}
    handles = [Patch(color=colour, label=name) for name, colour in names.items()]
    if not all(bar["solved"] for bar in bars):
        handles.append(Patch(color="0.75", label="paler: with the choice held"))
    axes.legend(handles=handles, frameon=False, fontsize=8, loc="lower right")
