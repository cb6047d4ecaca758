"""Sweeps without a search: all points in array operations, no process and no loop.

A scenario whose layout and batch are given is one evaluation of the equations. Axes that are
numbers of these (`dials`) become arrays; for each combination of the others the model is bound
once. Every value is the one that `planner.solve` gives at the same point.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from planner.protocol.output import Cell, CodedColumn, Columns, merge_columns
from planner.protocol.output import Column as TableColumn
from planner.protocol.problem import ArrayModel, HasArrays, get_problem
from planner.scenario.grid import Span
from planner.sweep.chunk import ROW_COLUMNS, Column, SweepSpec, build_point_scenario, error_reason
from planner.text.errors import InputError, PlannerError

MAX_MODELS = 4096  # combinations of axes that are no dials
MAX_CHECKED_VALUES = 1_000_000  # maximum values of a whole-number axis that are checked
STATUSES = ("optimal", "infeasible", "refused")


@dataclass(frozen=True)
class ClosedForm:
    """A sweep whose points are evaluations.

    `models` are the bound models, or why there is none, in the order of the product of the axes
    `fixed`; `dials` are the places of the other axes.
    """

    survey: SweepSpec
    problem: HasArrays[Any]
    dials: tuple[int, ...]
    fixed: tuple[int, ...]
    models: tuple[ArrayModel | str, ...]

    def columns(self, first: int, last: int) -> Columns:
        """The rows of points `first` to `last`."""
        start = perf_counter()
        shape = [len(axis) for axis in self.survey.grid.axes]
        places = np.unravel_index(np.arange(first, last + 1), shape)
        count = last - first + 1
        table = _ColumnBuffer(count, self.models, get_problem(self.survey.problem).columns)
        which = np.zeros(count, dtype=np.int64)
        for axis in self.fixed:
            which = which * len(self.survey.grid.axes[axis]) + places[axis]
        values = {
            self.survey.columns[axis].name: axis_values(self.survey.columns[axis], places[axis])
            for axis in self.dials
        }
        for number in np.unique(which).tolist():
            model = self.models[number]
            rows = np.flatnonzero(which == number)
            whole = slice(None) if len(rows) == count else rows
            if isinstance(model, str):
                table.refuse(whole, model)
            else:
                table.put(whole, number, _evaluated(model, values, rows))
        axes = zip(self.survey.columns, places, strict=True)
        values_of = {column.name: axis_column(column, at) for column, at in axes}
        return merge_columns(values_of, table.columns((perf_counter() - start) / count))


def _evaluated(
    model: ArrayModel, values: Mapping[str, np.ndarray], rows: np.ndarray
) -> dict[str, np.ndarray | CodedColumn]:
    """The columns of a model at some rows; a lone one is computed twice.

    Kernels group factors by their shapes, and one value has that of a number: its last digits would
    be others than in company.
    """
    at = np.resize(rows, max(len(rows), 2))
    columns = model({name: value[at] for name, value in values.items()})
    return {
        name: CodedColumn(column.codes[: len(rows)], column.words)
        if isinstance(column, CodedColumn)
        else np.broadcast_to(column, at.shape)[: len(rows)]
        for name, column in columns.items()
    }


def closed_form(survey: SweepSpec) -> ClosedForm | None:
    """The closed form of a sweep; None where a point needs a search."""
    problem = get_problem(survey.problem)
    if not isinstance(problem, HasArrays):
        return None
    axes = range(len(survey.grid.axes))
    dials = tuple(i for i in axes if _becomes_array(problem, survey.columns[i]))
    fixed = tuple(i for i in axes if i not in dials)
    shape = [len(survey.grid.axes[i]) for i in fixed]
    if prod(shape) > MAX_MODELS:
        return None
    models: list[ArrayModel | str] = []
    for places in product(*map(range, shape)):
        model = _bound(problem, survey, dials, dict(zip(fixed, places, strict=True)))
        if model is None:
            return None
        models.append(model)
    return ClosedForm(survey, problem, dials, fixed, tuple(models))


def axis_values(column: Column, at: Sequence[int] | np.ndarray) -> np.ndarray:
    """The values of a numeric axis at places, shape of the places."""
    places = np.asarray(at)
    if column.span is not None:
        return range_values(column.span, places) * column.scale
    return np.array(column.labels, dtype=np.float64)[places]


def range_values(span: Span, places: np.ndarray) -> np.ndarray:
    """`Span.number` at many places."""
    if span.kind == "whole":
        return span.first + places.astype(np.float64)
    share = places / max(span.count - 1, 1)
    if span.kind == "log":
        values = span.first * (span.last / span.first) ** share
    else:
        values = span.first + share * (span.last - span.first)
    with np.errstate(divide="ignore"):
        scale = 10.0 ** (11 - np.floor(np.log10(np.abs(values))))
    rounded = np.where(values == 0, 0.0, np.round(values * scale) / scale)
    rounded[places == span.count - 1] = span.last
    rounded[places == 0] = span.first
    return rounded


def axis_column(column: Column, places: np.ndarray) -> TableColumn:
    """The column of an axis in the table."""
    if column.span is None:
        return CodedColumn(places, column.labels or ())
    values = axis_values(column, places)
    return values.astype(np.int64) if column.span.kind == "whole" and column.scale == 1 else values


def _becomes_array(problem: HasArrays[Any], column: Column) -> bool:
    if not column.numeric or not problem.is_array(column.name):
        return False
    if column.name not in problem.whole or column.span is None or column.span.kind == "whole":
        return True
    short = column.span.count <= MAX_CHECKED_VALUES
    values = axis_values(column, np.arange(column.span.count)) if short else np.array([np.nan])
    return bool((values == np.round(values)).all())


def _bound(
    problem: HasArrays[Any], survey: SweepSpec, dials: Sequence[int], places: Mapping[int, int]
) -> ArrayModel | str | None:
    """The model at places of the other axes, or why there is none; None if it needs a search."""
    ends_at = {i: _ends(survey.columns[i]) for i in dials}
    ends = {survey.columns[i].name: axis_values(survey.columns[i], at) for i, at in ends_at.items()}
    models: list[ArrayModel | str | None] = []
    for end in (0, 1):
        at = {**places, **{i: both[end] for i, both in ends_at.items()}}
        sets = survey.grid.sets_at([at[i] for i in range(len(at))])
        try:
            scenario = build_point_scenario(survey.tree, survey.folder, sets)
            model = problem.array_model(scenario, ends)
            if model is None:
                return None
            models.append(model)
        except InputError as error:
            models.append(error_reason(error))
        except PlannerError:
            return None
    first, last = models
    if isinstance(first, str) or isinstance(last, str):
        return first if first == last else None
    return first if last is not None else None


def _ends(column: Column) -> tuple[int, int]:
    if column.span is not None:
        ends = (0, column.span.count - 1)
        return ends if column.span.first <= column.span.last else ends[::-1]
    values = np.array(column.labels, dtype=np.float64)
    return int(values.argmin()), int(values.argmax())


class _ColumnBuffer:
    """Columns of one piece, filled model by model."""

    def __init__(
        self, count: int, models: Sequence[ArrayModel | str], names: Iterable[str]
    ) -> None:
        self.count = count
        self.names = (*ROW_COLUMNS, *names)
        self.models = models
        self.numbers: dict[str, np.ndarray] = {}
        self.status = np.zeros(count, dtype=np.int8)
        self.model = np.full(count, -1)
        self.words: dict[str, tuple[np.ndarray, list[Cell]]] = {}

    def put(
        self, rows: slice | np.ndarray, number: int, columns: Mapping[str, np.ndarray | CodedColumn]
    ) -> None:
        """The values of a model at some rows; floats are arrays, words are `CodedColumn`."""
        status = np.asarray(columns["status"])
        feasible = status == 0
        self.status[rows] = status
        self.model[rows] = np.where(feasible, number, -1)
        for name, value in columns.items():
            if isinstance(value, CodedColumn):
                self._say(name, rows, value)
            elif name != "status":
                column = self.numbers.setdefault(name, np.full(self.count, np.nan))
                there = feasible | (name == "short_by")
                column[rows] = np.where(there, np.asarray(value), np.nan)

    def refuse(self, rows: slice | np.ndarray, reason: str) -> None:
        """Rows of a combination that is none."""
        self.status[rows] = STATUSES.index("refused")
        size = len(self.status[rows])
        self._say("reason", rows, CodedColumn(np.zeros(size, dtype=np.int64), (reason,)))

    def columns(self, elapsed: float) -> dict[str, TableColumn]:
        """All columns, in the order of the rows of solved plans."""
        plans = [{} if isinstance(m, str) else m.words for m in self.models]
        nothing = CodedColumn(np.zeros(self.count, dtype=np.int8), (None,))
        columns_of: dict[str, TableColumn] = {
            **self.numbers,
            **{name: CodedColumn(codes, tuple(x)) for name, (codes, x) in self.words.items()},
            "status": CodedColumn(self.status, STATUSES),
            "elapsed_s": np.full(self.count, elapsed),
        }
        for name in self.names:
            if name not in columns_of:
                words = (None, *(plan.get(name) for plan in plans))
                stated = any(name in plan for plan in plans)
                columns_of[name] = CodedColumn(self.model + 1, words) if stated else nothing
        return {name: columns_of[name] for name in self.names}

    def _say(self, name: str, rows: slice | np.ndarray, value: CodedColumn) -> None:
        codes, words = self.words.setdefault(name, (np.zeros(self.count, dtype=np.int64), [None]))
        words += [word for word in dict.fromkeys(value.words) if word not in words]
        codes[rows] = np.array([words.index(word) for word in value.words])[value.codes]
