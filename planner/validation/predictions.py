"""The prediction file: the input as it was, and beside it the bound, the estimate and its band."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from planner.measurements.entry import Entry
from planner.measurements.readers.tables import Table
from planner.text.errors import InputError, Mistake

__all__ = ["predictions_text"]

ADDED = ("bound", "estimate", "low", "high")
DIGITS = 9
NEWLINE = "\n"


def predictions_text(table: Table, entries: Sequence[Entry]) -> str:
    """Every row of the table in its order and as it stands, with the added columns and the reason.

    Raises
    ------
    InputError
        If the table has one of the added columns already, or is no table.
    """
    sheet, quantities = table.sheet, table.measured
    added = [f"{kind}_{name}" for name in quantities for kind in ADDED] + ["reason"]
    taken = [name for name in added if name in table.columns]
    if taken:
        told = f"has the column {taken[0]} already: are these predictions?"
        raise InputError(Mistake(str(table.path), 1, 1, "", told))
    of: dict[tuple[int, str], Entry] = {(e.row, e.column): e for e in entries}
    lines = [_beside(sheet.texts[0], added, sheet.separator)]
    for index, text in enumerate(sheet.texts[1:]):
        each = [of.get((index, name)) for name in quantities]
        values = [value for entry in each for value in _values(entry)]
        reasons = dict.fromkeys(e.reason for e in each if e is not None and e.reason)
        short = len(table.columns) - _cells(text, sheet.separator)
        lines.append(_beside(text, [*[""] * short, *values, "; ".join(reasons)], sheet.separator))
    return "".join(lines)


def _beside(text: str, cells: Sequence[str], separator: str) -> str:
    """The text of a row with more cells at its end; whatever ended the line ends it still."""
    bare = text.rstrip("\r\n")
    more = io.StringIO()
    csv.writer(more, delimiter=separator, lineterminator="").writerow(cells)
    return f"{bare}{separator}{more.getvalue()}{text[len(bare) :] or NEWLINE}"


def _cells(text: str, separator: str) -> int:
    return len(next(csv.reader(io.StringIO(text, newline=""), delimiter=separator)))


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
