"""The table of a sweep: named columns with units, rows to iterate over, pandas on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from planner.protocol.columns import Cell, CodedColumn, Column, Columns, Row, named, plain
from planner.protocol.page import table_page
from planner.sweep.formats import Meta, kind_of, loaded, meta_of
from planner.text.errors import InputError, MissingExtra, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 10  # rows of a repr
FIRST = ("usd_per_mtok", "ttft", "tpot", "tokens_per_s", "layout", "bottleneck")


class Table:
    """The rows of a sweep.

    Attributes
    ----------
    over : names of the columns that were varied, in order.
    units : {column: base unit}; columns without one are absent.
    meta : version, digest of scenario and grid, problem, method, scenario.
    """

    def __init__(self, columns: Columns | None, meta: Meta, file: Path | None) -> None:
        self._columns = columns
        self.file = file  # where the table was written
        self.meta = meta
        self.over: tuple[str, ...] = tuple(meta["over"])
        self.units: dict[str, str] = dict(meta["units"])

    @classmethod
    def read(cls, file: str | Path) -> Table:
        """The table of a file that a sweep wrote.

        Raises InputError if it is none.
        """
        path = Path(file)
        meta = meta_of(path, kind_of(path)) if path.is_file() else None
        if meta is None:
            raise InputError(f"{path}: is no table of a sweep")
        return cls(None, meta, path)

    @cached_property
    def columns(self) -> Columns:
        """{name: values}, all of one length."""
        if self._columns is not None:
            return self._columns
        return loaded(self.file) if self.file is not None else {}

    def __len__(self) -> int:
        return self.meta["points"]

    def __getitem__(self, name: str) -> list[Cell]:
        """The values of a column, as Python's own; None where there is none."""
        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise InputError(f"the sweep has no column {name!r}{hint}")
        return plain(self.columns[name])

    def __iter__(self) -> Iterator[Row]:
        """The rows, as mappings."""
        values = [plain(column) for column in self.columns.values()]
        for row in zip(*values, strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def rows(self, **where: Cell) -> list[Row]:
        """The rows in which the columns have these values."""
        return [row for row in self if all(row.get(k) == value for k, value in where.items())]

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame.

        Raises MissingExtra if pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra("pandas", "data", "a data frame") from error
        columns = self.columns.items()
        values = {name: plain(x) if isinstance(x, CodedColumn) else x for name, x in columns}
        frame = pd.DataFrame(values)
        frame.attrs.update(units=self.units, meta=self.meta)
        return frame

    def plot(self, file: str | Path, of: str | None = None) -> None:
        """Draw a column, or the cost, over one or two axes into a file (.svg, .png, .pdf).

        Raises InputError if the column is no number, or the table has more axes; MissingExtra if
        Matplotlib is not installed.
        """
        from planner.report.pictures.picture_files import check_sweep_picture, write_sweep

        check_sweep_picture(Path(file), [len(dict.fromkeys(self[name])) for name in self.over])
        write_sweep(self, Path(file), of)

    def statuses(self) -> dict[str, int]:
        """How many rows have each status."""
        return dict(Counter(map(str, self["status"])))

    def __repr__(self) -> str:
        names, rows = self._head()
        cells = [names, *rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
        lines = ["  ".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True)) for row in cells]
        return "\n".join([self._title(), *lines, *self._omitted()])

    def _repr_html_(self) -> str:
        names, rows = self._head()
        columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        return table_page(self._title(), columns, self._omitted())

    def _title(self) -> str:
        counts = ", ".join(f"{count:,} {status}" for status, count in self.statuses().items())
        return f"<Sweep of {', '.join(self.over)}: {len(self):,} points, {counts}>"

    def _omitted(self) -> list[str]:
        left = len(self) - SHOWN
        return [f"... and {left:,} more"] if left > 0 else []

    def _head(self) -> tuple[list[str], list[list[str]]]:
        """Names with units and the first rows, of the columns that say most."""
        shown = [name for name in named([self.over, ("status",), FIRST]) if name in self.columns]
        if len(shown) == len(self.over) + 1:  # a problem without serving's words
            shown = list(self.columns)[: len(self.over) + 8]
        heads = [f"{n} [{self.units[n]}]" if n in self.units else n for n in shown]
        columns = [plain(_first_rows(self.columns[name])) for name in shown]
        return heads, [[_cell(value) for value in row] for row in zip(*columns, strict=True)]


class Memory:
    """Keeps the rows of a sweep in memory."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, Columns]] = []

    def missing(self, points: int) -> list[tuple[int, int]]:
        """All of them."""
        return [(0, points - 1)]

    def keep(self, first: int, last: int, columns: Columns) -> None:
        """Remember the rows of points `first` to `last`."""
        self.pieces.append((first, columns))

    def columns(self) -> Columns:
        """All rows in order."""
        tables = [columns for _, columns in sorted(self.pieces, key=lambda part: part[0])]
        return {name: _joined(name, tables) for name in named(tables)}


def _joined(name: str, tables: Sequence[Columns]) -> Column:
    """One column of tables that follow each other."""
    columns = [table.get(name) for table in tables]
    if all(hasattr(column, "dtype") for column in columns):
        import numpy as np

        return np.concatenate(columns)  # type: ignore[arg-type]
    values: list[Cell] = []
    for column, table in zip(columns, tables, strict=True):
        length = len(next(iter(table.values())))
        values += [None] * length if column is None else plain(column)
    return values


def _first_rows(column: Column) -> Column:
    if isinstance(column, CodedColumn):
        return CodedColumn(column.codes[:SHOWN], column.words)
    return column[:SHOWN]


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
