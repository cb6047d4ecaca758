"""What lines and maps of a sweep share: axes in units that suit them, regions, the list below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from planner.protocol.columns import Cell
from planner.report.pictures.style import STEPS, ticked
from planner.text.errors import InputError, did_you_mean
from planner.text.wording import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

MOST_LINES = 8
INCHES = (8.5, 5.0)
WIDE = 15.0  # a range with this ratio of its ends is drawn on a logarithmic axis
MOST_ENTRIES = 12  # of the list below a picture
LEAST_GAP = 12  # of two ticks beside each other, as a part of the axis
LINE = 0.17  # inches of one of them
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SUPERLATIVE = {"layout": "best", "bottleneck": "the largest part of a step"}
# Larger units in which a quantity is read more easily: base unit to (factor, unit).
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
    """The table of a sweep: columns by name, of which `over` were varied; units by column."""

    @property
    def over(self) -> Sequence[str]:
        """Names of the columns that were varied."""

    @property
    def units(self) -> Mapping[str, str]:
        """Unit of each column that has one."""

    @property
    def meta(self) -> Mapping[str, object]:
        """What the sweep was: its scenario, versions and warnings."""

    @property
    def columns(self) -> Mapping[str, object]:
        """Columns by name."""

    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> Sequence[Cell]: ...


@dataclass(frozen=True)
class Scaled:
    """A numeric column in a unit that suits it; NaN where there is no value."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def label(self) -> str:
        """Name and unit, as an axis says it."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def logarithmic(self) -> bool:
        """Whether the values spread over so much that an axis of ratios shows them better."""
        finite = [value for value in self.values if math.isfinite(value)]
        return bool(finite) and min(finite) > 0 and max(finite) > WIDE * min(finite)


def scaled(table: SweptTable, name: str) -> Scaled:
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
    return Scaled(name, larger_unit, tuple(number / factor for number in numbers))


def factor_of(table: SweptTable, quantity: Scaled) -> float:
    """Units of the picture per base unit."""
    for value, shown in zip(table[quantity.name], quantity.values, strict=True):
        if value:
            return shown / float(value)
    return 1.0


def set_axis(axis: Axis, column: Scaled) -> None:
    """Label an axis, and give it a scale and ticks that suit the column."""
    if column.logarithmic:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})  # type: ignore[attr-defined]
    ticked(axis, decade=STEPS if column.logarithmic else ())
    axis.set_label_text(column.label)


def tick_points(axes: Axes, column: Scaled) -> None:
    """Put the ticks of the lower axis at the values that were swept, where they have room."""
    points = sorted(dict.fromkeys(column.values))
    places = [math.log(point) for point in points] if column.logarithmic else points
    gaps = [high - low for low, high in pairwise(places)]
    if gaps and min(gaps) * LEAST_GAP >= places[-1] - places[0]:
        axes.set_xticks(points, [figure(point) for point in points])
        axes.minorticks_off()


def regions(table: SweptTable, *kinds: str) -> tuple[str, list[str | None]]:
    """What parts the table into regions, and the region of every row; None without an answer.

    It is the first of some `kinds` of words: layouts where they differ, else bottlenecks.
    """
    for name in kinds or ("layout", "bottleneck"):
        if name in table.columns:
            words = [None if word is None else str(word) for word in table[name]]
            if name == "bottleneck" or len({word for word in words if word}) > 1:
                return name, words
    return "", [None] * len(table)


def varied(table: SweptTable) -> list[str]:
    """Axes with several values."""
    return [name for name in table.over if len(dict.fromkeys(table[name])) > 1]


def arranged(table: SweptTable, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Axes that are drawn as numbers, and those of which each value has a line or bar."""
    numeric = [name for name in names if all(isinstance(v, int | float) for v in table[name])]
    others = [name for name in names if name not in numeric]
    if len(numeric) == 2:
        shortest = min(numeric, key=lambda name: len(dict.fromkeys(table[name])))
        if len(dict.fromkeys(table[shortest])) <= MOST_LINES // 2:
            numeric.remove(shortest)
            others = [shortest]
    return numeric, others


def line_of(table: SweptTable) -> tuple[str | None, list[str]]:
    """The axis along which lines go, and the one that sets them apart; None where none do."""
    names = varied(table)
    numeric, others = arranged(table, names) if 1 <= len(names) <= 2 else ([], [])
    return (numeric[0], others) if len(numeric) == 1 and len(others) <= 1 else (None, [])


def listed(axes: Axes, title: str, entries: Sequence[str]) -> None:
    """What the letters of a picture mean, below it; the picture grows by that much."""
    shown = [*entries[:MOST_ENTRIES]]
    shown += [f"and {len(entries) - MOST_ENTRIES} more"] if len(entries) > MOST_ENTRIES else []
    width, height = INCHES
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    canvas.set_size_inches(width, height + LINE * (len(shown) + 1))
    text = "\n".join([title, *shown])
    canvas.supxlabel(text, fontsize=8, x=0.02, ha="left", linespacing=1.4)
