"""Shared parts of the lines and maps of a sweep: axes in suitable units, regions, legend.

The map of a sweep over two numbers: a quantity by colour, regions outlined and named.

Where the exact line between two bottlenecks is known it is drawn in place of the edges of cells,
with its closed form below the map.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from planner.protocol.output import Cell
from planner.report.pictures.style import STEPS, set_ticks
from planner.text.errors import InputError, did_you_mean
from planner.text.wording import three_figures

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


MAX_LINES = 8
INCHES = (8.5, 5.0)
LOG_SCALE_RATIO = 15.0  # a range with this ratio of its ends is drawn on a logarithmic axis
MAX_LEGEND = 12  # of the list below a picture
TICK_GAP_DIVISOR = 12  # axis length over the minimum gap of adjacent ticks
LEGEND_LINE_HEIGHT = 0.17  # inches of one of them
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SUPERLATIVE = {"layout": "best", "bottleneck": "the largest part of a step"}
# Display units that are easier to read: base unit to (factor, unit).
LARGER: Mapping[str, tuple[tuple[float, str], ...]] = {
    "s": ((1e-6, "us"), (1e-3, "ms"), (1.0, "s"), (3600.0, "hours")),
    "byte": ((1.0, "byte"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")),
    "byte/s": ((1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s")),
    "flop/s": ((1e9, "GFLOP/s"), (1e12, "TFLOP/s"), (1e15, "PFLOP/s")),
    "USD/(chip*s)": ((1 / 3600, "USD/(chip*hour)"),),
    "USD/J": ((1 / 3.6e6, "USD/kWh"),),
    "g/J": ((1 / 3.6e6, "g/kWh"),),
    "J/s": ((1.0, "W"), (1e3, "kW")),
    "chip": ((1.0, "chips"),),
    "token": ((1.0, "token"), (1e9, "billion tokens"), (1e12, "trillion tokens")),
    "param": ((1.0, "param"), (1e9, "billion parameters")),
    "USD": ((1.0, "USD"), (1e6, "million USD"), (1e9, "billion USD")),
}


class SweptTable(Protocol):
    """Table of a sweep: columns by name, the varied columns `over`, units by column."""

    @property
    def over(self) -> Sequence[str]:
        """Names of the columns that were varied."""

    @property
    def units(self) -> Mapping[str, str]:
        """Unit of each column that has one."""

    @property
    def meta(self) -> Mapping[str, object]:
        """Metadata of the sweep: its scenario, versions and warnings."""

    @property
    def columns(self) -> Mapping[str, object]:
        """Columns by name."""

    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> Sequence[Cell]: ...


@dataclass(frozen=True)
class ScaledColumn:
    """A numeric column in a suitable unit; NaN for a missing value."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def label(self) -> str:
        """Name and unit, as an axis says it."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def logarithmic(self) -> bool:
        """True if the values are positive and span more than LOG_SCALE_RATIO, for a log axis."""
        finite = [value for value in self.values if math.isfinite(value)]
        return bool(finite) and min(finite) > 0 and max(finite) > LOG_SCALE_RATIO * min(finite)


def scale_column(table: SweptTable, name: str) -> ScaledColumn:
    """A numeric column in a unit that suits its values; InputError if it is not one of numbers."""
    columns = table.columns
    if name not in columns:
        raise InputError(f"the sweep has no column {name!r}{did_you_mean(name, columns)}")
    numbers: list[float] = []
    for value in table[name]:
        if isinstance(value, str):
            raise InputError(f"the column {name!r} holds words; a picture shows numbers")
        numbers.append(math.nan if value is None else float(value))
    unit = table.units.get(name, "")
    sizes = sorted(abs(number) for number in numbers if math.isfinite(number) and number)
    middle = sizes[len(sizes) // 2] if sizes else 1.0
    factor, larger_unit = 1.0, unit
    for size, larger in LARGER.get(unit, ()):
        if middle >= size * 0.999 or len(LARGER[unit]) == 1:
            factor, larger_unit = size, larger
    return ScaledColumn(name, larger_unit, tuple(number / factor for number in numbers))


def unit_factor(table: SweptTable, quantity: ScaledColumn) -> float:
    """Units of the picture per base unit."""
    rows = zip(table[quantity.name], quantity.values, strict=True)
    return next((shown / float(value) for value, shown in rows if value), 1.0)


def set_axis(axis: Axis, column: ScaledColumn) -> None:
    """Label an axis, and give it a scale and ticks that suit the column."""
    if column.logarithmic:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})  # type: ignore[attr-defined]
    set_ticks(axis, decade=STEPS if column.logarithmic else ())
    axis.set_label_text(column.label)


def tick_points(axes: Axes, column: ScaledColumn) -> None:
    """Put the ticks of the lower axis at the values that were swept, where they have room."""
    points = sorted(dict.fromkeys(column.values))
    places = [math.log(point) for point in points] if column.logarithmic else points
    gaps = [high - low for low, high in pairwise(places)]
    if gaps and min(gaps) * TICK_GAP_DIVISOR >= places[-1] - places[0]:
        axes.set_xticks(points, [three_figures(point) for point in points])
        axes.minorticks_off()


def regions(table: SweptTable, *kinds: str) -> tuple[str, list[str | None]]:
    """Name of the column that defines regions, and each row's region; None without an answer.

    It is the first of some `kinds` of words: layouts where they differ, else bottlenecks.
    """
    for name in kinds or ("layout", "bottleneck"):
        if name in table.columns:
            words = [None if word is None else str(word) for word in table[name]]
            if name == "bottleneck" or len({word for word in words if word}) > 1:
                return name, words
    return "", [None] * len(table)


def varied_axes(table: SweptTable) -> list[str]:
    """Axes with several values."""
    return [name for name in table.over if len(dict.fromkeys(table[name])) > 1]


def arrange_axes(table: SweptTable, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Axes drawn as numbers, and axes drawn as a line or bar per value."""
    numeric = [name for name in names if all(isinstance(v, int | float) for v in table[name])]
    others = [name for name in names if name not in numeric]
    if len(numeric) == 2:
        shortest = min(numeric, key=lambda name: len(dict.fromkeys(table[name])))
        if len(dict.fromkeys(table[shortest])) <= MAX_LINES // 2:
            numeric.remove(shortest)
            others = [shortest]
    return numeric, others


