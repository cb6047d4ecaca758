"""A plan as one row of a table: the quantities that people compare, and their units.

A serving plan has columns of its own; any other problem gives every number and word of its plan.

Columns of a table as they are passed on: lists, arrays, or words by their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from planner.protocol.columns import CodedColumn
from planner.text.wording import laid_out

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "ANSWERED",
    "LAYOUT",
    "SERVING",
    "CodedColumn",
    "Columns",
    "answered",
    "by_name",
    "named",
    "plain",
    "refused",
    "units_of",
]

LAYOUT = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "replicas")
ANSWERED = ("status", "reason", "short_by", "elapsed_s")  # of every row, whatever the problem
BANDS = ("usd_per_mtok", "tpot", "ttft")
SERVING_UNITS: Mapping[str, str] = {
    "usd_per_mtok": "USD per million tokens",
    "usd_per_mtok_input": "USD per million input tokens",
    "usd_per_mtok_output": "USD per million output tokens",
    "usd_per_hour": "USD/hour",
    "ttft": "s",
    "tpot": "s",
    "e2e": "s",
    "tokens_per_s": "token/s",
    "tokens_per_s_per_chip": "token/(s*chip)",
    "tokens_per_s_per_user": "token/s",
    "requests_per_s": "seq/s",
    "batch": "seq",
    "chips": "chip",
    "elapsed_s": "s",
    **{
        f"{name}_{end}": unit
        for name, unit in (("usd_per_mtok", "USD per million tokens"), ("tpot", "s"), ("ttft", "s"))
        for end in ("low", "high", "bound")
    },
}
BUDGET_UNITS: Mapping[str, str] = {
    "n_active": "param",
    "n_total": "param",
    "tokens_per_parameter": "token/param",
    "elapsed_s": "s",
    **{f"tokens.{phase}": "token" for phase in ("pretrain", "rl", "inference")},
    **{
        f"cost.{phase}.{name}": unit
        for phase in ("pretrain", "rl", "inference", "total")
        for name, unit in (
            ("usd", "USD"), ("flop", "flop"), ("flop_paid", "flop"), ("chip_hours", "chip*hour"),
        )
    },
}  # fmt: skip
_WORDS = ("mode", "chip", "weights", "kv", "bottleneck")
_NUMBERS = (
    "usd_per_mtok", "usd_per_mtok_input", "usd_per_mtok_output", "usd_per_hour", "ttft", "tpot",
    "e2e", "tokens_per_s", "tokens_per_s_per_chip", "tokens_per_s_per_user", "requests_per_s",
    "chips", "batch",
)  # fmt: skip
SERVING = (
    *_NUMBERS, "layout", *_WORDS, *LAYOUT,
    *(f"{name}_{end}" for name in BANDS for end in ("low", "high")),
    *(f"{name}_bound" for name in BANDS), "gap",
)  # fmt: skip
"""Columns of a serving plan, in order."""


def units_of(problem: str) -> Mapping[str, str]:
    """Units of the columns of a problem, by name; pure numbers and words have none."""
    return SERVING_UNITS if problem == "serving" else BUDGET_UNITS


def answered(document: Mapping[str, Any], elapsed: float) -> dict[str, Any]:
    """The row of an answer: what every row has, then the quantities of its problem."""
    missed = document.get("infeasible") or ()
    head = {
        "status": document["status"],
        "reason": ", ".join(str(each["promise"]) for each in missed) or None,
        "short_by": max((each["short_by"] for each in missed), default=None),
        "elapsed_s": elapsed,
    }
    if document["problem"] == "serving":
        return head | _serving(document)
    return head | _flat(document["plan"] or {})


def refused(status: str, reason: str, elapsed: float) -> dict[str, Any]:
    """The row of a point without answer: `refused` is a mistake in it, `failed` one of ours."""
    told = " ".join(reason.split())
    return {"status": status, "reason": told, "short_by": None, "elapsed_s": elapsed}


def _serving(document: Mapping[str, Any]) -> dict[str, Any]:
    plan = document["plan"]
    if plan is None:
        return dict.fromkeys(SERVING)
    layout, band, bound = plan["layout"] or {}, document["band"] or {}, document["bound"] or {}
    row = {name: plan.get(name) for name in (*_NUMBERS, *_WORDS)}
    row |= {"layout": laid_out(plan)} | {name: layout.get(name) for name in LAYOUT}
    for name in BANDS:
        low, high = band.get(name) or (None, None)
        row |= {f"{name}_low": low, f"{name}_high": high, f"{name}_bound": bound.get(name)}
    row["gap"] = document["certificate"]["gap"]
    return {name: row[name] for name in SERVING}


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
