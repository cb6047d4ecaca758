"""Measurement files as tables: which of the known column sets a file has, and its rows as text.

A cell is never changed, but for models of configurations: what is not understood is refused later,
by row and with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from planner.measurements.readers import located, recognised
from planner.measurements.readers.kinds import OWN
from planner.measurements.readers.model_configurations import configurations
from planner.measurements.readers.sheets import Documents, Sheet, sheet
from planner.measurements.readers.table_columns import VALUES, columns_of
from planner.text.errors import InputError, Mistake

__all__ = ["MEASURED", "OWN", "Table", "positive_of", "table"]

MEASURED: Mapping[str, tuple[str, ...]] = {
    "serving runs": ("tpot_ms", "ttft_ms"),
    "steady batches": ("value",),
    "training runs": ("iter_time_derived_s", "measured_iter_time_s"),
    "collectives": ("time_us",),
    "exchanges": ("latency_us",),
}
LEAST, MOST = 1e-9, 1e15  # of any value, in the unit of its column


@dataclass(frozen=True)
class Table:
    """A file of measurements: its `kind`, columns, rows, the line of each row, measured columns.

    The results of a load generator have no columns, and a row for each run. Every row has as many
    cells as there are columns. `models` are the configurations in place of catalogue entries.
    """

    source: Sheet | Documents
    kind: str
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    columns: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self.source.path

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.name

    @property
    def sheet(self) -> Sheet:
        """The table as calibration reads it; raises InputError for what is none."""
        if isinstance(self.source, Sheet):
            return self.source
        raise InputError(f"{self.path} is no CSV table that columns are added to")

    def cells(self, row: int) -> dict[str, str]:
        """One row by column."""
        return dict(zip(self.columns, self.rows[row], strict=True))


def table(source: Path | Sheet, facts: Mapping[str, str], folders: Sequence[Path] = ()) -> Table:
    """The table in a CSV file.

    Parameters
    ----------
    facts : what the file does not say, for tables of one's own.
    folders : configurations of models that the catalogue does not hold.

    Raises
    ------
    InputError
        If it cannot be read as text, is empty, has columns of no known kind or a column twice, or
        if a row has more cells than there are columns.
    """
    read = sheet(source)
    kind = recognised(read)
    if not read.rows:
        raise InputError(Mistake(str(read), 1, 1, "", "holds a header and no row"))
    held, models = located(read, kind, configurations(folders, read.path), facts)
    columns = held.columns
    measured = tuple(name for name in MEASURED.get(kind, ()) if name in columns)
    if kind == OWN:
        meant = columns_of(columns, facts, str(read))
        measured = tuple(name for name in columns if meant.get(name) in VALUES)
    return Table(held, kind, held.rows, held.lines, columns, measured, models)


def positive_of(text: str) -> float | None:
    """A cell as a number above zero that can be a measurement, None for any other."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if LEAST <= value <= MOST else None