def line_axes(table: SweptTable) -> tuple[str | None, list[str]]:
    """Axis along the lines, and the axis that distinguishes lines; None if lines do not suit."""
    names = varied_axes(table)
    numeric, others = arrange_axes(table, names) if 1 <= len(names) <= 2 else ([], [])
    return (numeric[0], others) if len(numeric) == 1 and len(others) <= 1 else (None, [])


def draw_legend(axes: Axes, title: str, entries: Sequence[str]) -> None:
    """Draw the legend of a chart's letters below it; the chart grows by its height."""
    shown = [*entries[:MAX_LEGEND]]
    shown += [f"and {len(entries) - MAX_LEGEND} more"] if len(entries) > MAX_LEGEND else []
    width, height = INCHES
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    canvas.set_size_inches(width, height + LEGEND_LINE_HEIGHT * (len(shown) + 1))
    text = "\n".join([title, *shown])
    canvas.supxlabel(text, fontsize=8, x=0.02, ha="left", linespacing=1.4)


WIDTH = 120  # letters of a line below a picture
MIN_AREA = 0.01  # share of the map that a letter needs

Grid = tuple[Sequence[float], Sequence[float]]  # places along and up


@dataclass(frozen=True)
class Boundary:
    """Curve of equal duration of the parts `before` and `after`.

    `lines` are points (along, up) in base units, each line unbroken; `forms` are the equations that
    hold on it, or `why` says why there is none.
    """

    before: str
    after: str
    forms: tuple[str, ...]
    why: str | None
    lines: tuple[tuple[tuple[float, float], ...], ...]

    def __str__(self) -> str:
        form = f"at {', or at '.join(self.forms)}" if self.forms else f"no closed form ({self.why})"
        return f"{self.before} = {self.after}{' ' if self.forms else ', '}{form}"


def draw_heat_map(
    canvas: Figure,
    axes: Axes,
    table: SweptTable,
    names: Sequence[str],
    quantity: ScaledColumn,
    boundaries: Sequence[Boundary] = (),
) -> None:
    """A cell for each point; the second name goes along, the first one up."""
    import numpy as np
    from matplotlib.colors import LogNorm, Normalize

    up, along = (scale_column(table, name) for name in names)
    x, y = sorted(set(along.values)), sorted(set(up.values))
    kind, words = regions(table)
    values = np.full((len(y), len(x)), np.nan)
    word = np.full((len(y), len(x)), "", dtype=object)
    column, row = ({value: i for i, value in enumerate(each)} for each in (x, y))
    for i, value in enumerate(quantity.values):
        at = row[up.values[i]], column[along.values[i]]
        values[at] = value
        word[at] = words[i] or _missed(table, i)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    scale: Any = LogNorm(low, high) if quantity.logarithmic else Normalize(low, high)
    edges = _edges(x, along.logarithmic), _edges(y, up.logarithmic)
    axes.set_facecolor("0.88")
    fine = values.size > 2500
    mesh = axes.pcolormesh(*edges, values, cmap="viridis", norm=scale, rasterized=fine)
    set_axis(axes.xaxis, along)
    set_axis(axes.yaxis, up)
    bar = canvas.colorbar(mesh, ax=axes, pad=0.02, format=lambda value, _: f"{value:,g}")
    bar.set_label(quantity.label)
    if quantity.logarithmic:
        set_ticks(bar.ax.yaxis, decade=STEPS)
    bar.outline.set_visible(False)
    if kind or len(set(word.ravel())) > 1:
        exact = {frozenset((each.before, each.after)) for each in boundaries}
        _outlined(axes, edges, word, exact)
        box = axes.get_xlim(), axes.get_ylim()
        entries = _notes(axes, boundaries, (unit_factor(table, along), unit_factor(table, up)))
        axes.set(xlim=box[0], ylim=box[1])
        _lettered(axes, (x, y), word, kind, entries)


