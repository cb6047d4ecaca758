"""The unit of a path of the scenario, as its schema says it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from planner.scenario import json_schema

__all__ = ["unit_of"]

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
