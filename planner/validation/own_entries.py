"""Runs of one's own as entries: from a table with documented columns, or from a load generator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.measurements.entry import Entry
from planner.measurements.measurement import Measurement
from planner.measurements.readers import Readings, read, recognised
from planner.measurements.readers.kinds import MeasurementTable, positive_of
from planner.measurements.readers.sheets import Documents
from planner.measurements.readers.table_columns import columns_of

TOKEN = ("tpot", "step")
STEMS: Mapping[str, tuple[str, ...]] = {
    "ttft": ("ttft",),
    "tpot": TOKEN,
    "itl": TOKEN,
    "step": TOKEN,
    "e2e": ("e2e",),
    "tokens_per": TOKEN,
}
UNITS = {"ms": 1e-3, "s": 1.0}
CLOSE = 1e-9
HEADER = 1  # lines before the first row


def own_entries(table: MeasurementTable, facts: Mapping[str, str]) -> list[Entry]:
    """Every value of every run; a value that others state is scored once, and predicted for all."""
    readings = read(table.sheet, **facts)
    meant = columns_of(table.columns, facts, str(table.path))
    by_line: dict[str, list[Measurement]] = {}
    for measured in readings.rows:
        by_line.setdefault(measured.id, []).append(measured)
    entries = []
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        rows = by_line.get(str(line), [])
        scored: set[str] = set()
        for column in table.measured:
            stem, unit = meant[column].rsplit("_", 1)
            row = next((row for row in rows if row.quantity in STEMS[stem]), None)
            value, reason = positive_of(cells[column]), _reasons(readings, str(line), stem)
            if value is None and not cells[column].strip():
                continue
            made = _entry(index, line, column, row, reason or "no time of its own")
            if row is not None and value is not None and _states(row, stem, unit, value):
                rate = stem == "tokens_per"
                again = bool(row.repeats) or row.quantity in scored
                made = _of(made, row, value, rate=rate, repeat=again)
                scored.add(row.quantity)
            entries.append(made)
        if not any(entry.row == index for entry in entries):
            column, reason = table.measured[0], _reasons(readings, str(line))
            entries.append(
                _entry(index, line, column, None, reason or "no measured value is given")
            )
    return entries


def generator_entries(
    source: Documents, facts: Mapping[str, str], folders: Sequence[Path] = ()
) -> tuple[MeasurementTable, list[Entry]]:
    """The runs of a load generator's file as a table without columns, and their times [s]."""
    readings = read(source, folders, **facts)
    lines = tuple(range(1 + HEADER, readings.lines + 1 + HEADER))
    rows = ((),) * readings.lines
    measurements = MeasurementTable(source, recognised(source), rows, lines, models=readings.models)
    entries = [
        _of(_entry(int(row.id) - 1 - HEADER, int(row.id), row.quantity, row, ""), row, row.seconds)
        for row in readings.rows
    ]
    entries += [
        _entry(int(each.id) - 1 - HEADER, int(each.id), each.quantity or "all", None, each.reason)
        for each in readings.refused
    ]
    return measurements, entries


def _entry(row: int, line: int, column: str, run: Measurement | None, reason: str) -> Entry:
    quantity = run.quantity if run else column
    if run is None:
        return Entry(row, line, column, quantity, "", "", "", "", reason=reason)
    ways = " ".join(f"{name}{n}" for name, n in (run.layout or {}).items() if n > 1)
    load = "x" if run.looped else "batch "
    setting = f"{ways} {run.prompt:.0f}/{run.output:.0f} {load}{run.batch:g}".strip()
    return Entry(
        row, line, column, quantity, "", run.model, run.chip.name, run.engine,
        run.version, setting, reason=reason,
    )  # fmt: skip


def _of(
    made: Entry, row: Measurement, value: float, *, rate: bool = False, repeat: bool = False
) -> Entry:
    """The entry with its measurement."""
    return Entry(
        made.row, made.line, made.column, made.quantity, made.part, made.model, made.chip,
        made.engine, made.version, made.setting, measured=value, seconds=row.seconds, rate=rate,
        repeat=repeat or bool(row.repeats), measurement=row,
    )  # fmt: skip


def _states(row: Measurement, stem: str, unit: str, value: float) -> bool:
    """Whether a measurement is what a column says: the same time, or the rate of its steps."""
    if stem == "tokens_per":
        return True
    return math.isclose(value * UNITS[unit], row.seconds, rel_tol=CLOSE)


def _reasons(readings: Readings, line: str, stem: str = "") -> str:
    """Why values of a line have no prediction: all of them, or those that a column states."""
    of = ("", stem, *STEMS[stem]) if stem else None
    reasons = [
        each.reason
        for each in readings.refused
        if each.id == line and (of is None or each.quantity in of)
    ]
    return "; ".join(dict.fromkeys(reasons))