def _edges(values: Sequence[float], logarithmic: bool) -> list[float]:
    at = [math.log(value) for value in values] if logarithmic else list(values)
    middle = [(a + b) / 2 for a, b in pairwise(at)]
    edges = [2 * at[0] - middle[0], *middle, 2 * at[-1] - middle[-1]]
    return [math.exp(edge) for edge in edges] if logarithmic else edges


def _outlined(axes: Axes, edges: Grid, word: np.ndarray, exact: Collection[frozenset[str]]) -> None:
    """A line between neighbours of different regions, but for those whose line is known."""
    import numpy as np
    from matplotlib.collections import LineCollection

    def apart(here: str, there: str) -> bool:
        return here != there and frozenset((here, there)) not in exact

    x, y = edges
    lines = []
    for (j, i), here in np.ndenumerate(word):
        if i and apart(here, word[j, i - 1]):
            lines.append([(x[i], y[j]), (x[i], y[j + 1])])
        if j and apart(here, word[j - 1, i]):
            lines.append([(x[i], y[j]), (x[i + 1], y[j])])
    for width, colour, order in ((1.4, "white", 3), (0.6, "black", 4)):
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, zorder=order))


def _notes(axes: Axes, boundaries: Sequence[Boundary], factors: tuple[float, float]) -> list[str]:
    """Draw the numbered exact boundaries between bottlenecks; return their legend entries."""
    entries: list[str] = []
    for number, edge in enumerate(boundaries, 1):
        lines = [[(x * factors[0], y * factors[1]) for x, y in line] for line in edge.lines if line]
        for line in lines:
            x, y = zip(*line, strict=True)
            for width, colour in ((1.8, "white"), (0.9, "black")):
                axes.plot(x, y, color=colour, lw=width, zorder=4, solid_capstyle="round",
                          marker="." if len(line) == 1 else "", ms=2)  # fmt: skip
        longest = max(lines, key=len)
        axes.text(*longest[len(longest) // 2], str(number), ha="center", va="center", fontsize=8,
                  zorder=6, bbox={"boxstyle": "square,pad=0.15", "facecolor": "white",
                                  "edgecolor": "black", "lw": 0.5})  # fmt: skip
        first, *rest = textwrap.wrap(str(edge), WIDTH, break_long_words=False)
        entries += [f"{number}  {first}", *(f"     {line}" for line in rest)]
    return entries


def _lettered(axes: Axes, at: Grid, word: np.ndarray, kind: str, lines: Sequence[str]) -> None:
    """Draw a letter in each of the largest regions, and the legend of letters below the map."""
    import numpy as np

    names, counts = np.unique(word, return_counts=True)
    order = [str(names[i]) for i in np.argsort(-counts, kind="stable")]
    entries = []
    for letter, name in zip(LETTERS, order, strict=False):
        rows, columns = np.nonzero(word == name)
        # The cell of the region that is nearest to its middle.
        far = (rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2
        best = int(np.argmin(far))
        if len(rows) >= max(1, MIN_AREA * word.size):
            axes.text(at[0][columns[best]], at[1][rows[best]], letter, ha="center", va="center",
                      fontsize=9, fontweight="bold", zorder=5,
                      bbox={"boxstyle": "circle,pad=0.2", "facecolor": "white", "alpha": 0.85,
                            "lw": 0})  # fmt: skip
        share = len(rows) / word.size
        shown = f"{share:.0%}" if share >= MIN_AREA else f"below {MIN_AREA:.0%}"
        entries.append(f"{letter}  {name} ({shown})")
    title = f"where each {kind} is {SUPERLATIVE[kind]}:" if kind else "what is found:"
    draw_legend(axes, title, [*entries, *lines])


def _missed(table: SweptTable, i: int) -> str:
    reason = table["reason"][i] if "reason" in table.columns else None
    if table["status"][i] != "infeasible" or not reason:
        return str(table["status"][i])
    # `reason` lists the worst missed promise first.
    return f"no plan keeps {str(reason).partition(',')[0]}"
