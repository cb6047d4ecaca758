"""Columns of a table as they are passed on: lists, arrays, or words by their number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Columns", "Words", "by_name", "named", "plain"]


@dataclass(frozen=True)
class Words:
    """A column of few different values: `codes` are places in `words`, shape (n,)."""

    codes: np.ndarray
    words: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.codes)


Columns: TypeAlias = Mapping[str, "Sequence[Any] | np.ndarray | Words"]


def by_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; a key that a row lacks is None there."""
    names = named(rows)
    return {name: [row.get(name) for row in rows] for name in names}


def named(tables: Iterable[Iterable[str]]) -> list[str]:
    """The names of all tables, in the order in which they are first met."""
    return list(dict.fromkeys(name for table in tables for name in table))


def plain(column: Any) -> list[Any]:
    """The values of a column as Python's own, None where there is none."""
    if isinstance(column, Words):
        return [column.words[code] for code in column.codes.tolist()]
    if hasattr(column, "tolist"):
        # NaN, which equals nothing, is how an array of numbers says that there is none.
        return [value if value == value else None for value in column.tolist()]  # noqa: PLR0124
    return list(column)
