"""Figures of the book, computed: curves by the kernels of their equations, timetables by rows.

A figure is data: which symbol runs from where to where, which equations give the curves, at which
set of values, and what is marked. A kink is marked wherever the largest branch of a curve changes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from formulas.algebra.equation import Equation
from formulas.book import book_values
from formulas.claims.claim import UNITS, figure_text
from formulas.export.drawing import FONT_SIZE, Area, Drawing, Label, Point, Spot, Stroke
from formulas.nomenclature.symbols import SYMBOLS, meaning, symbol_unit

WIDTH, HEIGHT = 420.0, 200.0  # of the sheet between its margins, and of the plot on it [pt]
MARGIN, BOTTOM_MARGIN, RIGHT, TOP_MARGIN = 46.0, 40.0, 12.0, 26.0  # margins round the plot [pt]
CURVE_POINTS = 160  # of a curve
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (8, 2, 2, 2), (1, 3))
INK = "abcde"
SUPERSCRIPT_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
INDICES = ("i", "j")  # of a stage and of a microbatch, from 0
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


Case = Mapping[str, Fraction | float]


def draw_figure(row: book_values.BookFigureRow, case: Case) -> Drawing:
    """The figure at a set of values.

    Raises BookError if an equation is unknown, or a symbol has no value there.
    """
    return _timetable(row, case) if row.bars else _chart(row, case)


@dataclass(frozen=True)
class SampledCurve:
    """A curve in the units of the figure, and where its branch changes."""

    row: book_values.CurveRow
    x: np.ndarray
    y: np.ndarray
    kinks: tuple[tuple[float, float, str], ...]


def sample_curve(
    row: book_values.BookFigureRow, curve: book_values.CurveRow, case: Case
) -> SampledCurve:
    """The points of a curve by its equation's kernel; kinks are (x, y, the branches that meet)."""
    numbers = {name: float(Fraction(v)) for name, v in {**case, **curve.values}.items()}
    scale = book_values.evaluate_expression(curve.over, numbers) * float(UNITS.get(row.unit, 1))
    whole = _unfolded(book_values.equation_named(curve.of), {*numbers, row.axis})
    free = {x.name for x in whole.symbols}
    others = {n: v for n, v in numbers.items() if n in free and n != row.axis}
    missing = free - others.keys() - {row.axis}
    if missing:
        raise book_values.BookError(f"figure {row.name}: {curve.of} has no value of {min(missing)}")
    x = (np.geomspace if row.log else np.linspace)(row.first, row.last, CURVE_POINTS)
    if SYMBOLS[row.axis] not in whole.symbols:
        y = np.full_like(x, whole.numpy()(**others))
        return SampledCurve(curve, x, y / scale, ())
    kernel = whole.numpy(row.axis)

    def value(at: np.ndarray) -> np.ndarray:
        return np.asarray(kernel(at, **others)) / scale

    kinks = tuple(_kinks(whole, row.axis, x, others)) if row.kinks and whole.branches else ()
    at = np.union1d(x, [k for k, _ in kinks])
    met = tuple((k, float(value(np.array([k]))[0]), words) for k, words in kinks)
    return SampledCurve(curve, at, value(at), met)


def _unfolded(equation: Equation, values: Collection[str]) -> Equation:
    inner = [_unfolded(e, values) for e in equation.where if e.symbol.name not in values]
    return replace(equation.substitute(*inner), where=())


