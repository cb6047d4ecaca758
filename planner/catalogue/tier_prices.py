"""Prices of memory and storage that can hold a cache, by kind of tier."""

from __future__ import annotations

from functools import cache

from planner.catalogue.figures import Figure, entry, figure
from planner.text.tables import table

FILE = "tier_prices.toml"


@cache
def tier_price(kind: str) -> Figure | None:
    """What a byte costs in a kind of tier [USD/(byte*s)]; None where nobody is known to list it."""
    rows = table("planner.catalogue", FILE)["price"]
    if kind not in rows:
        return None
    row = entry("kind of tier", kind, rows)
    return figure(row, row, "byte_price")
