"""What every adapter needs: rows of a table, numbers out of their texts, rows or reasons."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from planner.measurements.measurement import Measurement, NotComputed
from planner.measurements.published_names import Refused
from planner.measurements.readers.sheets import Source, sheet
from planner.text.errors import InputError, Mistake, quoted

__all__ = [
    "Readings",
    "Row",
    "Source",
    "count",
    "day",
    "given",
    "header_of",
    "number",
    "positive",
    "rows_of",
    "tokens",
]

Row = Mapping[str, str]

MOST, LEAST = 1e9, 1e-9  # chips, tokens, requests, ms or s
MOST_CHIPS = 1_000_000
MONTH = re.compile(r"\d{4}-\d{2}")
# Digits with commas or spaces among them: as a number, they could mean several.
PUNCTUATED = re.compile(r"[-+]?\d[\d.,'\s_\u00a0\u202f]*")


@dataclass(frozen=True)
class Readings:
    """What a file of measurements holds: measurements, and values without one with the reason.

    `columns` names the column set. Every data line of the file is accounted for: its number is the
    id of at least one entry of `rows` or `refused`. `lines` counts the data lines. `models` are
    the configurations that were read for models that the catalogue does not hold.
    """

    columns: str
    rows: tuple[Measurement, ...]
    refused: tuple[NotComputed, ...]
    lines: int
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def reasons(self) -> dict[str, int]:
        """How many values were refused, by reason, most frequent first."""
        return dict(Counter(each.reason for each in self.refused).most_common())

    @property
    def firsts(self) -> tuple[Measurement, ...]:
        """The measurements that repeat no other: those that a fit or a score counts."""
        return tuple(row for row in self.rows if not row.repeats)


def rows_of(source: Source) -> list[Row]:
    """The lines after the first by column name, values stripped; blank lines have blank values.

    Raises
    ------
    InputError
        If the file is no table, or holds a header and no row.
    """
    one = sheet(source)
    if not one.rows:
        raise InputError(Mistake(str(one), 1, 1, "", "holds a header and no row"))
    at = dict(zip(one.lines, one.rows, strict=True))
    blank = ("",) * len(one.columns)
    return [
        dict(zip(one.columns, map(str.strip, at.get(line, blank)), strict=True))
        for line in range(2, one.lines[-1] + 1)
    ]


def header_of(source: Source) -> list[str]:
    """The column names of a table; raises InputError where the file is none."""
    return list(sheet(source).columns)


def number(row: Row, name: str) -> float:
    """A value as a finite number; raises Refused for one that is missing or is none."""
    text = row.get(name, "")
    if not text:
        raise Refused(f"{name} is not given")
    try:
        value = float(text)
    except ValueError:
        hint = ""
        if PUNCTUATED.fullmatch(text):
            hint = "; a point stands before decimals, nothing between thousands"
        raise Refused(f"{name} is no number: {quoted(text)}{hint}") from None
    if not math.isfinite(value):
        raise Refused(f"{name} is not finite")
    if abs(value) > MOST:
        raise Refused(f"{name} is beyond any measurement: {value:g}")
    return value


def positive(row: Row, name: str) -> float:
    """A value above zero; raises Refused for any other."""
    value = number(row, name)
    if value <= 0:
        raise Refused(f"{name} is zero or negative")
    if value < LEAST:
        raise Refused(f"{name} is beyond any measurement: {value:g}")
    return value


def tokens(row: Row, name: str) -> float:
    """A length of one token or more, which may be a mean; raises Refused for any other."""
    value = positive(row, name)
    if value < 1:
        raise Refused(f"{name} is {value:g}, less than a token")
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


def day(row: Row, name: str) -> str:
    """A date, or a month, as `2026-01-31` or `2026-01`; blank where there is none.

    Raises
    ------
    Refused
        If it is no such date; other ways to write one are not guessed at.
    """
    text = row.get(name, "")
    try:
        date.fromisoformat(f"{text}-01" if MONTH.fullmatch(text) else text or "2026-01-01")
    except ValueError:
        raise Refused(f"{name} is no date such as 2026-01-31: {quoted(text)}") from None
    return text
