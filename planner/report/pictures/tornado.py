"""The tornado: what each quantity does to the answer when it is a little less or more.

Bars of what a scenario can say are the problem solved again, over all choices; those of a model's
or an engine's figures, paler, go along the equations with the choice held.

The picture of a global study: how an output spreads, and which given it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.report.pictures.canvas import pictured
from planner.report.text.sensitivity import valued
from planner.text.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


ALONE, WITH, SPREAD = "#0072B2", "#D55E00", "#56B4E9"  # told apart by all readers
SENSITIVITY_STUDY_PLOTS_WIDE, HIGH, SENSITIVITY_STUDY_PLOTS_ROW = 8.5, 2.6, 0.42  # inches


def study_drawn(document: Mapping[str, Any], form: str) -> bytes:
    """The picture as `svg`, `png` or `pdf`.

    Raises
    ------
    InputError
        For a study by Morris' steps alone, which know no spread.
    MissingExtra
        If Matplotlib is not installed.
    """
    if document["distribution"] is None:
        raise InputError("--plot: steps along one given know no spread; give --sobol as well")
    indices = document["sobol"] or {}
    below = SENSITIVITY_STUDY_PLOTS_ROW * len(indices) + 0.8

    def filled(canvas: Figure) -> None:
        above, under = canvas.subplots(2, 1, height_ratios=[HIGH, below])
        _spread(above, document)
        _indices(under, indices)

    return pictured((SENSITIVITY_STUDY_PLOTS_WIDE, HIGH + below), filled, form)


def _spread(axes: Axes, document: Mapping[str, Any]) -> None:
    from matplotlib.ticker import EngFormatter

    drawn, unit = document["distribution"], document["unit"]
    axes.stairs(drawn["histogram"]["shares"], drawn["histogram"]["edges"], fill=True, color=SPREAD)
    low, middle, high = (drawn["quantiles"][q] for q in ("0.05", "0.5", "0.95"))
    for value, style in ((low, ":"), (middle, "-"), (high, ":")):
        axes.axvline(value, color="0.25", lw=0.9, ls=style)
    axes.set_xlabel(f"{document['of']} [{unit or '1'}]")
    axes.set_ylabel("share of the draws")
    if middle >= LARGE:
        axes.xaxis.set_major_formatter(EngFormatter())
    title = f"half of the draws below {valued(middle, unit)}; dotted: nine of ten between"
    axes.set_title(title, loc="left", fontsize=9, fontweight="bold")


def _indices(axes: Axes, indices: Mapping[str, Any]) -> None:
    ranked = sorted(indices.items(), key=lambda pair: -pair[1]["total"])
    for place, (_, index) in enumerate(ranked):
        for key, colour, aside in (("first", ALONE, -0.18), ("total", WITH, 0.18)):
            label = ("alone" if key == "first" else "with the others") if not place else None
            low, high = (max(end, 0.0) for end in index[f"{key}_interval"])
            axes.barh(place + aside, max(index[key], 0.0), height=0.32, color=colour, label=label)
            axes.plot([low, high], [place + aside] * 2, color="0.2", lw=1)
    axes.set_yticks(range(len(ranked)), [path for path, _ in ranked])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("share of the variance, with the interval of nine of ten resamples")
    if ranked:
        axes.legend(frameon=False, fontsize=8, loc="lower right")
