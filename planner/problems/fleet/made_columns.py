"""Columns that serving questions gave, each with the search behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.problems.fleet.task import FleetColumn
from planner.text.wording import below

if TYPE_CHECKING:
    from planner.problems.serving import Point, Question


@dataclass(frozen=True)
class MadeColumn:
    """A column with the search behind it."""

    column: FleetColumn
    pool: Question
    point: Point

    def certificate(self, bounded: bool) -> str:
        """How many layouts were decided; where wanted how far a bound by other means lies below."""
        words = f"{self.pool.decided.layouts:,} layouts decided"
        if not bounded:
            return words
        gap = max(0.0, 1 - self.pool.relaxation(self.point.score).value / self.point.score)
        return f"{words}; a bound lies {below(gap)} below"


@dataclass(frozen=True)
class MadeColumns:
    """The columns of all models, those dropped with the reason, and warnings."""

    made: tuple[MadeColumn, ...]
    dropped: tuple[str, ...]
    warnings: tuple[str, ...]


NO_COLUMNS = MadeColumns((), (), ())
