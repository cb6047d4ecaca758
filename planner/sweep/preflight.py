"""A sweep looked at before anything runs: every path exists, every value is read, units are known.

What the axes mean is found by reading the scenario with their values put in, so that a sweep takes
whatever `--set` takes. A value is refused here if it is read neither beside the first values of
the other axes nor beside their last ones; a combination that cannot be is a row with its reason.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planner.protocol.columns import Cell
from planner.protocol.parameter import folder_of, unit_of, value_at
from planner.protocol.problem import problem_of
from planner.scenario import checked, read
from planner.scenario.grid import Axis, Grid, Listed, Span, measured
from planner.scenario.loading import Question, Source
from planner.scenario.tree import Tree, changed
from planner.text.errors import InputError, Mistake
from planner.text.tolerances import SAME

LOOKED_AT = 1000  # values of one list that are read before a sweep; those beyond it while it runs
OUTSIDE = "outside"  # the column that says what lies outside the fit


@dataclass(frozen=True)
class Column:
    """What one axis is in the table: its name, its unit, and its values in that unit."""

    name: str
    unit: str | None
    labels: tuple[Cell, ...] | None = None
    span: Span | None = None
    scale: float = 1.0

    @property
    def numeric(self) -> bool:
        """Whether every value is a number."""
        return self.labels is None or all(isinstance(x, int | float) for x in self.labels)

    def at(self, i: int) -> Cell:
        """The value at place `i`, in base units where it has any."""
        if self.span is None:
            return self.labels[i] if self.labels is not None else None
        value = self.span.number(i) * self.scale
        return int(value) if self.span.kind == "whole" and value.is_integer() else value


@dataclass(frozen=True)
class Survey:
    """A sound sweep: the tree that is varied, how, and what its axes are called in the table.

    `digest` is of everything that decides the rows but the version of this program.
    """

    tree: Tree
    folder: Path
    grid: Grid
    columns: tuple[Column, ...]
    problem: str
    digest: str
    certify: bool = False
    strict: bool = False


def survey(
    source: Source, sets: Sequence[str], grid: Grid, certify: bool = False, strict: bool = False
) -> Survey:
    """The sweep of a scenario over a grid, looked at.

    `certify` says that the gap of every point to an independent bound is wanted, `strict` that
    points outside the fit are refused. Raises InputError with every mistake in the scenario and in
    the values of the axes.
    """
    tree, folder = changed(read(source), sets), folder_of(source)
    corners = [[0] * len(grid.axes), [len(axis) - 1 for axis in grid.axes]]
    mistakes: dict[tuple[str, str], Mistake] = {}
    problem = ""
    values: list[dict[int, Cell]] = [{} for _ in grid.axes]
    for number, axis in enumerate(grid.axes):
        for i in _tested_places(axis):
            # This axis at a place, the others all first or all last.
            places = [[*corner[:number], i, *corner[number + 1 :]] for corner in corners]
            scenario = _first_sound(tree, folder, map(grid.sets_at, places))
            if isinstance(scenario, list):
                for mistake in scenario:
                    mistakes.setdefault((mistake.path, mistake.message), mistake)
            else:
                problem = scenario.problem
                values[number][i] = _cell(value_at(scenario, axis.name))
    if mistakes:
        raise InputError(mistakes.values())
    columns = tuple(
        _column(axis, read_at, problem) for axis, read_at in zip(grid.axes, values, strict=True)
    )
    if strict and OUTSIDE not in problem_of(problem).columns:
        words = f"rows of problem {problem} do not say what lies outside the fit"
        raise InputError(f"strict: {words}; leave it out")
    digest = _digest(tree, folder, grid, {"certify": certify, "strict": strict})
    return Survey(tree, folder, grid, columns, problem, digest, certify, strict)


def scenario_at(tree: Tree, folder: Path, sets: Sequence[str]) -> Question:
    """The scenario of one point, of whatever problem; InputError where it is none."""
    return checked(changed(tree, sets), folder)


def _tested_places(axis: Axis) -> Sequence[int]:
    """Places that are read first: the ends, and whether steps between them are whole numbers."""
    if isinstance(axis.values, Span):
        return sorted({0, min(1, len(axis) - 1), min(2, len(axis) - 1), len(axis) - 1})
    return range(min(len(axis), LOOKED_AT))


def _first_sound(
    tree: Tree, folder: Path, changes: Iterable[Sequence[str]]
) -> Question | list[Mistake]:
    """The scenario with the first changes that make one; else what is wrong with the first."""
    missed: list[Mistake] = []
    for sets in changes:
        try:
            return scenario_at(tree, folder, sets)
        except InputError as error:
            missed = missed or [_renamed(mistake) for mistake in error.mistakes]
    return missed


def _renamed(mistake: Mistake) -> Mistake:
    """The same, said of `--over`, which is what the user wrote."""
    file = mistake.file
    if not file.startswith("--set "):
        return mistake
    return replace(mistake, file=f"--over {file.removeprefix('--set ')}")


def _cell(value: object) -> Cell:
    return value if isinstance(value, str | int | float | None) else str(value)


def _column(axis: Axis, read_at: Mapping[int, Cell], problem: str) -> Column:
    values, unit = axis.values, unit_of(problem, axis.path)
    if isinstance(values, Span):
        scale = _scale(values, read_at.get(0), read_at.get(len(values) - 1))
        if scale is not None:
            return Column(axis.name, unit, span=values, scale=scale)
        written = f"{values.before}{values.after}".strip()
        return Column(axis.name, written or unit, span=values)
    labels = [read_at.get(i) for i in range(len(values))]
    numbers = [x for x in labels if isinstance(x, int | float) and not isinstance(x, bool)]
    absent = sum(text == "null" for text in values.texts)
    if numbers and len(numbers) + absent == len(labels):
        return Column(axis.name, unit, tuple(labels))
    return _as_written(axis.name, values)


def _scale(span: Span, first: Cell, last: Cell) -> float | None:
    """Base units per unit of the span, if its ends were read as numbers."""
    if not isinstance(first, int | float) or not isinstance(last, int | float):
        return None
    scale = last / span.last if span.last else first / span.first
    even = abs(first - span.first * scale) <= SAME * abs(last or first)
    return scale if even else None


def _as_written(name: str, values: Listed) -> Column:
    """Numbers of one unit as numbers in it, anything else word by word."""
    parsed = [measured(text) for text in values.texts]
    units = {(each[1], each[2]) for each in parsed if each is not None}
    if None not in parsed and len(units) == 1:
        before, after = units.pop()
        numbers = tuple(each[0] for each in parsed if each is not None)
        return Column(name, f"{before}{after}".strip() or None, numbers)
    return Column(name, None, values.texts)


def _digest(tree: Tree, folder: Path, grid: Grid, wanted: Mapping[str, bool]) -> str:
    """A hash of the scenario, the files it names, and the grid."""
    axes = [[axis.name, type(axis.values).__name__, *vars(axis.values).values()]
            for axis in grid.axes]  # fmt: skip
    text = json.dumps(
        [tree.data, axes, *(word for word, on in wanted.items() if on)], sort_keys=True, default=str
    )
    digest = hashlib.sha256(text.encode())
    for file in sorted(set(_files(tree.data, folder))):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _files(value: object, folder: Path) -> list[Path]:
    """Files that the texts of a tree name."""
    if isinstance(value, Mapping):
        return [file for item in value.values() for file in _files(item, folder)]
    if isinstance(value, list):
        return [file for item in value for file in _files(item, folder)]
    if not isinstance(value, str) or len(value) >= 1000 or not ("/" in value or "." in value):
        return []
    try:
        return [folder / value] if (folder / value).is_file() else []
    except (OSError, ValueError):  # no file name at all
        return []
