"""The lines of a map along which two parts of a step are as long, each with its closed form.

Along rows and columns of the table every crossing is found on the exact model; the equation of two
parts is turned round for what goes along, with what goes up written out, at a few places. Where
these give one form it is the form of the line; a line may bend from one branch into another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from planner.problems.serving.dials import WHOLE
from planner.report.pictures.sweep_axes import arranged
from planner.sweep.crossings import MOST, Line, Step, line_at
from planner.sweep.table import Table
from planner.sweep.vectorized import ClosedForm

__all__ = ["Boundary", "boundaries"]

LINES = 60  # rows, and columns, that are looked along
PLACES = 5  # at which an equation is turned round
MOST_FORMS = 3


@dataclass(frozen=True)
class Boundary:
    """Where the part `before` and the part `after` are as long.

    `lines` are points (along, up) in base units, each line unbroken; `forms` are the equations that
    hold on it, or `why` says why there is none.
    """

    before: str
    after: str
    lines: tuple[tuple[tuple[float, float], ...], ...]
    forms: tuple[str, ...]
    why: str | None = None

    def __str__(self) -> str:
        told = f"{self.before} = {self.after}"
        if not self.forms:
            return f"{told}, no closed form ({self.why})"
        return f"{told} at {', or at '.join(self.forms)}"

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "before": self.before, "after": self.after, "forms": list(self.forms),
            "why": self.why, "lines": [list(map(list, line)) for line in self.lines],
        }  # fmt: skip


@dataclass(frozen=True)
class _Found:
    """One crossing: on which line of the table it is, counted from the first one, and where."""

    number: int
    line: Line
    step: Step
    point: tuple[float, float]


def boundaries(closed: ClosedForm | None, table: Table) -> list[Boundary]:
    """All of a table that is drawn as a map; none of a sweep that is solved."""
    if closed is None or len(table) > MOST:
        return []
    names = [name for name in table.over if len(dict.fromkeys(table[name])) > 1]
    numeric, _ = arranged(table, names) if len(names) == 2 else ([], [])
    if len(numeric) != 2:
        return []
    up, along = numeric
    ways = [_looked(closed, table, along, up), _looked(closed, table, up, along)]
    pairs: dict[tuple[str, str], list[list[_Found]]] = {}
    for way, found in enumerate(ways):
        for each in found:
            first, second = sorted((each.step.before, each.step.after))
            pairs.setdefault((first, second), [[], []])[way].append(each)
    return [_boundary(pair, found) for pair, found in pairs.items()]


def _looked(closed: ClosedForm, table: Table, along: str, up: str) -> list[_Found]:
    """The crossings along one of the axes, at values of the other one."""
    axes = closed.survey.columns
    axis = next((i for i in closed.dials if axes[i].name == along), None)
    if axis is None:
        return []
    x, y, words = table[along], table[up], table["bottleneck"]
    values = sorted(set(y))
    chosen = set(values[:: max(1, -(-len(values) // LINES))])
    at_value: dict[float, list[int]] = {}
    for i, value in enumerate(y):
        if value in chosen:
            at_value.setdefault(value, []).append(i)
    flat = along == _last(table)
    found = []
    for number, value in enumerate(sorted(at_value)):
        rows = sorted(at_value[value], key=x.__getitem__)
        for i, j in pairwise(rows):
            if words[i] != words[j] and None not in (words[i], words[j]):
                line = line_at(closed, axis, i, up)
                for step in line.steps(float(x[i]), float(x[j])) if line else ():
                    at = (step.low + step.high) / 2
                    point = (at, float(value)) if flat else (float(value), at)
                    found.append(_Found(number, line, step, point))  # type: ignore[arg-type]
    return found


def _boundary(pair: tuple[str, str], found: Sequence[Sequence[_Found]]) -> Boundary:
    """One boundary from its crossings along and up."""
    whole = [bool(way) and way[0].line.along in WHOLE for way in found]
    # Between whole numbers a line is known less well than between others.
    kept = [way for way, steps in zip(found, whole, strict=True) if not steps and len(way) > 1]
    lines = tuple(line for way in kept or found for line in _joined(way))
    forms: dict[str, None] = {}
    whys: dict[str, None] = {}
    for way in found:
        for each in way[:: max(1, -(-len(way) // PLACES))]:
            told = each.line.crossing((0, 0), each.step)
            if told.form:
                forms[f"{told.symbol} = {told.form}"] = None
            else:
                whys[str(told.why)] = None
        if forms:
            break
    why = None if forms else ", ".join(whys)
    return Boundary(*pair, lines, tuple(forms)[:MOST_FORMS], why)


def _last(table: Table) -> str:
    """The axis that goes along."""
    return [name for name in table.over if len(dict.fromkeys(table[name])) > 1][-1]


def _joined(found: Sequence[_Found]) -> Iterator[tuple[tuple[float, float], ...]]:
    """Crossings of neighbouring lines of the table as lines of the map."""
    lines: list[list[_Found]] = []
    for each in found:
        before = [
            line for line in lines
            if line[-1].number == each.number - 1 and line[-1].step.before == each.step.before
        ]  # fmt: skip
        if before:
            before[0].append(each)
        else:
            lines.append([each])
    for line in lines:
        yield tuple(each.point for each in line)
