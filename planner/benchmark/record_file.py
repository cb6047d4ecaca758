"""A measured chip as the TOML file that is read again, rates beside their times as comments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from planner.benchmark.record import LISTS, TABLES, Measured, MeasuredChip
from planner.text.quantities import show

HEADING = """\
# A chip as it was measured by `planner measure`: times in s, sizes in bytes.
# median, best and spread (10th to 90th percentile over the median) are of so many repeats.
# Use it: system: {like: NAME, measured: THIS FILE}
"""
RATES = {"memory": "bandwidth", "attention": "bandwidth", "products": "compute"}


def toml(chip: MeasuredChip) -> str:
    """The contents of its file."""
    head = asdict(chip.head)
    software = head.pop("software")
    lines = [HEADING, f"format = {head.pop('format')}"]
    lines += [f"{key} = {_value(value)}" for key, value in head.items()]
    lines.append(f"software = {_inline(software)}")
    for key in TABLES:
        rows = getattr(chip, key)
        lines += ["", *_list(key, [(_row(each), _rate(key, each)) for each in rows])]
    for key in LISTS:
        lines += ["", *_list(key, [(asdict(each), "") for each in getattr(chip, key)])]
    return "\n".join(lines) + "\n"


def _list(key: str, rows: Iterable[tuple[Mapping[str, Any], str]]) -> list[str]:
    inner = [f"  {_inline(row)},{rate and f'  # {rate}'}" for row, rate in rows]
    return [f"{key} = [", *inner, "]"] if inner else [f"{key} = []"]


def _row(measured: Measured[Any]) -> dict[str, Any]:
    return asdict(measured.work) | asdict(measured.timing)


def _rate(key: str, measured: Measured[Any]) -> str:
    return show(measured.rate, RATES[key]) if key in RATES else ""


def _inline(row: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in row.items()) + " }"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}" if any(c in f"{value:.6g}" for c in ".e") else f"{value:.1f}"
    if isinstance(value, int):
        return str(value)
    # What JSON writes of printable text, TOML reads as the same text.
    clean = "".join(c if c.isprintable() else "?" for c in str(value))
    return json.dumps(clean, ensure_ascii=False)
