"""The table of a sweep: named columns with units, rows to iterate over, pandas on request.

Parts of a sweep beside its output: written whole or not at all, found again, put together.

`FILE.parts/` holds `manifest.json` and one file for each chunk, named by its first and last point
and by the sweep it belongs to. A run that is killed leaves whole parts only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from planner.protocol.output import Cell, CellRow, CodedColumn, Column, Columns, all_names, tolist
from planner.protocol.page import table_page
from planner.report.files import resolve_links, unwritten, write
from planner.sweep import formats
from planner.text.console import note
from planner.text.errors import InputError, MissingExtra, did_you_mean

if TYPE_CHECKING:
    import pandas as pd


MANIFEST = "manifest.json"
LOCK = "lock"
CHUNK_NAME = re.compile(r"(\d{12})-(\d{12})\.([0-9a-f]{12})\.(\w+)")


class SweepParts:
    """The parts of one sweep, and the file they will be.

    Raises InputError if the folder holds parts of another sweep, or of this one and `resume` is not
    asked for.

    Args:
        out: the file; its ending says of which kind.
        meta: what the sweep is: its `digest`, `version`, `points`, units and scenario.
    """

    def __init__(self, out: Path, meta: formats.Meta, *, resume: bool) -> None:
        self.out = out
        self.kind = formats.file_kind(out)
        self.meta = meta
        self.folder = out.with_name(f"{out.name}.parts")
        self.digest = str(meta["digest"])[:12]
        self.ranges: list[tuple[int, int, Path]] = []
        try:
            resolve_links(out)
            # Before anything is read or written: the manifest is of the run that has the lock.
            self._lock = _locked(self.folder / LOCK)
        except OSError as error:
            raise unwritten(out, error) from error
        try:
            self._refuse_other(resume)
            write(self.folder / MANIFEST, json.dumps(meta, indent=2, default=str))
            self.ranges = self._sound()
        except BaseException:
            self.close()
            raise

    @classmethod
    def finished(cls, out: Path, meta: formats.Meta) -> bool:
        """True if the file is this sweep, complete; InputError if it is another sweep."""
        if not out.is_file() or out.with_name(f"{out.name}.parts").exists():
            return False
        there = formats.read_meta(out, formats.file_kind(out))
        if there and all(there[key] == meta[key] for key in ("digest", "version")):
            return True
        raise InputError(
            f"--resume {out}: is no unfinished sweep of this scenario and grid; "
            "name another --out, or leave --resume out to write it anew"
        )

    @property
    def done(self) -> int:
        """Number of stored points."""
        return sum(last - first + 1 for first, last, _ in self.ranges)

    def missing(self, points: int) -> list[tuple[int, int]]:
        """Ranges (first, last) of points that no part holds."""
        ranges, start = [], 0
        for first, last, _ in sorted(self.ranges):
            if first > start:
                ranges.append((start, first - 1))
            start = last + 1
        return [*ranges, (start, points - 1)] if start < points else ranges

    def keep(self, first: int, last: int, columns: Columns) -> None:
        """Write the rows of points `first` to `last`.

        Raises SolverError if the disk is full or broken.
        """
        part = self.folder / f"{first:012d}-{last:012d}.{self.digest}.{formats.FORMATS[self.kind]}"
        write(part, formats.encode_part(columns, self.kind, {"digest": self.meta["digest"]}))
        self.ranges.append((first, last, part))

    def finish(self) -> dict[str, int]:
        """Put the parts together, and remove them; how many rows have each status.

        Raises SolverError if the disk is full or broken; the parts are kept.
        """
        target = resolve_links(self.out)
        # A fixed name: the file of a killed run is overwritten. The lock excludes other runs.
        whole = target.with_name(f".{target.name[:200]}.part")
        try:
            ordered = [part for *_, part in sorted(self.ranges)]
            statuses = formats.assemble_parts(ordered, whole, self.kind, self.meta)
            if self.kind != "parquet":
                beside = self.out.with_name(f"{self.out.name}.meta.json")
                (self.folder / MANIFEST).replace(beside)
            whole.replace(target)
        except OSError as error:
            raise unwritten(self.out, error) from error
        finally:
            whole.unlink(missing_ok=True)
        shutil.rmtree(self.folder)  # under the lock: a run that waits for it begins a new folder
        self.close()
        return statuses

    def close(self) -> None:
        """Let another run have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _refuse_other(self, resume: bool) -> None:
        """Refuse a folder that this sweep must not touch."""
        try:
            manifest = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            manifest = {}
        parts = [match for name in os.listdir(self.folder) if (match := CHUNK_NAME.fullmatch(name))]
        if not parts:
            return
        if foreign := [part[0] for part in parts if part[3] != self.digest]:
            raise InputError(
                f"{self.folder / min(foreign)}: is of another scenario or grid; "
                "name another --out, or remove the folder"
            )
        if manifest.get("version", self.meta["version"]) != self.meta["version"]:
            raise InputError(
                f"{self.folder}: was begun by version {manifest['version']}, this is "
                f"{self.meta['version']}; name another --out, or remove the folder"
            )
        if not resume:
            raise InputError(
                f"{self.folder}: holds an unfinished sweep; go on with --resume, "
                "or remove the folder to begin anew"
            )

    def _sound(self) -> list[tuple[int, int, Path]]:
        """Complete parts of the folder; corrupt parts are removed and will be computed again."""
        sound: list[tuple[int, int, Path]] = []
        for name in sorted(os.listdir(self.folder)):
            part, match = self.folder / name, CHUNK_NAME.fullmatch(name)
            if name.endswith(".part"):
                part.unlink(missing_ok=True)  # unfinished part of a killed run
            if match is None or match[4] != formats.FORMATS[self.kind]:
                continue
            first, last = int(match[1]), int(match[2])
            overlaps = bool(sound) and first <= sound[-1][1]
            if overlaps or formats.count_rows(part, self.kind) != last - first + 1:
                note(f"{part}: is torn; its points are computed again", warning=True)
                part.unlink()
                continue
            sound.append((first, last, part))
        return sound


