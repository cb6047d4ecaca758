"""What an answer hangs on as a table: value, unit, elasticity, by group, and the next switch."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from planner.text.quantities import show
from planner.text.words import WIDTH, wrapped

__all__ = ["sensitivity_text"]

SWITCH = " " * 6
THOUSAND = 1000.0
NOTHING = 5e-4  # an elasticity that is no influence in three digits
DIMENSIONS = {
    "byte": "size", "byte/s": "bandwidth", "s": "time", "token": "tokens", "token/s": "token_rate",
    "USD/(chip*s)": "price", "J/s": "power", "USD/J": "energy_price", "flop/s": "compute",
    "seq/s": "request_rate", "param": "params", "USD": "money",
}  # fmt: skip


def sensitivity_text(document: Mapping[str, Any]) -> str:
    """The whole table, never wider than 78 columns."""
    rows = document["rows"]
    lines = wrapped_head(document)
    width = max((len(row["path"]) for row in rows), default=0)
    groups = dict.fromkeys(row["group"] for row in rows)
    for group in groups:
        lines += ["", group]
        for row in rows:
            if row["group"] == group:
                lines.append(_line(row, width))
                lines += _switches(row)
    return "\n".join(lines)


def wrapped_head(document: Mapping[str, Any]) -> list[str]:
    """What is looked at, and with which choice held."""
    value = valued(document["value"], document["unit"])
    sought = any(row["switches"] is not None for row in document["rows"])
    below = "; below it, the nearest changes at which another choice is the best" if sought else ""
    told = "One percent more of a quantity changes it by so many percent (at a kink: less | more)"
    return [
        f"{document['of']} = {value}",
        *wrapped(f"held: {', '.join(filter(None, (document['choice'], document['counts'])))}"),
        *textwrap.wrap(f"{told}{below}", WIDTH),
    ]


def valued(value: float | None, unit: str) -> str:
    """A number with its unit."""
    if value is None:
        return ""
    if unit == "USD" and value >= THOUSAND:
        return f"${value:,.0f}"
    if unit in DIMENSIONS:
        return show(value, DIMENSIONS[unit])
    return f"{value:.4g}" if unit in ("", "1") else f"{value:.4g} {unit}"


def elastic(row: Mapping[str, Any]) -> str:
    """An elasticity, both sides where they differ, ~0 where it does not matter."""
    left, right = row["left"], row["right"]
    if left is None or right is None:
        return "unknown: no answer was found beside it"
    if abs(left) < NOTHING and abs(right) < NOTHING:
        return "~0"
    if abs(left - right) < NOTHING:
        return f"{right:+.3f}"
    return f"{left:+.3f} | {right:+.3f}"


def _line(row: Mapping[str, Any], width: int) -> str:
    value = valued(row["value"], row["unit"])
    line = f"  {row['path']:<{width}}  {value:>16}  {elastic(row)}"
    return line[:WIDTH] if len(line) > WIDTH else line.rstrip()


def _switches(row: Mapping[str, Any]) -> list[str]:
    found = []
    for each in row["switches"] or ():
        change = 100 * (each["factor"] - 1)
        value = valued(None if row["value"] is None else row["value"] * each["factor"], row["unit"])
        at = f" ({value})" if value else ""
        told = f"{change:+.3g} %{at}: {_new(each)}"
        found += textwrap.wrap(told, WIDTH, initial_indent=SWITCH, subsequent_indent=f"{SWITCH}  ")
    return found


def _new(switch: Mapping[str, Any]) -> str:
    """The choice that becomes the best, without what stays the same."""
    before, after = (switch[key].rpartition(" on ") for key in ("from", "to"))
    told = after[0] if after[0] and before[2] == after[2] else switch["to"]
    first, then = switch["counts"]
    if first == then or not then:
        return str(told)
    return str(then if switch["from"] == switch["to"] else f"{told}, {then}")
