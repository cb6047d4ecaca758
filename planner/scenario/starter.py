"""Commented scenarios for `planner init`: each room holds its own, which loads as it is."""

from __future__ import annotations

from importlib.resources import files

from planner.scenario.kinds import ROOMS
from planner.text.errors import CatalogueError


def starter(kind: str = "serving") -> str:
    """The text of a starter scenario, `starter.yaml` of the kind's room.

    Raises
    ------
    CatalogueError
        For an unknown kind.
    """
    if kind not in ROOMS:
        raise CatalogueError.unknown("kind of scenario", kind, ROOMS)
    return files(ROOMS[kind]).joinpath("starter.yaml").read_text(encoding="utf-8")
