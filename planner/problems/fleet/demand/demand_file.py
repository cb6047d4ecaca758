"""Demand by hour from a CSV file: columns by the names in its head, rows by their times.

A file may hold a column of each model, `hour,chat,code`. A column's unit stands in its head, `chat
[requests/hour]`, or is its head, `requests per hour`; without one it is requests/s.

A model's requests over the hours: a wave, a list, a CSV file, or tokens of a day.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator, model_validator

from planner.scenario.keys.fields import Quantity, Record, Seconds
from planner.scenario.keys.references import File, name_or_file
from planner.text.errors import InputError, Mistake, quote
from topologies.files.units import ParsedQuantity, QuantityParseError, parse_quantity

HOUR, DAY, WEEK = 3600, 24, 168
THURSDAY = 72 * HOUR  # 1970-01-01, from Monday
FIRST_DATE = 400 * DAY * HOUR  # times of day are below
LARGEST_FILE = 2_000_000  # bytes
RATE = (("s", -1), ("seq", 1))
TIMES = {"hour", "hours", "utc", "time", "timestamp", "date", "datetime"}
UNIVERSAL = {"", "utc", "gmt", "z", "h"}  # what may stand in brackets behind the head of times
RATE_HEADS = {"demand", "rate", "load"}  # heads of an only column that say no model
IN_BRACKETS = re.compile(r"(.*?)\s*[\[(]([^\])]*)[\])]")
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::[0-9]{2})?")
EXAMPLE = 'hours such as 0, "13:00" or "2026-05-01T13:00Z"'
MAX_FAULTS = 8  # maximum number of faults reported per file


@dataclass(frozen=True)
class _CsvRow:
    """A line of the file: its number from 1, its cells, and where each of them begins."""

    line: int
    cells: tuple[str, ...]
    columns: tuple[int, ...]


class _Faults:
    """Mistakes in a file, each with its location."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.mistakes: list[Mistake] = []

    def add(self, row: _CsvRow, at: int, words: str) -> None:
        """A fault of the cell of a row."""
        column = row.columns[at] if at < len(row.columns) else 1
        self.mistakes.append(Mistake(str(self.file.path), row.line, column, "", words))

    def stop(self) -> None:
        """Raise InputError if any mistake was added."""
        if len(self.mistakes) > MAX_FAULTS:
            more = f"; {len(self.mistakes) - MAX_FAULTS} more lines are wrong"
            last = self.mistakes[MAX_FAULTS - 1]
            self.mistakes[MAX_FAULTS - 1 :] = [replace(last, message=last.message + more)]
        if self.mistakes:
            raise InputError(self.mistakes)


def has_unit(head: str) -> bool:
    """True if the head of a column names its unit."""
    unit = _unit(head)
    return IN_BRACKETS.fullmatch(head) is not None or (unit is not None and unit.powers == RATE)


def _rows(file: File) -> list[_CsvRow]:
    """The head and at least one row, empty lines left out."""
    written = quote(file.written)
    try:
        raw = file.path.read_bytes()[: LARGEST_FILE + 1]
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{written} cannot be read: {type(error).__name__}") from None
    if len(raw) > LARGEST_FILE:
        raise InputError(f"{written} is larger than {LARGEST_FILE:,} bytes")
    lines = text.splitlines()
    mark = max(",;\t", key=(lines or [""])[0].count)
    rows = []
    for number, line in enumerate(lines, start=1):
        cells = next(csv.reader([line], delimiter=mark), [])
        starts = [1]
        for part in line.split(mark)[:-1]:
            starts.append(starts[-1] + len(part) + 1)
        if any(cell.strip() for cell in cells):
            places = tuple(starts) if len(starts) == len(cells) else (1,) * len(cells)
            rows.append(_CsvRow(number, tuple(cell.strip() for cell in cells), places))
    if len(rows) < 2:
        raise InputError(f"{written} holds no rows below a head such as hour,requests/s")
    return rows


