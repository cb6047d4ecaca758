"""The OpenAPI document of the server: its operations, and the schemas that they use."""

from importlib.metadata import version
from typing import Any

from planner.pages.operations import MAX_POINTS
from planner.scenario import json_schema
from planner.scenario.kinds import PROBLEM_PACKAGES

SETS = {
    "name": "set", "in": "query", "description": "a change PATH=VALUE; repeatable",
    "schema": {"type": "array", "items": {"type": "string"}},
}  # fmt: skip
FORM = {
    "name": "form", "in": "query", "description": "json, or text as on a terminal",
    "schema": {"enum": ["json", "text"]},
}  # fmt: skip
SCENARIO = {"$ref": "#/components/schemas/Scenario"}
REFUSALS = {
    "403": "a foreign Host or Origin",
    "413": "larger than 1 MB",
    "415": "not JSON",
    "422": "mistakes, each with its path",
    "429": "two operations are running",
    "503": "a solver failed",
    "504": "the time limit ended it",
}
POST_OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "solve": ("The plan, as planner solve --json", SCENARIO),
    "why": ("The plan with its reasons, as planner solve --why --json", SCENARIO),
    "check": ("Whether a scenario is sound, as planner check --json", SCENARIO),
    "report": ("The page of planner report", SCENARIO),
    "sweep": (
        f"Rows of a grid of at most {MAX_POINTS:,} points",
        {
            "type": "object", "required": ["scenario", "over"],
            "properties": {
                "scenario": SCENARIO,
                "over": {"description": "{PATH: SPEC or values}, or PATH=SPEC texts"},
            },
        },
    ),
    "compare": (
        "What differs and what it costs, as planner diff --json",
        {
            "type": "object", "required": ["before", "after"],
            "properties": {"before": SCENARIO, "after": SCENARIO},
        },
    ),
}  # fmt: skip
READ = {
    "catalog": ("What is known, as planner catalog --json", ("kind", "name", "find")),
    "schema": ("JSON Schema of scenarios, or of an answer", ("answer",)),
}


def openapi() -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    scenario = json_schema()
    definitions: Any = scenario.pop("$defs")
    schemas = _moved({"Scenario": scenario, **definitions})
    paths: dict[str, Any] = {}
    for name, (about, body) in POST_OPERATIONS.items():
        paths[f"/{name}"] = {"post": _operation(name, about, [SETS, FORM], body)}
    for name, (about, query) in READ.items():
        queries = [{"name": x, "in": "query", "schema": {"type": "string"}} for x in query]
        paths[f"/{name}"] = {"get": _operation(name, about, queries, None)}
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
    answers: dict[str, Any] = {code: {"description": why} for code, why in REFUSALS.items()}
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
