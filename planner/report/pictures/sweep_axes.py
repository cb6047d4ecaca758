"""How the axes of a sweep are drawn: which as numbers, which as lines, and what parts regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["arranged", "line_of", "regions"]

MOST_LINES = 8


def regions(table: Any) -> tuple[str, list[str | None]]:
    """What parts the table into regions, and the region of every row; None without an answer."""
    for name in ("layout", "bottleneck"):
        if name in table.columns:
            words = table[name]
            if name == "bottleneck" or len({word for word in words if word}) > 1:
                return name, words
    return "", [None] * len(table)


def arranged(table: Any, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Axes that are drawn as numbers, and those of which each value has a line or bar."""
    numeric = [name for name in names if all(isinstance(v, int | float) for v in table[name])]
    others = [name for name in names if name not in numeric]
    if len(numeric) == 2:
        few = min(numeric, key=lambda name: len(dict.fromkeys(table[name])))
        if len(dict.fromkeys(table[few])) <= MOST_LINES // 2:
            numeric.remove(few)
            others = [few]
    return numeric, others


def line_of(table: Any) -> tuple[str | None, list[str]]:
    """The axis along which lines go, and the one that sets them apart; None where none do."""
    names = [name for name in table.over if len(dict.fromkeys(table[name])) > 1]
    numeric, others = arranged(table, names) if 1 <= len(names) <= 2 else ([], [])
    return (numeric[0], others) if len(numeric) == 1 and len(others) <= 1 else (None, [])