def _kinks(
    equation: Equation, axis: str, x: np.ndarray, others: Mapping[str, float]
) -> Iterator[tuple[float, str]]:
    """Yield points where the deciding branch changes, on ever finer grids, with both names."""

    def branch(at: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        return equation.bottlenecks(**{axis: at, **others})

    which, names = branch(x)
    for i in np.flatnonzero(np.diff(which)):
        low, high = x[i], x[i + 1]
        for _ in range(4):
            fine = np.linspace(low, high, 65)
            k = int(np.flatnonzero(np.diff(branch(fine)[0]))[0])
            low, high = fine[k], fine[k + 1]
        yield float(high), f"{names[which[i]]} = {names[which[i + 1]]}"


def _chart(row: book_values.BookFigureRow, case: Case) -> Drawing:
    lines = [sample_curve(row, curve, case) for curve in row.curves]
    x, y = SYMBOLS[row.axis], [v for line in lines for v in line.y[np.isfinite(line.y)]]
    low, high = min(y), max(y)
    low = 10 ** math.floor(math.log10(low)) if row.log_up else 0.0
    high = high * (1.35 if row.log_up else 1.08)
    legend = FONT_SIZE * 1.5 * math.ceil(len(lines) / 2)
    base = BOTTOM_MARGIN + legend
    frame = _Frame((row.first, row.last, row.log), (low, high, row.log_up), base)
    unit = str(symbol_unit(x))
    under = meaning(x) + (f" [{unit}]" if unit != "1" else "")
    above = f"{row.up} [{row.unit}]" if row.unit else row.up
    parts: list[Stroke | Area | Spot | Label] = list(frame.axes(under, above))
    for number, line in reversed(list(enumerate(lines))):  # the first on top of the others
        parts += _curve(frame, line, number, len(lines))
    parts += _marked(frame, row, case, lines)
    return Drawing(WIDTH, base + HEIGHT + TOP_MARGIN, tuple(parts), row.caption)


def _curve(
    frame: _Frame, line: SampledCurve, number: int, count: int
) -> Iterator[Stroke | Area | Spot | Label]:
    points = tuple(map(frame.place, line.x.tolist(), line.y.tolist()))
    ink, dash = INK[number % len(INK)], DASHES[number % len(DASHES)]
    yield Stroke(points, ink, 2.2 if number == 0 else 1.3, dash)
    column, level = number % 2, number // 2
    at = (
        MARGIN + column * (WIDTH - MARGIN) / 2,
        FONT_SIZE * 1.5 * ((count + 1) // 2 - level) - FONT_SIZE,
    )
    yield Stroke(((at[0], at[1] + 3), (at[0] + 22, at[1] + 3)), ink, 1.6, dash)
    yield Label((at[0] + 28, at[1]), line.row.label)


def _marked(
    frame: _Frame, row: book_values.BookFigureRow, case: Case, lines: Sequence[SampledCurve]
) -> Iterator[Stroke | Area | Spot | Label]:
    """Kinks as dots, marks as dots with a line down and words above, on the first curve."""
    for line in lines:
        for x, y, _ in line.kinks:
            yield Spot(frame.place(x, y), "ink")
    places = []
    for words, expression in row.marks.items():
        x = book_values.evaluate_expression(expression, case)
        y = float(np.interp(x, lines[0].x, lines[0].y))
        places.append((frame.place(x, y), words))
    for number, ((across, up), words) in enumerate(sorted(places)):
        top = frame.top + 4 + 11 * (number % 2)
        yield Stroke(((across, frame.base), (across, top - 2)), "soft", 0.6, (2, 2))
        yield Spot((across, up), "b")
        room = 0.5 * FONT_SIZE * len(words)
        left = number % 2 == 0 and len(places) > 1
        anchor = "end" if (left and across - room > MARGIN) or across + room > WIDTH else "start"
        yield Label((across, top), words, anchor)


@dataclass(frozen=True)
class _Frame:
    """Plot on its sheet: range and scale of both axes, and position of the base."""

    x: tuple[float, float, bool]
    y: tuple[float, float, bool]
    base: float

    @property
    def top(self) -> float:
        return self.base + HEIGHT

    def place(self, x: float, y: float) -> Point:
        """Position of a plotted point on the sheet [pt]."""
        wide = WIDTH - MARGIN - RIGHT
        across = MARGIN + wide * _axis_share(x, *self.x)
        return across, min(max(self.base + HEIGHT * _axis_share(y, *self.y), self.base), self.top)

    def axes(self, under: str, above: str) -> Iterator[Stroke | Area | Spot | Label]:
        """Both axes with their ticks, fine lines across, and words."""
        left, right = MARGIN, WIDTH - RIGHT
        for tick in ticks(*self.x):
            x, _ = self.place(tick, self.y[0])
            yield Stroke(((x, self.base), (x, self.base - 3)), "ink", 0.7)
            yield Label((x, self.base - 14), short_number(tick), "middle")
        for tick in ticks(*self.y):
            _, y = self.place(self.x[0], tick)
            yield Stroke(((left, y), (right, y)), "line", 0.5)
            yield Label((left - 5, y - 3.5), short_number(tick), "end")
        corners = ((left, self.top), (left, self.base), (right, self.base))
        yield Stroke(corners, "ink", 0.9)
        yield Label(((left + right) / 2, self.base - 28), under, "middle", "soft")
        yield Label((11, (self.base + self.top) / 2), above, "middle", "soft", upright=True)


def _axis_share(value: float, low: float, high: float, log: bool) -> float:
    if log:
        return math.log(max(value, low * 1e-9) / low) / math.log(high / low)
    return (value - low) / (high - low)


def ticks(low: float, high: float, log: bool) -> list[float]:
    """Powers of ten (or 1, 2, 5 of them where few), or five to eight round numbers."""
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        digits = (1,) if len(powers) > 3 else (1, 2, 5)
        listed = [d * 10.0**p for p, d in product(powers, digits)]
        return [tick for tick in listed if low * 0.999 <= tick <= high * 1.001]
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 7)
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]


