"""Changes of the largest part of a step: points on lines of a sweep, lines of a map.

Between two points of the table the closed form is evaluated ever closer to the switch; the equation
of the two parts is turned round for what is varied where that can be done. Batches are whole: their
crossing is that of the equations without ceilings, given only where ceilings do nothing on either
side of it. On a map the crossings along rows and columns join to lines; where a few places give one
form it is the form of the line, which may bend from one branch into another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import fmean

import numpy as np

from formulas.numerics.expressions import sstr
from planner.protocol.bracket import Bracket, find_bracket
from planner.protocol.output import Cell
from planner.protocol.problem import HasParts
from planner.report.pictures.sweep_axes import Boundary, arrange_axes, line_axes, varied_axes
from planner.report.pictures.sweep_lines import PartCrossing
from planner.sweep.closed_form_boundary import relaxed_times, solved_boundary
from planner.sweep.table import Table
from planner.sweep.vectorized import ClosedForm, axis_values

MAX_POINTS = 250_000  # maximum points of a table that is searched for crossings
MAX_CROSSINGS = 50
CLOSER = 65  # values per round between two ends, to locate a switch
ROOT_TOLERANCE = 1e-12  # of the value, the ends when that is enough
JUMP = 1e-6  # parts that differ by more on either side do not cross
MAP_LINES = 60  # maximum rows, and columns, that are searched
SOLVED_POINTS = 5  # crossings of a boundary that are solved in closed form
MAX_FORMS = 3
PROBE_OFFSET = 1e-7  # of the value, how far to either side symbols are watched

SymbolValues = Mapping[str, float | np.ndarray]


def crossings(closed: ClosedForm | None, table: Table) -> list[PartCrossing]:
    """Crossings along the lines of a table; empty for a sweep by the solver."""
    if closed is None or len(table) > MAX_POINTS:
        return []
    along, others = line_axes(table)
    swept = _axis_rows(closed, table, along)
    if swept is None:
        return []
    apart = list(zip(*(table[name] for name in others), strict=True)) or [()] * len(table)
    kinks: list[PartCrossing] = []
    for value in dict.fromkeys(apart):
        rows = [i for i, each in enumerate(apart) if each == value]
        for pair, line, low, high in swept.changes(rows):
            kinks += [line.crossing(pair, step) for step in line.steps(low, high)]
            if len(kinks) >= MAX_CROSSINGS:
                return kinks
    return kinks


@dataclass(frozen=True)
class PartSwitch:
    """Neighbouring values with two largest parts: `before` at `low`, `after` at `high`."""

    low: float
    high: float
    before: str
    after: str


@dataclass(frozen=True)
class SweptLine:
    """A model along one of the numbers that vary, the others at rest.

    Of a map, `up` is the other one: in a closed form it is written out.
    """

    model: HasParts
    along: str
    at_rest: Mapping[str, float]
    whole: tuple[str, ...]
    batches: tuple[str, ...]
    up: str | None = None

    def steps(self, low: float, high: float) -> Iterator[PartSwitch]:
        """Yield the changes of the largest part between two values."""
        before, last = self.largest(np.array([low, high]))
        while before != last:
            low, beyond, after = self._closer(low, high, before, last)
            yield PartSwitch(low, beyond, before, after)
            low, before = beyond, after

    def at(self, x: np.ndarray) -> tuple[Mapping[str, np.ndarray], SymbolValues]:
        """Parts and symbols at values of the varied parameter."""
        at_rest = {name: np.full(len(x), value) for name, value in self.at_rest.items()}
        return self.model.parts({**at_rest, self.along: x})

    def largest(self, x: np.ndarray) -> list[str]:
        """The name of the largest part."""
        parts, _ = self.at(x)
        sizes = np.stack([np.broadcast_to(size, len(x)) for size in parts.values()])
        return [tuple(parts)[i] for i in np.argmax(sizes, axis=0)]

    def _closer(self, low: float, high: float, before: str, after: str) -> tuple[float, float, str]:
        """Neighbours around the first switch, and the largest part at the second neighbour.

        They are whole numbers, or as near as floats need be.
        """
        whole = self.along in self.whole
        names = {high: after}

        def differs(points: Sequence[float]) -> list[float]:
            largest = self.largest(np.asarray(points))
            names.update(zip(points, largest, strict=True))
            return [1.0 if name == before else -1.0 for name in largest]

        def enough(bracket: Bracket) -> bool:
            return bracket.far - bracket.near <= (1 if whole else ROOT_TOLERANCE * bracket.far)

        inside = partial(_between, whole=whole)
        bracket = find_bracket(differs, Bracket(low, high), inside, enough)
        return bracket.near, bracket.far, names[bracket.far]

    def crossing(self, rows: tuple[int, int], step: PartSwitch) -> PartCrossing:
        """The step with its closed form, or why it has none."""
        kink = PartCrossing(rows, self.along, step.high, step.before, step.after)
        if self.along in self.batches:
            return self._of_batches(kink, step.low)
        if self.along in self.whole:
            return replace(kink, why="whole numbers")
        parts, _ = self.at(np.array([step.low, step.high]))
        before, after = parts[step.before], parts[step.after]
        if np.abs((before - after) / np.max(before)).max() > JUMP:
            return replace(kink, why="a jump")
        return self._turned(kink, moving=self._moving(step.high))

    def _turned(self, kink: PartCrossing, moving: set[str], even: bool = False) -> PartCrossing:
        """With the closed form, or why there is none."""
        x = kink.at
        plain = _first_point(self.at(np.array([x]))[1])
        if even:
            plain["B"] = x * self.model.batch_scale
        sides = self.model.symbols[kink.before], self.model.symbols[kink.after]
        shown = set() if self.up is None else self._moving_up(x, self.up)
        why = ""
        # Write out the vertical parameter of a map if the equations allow it.
        for more, steady in ((shown, even or self.up in self.batches), (set[str](), even)):
            turned = solved_boundary(
                *sides, plain, moving, shown=more, equations=self.model.equations, even=steady
            )
            if not isinstance(turned, str):
                form = sstr(turned.expression)
                return replace(kink, symbol=turned.symbol, value=turned.value, form=form)
            why = turned
        return replace(kink, why=why)

    def _moving(self, x: float) -> set[str]:
        _, values = self.at(x * np.array([1 - PROBE_OFFSET, 1 + PROBE_OFFSET]))
        spread = {name: np.ravel(value) for name, value in values.items()}
        return {name for name, pair in spread.items() if len(pair) > 1 and pair[0] != pair[1]}

    def _moving_up(self, x: float, up: str) -> set[str]:
        if up in self.batches:
            return {"B"}
        near = replace(self, along=up, at_rest={**self.at_rest, self.along: x}, up=None)
        return near._moving(self.at_rest[up]) - {"B"}

    def _of_batches(self, kink: PartCrossing, low: float) -> PartCrossing:
        """The crossing of the equations without ceilings, where these agree at both ends."""
        ends, model = np.array([low, kink.at]), self.model
        exact, values = self.at(ends)
        plain, sides = _first_point(values), (model.symbols[kink.before], model.symbols[kink.after])

        def times(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return relaxed_times(*sides, {**plain, "B": x * model.batch_scale}, model.equations)

        for name, smooth in zip((kink.before, kink.after), times(ends), strict=True):
            if not np.allclose(exact[name], smooth, rtol=1e-9, atol=0):
                return replace(kink, why="ceilings")

        def difference(points: Sequence[float]) -> list[float]:
            first, second = times(np.asarray(points))
            return np.where(second >= first, -1.0, 1.0).tolist()

        bracket = find_bracket(
            difference,
            Bracket(low, kink.at),
            _between,
            lambda b: b.far - b.near <= ROOT_TOLERANCE * b.far,
        )
        return self._turned(replace(kink, at=bracket.far), {"B"}, even=True)


def _first_point(values: SymbolValues) -> dict[str, float]:
    return {name: float(np.ravel(value)[0]) for name, value in values.items()}


def _between(bracket: Bracket, *, whole: bool = False) -> Sequence[float]:
    points = np.linspace(bracket.near, bracket.far, CLOSER)
    inside: list[float] = (np.unique(np.round(points)) if whole else points)[1:-1].tolist()
    return inside


@dataclass(frozen=True)
class _AxisRows:
    """A table along one of its axes: values of the axis and largest parts, by row."""

    closed: ClosedForm
    axis: int
    x: Sequence[float]
    words: Sequence[Cell]

    def changes(
        self, rows: Sequence[int], up: str | None = None
    ) -> Iterator[tuple[tuple[int, int], SweptLine, float, float]]:
        """Neighbours on a line whose largest parts differ: rows, their line, both values."""
        for i, j in pairwise(sorted(rows, key=self.x.__getitem__)):
            if self.words[i] != self.words[j] and None not in (self.words[i], self.words[j]):
                line = _line_at(self.closed, self.axis, i, up)
                if line is not None:
                    yield (i, j), line, self.x[i], self.x[j]


def _axis_rows(closed: ClosedForm, table: Table, along: str | None) -> _AxisRows | None:
    for axis in closed.dials:
        if closed.survey.columns[axis].name == along:
            return _AxisRows(closed, axis, _numbers(table, along), table["bottleneck"])
    return None


def _numbers(table: Table, name: str) -> list[float]:
    return [float(value) for value in table[name] if isinstance(value, int | float)]


def _line_at(closed: ClosedForm, axis: int, row: int, up: str | None = None) -> SweptLine | None:
    """Swept line through a row of a table, None without parts; `up` is a map's other axis."""
    survey, which = closed.survey, 0
    places = survey.grid.places(row)
    for i in closed.fixed:
        which = which * len(survey.grid.axes[i]) + places[i]
    model = closed.models[which]
    if not isinstance(model, HasParts):
        return None
    at_rest = {
        survey.columns[i].name: float(axis_values(survey.columns[i], [places[i]])[0])
        for i in closed.dials
        if i != axis
    }
    along, beside = survey.columns[axis].name, up if up in at_rest else None
    return SweptLine(model, along, at_rest, closed.problem.whole, closed.problem.batches, beside)


