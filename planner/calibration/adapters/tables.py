"""What every adapter needs: rows of a CSV file, numbers out of their texts, rows or reasons."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.calibration.measurements import Measurement, NotComputed
from planner.calibration.names import Refused
from planner.errors import InputError, quoted

__all__ = ["Readings", "Row", "count", "given", "header_of", "number", "positive", "rows_of"]

Row = Mapping[str, str]

MOST = 1e9  # chips, tokens, requests, ms or s
MOST_CHIPS = 1_000_000
LONGEST = 10_000_000  # characters of one field; beyond, a file is not a table


@dataclass(frozen=True)
class Readings:
    """What a file of measurements holds: measurements, and values without one with the reason.

    `columns` names the column set. Every data line of the file is accounted for: its number is the
    id of at least one entry of `rows` or `refused`. `lines` counts the data lines.
    """

    columns: str
    rows: tuple[Measurement, ...]
    refused: tuple[NotComputed, ...]
    lines: int

    @property
    def reasons(self) -> dict[str, int]:
        """How many values were refused, by reason, most frequent first."""
        return dict(Counter(each.reason for each in self.refused).most_common())

    @property
    def firsts(self) -> tuple[Measurement, ...]:
        """The measurements that repeat no other: those that a fit or a score counts."""
        return tuple(row for row in self.rows if not row.repeats)


def rows_of(path: Path) -> list[Row]:
    """The data lines of a CSV file by column name; names and values stripped, blank lines kept.

    Raises
    ------
    InputError
        If the file cannot be read, is not text, holds no header, or a column twice.
    """
    lines = _lines(path)
    names = _names(lines, path)
    # A short line lacks its last values; what a long one has over is kept under no name.
    return [
        dict(zip(names, [*map(str.strip, line), *[""] * (len(names) - len(line))], strict=False))
        for line in lines[1:]
    ]


def header_of(path: Path) -> list[str]:
    """The column names of a CSV file; raises InputError as `rows_of` does."""
    return _names(_lines(path), path)


def number(row: Row, name: str) -> float:
    """A value as a finite number; raises Refused for one that is missing or is none."""
    text = row.get(name, "")
    if not text:
        raise Refused(f"{name} is not given")
    try:
        value = float(text)
    except ValueError:
        raise Refused(f"{name} is no number: {quoted(text)}") from None
    if not math.isfinite(value):
        raise Refused(f"{name} is not finite")
    return value


def positive(row: Row, name: str) -> float:
    """A value above zero; raises Refused for any other."""
    value = number(row, name)
    if value <= 0:
        raise Refused(f"{name} is zero or negative")
    if value > MOST:
        raise Refused(f"{name} is beyond any measurement: {value:g}")
    return value


def given(row: Row, name: str) -> float | None:
    """A value above zero, None where it is blank or zero (some tables write 0 for unknown)."""
    text = row.get(name, "")
    if not text or text in ("0", "0.0"):
        return None
    return positive(row, name)


def count(row: Row, name: str, default: int | None = None) -> int:
    """A whole number above zero; `default` where blank or zero; raises Refused for any other."""
    value = given(row, name)
    if value is None:
        if default is None:
            raise Refused(f"{name} is not given")
        return default
    if value != int(value):
        raise Refused(f"{name} is no whole number: {row[name]}")
    if value > MOST_CHIPS:
        raise Refused(f"{name} is beyond any machine: {value:g}")
    return int(value)


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as why:
        raise InputError(f"cannot read {path}: {why.strerror or why}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    if "\0" in text:
        raise InputError(f"{path} holds zero bytes: it is not a text table")
    csv.field_size_limit(LONGEST)
    try:
        return list(csv.reader(text.splitlines(keepends=True)))
    except csv.Error as why:
        raise InputError(f"{path} is not a CSV table: {why}") from None


def _names(lines: list[list[str]], path: Path) -> list[str]:
    if not lines or not any(name.strip() for name in lines[0]):
        raise InputError(f"{path} has no header line")
    names = [name.strip() for name in lines[0]]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"{path} has the column {quoted(twice[0])} twice")
    return names
