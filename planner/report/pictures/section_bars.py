"""Chart of a plan of any kind: stacked bars of additive parts, and elasticities per percent.

It draws the sections that a notebook shows, so a kind has it without a line of its own. Bars of
hours: what is rented, stacked by contract, with demand above on the same hours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from planner.protocol.page import COLOURS, DARK, PALETTE, SHARE
from planner.protocol.problem import get_problem
from planner.protocol.section import Line, Section, top_elasticities
from planner.report.pictures import style
from planner.text.errors import InputError
from planner.text.wording import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planner.protocol.plan import Plan

FIGURE_WIDTH, HEAD, BAR = 8.5, 0.5, 0.45  # inches
ROW_HEIGHT, NAME_ROW_HEIGHT = 0.26, 0.17  # inches of an elasticity, and of a row of names
TITLE = 0.35  # inches of a title and the space above it
BAR_WIDTH_SHARE = 0.75  # bar width over figure width; names of quantities take the remainder
LETTER, SWATCH = 0.062, 0.3  # inches of a name below a bar
MIN_NAMED_SHARE = 0.06  # minimum share of a bar with room for its percentage
FREE_COLOUR = "0.88"  # grey of what is free


@dataclass(frozen=True)
class SectionBars:
    """The bars of a plan, for a kind that has a picture of its own for others of its plans."""

    plan: Plan

    def draw(self, form: str) -> bytes:
        """The picture as `svg`, `png` or `pdf`; raises as `draw_plan_bars`."""
        return draw_plan_bars(self.plan, form)


def draw_plan_bars(plan: Plan, form: str) -> bytes:
    """The picture of a plan as `svg`, `png` or `pdf`.

    Raises InputError where nothing of the plan adds up or is worth anything; MissingExtra if
    Matplotlib is not installed.
    """
    head, *others = get_problem(plan.kind).sections(plan)
    sections = [section for section in others if section.adds_up]
    worth = top_elasticities(plan.elasticities)
    heights = [TITLE + BAR + NAME_ROW_HEIGHT * _rows(each.parts) for each in sections]
    heights += [ROW_HEIGHT * len(worth) + 0.6] if worth else []
    if not heights:
        raise InputError("this plan has no parts that add up, so no bars can be drawn")

    def filled(canvas: Figure) -> None:
        panels = canvas.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        style.figure_title(canvas, head.title)
        for axes, section in zip(panels, sections, strict=False):
            _stacked(axes, section)
        if worth:
            last = panels[-1]
            slopes: Sequence[float] = list(worth.values())
            colours = [style.BLUE if slope < 0 else style.ORANGE for slope in slopes]
            last.barh(range(len(slopes)), slopes, height=0.62, color=colours, lw=0)
            last.axvline(0, color="0.25", lw=0.9)
            style.labelled_bars(last, list(worth))
            last.set_xlabel("one percent more of it changes the objective by [%]")

    return style.render_figure((FIGURE_WIDTH, HEAD + sum(heights)), filled, form)


def _stacked(axes: Axes, section: Section) -> None:
    """Lines that add up, as one bar with its parts named below it."""
    parts = section.parts
    whole, left = sum(value for _, value in parts), 0.0
    for place, (line, value) in enumerate(parts):
        label = line.label
        colour = (
            COLOURS.get(label, PALETTE[place % len(PALETTE)]) if label != "free" else FREE_COLOUR
        )
        axes.barh(0, value, left=left, height=0.8, lw=0, color=colour,
                  label=f"{label} {line.words}")  # fmt: skip
        if value >= max(SHARE, MIN_NAMED_SHARE) * whole:
            axes.text(left + value / 2, 0, f"{value / whole:.0%}", ha="center", va="center",
                      fontsize=8, color="white" if colour in DARK else "0.1")  # fmt: skip
        left += value
    axes.set_xlim(0, whole or 1)
    axes.set_ylim(-0.5 - NAME_ROW_HEIGHT * _rows(parts) / BAR, 0.5)  # room for names below the bar
    axes.set_axis_off()
    unit = parts[0][0].unit if parts else ""
    words = quantity(whole, unit)
    title = section.title if words in section.title else f"{section.title}, {words}"
    style.axes_title(axes, title, size=9)
    names = axes.legend(loc="upper left", bbox_to_anchor=(-0.01, -0.42), ncols=_columns(parts),
                        bbox_transform=axes.get_yaxis_transform(), borderaxespad=0, frameon=False,
                        fontsize=7.5, handlelength=0.8, columnspacing=1.2)  # fmt: skip
    names.set_in_layout(False)  # else a row of names wider than the bar makes the bar narrower


def _columns(parts: Sequence[tuple[Line, float]]) -> int:
    longest = max((len(f"{x.label} {x.words}") for x, _ in parts), default=1)
    return max(1, int(BAR_WIDTH_SHARE * FIGURE_WIDTH / (LETTER * longest + SWATCH)))


def _rows(parts: Sequence[tuple[Line, float]]) -> int:
    return -(-len(parts) // _columns(parts))


INCHES = (8.5, 6.0)
HEIGHTS = (1.0, 1.6)  # relative heights of the demand panel and the stacked panel
MAX_LINES = 7  # the next line is the sum of all smaller ones
SPREAD = 30.0  # maximum/minimum demand above which the axis is logarithmic
SHADES = (1.0, 0.75, 0.45, 0.22)  # of the parts of a kind, the firmest first
DAY = 24


@dataclass(frozen=True)
class StackedHours:
    """Rows by hour, all (T,).

    Attributes:
        demand: Demand by name, in the unit of `demand_label`.
        layers: {kind: {contract: count by hour}}; a kind has one colour, its contracts are its
            shades.
    """

    title: str
    demand_label: str
    demand: Mapping[str, Sequence[float]]
    layers_label: str
    layers: Mapping[str, Mapping[str, Sequence[int]]]

    def draw(self, form: str) -> bytes:
        """The picture as `svg`, `png` or `pdf`; raises MissingExtra without Matplotlib."""
        return style.render_figure(INCHES, self._filled, form)

    def lines(self) -> dict[str, Sequence[float]]:
        """The demand that is drawn: the largest by name, the others as their sum."""
        ranked = sorted(self.demand.items(), key=lambda row: -max(row[1]))
        shown, rest = dict(ranked[:MAX_LINES]), ranked[MAX_LINES:]
        if rest:
            shown[f"{len(rest)} others together"] = [
                sum(hour) for hour in zip(*(row for _, row in rest), strict=True)
            ]
        return shown

    def _filled(self, canvas: Figure) -> None:
        upper, lower = canvas.subplots(2, 1, height_ratios=HEIGHTS, sharex=True)
        self._demand(upper)
        below = [0] * len(next(iter(self.demand.values())))
        colours = style.PALETTE * -(-len(self.layers) // len(style.PALETTE))
        rows = [  # the firmest contract of every kind first, so that what stays is below
            (place, f"{kind} {contract}", row, shade, colour)
            for (kind, contracts), colour in zip(self.layers.items(), colours, strict=False)
            for place, ((contract, row), shade) in enumerate(
                zip(contracts.items(), SHADES, strict=False)
            )
            if any(row)
        ]
        for _, label, row, shade, colour in sorted(rows, key=itemgetter(0)):
            top = [x + y for x, y in zip(below, row, strict=True)]
            lower.stairs(top, range(len(row) + 1), baseline=below, fill=True, lw=0, color=colour,
                        alpha=shade, label=label)  # fmt: skip
            below = top
        lower.set_ylim(bottom=0)
        lower.set_ylabel(self.layers_label)
        hours = len(next(iter(self.demand.values())))
        step = DAY if hours > 3 * DAY else max(1, hours // 8)
        lower.set_xticks(range(0, hours + 1, step))
        lower.set_xlim(0, hours)
        lower.set_xlabel("hour, UTC")
        style.axes_title(upper, self.title)
        for axes in (upper, lower):
            style.grid_lines(axes)
            axes.set_axisbelow(True)
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)

    def _demand(self, axes: Axes) -> None:
        rows = self.lines()
        for colour, (name, row) in zip(style.PALETTE, rows.items(), strict=False):
            axes.stairs(row, range(len(row) + 1), baseline=None, color=colour, lw=1.4, label=name)
        least, most = min(map(min, rows.values())), max(map(max, rows.values()))
        if least > 0 and most > SPREAD * least:
            axes.set_yscale("log")
            style.set_ticks(axes.yaxis, decade=style.STEPS)
        else:
            axes.set_ylim(bottom=0)
        axes.set_ylabel(self.demand_label)
