"""The server of an agent's tools, by the Model Context Protocol on standard input and output.

A tool answers the text of a command's `--json`; a mistake is a tool error with the command's own
lines, a scenario without a plan an answer. What is missing is asked for and never filled in.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from planner.pages.killable import OperationTimeout, Workers
from planner.pages.operations import FORMS, MAX_BYTES, MAX_POINTS, MISTAKE, Reply, parse_body
from planner.text.errors import InputError, MissingExtra, did_you_mean

try:
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
except ImportError as error:
    raise MissingExtra("mcp", "mcp", "planner mcp") from error

Schema = Mapping[str, Any]
SCENARIO: Schema = {
    "type": "object",
    "description": "a scenario's keys; the resource planner://schema describes them",
}
SETS: Schema = {
    "type": "array", "items": {"type": "string"}, "description": "changes PATH=VALUE made before",
}  # fmt: skip
TEXT_SCHEMA: Schema = {"type": "string"}


@dataclass(frozen=True)
class _AgentTool:
    """A tool: its description, its arguments, and the required arguments."""

    about: str
    arguments: Mapping[str, Schema]
    required: tuple[str, ...] = ()


ARGUMENTS = {"scenario": SCENARIO, "set": SETS}
CATALOGUE_ARGUMENTS: dict[str, Schema] = {
    "find": {"type": "string", "description": "words that stand in what is listed"},
    "where": {"type": "array", "items": TEXT_SCHEMA, "description": "such as memory>=100 GB"},
}
TOOLS = {
    "solve": _AgentTool(
        "The cheapest plan that keeps a scenario's promises: what to run, what it costs, how sure "
        "that is. Numbers are in base units (s, byte, USD, token).", ARGUMENTS, ("scenario",),
    ),
    "why": _AgentTool(
        "The same plan with what binds and what one percent of each quantity is worth.",
        ARGUMENTS, ("scenario",),
    ),
    "sweep": _AgentTool(
        f"A scenario at every point of a grid of at most {MAX_POINTS:,} points.",
        {**ARGUMENTS, "over": {"description": '["chips=8,16,32"] or {"chips": [8, 16, 32]}; also '
                           "lin(1..10,10) and log(1k..200k,20)"}}, ("scenario", "over"),
    ),
    "check": _AgentTool(
        "Whether a scenario is sound, without solving it.", ARGUMENTS, ("scenario",)
    ),
    "formula": _AgentTool(
        "One equation with symbols, units and source; all of them without a name.",
        {"name": TEXT_SCHEMA, "solve_for": TEXT_SCHEMA, "set": SETS, **CATALOGUE_ARGUMENTS},
    ),
    "derive": _AgentTool(
        "Derivations whose steps are checked; a list of them without a format.",
        {"names": {"type": "array", "items": TEXT_SCHEMA}, "format": {"enum": list(FORMS)}},
    ),
    "catalog": _AgentTool(
        "What is known of chips, systems, models, prices, profiles and laws, with sources.",
        {"kind": TEXT_SCHEMA, "name": TEXT_SCHEMA, **CATALOGUE_ARGUMENTS},
    ),
}  # fmt: skip
RESOURCES = {
    "planner://schema": ("schema", "JSON Schema of a scenario"),
    "planner://equations": ("formula", "every equation: name, title, unit"),
}


def agent_server(workers: Workers) -> Server[Any]:
    """The server with its tools and resources; calls beyond its processes wait for one."""
    places = anyio.CapacityLimiter(workers.most)

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name, each) for name, each in TOOLS.items()])

    async def called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            arguments = _checked(params.name, params.arguments or {})
        except InputError as error:
            return _result(str(error), error=True)
        return await _answer(workers, places, params.name, arguments)

    async def described(context: Any, params: Any) -> types.ListResourcesResult:
        rows = [
            types.Resource(uri=uri, name=name, description=about, mime_type="application/json")
            for uri, (name, about) in RESOURCES.items()
        ]
        return types.ListResourcesResult(resources=rows)

    async def resource(
        context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri not in RESOURCES:
            raise ValueError(f"no resource {uri[:80]} (known: {', '.join(RESOURCES)})")
        operation = RESOURCES[uri][0]
        reply = await anyio.to_thread.run_sync(workers.answer, operation, {}, limiter=places)
        text = types.TextResourceContents(uri=uri, mime_type="application/json", text=reply.text)
        return types.ReadResourceResult(contents=[text])

    return Server(
        "token-planner",
        version=version("token-planner"),
        instructions=(
            "Plans for serving, training and building language models. Give every key that the "
            "schema requires; ask the user for what they did not say. Files are not read unless "
            "the server was started with a folder."
        ),
        on_list_tools=listed,
        on_call_tool=called,
        on_list_resources=described,
        on_read_resource=resource,
    )


def _tool(name: str, tool: _AgentTool) -> types.Tool:
    return types.Tool(
        name=name,
        description=tool.about,
        input_schema={
            "type": "object",
            "properties": {key: dict(schema) for key, schema in tool.arguments.items()},
            "required": list(tool.required),
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


def _checked(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool.

    Raises InputError for a tool or an argument that is none, one that is missing, and for what is
    too large or deep.
    """
    if name not in TOOLS:
        raise InputError(f"no tool {name[:60]!r}{did_you_mean(name, TOOLS)}")
    arguments_of, required = TOOLS[name].arguments, TOOLS[name].required
    wrong = [f"unknown argument {x[:60]!r}{did_you_mean(x, arguments_of)}" for x in arguments
             if x not in arguments_of]  # fmt: skip
    wrong += [f"missing required argument {x!r}" for x in required if x not in arguments]
    if wrong:
        raise InputError("\n".join(wrong))
    try:
        raw = json.dumps(arguments).encode()
    except (ValueError, RecursionError):
        raise InputError("the arguments are too deep") from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES // 1_000_000} MB")
    return parse_body(raw)


async def _answer(
    workers: Workers, places: anyio.CapacityLimiter, name: str, arguments: Mapping[str, Any]
) -> types.CallToolResult:
    try:
        reply: Reply = await anyio.to_thread.run_sync(
            workers.answer, name, arguments, limiter=places
        )
    except OperationTimeout:
        return _result(f"not answered within {workers.limit:g} s; ask for less", error=True)
    return _result(reply.text, error=reply.status >= MISTAKE)


def _result(text: str, *, error: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=error)


def serve_stdio(workers: Workers) -> None:
    """Answer on standard input and output until the client leaves."""

    async def run() -> None:
        server = agent_server(workers)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    try:
        anyio.run(run)
    finally:
        workers.close()
