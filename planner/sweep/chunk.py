"""One chunk of a sweep, solved point by point: the function that every kind of worker runs.

A point is one row of a table: what every row has comes first, then the columns of the kind; a kind
that says no row of its own gives every number and word of its plan.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from planner.protocol.columns import Row
from planner.protocol.document import document_of
from planner.protocol.problem import Search, problem_of, search, search_many
from planner.protocol.solve import solve
from planner.scenario.loading import Question
from planner.scenario.tree import Tree
from planner.sweep.preflight import Survey, scenario_at
from planner.text.errors import FieldError, InputError, PlannerError

ANSWERED = ("status", "reason", "short_by", "elapsed_s")  # of every row, whatever the problem
LONGEST = 32  # points of a chunk: what a killed worker loses
SHARES = 8  # chunks per worker of what is left, so that all end together

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


def chunks(survey: Survey, ranges: Sequence[tuple[int, int]], workers: int) -> Iterator[Chunk]:
    """The points of ranges (first, last), in chunks that get smaller towards the end."""
    left = sum(last - first + 1 for first, last in ranges)
    for first, last in ranges:
        start = first
        while start <= last:
            size = min(LONGEST, max(1, left // (SHARES * workers)), last - start + 1)
            points = tuple(tuple(survey.grid.sets(i)) for i in range(start, start + size))
            yield Chunk(start, points, survey.tree, survey.folder, survey.certify)
            start += size
            left -= size


def solved(chunk: Chunk) -> list[Row]:
    """A row for every point; what has no answer is a row with its reason.

    The points are searched together; where one of them is a mistake, one by one.
    """
    with _ONE_AT_A_TIME:
        start = perf_counter()
        try:
            questions = [scenario_at(chunk.tree, chunk.folder, sets) for sets in chunk.points]
            points = search_many(questions)
            share = (perf_counter() - start) / len(questions)
            pairs = zip(questions, points, strict=True)
            return [_row(chunk, question, point, share) for question, point in pairs]
        except Exception:
            # Whose fault it was is said by the row of that point.
            return [_solved_alone(chunk, sets) for sets in chunk.points]


def _solved_alone(chunk: Chunk, sets: Sequence[str]) -> Row:
    """The row of one point, with its reason where it has no answer."""
    start = perf_counter()
    try:
        question = scenario_at(chunk.tree, chunk.folder, sets)
        point = search(question)
        return _row(chunk, question, point, perf_counter() - start)
    except InputError as error:
        return refused("refused", mistaken(error), perf_counter() - start)
    except PlannerError as error:
        return refused("failed", str(error), perf_counter() - start)
    except Exception as error:
        # A fault of ours at one point must not end a run of thousands; the row says what it was.
        fault = f"a fault of ours: {type(error).__name__}: {error}"
        return refused("failed", fault[:300], perf_counter() - start)


def _row(chunk: Chunk, question: Question, point: Search, elapsed: float) -> Row:
    """The row of a point; its gap to an independent bound where that is asked for."""
    row = row_of(question.problem, point, elapsed)
    if chunk.certify and point.feasible and "gap" in row:
        row["gap"] = solve(question).document["certificate"]["gap"]
    return row


def mistaken(error: InputError) -> str:
    """What is wrong at a point, without the place, which is the row itself."""
    if isinstance(error, FieldError):
        return "; ".join(dict.fromkeys(f"{path}: {words}" for path, words in error.faults))
    if not error.mistakes:
        return str(error)
    messages = [f"{m.path}: {m.message}" if m.path else m.message for m in error.mistakes]
    return "; ".join(dict.fromkeys(messages))


def row_of(kind: str, search: Search, elapsed: float) -> Row:
    """The row of a point: what every row has, then the quantities of its problem."""
    missed = search.shortfalls
    factors = [each.short_by for each in missed if each.short_by is not None]
    head: Row = {
        "status": search.status,
        "reason": ", ".join(each.promise for each in missed) or None,
        "short_by": max(factors, default=None),
        "elapsed_s": elapsed,
    }
    if search.row is not None:
        return head | dict(search.row())
    if search.feasible:
        return head | _flat(document_of(search.plan))
    return head | dict.fromkeys(problem_of(kind).columns)


def refused(status: str, reason: str, elapsed: float) -> Row:
    """The row of a point without answer: `refused` is a mistake in it, `failed` one of ours."""
    text = " ".join(reason.split())
    return {"status": status, "reason": text, "short_by": None, "elapsed_s": elapsed}


def _flat(plan: Mapping[str, object], above: str = "") -> Row:
    """Numbers and words of nested mappings by dotted name; lists are left out."""
    row: Row = {}
    for key, value in plan.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            row |= _flat(value, f"{name}.")
        elif value is None or isinstance(value, str | int | float):
            row[name] = value
    return row
