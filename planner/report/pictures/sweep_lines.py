"""Kinks of a line: where they stand in a picture, and what is said of them there and in words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.text.words import figure

__all__ = ["NO_FORM", "between", "crossing_lines", "switches"]

NO_FORM = "a switch between layouts has no closed form"
WIDTH = 120  # letters of a line below a picture


def switches(
    rows: tuple[int, int], x: Any, words: Sequence[Any], crossings: Sequence[Any], factor: float
) -> Iterator[tuple[float, str, list[str]]]:
    """Where a line switches between two of its points, what follows, and the equation there.

    Places are in the units of the picture, of which `factor` make one of the table. Where nothing
    nearer is known, the later point is the place.
    """
    found = [each for each in crossings if each.rows == rows]
    if not found:
        yield x.values[rows[1]], str(words[rows[1]]), []
    for each in found:
        told = textwrap.wrap(str(each), WIDTH, break_long_words=False)
        yield each.at * factor, each.after, [f"     {line}" for line in told]


def between(at: float, rows: tuple[int, int], x: Any, quantity: Any) -> float:
    """The height of the drawn line at a place between two of its points."""
    (low, high), (first, last) = (
        [math.log(each.values[i]) if each.logarithmic else each.values[i] for i in rows]
        for each in (x, quantity)
    )
    share = ((math.log(at) if x.logarithmic else at) - low) / (high - low)
    height = last if at == x.values[rows[1]] else first + share * (last - first)
    return math.exp(height) if quantity.logarithmic else height


def crossing_lines(crossings: Sequence[Any], units: Mapping[str, str]) -> list[str]:
    """What a terminal says of the kinks of a sweep, on lines or along the lines of a map."""
    lines = []
    for each in crossings:
        if not hasattr(each, "along"):
            lines.append(f"  {each}")
            continue
        unit = f" {units[each.along]}" if units.get(each.along) else ""
        lines.append(f"  {each.along} {figure(each.at)}{unit}: {each}")
    return ["where another part of a step becomes the largest:", *lines] if lines else []
