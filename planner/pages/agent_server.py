"""The server of an agent's tools, by the Model Context Protocol on standard input and output.

A tool answers the text of a command's `--json`; a mistake is a tool error with the command's own
lines, a scenario without a plan an answer. What is missing is asked for and never filled in.
"""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from planner.pages.killable import OperationTimeout, Workers
from planner.pages.operations import MAX_BYTES, MAX_POINTS, MISTAKE, Reply, parse_body
from planner.text.errors import InputError, MissingExtra, did_you_mean
from planner.text.tables import table

try:
    import anyio
    from mcp import MCPError, types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.types import INVALID_PARAMS
except ImportError as error:
    raise MissingExtra("mcp", "mcp", "planner mcp") from error

AGENT = table("planner.pages", "agent_tools.toml")
TOOLS = {
    name: types.Tool(
        name=name,
        description=row["about"].format(most=MAX_POINTS),
        input_schema={
            "type": "object",
            "properties": {x: AGENT["arguments"][x]
                           for x in (*row.get("required", ()), *row.get("optional", ()))},
            "required": row.get("required", []),
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    for name, row in AGENT["tools"].items()
}  # fmt: skip
RESOURCES = {
    "planner://schema": ("schema", "JSON Schema of a scenario"),
    "planner://equations": ("formula", "every equation: name, title, unit"),
}


def agent_server(workers: Workers) -> Server[Any]:
    """The server with its tools and resources; calls beyond its processes wait for one."""
    places = anyio.CapacityLimiter(workers.most)

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[*TOOLS.values()])

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
        on_list_prompts=_listed_prompts,
        on_get_prompt=_prompt,
        on_list_resources=described,
        on_read_resource=resource,
    )


async def _listed_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    prompts = [
        types.Prompt(name=name, description=row["about"], arguments=[
            types.PromptArgument(name=each, required=True) for each in row["arguments"]])
        for name, row in AGENT["prompts"].items()
    ]  # fmt: skip
    return types.ListPromptsResult(prompts=prompts)


async def _prompt(context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    row = AGENT["prompts"].get(params.name)
    if row is None:
        names = ", ".join(AGENT["prompts"])
        raise MCPError(INVALID_PARAMS, f"no prompt {params.name[:80]} (known: {names})")
    values = params.arguments or {}
    if missing := [name for name in row["arguments"] if name not in values]:
        raise MCPError(INVALID_PARAMS, f"missing argument: {', '.join(missing)}")
    message = types.PromptMessage(
        role="user", content=types.TextContent(text=row["text"].format(**values))
    )
    return types.GetPromptResult(description=row["about"], messages=[message])


def _checked(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool; InputError for what is unknown, missing, too large or too deep."""
    if name not in TOOLS:
        raise InputError(f"no tool {name[:60]!r}{did_you_mean(name, TOOLS)}")
    schema: Mapping[str, Any] = TOOLS[name].input_schema
    arguments_of, required = schema["properties"], schema["required"]
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
    values = parse_body(raw)
    return {"detail": "head", **values} if "detail" in arguments_of else values


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
