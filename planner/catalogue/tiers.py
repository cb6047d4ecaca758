"""Memory and storage beyond HBM that can hold a cache: DRAM, CXL, flash, disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from planner.catalogue.figures import Figure, figure, table
from planner.text.errors import CatalogueError

__all__ = ["KINDS", "Tier", "tier", "tier_names"]

FILE = "tiers.toml"
KINDS = ("dram", "cxl", "flash", "disk")  # faster first
DIMENSIONS = {"capacity": "size", "read_rate": "bandwidth"}


@dataclass(frozen=True)
class Tier:
    """One device, or the host memory of one server.

    `figures` holds `capacity` [byte] and `read_rate` [byte/s], each with source and date.
    """

    name: str
    title: str
    kind: str
    figures: Mapping[str, Figure]

    @property
    def capacity(self) -> float:
        """Bytes it holds."""
        return self.figures["capacity"].base

    @property
    def read_rate(self) -> float:
        """Rate at which it is read [byte/s]."""
        return self.figures["read_rate"].base


def tier_names(kind: str | None = None) -> tuple[str, ...]:
    """Names of all tiers, or of those of one kind, faster kinds first."""
    return tuple(name for name, each in _tiers().items() if kind in (None, each.kind))


def tier(name: str) -> Tier:
    """A tier by name.

    Raises
    ------
    CatalogueError
        If there is none, with the nearest name.
    """
    if name not in _tiers():
        raise CatalogueError.unknown("tier", name, tier_names())
    return _tiers()[name]


@cache
def _tiers() -> dict[str, Tier]:
    rows = table(FILE)["tier"]
    found = {
        name: Tier(
            name,
            row["title"],
            row["kind"],
            {x: figure(row[x], row, dimension) for x, dimension in DIMENSIONS.items()},
        )
        for name, row in rows.items()
    }
    return dict(sorted(found.items(), key=lambda item: KINDS.index(item[1].kind)))
