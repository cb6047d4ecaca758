"""Which kind of measurements a file holds, and one entry for all that are about serving."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from planner.calibration.adapters.benchmarks import (
    FORMATS,
    documents,
    format_of_document,
    runs_in,
)
from planner.calibration.adapters.own import COLUMNS, VALUES, columns_of, entries, owns
from planner.calibration.adapters.runs import runs
from planner.calibration.adapters.steady import steadies
from planner.calibration.adapters.tables import Readings, header_of
from planner.calibration.ideal import strange_units
from planner.calibration.measurements import NotComputed
from planner.errors import InputError, quoted

__all__ = ["SETS", "read", "recognised"]

# Columns that only tables of one kind have together; a table may have more.
SETS: Mapping[str, tuple[str, ...]] = {
    "serving runs": ("model_path", "system", "backend", "isl", "osl", "concurrency", "tpot_ms"),
    "steady batches": ("model", "chip", "phase", "batch", "metric", "value"),
    "training runs": ("hidden", "layers", "global_batch", "measured_iter_time_s"),
    "collectives": ("accelerator", "ranks", "operation", "size_bytes", "time_us"),
    "exchanges": ("op", "chip", "ep", "dtype", "latency_us"),
}
READERS: Mapping[str, Callable[[Path], Readings]] = {
    "serving runs": runs,
    "steady batches": steadies,
}


def recognised(path: Path) -> str:
    """The kind of measurements in a file: a name in SETS, `own rows`, or a load generator.

    Raises
    ------
    InputError
        If the file cannot be read, or is of none of these; says what was missing for the nearest.
    """
    if path.suffix.lower() in (".json", ".jsonl"):
        found = {format_of_document(each) for each in documents(path)}
        if len(found) == 1 and None not in found:
            return str(found.pop())
        raise InputError(f"{path}: JSON of no known load generator (known: {', '.join(FORMATS)})")
    names = header_of(path)
    for kind, needed in SETS.items():
        if set(needed) <= set(names):
            return kind
    near = max(SETS, key=lambda kind: len(set(SETS[kind]) & set(names)) / len(SETS[kind]))
    missing = [name for name in SETS[near] if name not in names]
    if len(missing) <= 1:
        raise InputError(f"{path}: a table of {near} without the column {quoted(missing[0])}")
    known = {name for name, words in COLUMNS.items() if {name, *words} & {n.lower() for n in names}}
    if len(known) >= 3 or known & set(VALUES):
        return "own rows"
    raise InputError(
        f"{path}: columns of no known table of measurements (known: {', '.join(SETS)}, and your "
        f"own with columns such as {', '.join(list(COLUMNS)[:3])}, tp, concurrency, tpot_ms)"
    )


def read(path: Path, **facts: str | float) -> Readings:
    """Every serving measurement of a file, whatever wrote it.

    Parameters
    ----------
    facts : what the file does not say, by the names of `own.COLUMNS` (`model`, `system`, `tp`, …);
        a value of the file wins.

    Raises
    ------
    InputError
        If the file is none that is known, is not about serving, or facts are missing or unknown.
    """
    kind = recognised(path)
    if kind == "own rows":
        return owns(path, **facts)
    if kind in FORMATS:
        rows = runs_in(documents(path), kind)
        had = list(dict.fromkeys(name for row in rows for name in row))
        told = [name for name in had if any(row.get(name) for row in rows)]
        columns_of(told, facts, str(path))
        return entries(rows, facts, kind)
    if facts:
        raise InputError(f"{path}: a table of {kind} says {', '.join(facts)} itself")
    if kind not in READERS:
        raise InputError(f"{path} holds {kind}, not measurements of serving")
    return _in_their_units(READERS[kind](path))


def _in_their_units(readings: Readings) -> Readings:
    """Without the values that are a thousand times off: another unit was meant."""
    told = strange_units(readings.rows)
    kept = [row for row, strange in zip(readings.rows, told, strict=True) if not strange]
    strange = [
        NotComputed(row.id, why, row.quantity)
        for row, why in zip(readings.rows, told, strict=True)
        if why
    ]
    return replace(readings, rows=tuple(kept), refused=(*readings.refused, *strange))
