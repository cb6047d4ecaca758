"""A scenario as plain data in base units, and its JSON Schema for editors."""

import math
from typing import Any, get_args

from pydantic import BaseModel

from planner.scenario.keys.budget_fields import FOREVER, Limit
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File, HubFile
from planner.scenario.keys.system_keys import SystemDescription
from planner.scenario.keys.workload import Demand, Distribution
from planner.scenario.kinds import question_types

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def resolved(scenario: BaseModel, *, full_paths: bool = False) -> dict[str, Any]:
    """Every key with its value in base units, defaults filled in; only JSON types.

    It loads again to an equal scenario. Files are named as given, or by their `full_paths`.
    """
    unsaid = getattr(scenario, "SILENT", ())
    fields = getattr(type(scenario), "model_fields", {})
    return {
        getattr(fields.get(name), "alias", None) or name: _plain(value, full_paths)
        for name, value in scenario
        if value is not None or name not in unsaid
    }


def json_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of a scenario file; quantities are strings with a unit, or numbers.

    `problem` says which of the shapes a file has.
    """
    shapes, parts = {}, {}
    for shape in question_types():
        whole = shape.model_json_schema(mode="validation")
        parts.update(whole.pop("$defs", {}))
        (problem,) = get_args(shape.model_fields["problem"].annotation)
        about = whole["properties"]["problem"]
        about = {key: about[key] for key in ("description", "title") if key in about}
        whole["properties"]["problem"] = {"const": problem, **about}
        shapes[problem] = whole
    return {
        "$schema": DIALECT,
        "title": "token-planner scenario",
        "type": "object",
        "required": ["problem"],
        "oneOf": [{"$ref": f"#/$defs/{each['title']}"} for each in shapes.values()],
        "$defs": parts | {each["title"]: each for each in shapes.values()},
    }


def _plain(value: object, full: bool) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(item, full) for key, item in value.items()}
    if isinstance(value, range):
        return {"from": value.start, "to": value.stop - 1}
    if isinstance(value, list | tuple):
        return [_plain(item, full) for item in value]
    if isinstance(value, HubFile):
        return value.written
    if isinstance(value, File):
        return str(value.path.resolve()) if full else value.written
    if isinstance(value, Limit):
        return value.value if value.per is None else f"{value.value!r} {value.per}"
    if isinstance(value, float) and math.isinf(value):
        return FOREVER
    if isinstance(value, Demand) and math.isinf(value.value):
        return "max"
    if isinstance(value, Demand):
        return value.value if value.per == "request" else f"{value.value!r} tokens/s"
    if isinstance(value, Distribution):
        return {"mean": value.mean, "cv": value.cv} if value.cv else value.mean
    if isinstance(value, BaseModel):
        items = {name: _plain(item, full) for name, item in value}
        described = isinstance(value, ModelDescription | SystemDescription)
        unsaid = items if described else getattr(value, "SILENT", ())
        return {
            name: item for name, item in items.items() if item is not None or name not in unsaid
        }
    return value if isinstance(value, str | int | float | None) else str(value)
