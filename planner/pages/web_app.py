"""The HTTP server: one page and a few operations, for the machine it runs on.

What it answers is the document of a command. It takes JSON alone, of a known Host and Origin, no
more than a megabyte, and no more operations at a time than it has processes for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.pages.killable import OperationTimeout, TooBusy, Workers
from planner.pages.openapi_document import openapi
from planner.pages.operations import FAULT, MAX_BYTES, MISTAKE, READING, Reply, parse_body
from planner.report.files import dumps
from planner.text.errors import InputError, MissingExtra

try:
    from anyio import fail_after, to_thread
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtra("starlette", "serve", "planner serve") from error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")
WHOLE_SCENARIO = ("solve", "why", "report", "check")  # whose body is a scenario itself
FROM_KEYS = ("sweep", "compare")  # whose body names its parts
LOOKUP_OPERATIONS = {"catalog": ("kind", "name", "find"), "schema": ("answer",)}
JSON = "application/json"
SECURITY = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
Endpoint = Callable[[Request], Awaitable[Response]]


def web_app(workers: Workers, hosts: Sequence[str] = HOSTS) -> Starlette:
    """The server as an ASGI application.

    Args:
        hosts: names under which it may be called, without port.
    """
    from planner.pages.editor_page import PAGE, POLICY

    async def page(request: Request) -> Response:
        headers = {"content-security-policy": POLICY}
        return Response(PAGE, media_type="text/html", headers=headers)

    async def described(request: Request) -> Response:
        return Response(dumps(openapi()) + "\n", media_type=JSON)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await to_thread.run_sync(workers.warm)
        yield
        await to_thread.run_sync(workers.close)

    routes = [
        Route("/", page, methods=["GET"]),
        Route("/openapi.json", described, methods=["GET"]),
        *(Route(f"/{x}", _posted(workers, x), methods=["POST"]) for x in WHOLE_SCENARIO),
        *(Route(f"/{x}", _posted(workers, x), methods=["POST"]) for x in FROM_KEYS),
        *(Route(f"/{x}", _looked_up(workers, x), methods=["GET"]) for x in LOOKUP_OPERATIONS),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.add_middleware(_Guard, hosts=tuple(hosts))
    return app


@dataclass
class _Guard:
    """Refuses requests that a page of somebody else made, before anything is read."""

    app: ASGIApp
    hosts: tuple[str, ...]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(k.encode(), v.encode()) for k, v in SECURITY.items()]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        app = self.app if refusal is None else _refused(403, refusal)
        await app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> str | None:
        """Reason for refusing a request; None if it is accepted."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host = headers.get("host", [])
        if len(host) != 1 or _bare(host[0]) not in self.hosts:
            return "the Host is not one of this server"
        origins = headers.get("origin", [])
        if any(origin != f"http://{host[0]}" for origin in origins):
            return "the Origin is another site"
        if any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", [])):
            return "the request comes from another site"
        return None


def _bare(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()


def _refused(status: int, message: str, mistakes: Sequence[Mapping[str, Any]] = ()) -> Response:
    document = {"message": message, "mistakes": list(mistakes)}
    return Response(dumps(document) + "\n", status_code=status, media_type=JSON)


async def _answer(workers: Workers, name: str, arguments: Mapping[str, Any]) -> Response:
    """The response to an operation."""
    try:
        reply: Reply = await to_thread.run_sync(workers.answer, name, arguments)
    except TooBusy:
        response = _refused(429, f"{workers.most} operations are running; ask again")
        response.headers["retry-after"] = "1"
        return response
    except OperationTimeout:
        return _refused(504, f"not answered within {workers.limit:g} s; ask for less")
    if reply.status >= FAULT:
        return _refused(500, reply.text)
    if reply.status > MISTAKE:
        return _refused(503, reply.text)
    if reply.status == MISTAKE:
        return _refused(422, reply.text, reply.mistakes)
    kind = "text/plain" if arguments.get("form") == "text" else JSON
    headers = {"planner-exit-status": str(reply.status)}
    if name == "report":
        return Response(reply.text, media_type="text/html", headers=headers)
    return Response(reply.text + "\n", media_type=kind, headers=headers)


def _posted(workers: Workers, name: str) -> Endpoint:
    """Endpoint of an operation on the content of a request body."""

    async def endpoint(request: Request) -> Response:
        kind, _, more = request.headers.get("content-type", "").partition(";")
        if kind.strip().lower() != JSON or more.strip().lower() not in ("", "charset=utf-8"):
            return _refused(415, f"expected {JSON}")
        try:
            with fail_after(READING):
                raw = await _read(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except TimeoutError:
            late = _refused(408, f"the whole body did not come within {READING:g} s")
            late.headers["connection"] = "close"
            return late
        if raw is None:
            return _refused(413, f"larger than {MAX_BYTES // 1_000_000} MB")
        try:
            body = parse_body(raw)
            query = request.query_params
            unknown = set(query) - {"set", "form"}
            if unknown:
                raise InputError(f"unknown parameter {min(unknown)[:60]!r} (known: set, form)")
            form = query.get("form")
            if form not in (None, "json", "text"):
                raise InputError(f"form: {form[:60]!r} is neither json nor text")
            beside = {"set": query.getlist("set"), "form": form}
            arguments = (
                {"scenario": body, **beside} if name in WHOLE_SCENARIO else {**body, **beside}
            )
        except InputError as error:
            whole = {"file": None, "line": None, "column": None, "path": "", "message": str(error)}
            return _refused(422, str(error), [whole])
        return await _answer(workers, name, arguments)

    return endpoint


async def _read(request: Request) -> bytes | None:
    """Body of a request; None if it is larger than MAX_BYTES."""
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated[:20]) > MAX_BYTES:
        return None
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > MAX_BYTES:
            return None
    return bytes(raw)


def _looked_up(workers: Workers, name: str) -> Endpoint:
    """Endpoint of a catalogue lookup, with arguments from the address alone."""

    async def endpoint(request: Request) -> Response:
        query = request.query_params
        unknown = set(query) - set(LOOKUP_OPERATIONS[name])
        if unknown:
            names = ", ".join(LOOKUP_OPERATIONS[name])
            return _refused(422, f"unknown parameter {min(unknown)[:60]!r} (known: {names})")
        return await _answer(workers, name, dict(query))

    return endpoint


def _timed_connection() -> type[asyncio.Protocol]:
    """A connection that is closed where the rest of a request's head does not come in time."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedConnection(H11Protocol):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is h11.IDLE:
                late = self.timeout_keep_alive_handler
                self.timeout_keep_alive_task = self.loop.call_later(READING, late)

    return TimedConnection


def serve_http(workers: Workers, port: int) -> None:
    """Answer on 127.0.0.1 until interrupted; raises InputError where the port is taken."""
    import socket

    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtra("uvicorn", "serve", "planner serve") from error
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        raise InputError(f"--port {port}: {error.strerror}; name another, or 0 for any") from error
    from planner.text.console import note

    note(f"planner: http://127.0.0.1:{listening.getsockname()[1]}/ (Ctrl-C ends it)")
    settings = uvicorn.Config(
        web_app(workers), log_level="warning", access_log=False, server_header=False,
        timeout_graceful_shutdown=1, ws="none", http=_timed_connection(),
    )  # fmt: skip
    uvicorn.Server(settings).run(sockets=[listening])