@dataclass(frozen=True)
class _LineCrossing:
    """A crossing: the number of its line in the table, from the first line, and its point."""

    number: int
    line: SweptLine
    step: PartSwitch
    point: tuple[float, float]


def boundaries(closed: ClosedForm | None, table: Table) -> list[Boundary]:
    """Boundaries of a table with two numeric axes; empty for a sweep by the solver."""
    if closed is None or len(table) > MAX_POINTS:
        return []
    names = varied_axes(table)
    numeric, _ = arrange_axes(table, names) if len(names) == 2 else ([], [])
    if len(numeric) != 2:
        return []
    up, along = numeric
    sides = [_crossed(closed, table, along, up), _crossed(closed, table, up, along, flat=False)]
    pairs: dict[tuple[str, str], list[list[_LineCrossing]]] = {}
    for side, row in enumerate(sides):
        for spot in row:
            first, second = sorted((spot.step.before, spot.step.after))
            pairs.setdefault((first, second), [[], []])[side].append(spot)
    return [_boundary(pair, row) for pair, row in pairs.items()]


def _crossed(
    closed: ClosedForm, table: Table, along: str, up: str, *, flat: bool = True
) -> list[_LineCrossing]:
    """The crossings along one of the axes, at values of the other; `flat`: along goes the map."""
    swept = _axis_rows(closed, table, along)
    if swept is None:
        return []
    y = _numbers(table, up)
    values = sorted(set(y))
    rows_at: dict[float, list[int]] = {
        x: [] for x in values[:: max(1, -(-len(values) // MAP_LINES))]
    }
    for i, value in enumerate(y):
        if value in rows_at:
            rows_at[value].append(i)
    points = []
    for number, (value, rows) in enumerate(rows_at.items()):
        for _, line, low, high in swept.changes(rows, up):
            for step in line.steps(low, high):
                middle = fmean((step.low, step.high))
                point = (middle, value) if flat else (value, middle)
                points.append(_LineCrossing(number, line, step, point))
    return points


def _boundary(pair: tuple[str, str], sides: Sequence[Sequence[_LineCrossing]]) -> Boundary:
    """One boundary from its crossings along and up."""
    # Crossings along an axis of whole numbers are less exact: prefer the other axis.
    fine = [row for row in sides if len(row) > 1 and row[0].line.along not in row[0].line.whole]
    lines = tuple(line for row in fine or sides for line in _joined_lines(row))
    whys: dict[str, None] = {}
    for row in sides:
        spots = row[:: max(1, -(-len(row) // SOLVED_POINTS))]
        kinks = [spot.line.crossing((0, 0), spot.step) for spot in spots]
        forms = dict.fromkeys(f"{kink.symbol} = {kink.form}" for kink in kinks if kink.form)
        if forms:
            return Boundary(*pair, tuple(forms)[:MAX_FORMS], None, lines)
        whys |= dict.fromkeys(str(kink.why) for kink in kinks)
    return Boundary(*pair, (), ", ".join(whys), lines)


def _joined_lines(spots: Sequence[_LineCrossing]) -> Iterator[tuple[tuple[float, float], ...]]:
    """Crossings of neighbouring lines of the table as lines of the map."""
    lines: list[list[_LineCrossing]] = []
    for spot in spots:
        for line in lines:
            if line[-1].number == spot.number - 1 and line[-1].step.before == spot.step.before:
                line.append(spot)
                break
        else:
            lines.append([spot])
    for line in lines:
        yield tuple(spot.point for spot in line)
