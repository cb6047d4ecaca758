"""The map of a sweep over two numbers: a quantity by colour, regions outlined and named.

Where the exact line between two bottlenecks is known it is drawn in place of the edges of cells,
with its closed form below the map.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from planner.report.pictures import sweep_axes
from planner.report.pictures.style import STEPS, ticked
from planner.report.pictures.sweep_axes import Scaled, SweptTable, factor_of, regions, scaled

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 120  # letters of a line below a picture
LEAST = 0.01  # share of the map that a letter needs

Grid = tuple[Sequence[float], Sequence[float]]  # places along and up


@dataclass(frozen=True)
class Boundary:
    """Where the part `before` and the part `after` are as long.

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


def map_drawn(
    canvas: Figure,
    axes: Axes,
    table: SweptTable,
    names: Sequence[str],
    quantity: Scaled,
    boundaries: Sequence[Boundary] = (),
) -> None:
    """A cell for each point; the second name goes along, the first one up."""
    import numpy as np
    from matplotlib.colors import LogNorm, Normalize

    up, along = (scaled(table, name) for name in names)
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
    sweep_axes.set_axis(axes.xaxis, along)
    sweep_axes.set_axis(axes.yaxis, up)
    bar = canvas.colorbar(mesh, ax=axes, pad=0.02, format=lambda value, _: f"{value:,g}")
    bar.set_label(quantity.label)
    if quantity.logarithmic:
        ticked(bar.ax.yaxis, decade=STEPS)
    bar.outline.set_visible(False)
    if kind or len(set(word.ravel())) > 1:
        exact = {frozenset((each.before, each.after)) for each in boundaries}
        _outlined(axes, edges, word, exact)
        box = axes.get_xlim(), axes.get_ylim()
        entries = _notes(axes, boundaries, (factor_of(table, along), factor_of(table, up)))
        axes.set(xlim=box[0], ylim=box[1])
        _lettered(axes, (x, y), word, kind, entries)


def _edges(values: Sequence[float], logarithmic: bool) -> list[float]:
    """Between neighbours, and as far beyond the ends."""
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
    """The exact lines between bottlenecks, numbered, and what is said of each below the map."""
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
    """A letter in each of the largest regions, and what the letters mean below the map."""
    import numpy as np

    names, counts = np.unique(word, return_counts=True)
    order = [str(names[i]) for i in np.argsort(-counts, kind="stable")]
    entries = []
    for letter, name in zip(sweep_axes.LETTERS, order, strict=False):
        rows, columns = np.nonzero(word == name)
        # The cell of the region that is nearest to its middle.
        far = (rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2
        best = int(np.argmin(far))
        if len(rows) >= max(1, LEAST * word.size):
            axes.text(at[0][columns[best]], at[1][rows[best]], letter, ha="center", va="center",
                      fontsize=9, fontweight="bold", zorder=5,
                      bbox={"boxstyle": "circle,pad=0.2", "facecolor": "white", "alpha": 0.85,
                            "lw": 0})  # fmt: skip
        share = len(rows) / word.size
        shown = f"{share:.0%}" if share >= LEAST else f"below {LEAST:.0%}"
        entries.append(f"{letter}  {name} ({shown})")
    title = f"where each {kind} is {sweep_axes.SUPERLATIVE[kind]}:" if kind else "what is found:"
    sweep_axes.listed(axes, title, [*entries, *lines])


def _missed(table: SweptTable, i: int) -> str:
    """What a point without a plan is called."""
    reason = table["reason"][i] if "reason" in table.columns else None
    if table["status"][i] != "infeasible" or not reason:
        return str(table["status"][i])
    # The promise that falls short the most stands first.
    return f"no plan keeps {str(reason).partition(',')[0]}"
