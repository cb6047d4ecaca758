"""How tokens may be drafted: predictor layers, heads, look-ups, models of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.catalogue.figures import entry
from planner.text.tables import table

FILE = "speculation.toml"


@dataclass(frozen=True)
class DraftMethod:
    """How tokens are drafted.

    `projections` are matrices, hidden by hidden, that join what a predictor layer is given; `vocab`
    the words of a head of its own, 0 for the model's; `experts` says whether its layer has experts
    where the model's have, `passes` whether a drafter runs at all.
    """

    name: str
    projections: int
    vocab: int
    experts: bool
    passes: bool
    source: str


@cache
def drafting_table() -> dict[str, Any]:
    """The file of methods and curves, read once."""
    return table("planner.catalogue", FILE)


def methods() -> dict[str, DraftMethod]:
    """Every method by its name."""
    rows = drafting_table()["methods"]
    return {name: DraftMethod(name=name, **row) for name, row in rows.items()}


def draft_method(name: str) -> DraftMethod:
    """A method by its name; raises CatalogueError with the nearest one."""
    return entry("method of speculation", name, methods())
