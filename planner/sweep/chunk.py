"""One chunk of a sweep, solved point by point: the function that every kind of worker runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from planner.protocol.solve import solve
from planner.scenario import Tree
from planner.sweep.preflight import Survey, scenario_at
from planner.sweep.rows import answered, refused
from planner.text.errors import InputError, PlannerError

__all__ = ["Chunk", "chunks", "mistaken", "solved"]

LONGEST = 32  # points of a chunk: what a killed worker loses
SHARES = 8  # chunks per worker of what is left, so that all end together

_ONE_AT_A_TIME = threading.Lock()  # solvers keep state; threads of one worker take turns


@dataclass(frozen=True)
class Chunk:
    """Points that follow each other: the number of the first, and the changes that make each."""

    first: int
    points: tuple[tuple[str, ...], ...]
    tree: Tree
    folder: Path

    @property
    def last(self) -> int:
        """Number of the last point."""
        return self.first + len(self.points) - 1

    def split(self) -> list[Chunk]:
        """A chunk for each of its points."""
        return [
            Chunk(self.first + i, (point,), self.tree, self.folder)
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
            yield Chunk(start, points, survey.tree, survey.folder)
            start += size
            left -= size


def solved(chunk: Chunk) -> list[dict[str, Any]]:
    """A row for every point; what has no answer is a row with its reason."""
    with _ONE_AT_A_TIME:
        return [_row(chunk, sets) for sets in chunk.points]


def _row(chunk: Chunk, sets: Sequence[str]) -> dict[str, Any]:
    start = perf_counter()
    try:
        plan = solve(scenario_at(chunk.tree, chunk.folder, sets))
    except InputError as error:
        return refused("refused", mistaken(error), perf_counter() - start)
    except PlannerError as error:
        return refused("failed", str(error), perf_counter() - start)
    except Exception as error:
        # A fault of ours at one point must not end a run of thousands; the row says what it was.
        told = f"a fault of ours: {type(error).__name__}: {error}"
        return refused("failed", told[:300], perf_counter() - start)
    return answered(plan.document, perf_counter() - start)


def mistaken(error: InputError) -> str:
    """What is wrong at a point, without the place, which is the row itself."""
    if not error.mistakes:
        return str(error)
    told = [f"{m.path}: {m.message}" if m.path else m.message for m in error.mistakes]
    return "; ".join(dict.fromkeys(told))
