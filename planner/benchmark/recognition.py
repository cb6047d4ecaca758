"""Which chip of the catalogue a reported device name is."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from planner.catalogue.chips import chip

__all__ = ["recognised"]

WORD = re.compile(r"[A-Z0-9]+")
ROOM = 0.2  # between the memory that is listed and what a driver reports


def recognised(name: str, capacity: float) -> str:
    """Catalogue name of a device by its reported name and memory [byte], "" where none is sure.

    Names of kin are no match: a laptop's or a quarter of a chip is another chip.
    """
    words = set(WORD.findall(name.upper()))
    for row in _names():
        if words.issuperset(row["words"]) and words.isdisjoint(row.get("without", ())):
            found = chip(row["chip"])
            if abs(capacity / found.memory - 1) <= ROOM:
                return found.name
    return ""


@cache
def _names() -> tuple[dict[str, Any], ...]:
    text = files("planner.benchmark").joinpath("names.toml").read_text(encoding="utf-8")
    told = tomllib.loads(text)
    part = told["part"]
    return tuple({**row, "without": [*part, *row.get("without", [])]} for row in told["name"])
