"""The OpenAPI document of the server: its operations, and the schemas that they use."""

from importlib.metadata import version
from typing import Any

from planner.pages.operations import MAX_POINTS
from planner.scenario import json_schema
from planner.scenario.kinds import PROBLEM_PACKAGES
from planner.text.tables import table

SERVED = table("planner.pages", "openapi.toml")


def openapi() -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    scenario = json_schema()
    definitions: Any = scenario.pop("$defs")
    schemas = _moved({"Scenario": scenario, **definitions})
    paths: dict[str, Any] = {}
    for name, row in SERVED["post"].items():
        about, options = row["about"].format(most=MAX_POINTS), [SERVED["set"], SERVED["form"]]
        paths[f"/{name}"] = {"post": _operation(name, about, options, row["body"])}
    for name, row in SERVED["get"].items():
        queries = [{"name": x, "in": "query", "schema": {"type": "string"}} for x in row["query"]]
        paths[f"/{name}"] = {"get": _operation(name, row["about"], queries, None)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "token-planner",
            "version": version("token-planner"),
            "description": f"Answers scenarios of {', '.join(PROBLEM_PACKAGES)}.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(
    name: str, about: str, parameters: list[dict[str, Any]], body: dict[str, Any] | None
) -> dict[str, Any]:
    answers: dict[str, Any] = {
        code: {"description": why} for code, why in SERVED["refusals"].items()
    }
    answers["200"] = {
        "description": about,
        "headers": {
            "planner-exit-status": {
                "description": "0 answered, 1 infeasible",
                "schema": {"enum": ["0", "1"]},
            }
        },
    }
    operation: dict[str, Any] = {
        "operationId": name, "summary": about, "parameters": parameters,
        "responses": dict(sorted(answers.items())),
    }  # fmt: skip
    if body is not None:
        operation["requestBody"] = {
            "required": True, "content": {"application/json": {"schema": body}},
        }  # fmt: skip
    return operation


def _moved(part: Any) -> Any:
    """Schema with `#/$defs/` references moved to `#/components/schemas/`."""
    if isinstance(part, dict):
        return {key: _moved(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_moved(value) for value in part]
    inner = "#/$defs/"
    if isinstance(part, str) and part.startswith(inner):
        return "#/components/schemas/" + part.removeprefix(inner)
    return part