def _locked(file: Path) -> int | None:
    """Hold the folder against a second run; given up by the system when this run ends, however."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        return None
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:
            return lock
    except OSError as error:
        os.close(lock)
        raise InputError(f"{file.parent}: another run is at work on this sweep") from error
    os.close(lock)  # of a run that ended in this moment and took its folder with it
    return _locked(file)


class Table:
    """The rows of a sweep.

    Attributes:
        over: names of the columns that were varied, in order.
        units: {column: base unit}; columns without one are absent.
        meta: version, digest of scenario and grid, problem, method, scenario.
    """

    def __init__(self, columns: Columns | None, meta: formats.Meta, file: Path | None) -> None:
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
        meta = formats.read_meta(path, formats.file_kind(path)) if path.is_file() else None
        if meta is None:
            raise InputError(f"{path}: is no table of a sweep")
        return cls(None, meta, path)

    @cached_property
    def columns(self) -> Columns:
        """{name: values}, all of one length."""
        if self._columns is not None:
            return self._columns
        return formats.load_columns(self.file) if self.file is not None else {}

    def __len__(self) -> int:
        return self.meta["points"]

    def __getitem__(self, name: str) -> list[Cell]:
        """Values of a column as Python objects; None for missing values."""
        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise InputError(f"the sweep has no column {name!r}{hint}")
        return tolist(self.columns[name])

    def __iter__(self) -> Iterator[CellRow]:
        """The rows, as mappings."""
        values = [tolist(column) for column in self.columns.values()]
        for row in zip(*values, strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def rows(self, **where: Cell) -> list[CellRow]:
        """Rows whose columns have these values."""
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
        values = {name: tolist(x) if isinstance(x, CodedColumn) else x for name, x in columns}
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
        """Number of rows by status."""
        return dict(Counter(map(str, self["status"])))

    def __repr__(self) -> str:
        from planner.report.pictures.sweep_lines import sweep_text

        return sweep_text(self, "The table")

    def _repr_html_(self) -> str:
        from planner.report.pictures.sweep_lines import sweep_columns

        return table_page(*sweep_columns(self, "The table"), words="plan")


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
        return {name: _joined(name, tables) for name in all_names(tables)}


def _joined(name: str, tables: Sequence[Columns]) -> Column:
    """One column of tables that follow each other."""
    columns = [table.get(name) for table in tables]
    if all(hasattr(column, "dtype") for column in columns):
        import numpy as np

        return np.concatenate(columns)  # type: ignore[arg-type]
    values: list[Cell] = []
    for column, table in zip(columns, tables, strict=True):
        length = len(next(iter(table.values())))
        values += [None] * length if column is None else tolist(column)
    return values
