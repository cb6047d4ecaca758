"""Pictures of a validation as SVG: predicted against measured, errors, and what bands hold.

Points are set on a grid: a picture shows how predictions scatter, not the values of single rows.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from planner.protocol.results.validation_result import GroupScore, PlotPoint
from planner.text.wording import duration

PLOT_SIZE = 1000  # units of a scatter plot, inside its frame
GRID = 5  # units of the grid that points are set on
MARGIN, BOTTOM_MARGIN, TOP_MARGIN = 170, 110, 96
NEAR_DIAGONAL_RATIO = 1.2  # lines on both sides of the diagonal: 20 % more and less
EDGES = tuple(round(0.1 * i, 1) for i in range(-10, 16))  # of the histogram: predicted/measured - 1
MAX_TICKS, MIN_DECADES = 5, 2.2
TICK_SPACING = 170  # units from one time below the frame to the next
THOUSAND = 1000.0
BAR, BAR_ROOM = 46, 380


@dataclass(frozen=True)
class Scale:
    """Logarithms of the shortest and the longest time of a plot, [log10 s]."""

    least: float
    most: float

    def at(self, seconds: float) -> int:
        """Position of a time [s] on the axis, 0 to PLOT_SIZE, rounded to the grid."""
        share = (math.log10(seconds) - self.least) / (self.most - self.least)
        return GRID * round(PLOT_SIZE * min(max(share, 0.0), 1.0) / GRID)


def log_scale(points: Sequence[PlotPoint]) -> Scale:
    """A scale that holds both times of every point, with a margin."""
    times = [time for point in points for time in (point.measured, point.estimate)]
    return Scale(math.log10(min(times)) - 0.05, math.log10(max(times)) + 0.05)


def background_points(points: Iterable[PlotPoint], scale: Scale, name: str) -> str:
    """All points as a symbol that the panels of a section show behind their own."""
    return (
        '<svg class="hidden" aria-hidden="true"><defs>'
        f'<path id="{name}" class="others" d="{_dots(points, scale)}"/></defs></svg>'
    )


def scatter(points: Sequence[PlotPoint], scale: Scale, title: str) -> str:
    """Predicted over measured on logarithmic axes; on the diagonal they are the same."""
    box = (
        f"{-MARGIN} {-TOP_MARGIN} {PLOT_SIZE + MARGIN + 70} "
        f"{PLOT_SIZE + BOTTOM_MARGIN + TOP_MARGIN}"
    )
    names = (
        f'<text class="axis" x="{PLOT_SIZE}" y="{PLOT_SIZE + 96}" text-anchor="end">measured</text>'
        '<text class="axis" x="24" y="54">predicted</text>'
    )
    frame = _frame(scale, labelled=True)
    return _plot("scatter", box, title, frame, _dots(points, scale), names)


def panel(points: Sequence[PlotPoint], scale: Scale, title: str, behind: str) -> str:
    """The points of one engine, chip or model before all others, on the axes of the whole."""
    box = f"-4 {-TOP_MARGIN} {PLOT_SIZE + 8} {PLOT_SIZE + TOP_MARGIN + 4}"
    frame = [*_frame(scale, labelled=False), f'<use href="#{behind}"/>']
    return _plot("panel", box, title, frame, _dots(points, scale))


def _plot(kind: str, box: str, title: str, frame: Sequence[str], dots: str, names: str = "") -> str:
    return (
        f'<svg class="{kind}" viewBox="{box}" role="img">'
        f"<title>{escape(title)}: predicted against measured</title>"
        f'{"".join(frame)}<path class="points" d="{dots}"/>'
        f'<text class="name" x="0" y="-24">{escape(title)}</text>{names}</svg>'
    )


def histogram(points: Sequence[PlotPoint]) -> str:
    """Histogram of the relative prediction errors of times, in rows per bin [SVG]."""
    errors = (point.estimate / point.measured - 1 for point in points)
    counts = Counter(sum(error >= edge for edge in EDGES) for error in errors)
    wide, tall = 1000 / (len(EDGES) + 1), 300
    most = max(counts.values(), default=1)
    # Label of each bin, and True if within ±20 % (class `near`).
    bins = [
        (f"below {EDGES[0]:+.0%}", False),
        *((f"{a:+.0%} to {b:+.0%}", a >= -0.2 and b <= 0.2) for a, b in pairwise(EDGES)),
        (f"above {EDGES[-1]:+.0%}", False),
    ]
    bars = [
        f'<rect class="{"bar near" if bins[i][1] else "bar"}" x="{i * wide + 1:.1f}" '
        f'y="{tall - tall * n / most:.1f}" width="{wide - 2:.1f}" height="{tall * n / most:.1f}">'
        f"<title>{bins[i][0]}: {n} rows</title></rect>"
        for i, n in sorted(counts.items())
    ]
    labels = [
        f'<text x="{(EDGES.index(edge) + 1) * wide:.1f}" y="{tall + 40}" text-anchor="middle">'
        f"{edge:+.0%}</text>"
        for edge in (-0.8, -0.5, -0.2, 0.2, 0.5, 1.0, 1.4)
    ]
    zero = (EDGES.index(0.0) + 1) * wide
    return (
        f'<svg class="histogram" viewBox="0 -10 1000 {tall + 60}" role="img">'
        "<title>Predicted over measured time, less one</title>"
        + "".join(bars)
        + f'<line class="diagonal" x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{tall}"/>'
        + f'<line class="frame" x1="0" x2="1000" y1="{tall}" y2="{tall}"/>'
        + "".join(labels)
        + "</svg>"
    )


def band_bars(groups: Sequence[GroupScore], coverage: float) -> str:
    """Bars of band coverage by engine, chip or model, with the promised coverage marked."""
    height = BAR * len(groups) + 40
    x = BAR_ROOM * (1 + coverage)
    marks = []
    for i, group in enumerate(groups):
        y = BAR * i
        share = group.band_holds
        marks.append(
            f'<text x="{BAR_ROOM - 12}" y="{y + 32}" '
            f'text-anchor="end">{escape(group.name[:24])}</text>'
            f'<rect class="track" x="{BAR_ROOM}" y="{y + 7}" width="{BAR_ROOM}" '
            f'height="{BAR - 14}"/>'
            f'<rect class="held" x="{BAR_ROOM}" y="{y + 7}" width="{BAR_ROOM * share:.1f}" '
            f'height="{BAR - 14}"/>'
            f'<text x="{2 * BAR_ROOM + 12}" y="{y + 32}">{share:.0%} of {group.score.n:,}</text>'
        )
    return (
        f'<svg class="bands" viewBox="0 0 {2 * BAR_ROOM + 240} {height}" role="img">'
        "<title>Share of rows inside their band</title>"
        + "".join(marks)
        + f'<line class="promise" x1="{x}" x2="{x}" y1="0" y2="{height - 36}"/>'
        + f'<text x="{x}" y="{height - 6}" text-anchor="middle">{coverage:.0%}</text></svg>'
    )


def _dots(points: Iterable[PlotPoint], scale: Scale) -> str:
    places = {(scale.at(p.measured), PLOT_SIZE - scale.at(p.estimate)) for p in points}
    return "".join(f"M{x} {y}h0" for x, y in sorted(places))


def _frame(scale: Scale, *, labelled: bool) -> list[str]:
    """Ticks, the diagonal with a line on either side of it, and the edge."""
    off = PLOT_SIZE * math.log10(NEAR_DIAGONAL_RATIO) / (scale.most - scale.least)
    powers = range(math.floor(scale.least), math.ceil(scale.most) + 1)
    step = max(1, math.ceil((scale.most - scale.least) / MAX_TICKS))
    factors = (1, 2, 5) if scale.most - scale.least < MIN_DECADES else (1,)
    parts, label_at = [], -PLOT_SIZE
    for time in [factor * 10.0**power for power in powers[::step] for factor in factors]:
        if not scale.least <= math.log10(time) <= scale.most:
            continue
        at = scale.at(time)
        label = escape(f"{time:,.0f} s" if time >= THOUSAND else duration(time))
        parts.append(f'<path class="grid" d="M{at} 0V{PLOT_SIZE}M0 {PLOT_SIZE - at}H{PLOT_SIZE}"/>')
        if labelled:
            parts.append(
                f'<text x="-14" y="{PLOT_SIZE - at + 14}" text-anchor="end">{label}</text>'
            )
        if labelled and at - label_at >= TICK_SPACING:
            parts.append(f'<text x="{at}" y="{PLOT_SIZE + 48}" text-anchor="middle">{label}</text>')
            label_at = at
    return [
        *parts,
        f'<path class="near-line" d="M{off:.0f} {PLOT_SIZE}L{PLOT_SIZE} {off:.0f}'
        f'M0 {PLOT_SIZE - off:.0f}L{PLOT_SIZE - off:.0f} 0"/>',
        f'<path class="diagonal" d="M0 {PLOT_SIZE}L{PLOT_SIZE} 0"/>',
        f'<rect class="frame" width="{PLOT_SIZE}" height="{PLOT_SIZE}"/>',
    ]