def _times_in(head: _CsvRow, faults: _Faults) -> int:
    """The column of times."""
    columns = []
    for at, cell in enumerate(head.cells):
        bracketed = IN_BRACKETS.fullmatch(cell)
        name, zone = bracketed.groups() if bracketed else (cell, "")
        if name.casefold() in TIMES:
            columns.append(at)
            if zone.casefold() not in UNIVERSAL:
                faults.add(head, at, f"times are of UTC, got {quote(zone)}; or give each its zone")
    if len(columns) > 1:
        faults.add(head, columns[1], "a second column of times; leave one of them")
    if not columns:
        words = "expected names of columns such as hour,chat,code: none of these is hour or time"
        faults.add(head, 0, words)
    return columns[0] if columns else 0


def _column(head: _CsvRow, times: int, name: str, faults: _Faults) -> int:
    """The column of a name; or the only one, where its head says no other."""
    others = [at for at in range(len(head.cells)) if at != times]
    columns = [at for at in others if _is_called(head.cells[at], name)]
    if len(columns) > 1:
        faults.add(head, columns[1], f"a second column of {quote(name)}")
    if columns:
        return columns[0]
    if len(others) == 1:
        cell = head.cells[others[0]]
        if cell.casefold() in RATE_HEADS or _unit(cell) is not None:
            return others[0]
    there = ", ".join(quote(head.cells[at]) for at in others) or "none"
    faults.add(head, times, (
        f"no column is called {quote(name)}, there is {there}: name it so, or say which it is, "
        f"demand: {{file: {faults.file.written}, column: NAME}}"
    ))  # fmt: skip
    return times


def _is_called(head: str, name: str) -> bool:
    bracketed = IN_BRACKETS.fullmatch(head)
    return name.casefold() in {x.casefold() for x in (head, bracketed and bracketed[1]) if x}


def _unit(text: str) -> ParsedQuantity | None:
    try:
        return parse_quantity(f"1 {text}") if text else None
    except QuantityParseError:
        return None


def _scale(head: _CsvRow, at: int, name: str, faults: _Faults) -> float:
    """Scale of a column's unit [seq/s]."""
    cell = head.cells[at]
    bracketed = IN_BRACKETS.fullmatch(cell)
    words = bracketed[2] if bracketed else cell
    unit = _unit(words)
    if unit is not None and unit.powers == RATE:
        return unit.scale
    if bracketed or (unit is not None and not _is_called(cell, name)):
        faults.add(head, at, f"expected a unit such as requests/s or requests/hour, got {words!r}")
    return 1.0


def _spaced(rows: Sequence[_CsvRow], times: int, faults: _Faults) -> tuple[int | None, int]:
    """Start of the rows in hours from Monday, None for plain numbers; and their step [s]."""
    read = [_time(row, times, faults) for row in rows]
    kinds = {kind for kind, _ in read}
    if len(kinds) > 1 and not faults.mistakes:
        row = next(row for row, (kind, _) in zip(rows, read, strict=True) if kind != read[0][0])
        faults.add(row, times, f"a time of another kind than that of line {rows[0].line}")
    if faults.mistakes:
        return None, HOUR
    numbered, clock = kinds == {"number"}, kinds == {"clock"}
    seconds = _over_midnight([time for _, time in read]) if clock else [time for _, time in read]
    apart = [abs(x - y) for x, y in pairwise(seconds) if x != y]
    step = min([HOUR, *apart])
    if HOUR % step:
        words = f"rows are {step / 60:g} min apart: an hour is no multiple of that"
        faults.add(rows[1], times, words)
        return None, HOUR
    wanted = 0 if numbered else seconds[0]
    if wanted % HOUR:
        faults.add(rows[0], times, "rows begin within an hour; begin at a full one")
    for row, time in zip(rows, seconds, strict=True):
        if time != wanted:
            faults.add(row, times, _misplaced(time, wanted, step, numbered=numbered))
        wanted = max(wanted, time + step)
    if numbered:
        return None, step
    return (seconds[0] + (0 if clock else THURSDAY)) // HOUR, step


