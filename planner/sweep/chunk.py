"""One chunk of a sweep, solved point by point: the function that every kind of worker runs.

A point is one row of a table: what every row has comes first, then the columns of the kind; a kind
that says no row of its own gives every number and word of its plan.

A sweep looked at before anything runs: every path exists, every value is read, units are known.

What the axes mean is found by reading the scenario with their values put in, so that a sweep takes
whatever `--set` takes. A value is refused here if it is read neither beside the first values of
the other axes nor beside their last ones; a combination that cannot be is a row with its reason.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from planner.protocol.document import to_document
from planner.protocol.output import Cell, CellRow
from planner.protocol.parameter import base_folder, lookup_value, path_unit
from planner.protocol.problem import Search, get_problem, search, search_many
from planner.protocol.solve import solve
from planner.scenario import check_tree, read
from planner.scenario.grid import Axis, Grid, Span, split_number
from planner.scenario.loading import Question, Source
from planner.scenario.tree import Tree, apply_sets
from planner.text.errors import FieldError, InputError, Mistake, PlannerError
from planner.text.tolerances import REL_TOL

# Values of one list that are read before a sweep; those beyond it while it runs.
MAX_CHECKED_VALUES = 1000
OUTSIDE_COLUMN = "outside"  # the column that says what lies outside the fit


@dataclass(frozen=True)
class Column:
    """Axis of a sweep as a table column: its name, its unit, and its values in that unit."""

    name: str
    unit: str | None
    labels: tuple[Cell, ...] | None = None
    span: Span | None = None
    scale: float = 1.0

    @property
    def numeric(self) -> bool:
        """True if every value is a number."""
        return self.labels is None or all(isinstance(x, int | float) for x in self.labels)

    def at(self, i: int) -> Cell:
        """The value at place `i`, in base units where it has any."""
        if self.span is None:
            return self.labels[i] if self.labels is not None else None
        value = self.span.number(i) * self.scale
        return int(value) if self.span.kind == "whole" and value.is_integer() else value


@dataclass(frozen=True)
class SweepSpec:
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


def validate_sweep(
    source: Source, sets: Sequence[str], grid: Grid, certify: bool = False, strict: bool = False
) -> SweepSpec:
    """The sweep of a scenario over a grid, looked at.

    `certify` says that the gap of every point to an independent bound is wanted, `strict` that
    points outside the fit are refused. Raises InputError with every mistake in the scenario and in
    the values of the axes.
    """
    tree, folder = apply_sets(read(source), sets), base_folder(source)
    corners = [[0] * len(grid.axes), [len(axis) - 1 for axis in grid.axes]]
    mistakes: dict[tuple[str, str], Mistake] = {}
    problem = ""
    values: list[dict[int, Cell]] = [{} for _ in grid.axes]
    for number, axis in enumerate(grid.axes):
        for i in (
            sorted({0, min(1, len(axis) - 1), min(2, len(axis) - 1), len(axis) - 1})
            if isinstance(axis.values, Span)
            else range(min(len(axis), MAX_CHECKED_VALUES))
        ):
            # This axis at a place, the others all first or all last.
            places = [[*corner[:number], i, *corner[number + 1 :]] for corner in corners]
            scenario = _first_sound(tree, folder, map(grid.sets_at, places))
            if isinstance(scenario, list):
                for mistake in scenario:
                    mistakes.setdefault((mistake.path, mistake.message), mistake)
            else:
                problem = scenario.problem
                value = lookup_value(scenario, axis.name)
                cell = value if isinstance(value, str | int | float | None) else str(value)
                values[number][i] = cell
    if mistakes:
        raise InputError(mistakes.values())
    columns = tuple(
        _column(axis, read_at, problem) for axis, read_at in zip(grid.axes, values, strict=True)
    )
    if strict and OUTSIDE_COLUMN not in get_problem(problem).columns:
        words = f"rows of problem {problem} do not say what lies outside the fit"
        raise InputError(f"strict: {words}; leave it out")
    digest = _digest(tree, folder, grid, {"certify": certify, "strict": strict})
    return SweepSpec(tree, folder, grid, columns, problem, digest, certify, strict)


def build_point_scenario(tree: Tree, folder: Path, sets: Sequence[str]) -> Question:
    """The scenario of one point, of whatever problem; InputError where it is none."""
    return check_tree(apply_sets(tree, sets), folder)


def _first_sound(
    tree: Tree, folder: Path, changes: Iterable[Sequence[str]]
) -> Question | list[Mistake]:
    """First valid scenario of the changes; the mistakes of the first if all are invalid."""
    missed: list[Mistake] = []
    for sets in changes:
        try:
            return build_point_scenario(tree, folder, sets)
        except InputError as error:
            # Name `--over` in the message, the option that the user wrote.
            missed = missed or [
                replace(mistake, file=re.sub("^--set ", "--over ", mistake.file))
                for mistake in error.mistakes
            ]
    return missed


def _column(axis: Axis, read_at: Mapping[int, Cell], problem: str) -> Column:
    values, unit = axis.values, path_unit(problem, axis.path)
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
    parsed = [split_number(text) for text in values.texts]
    units = {(each[1], each[2]) for each in parsed if each is not None}
    if None not in parsed and len(units) == 1:
        before, after = units.pop()
        amounts = tuple(each[0] for each in parsed if each is not None)
        return Column(axis.name, f"{before}{after}".strip() or None, amounts)
    return Column(axis.name, None, values.texts)


def _scale(span: Span, first: Cell, last: Cell) -> float | None:
    if not isinstance(first, int | float) or not isinstance(last, int | float):
        return None
    scale = last / span.last if span.last else first / span.first
    even = abs(first - span.first * scale) <= REL_TOL * abs(last or first)
    return scale if even else None


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


ROW_COLUMNS = ("status", "reason", "short_by", "elapsed_s")  # of every row, whatever the problem
MAX_CHUNK = 32  # points of a chunk, all lost if its worker is killed
SHARES = 8  # chunks per worker of the remaining points, so that all workers end together

_ONE_AT_A_TIME = threading.Lock()  # solvers keep state; threads of one worker take turns


@dataclass(frozen=True)
class Chunk:
    """Points that follow each other: the number of the first, and the changes that make each.

    `certify` asks for the gap of each to an independent bound.
    """

    first: int
    points: tuple[tuple[str, ...], ...]
    tree: Tree
    folder: Path
    certify: bool = False

    @property
    def last(self) -> int:
        """Number of the last point."""
        return self.first + len(self.points) - 1

    def split(self) -> list[Chunk]:
        """A chunk for each of its points."""
        return [
            replace(self, first=self.first + i, points=(point,))
            for i, point in enumerate(self.points)
        ]


def chunks(survey: SweepSpec, ranges: Sequence[tuple[int, int]], workers: int) -> Iterator[Chunk]:
    """The points of ranges (first, last), in chunks that get smaller towards the end."""
    left = sum(last - first + 1 for first, last in ranges)
    for first, last in ranges:
        start = first
        while start <= last:
            size = min(MAX_CHUNK, max(1, left // (SHARES * workers)), last - start + 1)
            points = tuple(tuple(survey.grid.sets(i)) for i in range(start, start + size))
            yield Chunk(start, points, survey.tree, survey.folder, survey.certify)
            start += size
            left -= size


def solved(chunk: Chunk) -> list[CellRow]:
    """Solve a chunk: a row for every point; a point without an answer has its reason.

    The points are searched together; where one of them is a mistake, one by one.
    """
    with _ONE_AT_A_TIME:
        start = perf_counter()
        try:
            questions = [
                build_point_scenario(chunk.tree, chunk.folder, sets) for sets in chunk.points
            ]
            points = search_many(questions)
            share = (perf_counter() - start) / len(questions)
            pairs = zip(questions, points, strict=True)
            return [_row(chunk, question, point, share) for question, point in pairs]
        except Exception:
            # Solve each point alone, so that the row of the faulty point reports the error.
            return [_solved_alone(chunk, sets) for sets in chunk.points]


def _solved_alone(chunk: Chunk, sets: Sequence[str]) -> CellRow:
    """The row of one point, with its reason where it has no answer."""
    start = perf_counter()
    try:
        question = build_point_scenario(chunk.tree, chunk.folder, sets)
        point = search(question)
        return _row(chunk, question, point, perf_counter() - start)
    except InputError as error:
        return refused_row("refused", error_reason(error), perf_counter() - start)
    except PlannerError as error:
        return refused_row("failed", str(error), perf_counter() - start)
    except Exception as error:
        # An internal error at one point must not end a run of thousands; the row reports it.
        fault = f"a fault of ours: {type(error).__name__}: {error}"
        return refused_row("failed", fault[:300], perf_counter() - start)


def _row(chunk: Chunk, question: Question, point: Search, elapsed: float) -> CellRow:
    row = result_row(question.problem, point, elapsed)
    if chunk.certify and point.feasible and "gap" in row:
        row["gap"] = solve(question).document["certificate"]["gap"]
    return row


def error_reason(error: InputError) -> str:
    """Error text of a point, without its location, which is the row itself."""
    if isinstance(error, FieldError):
        return "; ".join(dict.fromkeys(f"{path}: {words}" for path, words in error.faults))
    if not error.mistakes:
        return str(error)
    messages = [f"{m.path}: {m.message}" if m.path else m.message for m in error.mistakes]
    return "; ".join(dict.fromkeys(messages))


def result_row(kind: str, search: Search, elapsed: float) -> CellRow:
    """The row of a point: what every row has, then the quantities of its problem."""
    missed = search.shortfalls
    factors = [each.short_by for each in missed if each.short_by is not None]
    head: CellRow = {
        "status": search.status,
        "reason": ", ".join(each.promise for each in missed) or None,
        "short_by": max(factors, default=None),
        "elapsed_s": elapsed,
    }
    if search.row is not None:
        return head | dict(search.row())
    if search.feasible:
        return head | _flat(to_document(search.plan))
    return head | dict.fromkeys(get_problem(kind).columns)


def refused_row(status: str, reason: str, elapsed: float) -> CellRow:
    """The row of a point without answer: `refused_row` is a mistake in it, `failed` one of ours."""
    text = " ".join(reason.split())
    return {"status": status, "reason": text, "short_by": None, "elapsed_s": elapsed}


def _flat(plan: Mapping[str, object], above: str = "") -> CellRow:
    """Numbers and words of nested mappings by dotted name; lists are left out."""
    row: CellRow = {}
    for key, value in plan.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            row |= _flat(value, f"{name}.")
        elif value is None or isinstance(value, str | int | float):
            row[name] = value
    return row
