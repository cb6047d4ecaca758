"""What is rented over the hours, stacked by contract, with demand above on the same hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from planner.report.pictures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (8.5, 6.0)
HEIGHTS = (1.0, 1.6)  # of demand, of what is stacked
MOST_LINES = 7  # the next line is the sum of all smaller ones
WIDE = 30.0  # most over least of the demand drawn, from which on the axis is logarithmic
SHADES = (1.0, 0.75, 0.45, 0.22)  # of the parts of a kind, the firmest first
DAY = 24


@dataclass(frozen=True)
class StackedHours:
    """Rows by hour, all (T,).

    Attributes
    ----------
    demand : Demand by name, in the unit of `demand_label`.
    layers : {kind: {contract: count by hour}}; a kind has one colour, its contracts are its shades.
    """

    title: str
    demand_label: str
    demand: Mapping[str, Sequence[float]]
    layers_label: str
    layers: Mapping[str, Mapping[str, Sequence[int]]]

    def draw(self, form: str) -> bytes:
        """The picture as `svg`, `png` or `pdf`; raises MissingExtra without Matplotlib."""
        return style.pictured(INCHES, self._filled, form)

    def lines(self) -> dict[str, Sequence[float]]:
        """The demand that is drawn: the largest by name, the others as their sum."""
        ranked = sorted(self.demand.items(), key=lambda row: -max(row[1]))
        shown, rest = dict(ranked[:MOST_LINES]), ranked[MOST_LINES:]
        if rest:
            shown[f"{len(rest)} others together"] = [
                sum(hour) for hour in zip(*(row for _, row in rest), strict=True)
            ]
        return shown

    def _filled(self, canvas: Figure) -> None:
        upper, lower = canvas.subplots(2, 1, height_ratios=HEIGHTS, sharex=True)
        self._demand(upper)
        self._layers(lower)
        hours = len(next(iter(self.demand.values())))
        step = DAY if hours > 3 * DAY else max(1, hours // 8)
        lower.set_xticks(range(0, hours + 1, step))
        lower.set_xlim(0, hours)
        lower.set_xlabel("hour, UTC")
        style.titled(upper, self.title)
        for axes in (upper, lower):
            style.ruled(axes)
            axes.set_axisbelow(True)
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)

    def _demand(self, axes: Axes) -> None:
        rows = self.lines()
        for colour, (name, row) in zip(style.PALETTE, rows.items(), strict=False):
            axes.stairs(row, range(len(row) + 1), baseline=None, color=colour, lw=1.4, label=name)
        least, most = min(map(min, rows.values())), max(map(max, rows.values()))
        if least > 0 and most > WIDE * least:
            axes.set_yscale("log")
            style.ticked(axes.yaxis, decade=style.STEPS)
        else:
            axes.set_ylim(bottom=0)
        axes.set_ylabel(self.demand_label)

    def _layers(self, axes: Axes) -> None:
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
            axes.stairs(top, range(len(row) + 1), baseline=below, fill=True, lw=0, color=colour,
                        alpha=shade, label=label)  # fmt: skip
            below = top
        axes.set_ylim(bottom=0)
        axes.set_ylabel(self.layers_label)
