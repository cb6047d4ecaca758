"""Connections of the HTTP server that do not stay open for a request that never comes whole."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from planner.pages.operations import READING


class TimedConnection(H11Protocol):
    """A connection that is closed where the rest of a request's head does not come in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read what came, and wait for the rest of a head."""
        super().data_received(data)
        self._wait()

    def _wait(self) -> None:
        if self.conn.their_state is h11.IDLE:
            late = self.timeout_keep_alive_handler
            self.timeout_keep_alive_task = self.loop.call_later(READING, late)
