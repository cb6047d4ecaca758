"""The prediction file: the input as it was, and beside it the bound, the estimate and its band."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from planner.errors import InputError, Mistake
from planner.validation.entries import Entry
from planner.validation.tables import Table

__all__ = ["predictions_text"]

ADDED = ("bound", "estimate", "low", "high")
DIGITS = 9


def predictions_text(table: Table, entries: Sequence[Entry]) -> str:
    """Every row of the table in its order, with the added columns and the reason, as CSV.

    Raises
    ------
    InputError
        If the table has one of the added columns already, or is no table.
    """
    if not table.columns:
        raise InputError(f"--predictions: {table.path} is no CSV table that columns are added to")
    quantities = table.measured
    added = [f"{kind}_{name}" for name in quantities for kind in ADDED] + ["reason"]
    taken = [name for name in added if name in table.columns]
    if taken:
        told = f"has the column {taken[0]} already: are these predictions?"
        raise InputError(Mistake(str(table.path), 1, 1, "", told))
    of: dict[tuple[int, str], Entry] = {(e.row, e.column): e for e in entries}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*table.columns, *added])
    for index, cells in enumerate(table.rows):
        each = [of.get((index, name)) for name in quantities]
        values = [value for entry in each for value in _values(entry)]
        reasons = dict.fromkeys(e.reason for e in each if e is not None and e.reason)
        writer.writerow([*cells, *values, "; ".join(reasons)])
    return out.getvalue()


def _values(entry: Entry | None) -> list[str]:
    """Bound, estimate, low and high in the value's own unit, blank where there is none.

    The bound of a rate is the most it can be, and the ends of its band change places.
    """
    if entry is None or entry.seconds is None:
        return [""] * len(ADDED)
    bound = "" if entry.bound is None else _number(entry.own(entry.bound))
    told = entry.prediction
    if told is None:
        return [bound, "", "", ""]
    ends = sorted((entry.own(told.low), entry.own(told.high)))
    return [bound, _number(entry.own(told.estimate)), *map(_number, ends)]


def _number(value: float) -> str:
    return f"{value:.{DIGITS}g}"