def _time(row: _CsvRow, at: int, faults: _Faults) -> tuple[str, int]:
    """Return the type of a row's time, and the time [s]."""
    cell = row.cells[at] if at < len(row.cells) else ""
    if NUMBER.fullmatch(cell):
        return "number", round(float(cell) * HOUR)
    if match := CLOCK.fullmatch(cell):
        return "clock", (int(match[1]) * 60 + int(match[2])) * 60
    try:
        time = datetime.fromisoformat(cell)
    except ValueError:
        faults.add(row, at, f"expected {EXAMPLE}, got {quote(cell)}")
        return "", 0
    if time.tzinfo is None:
        return "date", round((time - datetime(1970, 1, 1)).total_seconds())
    return "date of a zone", round(time.timestamp())


def _over_midnight(times: Sequence[int]) -> list[int]:
    seconds: list[int] = []
    for time in times:
        last = seconds[-1] if seconds else 0
        day = last // (DAY * HOUR) + (time < last % (DAY * HOUR))
        seconds.append(day * DAY * HOUR + time)
    return seconds


def _misplaced(time: int, wanted: int, step: int, *, numbered: bool) -> str:
    def written(seconds: int) -> str:
        if numbered:
            return f"hour {seconds / HOUR:g}"
        form = "%H:%M" if seconds < FIRST_DATE else "%Y-%m-%d %H:%M"
        return f"{datetime.fromtimestamp(seconds, UTC):{form}}"

    if time == wanted - step:
        return f"{written(time)} is doubled"
    if time > wanted:
        before = f"follows {written(wanted - step)}" if wanted else "is the first"
        return f"{written(wanted)} is missing ({written(time)} {before})"
    return f"{written(time)} is out of order, {written(wanted)} was expected"


def _rate(row: _CsvRow, at: int, scale: float, faults: _Faults) -> float:
    """Requests per second of a cell, in the column's unit if the cell has no unit."""
    cell = row.cells[at] if at < len(row.cells) else ""
    try:
        read = parse_quantity(cell)
    except QuantityParseError as error:
        faults.add(row, at, f"expected a rate of requests, {error}")
        return 0.0
    if not read.bare and read.powers != RATE:
        faults.add(row, at, f"expected a rate of requests such as 12.5, got {quote(cell)}")
    elif not 0 <= read.value < float("inf"):
        faults.add(row, at, f"expected a rate of at least 0, got {quote(cell)}")
    return read.value * (scale if read.bare else 1.0)


def _from_midnight(hourly: Sequence[float], begin: int | None) -> list[float]:
    count = len(hourly)
    if begin is None or count % DAY:
        return list(hourly)
    first = begin % (DAY if count % WEEK else WEEK)
    return [hourly[(hour - first) % count] for hour in range(count)]


Rate = Annotated[float, Quantity("request_rate", zero=True)]


def described_demand(value: object) -> object:
    """Return a rate or a list of rates as a mapping; other values are unchanged."""
    if isinstance(value, list | tuple):
        return {"hourly": list(value)}
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return {"mean": value}
    return value


def named_column(model: object, name: str) -> object:
    """Add the model's name as the column to read, if its demand is in a file."""
    if not isinstance(model, Mapping):
        return model
    demand = model.get("demand")
    if isinstance(demand, str) and demand.strip().casefold().endswith(".csv"):
        demand = {"file": demand}
    if not isinstance(demand, Mapping) or demand.get("file") is None:
        return model
    return {**model, "demand": {"column": name, **demand}}


