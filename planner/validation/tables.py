"""Measurement files as tables: which of the known column sets a file has, and its rows as text.

A cell is never changed: what is not understood is refused later, by row and with a reason.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.calibration.adapters import recognised
from planner.calibration.adapters.own import VALUES, columns_of
from planner.errors import InputError, Mistake, SolverError

__all__ = ["DOCUMENTS", "MEASURED", "OWN", "Table", "kind_at", "table"]

MEASURED: Mapping[str, tuple[str, ...]] = {
    "serving runs": ("tpot_ms", "ttft_ms"),
    "steady batches": ("value",),
    "training runs": ("iter_time_derived_s", "measured_iter_time_s"),
    "collectives": ("time_us",),
    "exchanges": ("latency_us",),
}
OWN = "own rows"
DOCUMENTS = (".json", ".jsonl")
LONGEST = 1 << 20  # characters of one cell


@dataclass(frozen=True)
class Table:
    """A file of measurements: its `kind`, columns, rows, the line of each row, measured columns.

    The results of a load generator have no columns, and a row for each run.

    A line counts rows as a spreadsheet does, the header being 1: breaks inside of cells do not.

    Every row has as many cells as there are columns.
    """

    path: Path
    kind: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    measured: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.name

    def cells(self, row: int) -> dict[str, str]:
        """One row by column."""
        return dict(zip(self.columns, self.rows[row], strict=True))


def kind_at(path: Path) -> str | None:
    """The kind of measurements in a file, None for a file of something else."""
    try:
        return recognised(path)
    except InputError:
        return None


def table(path: Path, facts: Mapping[str, str]) -> Table:
    """The table in a CSV file.

    Parameters
    ----------
    facts : what the file does not say, for tables of one's own.

    Raises
    ------
    InputError
        If it cannot be read as text, is empty, has columns of no known kind or a column twice, or
        if a row has more cells than there are columns.
    """
    shown = str(path)
    records = _records(_text(path), shown)
    if not records:
        raise InputError(Mistake(shown, None, None, "", "is empty, expected a header and rows"))
    columns = tuple(name.strip() for name in records[0][1])
    _checked(columns, shown)
    kind = recognised(path)
    rows, lines = [], []
    for line, cells in records[1:]:
        if len(cells) > len(columns):
            told = f"{len(cells)} cells in a row, {len(columns)} columns in the header"
            raise InputError(Mistake(shown, line, 1, "", told))
        rows.append(tuple(cells) + ("",) * (len(columns) - len(cells)))
        lines.append(line)
    if not rows:
        raise InputError(Mistake(shown, 1, 1, "", "holds a header and no row"))
    measured = tuple(name for name in MEASURED.get(kind, ()) if name in columns)
    if kind == OWN:
        meant = columns_of(columns, facts, shown)
        measured = tuple(name for name in columns if meant.get(name) in VALUES)
    return Table(path, kind, columns, tuple(rows), tuple(lines), measured)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            Mistake(str(path), None, None, "", f"is not text in UTF-8 (byte {error.start})")
        ) from error
    except OSError as error:
        told = f"{path} cannot be read: {error.strerror or error}"
        unfit = isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError)
        raise (InputError if unfit else SolverError)(told) from error


def _records(text: str, shown: str) -> list[tuple[int, list[str]]]:
    """Rows that are not blank, each with its number among all, the header being 1."""
    csv.field_size_limit(LONGEST)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [(line, cells) for line, cells in enumerate(reader, start=1) if cells]
    except csv.Error as error:
        raise InputError(Mistake(shown, reader.line_num, 1, "", f"no CSV: {error}")) from error


def _checked(columns: Sequence[str], shown: str) -> None:
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise InputError(Mistake(shown, 1, 1, "", f"columns named twice: {', '.join(twice)[:200]}"))
