"""A given quantity as a path of the scenario: read there, and set there to another value.

The unit of a path of the scenario, as its schema says it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from planner.problems.serving.parameters import Given
from planner.scenario import ALIASES, Tree, changed, checked, json_schema, resolved
from planner.sensitivity.elasticities import Row
from planner.text.errors import InputError

__all__ = ["at_path", "folder_of", "scenario_with", "unit_of", "value_at"]

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


BRACKETED = re.compile(r"\[([^\]]+)\]")
COUNTS = {"chips": "chip", "choose.batch": "seq", "workload.concurrency": "seq",
          "choose.chunk": "token"}  # fmt: skip


def unit_of(problem: str, path: Sequence[str]) -> str | None:
    """Base unit of a path, such as `byte/s`; None where the schema names none."""
    dotted = ".".join(path)
    if problem == "serving" and dotted in COUNTS:
        return COUNTS[dotted]
    unit = None
    node = _shape(problem)
    for part in path:
        node = _below(node, part)
        if node is None:
            break
        found = BRACKETED.findall(_described(node))
        unit = found[-1] if found else unit
    return unit


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _shape(problem: str) -> Mapping[str, Any] | None:
    """The schema of the scenarios of a problem."""
    for shape in (_schema(), *_schema().get("$defs", {}).values()):
        asked = shape.get("properties", {}).get("problem", {})
        if problem in (asked.get("const"), *asked.get("enum", ())):
            return dict(shape)
    return None


def _described(node: Mapping[str, Any]) -> str:
    """What the schema says of a node, the kinds it may be of included."""
    inner = [_described(each) for each in node.get("anyOf", ())]
    return " ".join([*inner, str(node.get("description", ""))])


def _below(node: Mapping[str, Any] | None, part: str) -> Mapping[str, Any] | None:
    """The node of a key below another, references and alternatives followed."""
    if node is None:
        return None
    if "$ref" in node:
        named = str(node["$ref"]).rsplit("/", 1)[-1]
        return _below(_schema()["$defs"][named], part)
    for each in (node, *node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
        if part in each.get("properties", {}):
            return dict(each["properties"][part])
        if each is not node and (found := _below(each, part)) is not None:
            return found
    return None
