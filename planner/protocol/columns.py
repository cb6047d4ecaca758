"""Columns of a table: lists, arrays, or few different values with their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np

Cell: TypeAlias = str | int | float | None
Row: TypeAlias = dict[str, Cell]


@dataclass(frozen=True)
class CodedColumn:
    """A column of few different values: `codes` are places in `words`, shape (n,)."""

    codes: np.ndarray
    words: tuple[Cell, ...]

    def __len__(self) -> int:
        return len(self.codes)


Column: TypeAlias = "Sequence[Cell] | np.ndarray | CodedColumn"
Columns: TypeAlias = Mapping[str, Column]


def by_name(rows: Sequence[Mapping[str, Cell]]) -> dict[str, list[Cell]]:
    """Rows as columns; a key that a row lacks is None there."""
    return {name: [row.get(name) for row in rows] for name in named(rows)}


def merged(axes: Columns, answers: Columns) -> Columns:
    """Columns of what varies, then those of answers; `plan.` begins a name that both have."""
    return {**axes, **{f"plan.{x}" if x in axes else x: column for x, column in answers.items()}}


def named(tables: Iterable[Iterable[str]]) -> list[str]:
    """The names of all tables, in the order in which they are first met."""
    return list(dict.fromkeys(name for table in tables for name in table))


def plain(column: Column) -> list[Cell]:
    """The values of a column as Python's own, None where there is none."""
    if isinstance(column, CodedColumn):
        return [column.words[code] for code in column.codes.tolist()]
    if isinstance(column, Sequence):
        return list(column)
    # NaN, which equals nothing, is how an array of numbers says that there is none.
    return [value if value == value else None for value in column.tolist()]  # noqa: PLR0124
