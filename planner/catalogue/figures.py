"""One number of the catalogue with its source and date, and the files it is read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.text.quantities import parse


@dataclass(frozen=True)
class Figure:
    """A value as its source writes it, and in base units.

    `verified` is `yes` (the vendor's text was read), `secondary` (a transcribed copy of it),
    `partial` (some sources disagree), `no` (unread or assumed), or `given` (by the user).
    """

    value: float
    unit: str
    base: float
    source: str
    as_of: str
    verified: str
    note: str = ""

    def scaled(self, factor: float) -> Figure:
        """The same figure multiplied, as when the user varies it."""
        return replace(self, value=self.value * factor, base=self.base * factor)


def figure(entry: Mapping[str, Any], owner: Mapping[str, Any], dimension: str) -> Figure:
    """A figure of an entry; source, date and standing come from its owner where it has none."""
    return Figure(
        value=entry["value"],
        unit=entry["unit"],
        base=parse(f"{entry['value']} {entry['unit']}", dimension),
        source=entry.get("source", owner["source"]),
        as_of=entry.get("as_of", owner["as_of"]),
        verified=entry.get("verified", owner["verified"]),
        note=entry.get("note", ""),
    )


def base_of(figures: Mapping[str, Figure], names: Iterable[str]) -> dict[str, float | None]:
    """Base values of the named figures, None where there is none."""
    return {name: figures[name].base if name in figures else None for name in names}