def short_number(value: float) -> str:
    """`10k`, `2M`, `0.05`; powers of ten beyond the letters."""
    if value >= 1000 * PREFIXES[0][0]:
        power = math.floor(math.log10(value) + 1e-9)
        digit = round(value / 10.0**power)
        return ("" if digit == 1 else f"{digit}·") + "10" + str(power).translate(SUPERSCRIPT_DIGITS)
    for size, letter in PREFIXES:
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:.6g}"


@dataclass(frozen=True)
class Bar:
    """One piece of work of a timetable: its stage, its microbatch, start and length [s]."""

    stage: int
    microbatch: int
    start: float
    length: float
    row: int


def bars(row: book_values.BookFigureRow, case: Case) -> list[Bar]:
    """Every bar of a timetable.

    Raises BookError if two of them stand on one stage at one time, or the idle share differs from
    that of the equation which the figure names.
    """
    numbers = {name: float(Fraction(v)) for name, v in case.items()}
    stages, count = (round(numbers[name]) for name in ("n_stages", "n_micro"))
    listed = []
    for number, kind in enumerate(row.bars):
        for i, j in product(range(stages), range(count)):
            at = {**numbers, "i": float(i), "j": float(j)}
            start, length = (
                book_values.evaluate_parsed(book_values.parse_expression(x, INDICES), at)
                for x in (kind.start, kind.length)
            )
            listed.append(Bar(i, j, start, length, number))
    for stage in range(stages):
        line = sorted((b.start, b.start + b.length) for b in listed if b.stage == stage)
        if any(end > start + 1e-9 for (_, end), (start, _) in pairwise(line)):
            raise book_values.BookError(
                f"figure {row.name}: stage {stage + 1} does two pieces of work at once"
            )
    idle, wanted = idle_share(listed, stages), book_values.evaluate_expression(row.share, numbers)
    if abs(idle - wanted) > 1e-9:
        raise book_values.BookError(
            f"figure {row.name} leaves {idle:.4g} idle, {row.share} says {wanted:.4g}"
        )
    return listed


def idle_share(listed: Sequence[Bar], stages: int) -> float:
    """Idle share of stages times time, the pipeline bubble [-]."""
    end = max(bar.start + bar.length for bar in listed)
    return 1 - sum(bar.length for bar in listed) / (stages * end)


def _timetable(row: book_values.BookFigureRow, case: Case) -> Drawing:
    listed = bars(row, case)
    stages = 1 + max(bar.stage for bar in listed)
    end = max(bar.start + bar.length for bar in listed)
    step, base = 26.0, 44.0
    across = (WIDTH - MARGIN - RIGHT) / end
    parts: list[Stroke | Area | Spot | Label] = []
    for stage in range(stages):
        level = base + step * (stages - 1 - stage)
        parts.append(Area((MARGIN, level), (end * across, step - 5), "line", "line"))
        parts.append(Label((MARGIN - 5, level + 7), f"stage {stage + 1}", "end"))
    for bar in listed:
        level = base + step * (stages - 1 - bar.stage)
        ink = "fill" if bar.row == 0 else "fill2"
        at, size = (MARGIN + bar.start * across, level), (bar.length * across, step - 5)
        parts.append(Area(at, size, ink))
        middle = (at[0] + size[0] / 2, level + 7)
        parts.append(Label(middle, str(bar.microbatch + 1), "middle"))
    x = MARGIN
    for ink, words in (
        ("fill", row.bars[0].label),
        ("fill2", row.bars[-1].label),
        ("line", "idle"),
    ):
        parts.append(Area((x, 8), (14, 9), ink))
        parts.append(Label((x + 20, 8.5), words))
        x += 20 + 5.5 * len(words) + 24
    idle = figure_text(100 * idle_share(listed, stages), "%")
    parts.append(Label((WIDTH - RIGHT, 8.5), f"idle: {idle}", "end"))
    top = base + step * stages
    parts.append(Label(((MARGIN + WIDTH - RIGHT) / 2, 28), "time, to the right", "middle", "soft"))
    return Drawing(WIDTH, top + 6, tuple(parts), row.caption)
