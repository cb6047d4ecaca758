"""A given quantity as a path of the scenario: read there, and set there to another value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from planner.problems.serving.parameters import Given
from planner.scenario import ALIASES, Tree, changed, checked, resolved
from planner.sensitivity.elasticities import Row
from planner.text.errors import InputError

__all__ = ["at_path", "folder_of", "scenario_with", "value_at"]

LAW = "law"  # a law's coefficients stand in no scenario but as a whole description


def folder_of(source: Any) -> Path:
    """The folder that paths in a source are relative to."""
    known = isinstance(source, str | Path) and str(source) != "-"
    return (Path(source).parent if known else Path()).resolve()


def scenario_with(tree: Tree, folder: Path, path: str, value: object) -> Any:
    """The scenario with a value at a path, as `--set` would put it there."""
    text = repr(value) if isinstance(value, float) else str(value)
    return checked(changed(tree, [f"{path}={text}"]), folder)


def value_at(scenario: Any, path: str) -> Any:
    """What a scenario that was read has at a path, in base units; None where it has nothing."""
    value: Any = resolved(scenario)
    for part in ALIASES.get(path, tuple(path.split("."))):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and str(part).isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif part not in ("mean", "like"):
            return None
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def at_path(tree: Tree, folder: Path, row: Row) -> Given | None:
    """The quantity of a row as one of the scenario's; None where a file has no such path."""
    if not row.value or row.group == LAW:
        return None
    try:
        scenario_with(tree, folder, row.path, row.value)
    except InputError:
        return None
    return Given(
        row.path, row.value, row.unit, row.group, partial(_times, tree, folder, row.path, row.value)
    )


def _times(tree: Tree, folder: Path, path: str, value: float, factor: float) -> Any:
    return scenario_with(tree, folder, path, value * factor)
