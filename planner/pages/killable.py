"""Operations in processes that can be killed: a thread that computes cannot be stopped.

A process answers one operation at a time and keeps what it has loaded for the next one; after a
time limit, or when it dies, it is killed and another is started when it is wanted.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from planner.pages.operations import STATUS_FAILED, Arguments, Reply, run_operation
from planner.scenario.keys.references import ACCESS, FileAccess

MEMORY = 8 * 2**30  # bytes that a process may map, where the system keeps to such a limit
STARTING = 60.0  # seconds that a process may take to load before its first answer


class TooBusy(Exception):  # noqa: N818 - said to who asked, no error of ours
    """The maximum number of concurrent operations is already running."""


class OperationTimeout(Exception):  # noqa: N818
    """The time limit ended an operation, and its process."""


def limit_memory(memory: int) -> None:
    """Limit the memory this process may map [byte]: beyond the limit it gets a MemoryError.

    Only Linux keeps to such a limit; elsewhere the time limit alone ends a question.
    """
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def answering(pipe: Connection, folder: Path | None, memory: int) -> None:
    """Answer requests from the pipe until it is closed.

    Standard output belongs to the protocol of who started it, so that nothing is printed there.
    """
    limit_memory(memory)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    ACCESS.set(FileAccess(folder))
    pipe.send("ready")
    while True:
        try:
            name, arguments = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        pipe.send(run_operation(name, arguments))


@dataclass
class _Worker:
    """One process, and our end of its pipe."""

    process: SpawnProcess
    pipe: Connection
    ready: bool = False

    @classmethod
    def started(cls, folder: Path | None, memory: int) -> _Worker:
        """A process that loads."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=answering, args=(theirs, folder, memory), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours)

    def answer(self, name: str, arguments: Arguments, limit: float) -> Reply:
        """The reply; OperationTimeout after `limit` seconds, EOFError where the process died."""
        if not self.ready:
            if not self.pipe.poll(STARTING):
                raise OperationTimeout
            self.pipe.recv()
            self.ready = True
        self.pipe.send((name, arguments))
        if not self.pipe.poll(limit):
            raise OperationTimeout
        reply = self.pipe.recv()
        assert isinstance(reply, Reply)
        return reply

    def kill(self) -> None:
        """Kill the process, even if it is busy."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


@dataclass
class Workers:
    """At most `most` processes; the next operation beyond them is refused, not queued.

    Args:
        folder: where files may lie that a scenario names; nowhere if None.
        limit: seconds that an operation may take.
        memory: bytes that a process may map.
    """

    folder: Path | None = None
    limit: float = 60.0
    most: int = 2
    memory: int = MEMORY
    idle: list[_Worker] = field(default_factory=list)
    busy: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, name: str, arguments: Arguments) -> Reply:
        """The reply to an operation.

        Raises TooBusy where as many run as may, OperationTimeout where the limit ended it.
        """
        with self._place() as worker:
            try:
                reply = worker.answer(name, arguments, self.limit)
            except (EOFError, OSError):
                worker.kill()
                return Reply(STATUS_FAILED, "the process that computed has died; ask for less")
            except BaseException:
                worker.kill()
                raise
            with self.lock:
                self.idle.append(worker)
            return reply

    @contextmanager
    def _place(self) -> Iterator[_Worker]:
        with self.lock:
            if self.busy >= self.most:
                raise TooBusy
            self.busy += 1
            worker = self.idle.pop() if self.idle else None
        try:
            yield worker or _Worker.started(self.folder, self.memory)
        finally:
            with self.lock:
                self.busy -= 1

    def warm(self) -> None:
        """Start the first process before anybody asks."""
        with self.lock:
            if not self.idle and not self.busy:
                self.idle.append(_Worker.started(self.folder, self.memory))

    def close(self) -> None:
        """End every process that waits; those that compute end with ours."""
        deadline = time.monotonic() + 1.0
        while self.busy and time.monotonic() < deadline:
            time.sleep(0.01)
        with self.lock:
            for worker in self.idle:
                worker.kill()
            self.idle.clear()
