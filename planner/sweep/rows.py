"""A point as one row of a table, and columns as they are passed on.

What every row has comes first, then the columns of the kind; a kind that says no row of its own
gives every number and word of its plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from planner.protocol.columns import CodedColumn
from planner.protocol.document import document_of
from planner.protocol.problem import Search, problem_of

if TYPE_CHECKING:
    import numpy as np

ANSWERED = ("status", "reason", "short_by", "elapsed_s")  # of every row, whatever the problem


def units_of(problem: str) -> dict[str, str]:
    """Units of the columns of a problem, by name; pure numbers and words have none."""
    columns = {**problem_of(problem).columns, "elapsed_s": "s"}
    return {name: unit for name, unit in columns.items() if unit}


def row_of(kind: str, search: Search, elapsed: float) -> dict[str, Any]:
    """The row of a point: what every row has, then the quantities of its problem."""
    missed = search.shortfalls
    factors = [each.short_by for each in missed if each.short_by is not None]
    head = {
        "status": "optimal" if search.feasible else "infeasible",
        "reason": ", ".join(each.promise for each in missed) or None,
        "short_by": max(factors, default=None),
        "elapsed_s": elapsed,
    }
    if search.row is not None:
        return head | dict(search.row())
    if search.feasible:
        return head | _flat(document_of(search.plan))
    return head | dict.fromkeys(problem_of(kind).columns)


def refused(status: str, reason: str, elapsed: float) -> dict[str, Any]:
    """The row of a point without answer: `refused` is a mistake in it, `failed` one of ours."""
    text = " ".join(reason.split())
    return {"status": status, "reason": text, "short_by": None, "elapsed_s": elapsed}


def _flat(plan: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Numbers and words of nested mappings by dotted name; lists are left out."""
    row: dict[str, Any] = {}
    for key, value in plan.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            row |= _flat(value, f"{name}.")
        elif value is None or isinstance(value, str | int | float):
            row[name] = value
    return row


Columns: TypeAlias = Mapping[str, "Sequence[Any] | np.ndarray | CodedColumn"]


def by_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; a key that a row lacks is None there."""
    names = named(rows)
    return {name: [row.get(name) for row in rows] for name in names}


def named(tables: Iterable[Iterable[str]]) -> list[str]:
    """The names of all tables, in the order in which they are first met."""
    return list(dict.fromkeys(name for table in tables for name in table))


def plain(column: Any) -> list[Any]:
    """The values of a column as Python's own, None where there is none."""
    if isinstance(column, CodedColumn):
        return [column.words[code] for code in column.codes.tolist()]
    if hasattr(column, "tolist"):
        # NaN, which equals nothing, is how an array of numbers says that there is none.
        return [value if value == value else None for value in column.tolist()]  # noqa: PLR0124
    return list(column)