class FleetDemand(Record):
    """Requests of a model over the hours: a daily wave, a list, or work that may wait."""

    mean: Annotated[float, Quantity("request_rate")] | None = Field(
        None, description="of a weekday [seq/s]"
    )
    peak_to_mean: Annotated[float, Quantity("number", least=1.0)] = 1.0
    """the busiest hour over the mean, at most 2"""
    peak_hour: Annotated[float, Quantity("number", zero=True, below=24.0)] = 12.0
    """hour of the peak, UTC"""
    weekend: Annotated[float, Quantity("number", zero=True, at_most=10.0)] = 1.0
    """factor on Saturday and Sunday, of a week or more"""
    hourly: tuple[Rate, ...] | None = Field(None, description="of every hour [seq/s]")
    file: str | None = None
    """a CSV file by hour: hour,chat,code; its head names models, and units: chat [requests/hour]"""
    column: str | None = Field(None, description="of the file; the model's name when absent")
    tokens_per_day: Annotated[float, Quantity("tokens")] | None = None
    """input and output together, spread evenly over the day [token]"""
    deferrable: Seconds | None = Field(None, description="by how much work may wait [s]")

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, value: object, info: ValidationInfo) -> object:
        """Read the file into the list of hours; `column` then is its head."""
        if not isinstance(value, Mapping) or not value.get("file") or value.get("hourly"):
            return value
        file = name_or_file(value["file"], "demand", "day.csv", (), info)
        assert isinstance(file, File)
        # The column of a model, by hours from 0:00 UTC, of whole weeks from Monday. Rows that part
        # an hour are averaged over it. Raises InputError with every line that is wrong: times that
        # are none, missing, doubled or out of order, rates that are none, heads that say another
        # unit, and where no column is the model's.
        name = str(value.get("column") or "")
        head, *rows = _rows(file)
        faults = _Faults(file)
        times = _times_in(head, faults)
        faults.stop()
        at = _column(head, times, name, faults)
        faults.stop()
        scale = _scale(head, at, name, faults)
        faults.stop()
        begin, step = _spaced(rows, times, faults)
        rates = [_rate(row, at, scale, faults) for row in rows]
        parts = HOUR // step
        if not faults.mistakes and len(rates) % parts:
            faults.add(
                rows[-1], times, f"the last hour has {len(rates) % parts} of its {parts} parts"
            )
        faults.stop()
        hourly = [sum(rates[i : i + parts]) / parts for i in range(0, len(rates), parts)]
        return {**value, "hourly": _from_midnight(hourly, begin), "column": head.cells[at]}

    @field_validator("peak_to_mean")
    @classmethod
    def _cosine(cls, value: float) -> float:
        if value > 2:
            raise ValueError(
                f"expected at most 2, got {value:g}: a cosine of that height would be negative at "
                "night; give the demand as a list of requests/s by hour, or a CSV file"
            )
        return value

    @model_validator(mode="after")
    def _one_shape(self) -> FleetDemand:
        shapes = [k for k in ("mean", "hourly", "tokens_per_day") if getattr(self, k) is not None]
        if len(shapes) != 1:
            got = " and ".join(shapes) or "none"
            words = "give one of mean, hourly (a list), file (a CSV) and tokens_per_day"
            raise ValueError(f"{words}, got {got}")
        changed = {key for key, field in type(self).model_fields.items()
                if getattr(self, key) != field.default}  # fmt: skip
        wave = changed & {"peak_to_mean", "peak_hour", "weekend"}
        if wave and self.hourly is not None:
            raise ValueError(f"a list says all hours; leave {', '.join(sorted(wave))} out")
        return self

    def rates(self, hours: int, tokens: float | None) -> list[float]:
        """Requests per second in every hour [seq/s]; `tokens` are those of a mean request."""
        if self.hourly is not None:
            return list(self.hourly)
        if self.tokens_per_day is not None:
            assert tokens is not None
            mean = self.tokens_per_day / tokens / 86400
        else:
            assert self.mean is not None
            mean = self.mean
        swing = self.peak_to_mean - 1
        waves = (
            mean * (1 + swing * math.cos(2 * math.pi * (h - self.peak_hour) / DAY))
            for h in range(hours)
        )
        return [
            max(0.0, wave) * (self.weekend if hours >= WEEK and h // DAY % 7 in (5, 6) else 1.0)
            for h, wave in enumerate(waves)
        ]
