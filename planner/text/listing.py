"""Lists as tables: rows that can be searched and filtered, in columns that fit the width."""

from __future__ import annotations

import operator
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.text.errors import InputError, QuantityError, did_you_mean, quote
from planner.text.quantities import parse, show
from planner.text.terminal import is_terminal
from planner.text.wording import COLUMNS

Cell = str | float | None
MIN_COLUMN_WIDTH = 24  # columns of the last one, below which another is left out for it
COMPARISONS = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, "=": operator.eq, ">": operator.gt,
    "<": operator.lt,
}  # fmt: skip
CONDITION = re.compile(r"\s*([^<>=!]+?)\s*(>=|<=|!=|=|>|<)\s*(.+?)\s*")


@dataclass(frozen=True)
class Listing:
    """Rows of known entries, the name in the first column.

    `columns` are names with the dimension of their figures (in base units), or None for words.
    """

    columns: Mapping[str, str | None]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def names(self) -> list[str]:
        """Names in the first column."""
        return [str(row[0]) for row in self.rows]

    @property
    def records(self) -> list[dict[str, Cell]]:
        """The rows by the names of their columns, figures in base units."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def selected(self, find: str | None, where: Sequence[str] = ()) -> Listing:
        """Rows that contain every word of `find` and satisfy every condition.

        A condition is `memory>=100 GB` or `chip=h200`; where a figure is not known none holds.
        Raises InputError if a condition is none, or names no column of the list.
        """
        tests = [self._condition(text) for text in where]
        words = (find or "").lower().split()
        return replace(
            self,
            rows=tuple(
                row
                for row in self.rows
                if all(word in " ".join(self._texts(row)).lower() for word in words)
                and all(_holds(row[place], sign, value) for place, sign, value in tests)
            ),
        )

    def _condition(self, text: str) -> tuple[int, str, str | float]:
        read = CONDITION.fullmatch(text)
        names = list(self.columns)
        if read is None:
            raise InputError(f"--where {quote(text)}: expected COLUMN, a sign and a value "
                             f"(columns: {', '.join(names)})")  # fmt: skip
        name, sign, value = read.groups()
        if name not in self.columns:
            hint = did_you_mean(name, names)
            raise InputError(f"--where {name}: no such column{hint} (columns: {', '.join(names)})")
        dimension = self.columns[name]
        if dimension is None:
            if sign not in ("=", "!="):
                raise InputError(f"--where {name}: has words, which are compared by = and != alone")
            return names.index(name), sign, value.lower()
        try:
            return names.index(name), sign, parse(value, dimension)
        except QuantityError as error:
            raise InputError(f"--where {name}: {error}") from error

    def _texts(self, row: Sequence[Cell]) -> list[str]:
        return [
            "" if cell is None else cell if isinstance(cell, str) else _figure(cell, dimension)
            for cell, dimension in zip(row, self.columns.values(), strict=True)
        ]

    def __str__(self) -> str:
        """The table: on a terminal as wide as it is, elsewhere every row is one line."""
        heads, cells = list(self.columns), [self._texts(row) for row in self.rows]
        words = [place for place, name in enumerate(heads) if self.columns[name] is None]
        if not is_terminal(sys.stdout):
            return "\n".join(format_columns(heads, cells, words))
        # Places of the columns that a terminal has room for; the first and the last always stay.
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        shown = list(range(len(widths)))
        while len(shown) > 2:
            room = COLUMNS.get() - sum(widths[i] + 2 for i in shown[:-1])
            if room >= min(MIN_COLUMN_WIDTH, widths[-1]):
                break
            del shown[-2]
        lines = format_columns(
            [heads[i] for i in shown],
            [[row[i] for i in shown] for row in cells],
            [place for place, i in enumerate(shown) if i in words],
        )
        start = lines[0].rfind(heads[shown[-1]])
        folded = [
            line
            for whole in lines
            for line in textwrap.wrap(whole, COLUMNS.get(), subsequent_indent=" " * start,
                                      drop_whitespace=True)
        ]  # fmt: skip
        left = [name for i, name in enumerate(heads) if i not in shown]
        return "\n".join([*folded, *([f"(no room for: {', '.join(left)})"] if left else [])])


def _figure(value: float, dimension: str | None) -> str:
    if dimension in (None, "number"):
        return f"{value:,g}"
    return re.sub(r" (\w?) ?(params|tokens)$", r"\1", show(value, dimension))


def _holds(cell: Cell, sign: str, value: str | float) -> bool:
    cell = cell.lower() if isinstance(cell, str) else cell
    return cell is not None and bool(COMPARISONS[sign](cell, value))


def format_columns(
    headings: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = ()
) -> list[str]:
    """Lines of a table: columns of `words` flush left, numbers flush right, empty columns out."""
    shown = [i for i in range(len(headings)) if i in words or any(row[i] for row in rows)]
    widths = {i: max(len(row[i]) for row in (headings, *rows)) for i in shown}
    return [
        "  ".join(f"{row[i]:{'<' if i in words else '>'}{widths[i]}}" for i in shown).rstrip()
        for row in (headings, *rows)
    ]
