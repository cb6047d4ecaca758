"""Chunks solved on a Dask cluster by the function that processes of this machine run.

Scheduler and workers need this package in the same version, workers the files that the scenario
names at the same paths. One thread a worker is best: points of one process take turns.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from planner.sweep.chunk import Chunk, solved
from planner.sweep.workers import AHEAD, Done, Rows, killed
from planner.text.errors import InputError, MissingExtra, SolverError

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWERS = 10.0  # seconds in which a scheduler answers, and has a worker
LOOKS = 1.0  # seconds between looks at a scheduler that says nothing
ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://([^\s/:]+|\[[0-9a-fA-F:]+\]):\d{1,5}/?")


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """A connection to a Dask scheduler.

    Raises InputError if the address is none, or workers have another version of this package;
    MissingExtra if Dask is not installed; SolverError if the scheduler does not answer, has no
    workers, or goes away.
    """
    if ADDRESS.fullmatch(address) is None:
        raise InputError(f"--scheduler {address!r}: expected an address as tcp://host:8786")
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtra("distributed", "dist", "--scheduler") from error
    with ExitStack() as stack:
        _silence(stack)
        fault = "does not answer"
        try:
            client = Client(address, timeout=ANSWERS, set_as_default=False)
            stack.callback(client.close, timeout=LOOKS)
            fault = "has no workers"
            client.wait_for_workers(1, timeout=ANSWERS)
            cluster = Cluster(address, client)
            cluster.require_same_version()
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise SolverError(f"the scheduler at {address} {fault}") from error
        yield cluster


def _silence(stack: ExitStack) -> None:
    """What goes wrong is said here once, not by every part of the connection."""
    for name in [n for n in logging.root.manager.loggerDict if n.startswith("distributed")]:
        logger = logging.getLogger(name)
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)


def _lost(future: Future) -> bool:
    """Whether the worker that held the result of a task that was done has died."""
    return future.status in ("lost", "pending")


@dataclass(frozen=True)
class Unsolved:
    """Chunks to be solved again: the halves of one that killed its workers, or one lost."""

    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Cluster:
    """The workers of a connected scheduler."""

    address: str
    client: Client

    @property
    def workers(self) -> int:
        """How many workers the scheduler has now, at least one."""
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    def solved(
        self, chunks: Iterable[Chunk], solve: Callable[[Chunk], Rows] = solved
    ) -> Iterator[Done]:
        """The chunks with their rows, as they are done.

        Dask blames every task that waits on a worker when it dies, not only the one that runs: a
        point is said to kill workers once it has done so with nothing beside it.
        """
        suspects = []
        for chunk, rows in self._together(chunks, solve):
            if rows is None:
                suspects.append(chunk)
            else:
                yield chunk, rows
        for suspect in suspects:
            for chunk, rows in self._together([suspect], solve):
                yield chunk, killed(chunk) if rows is None else rows

    def _together(
        self, chunks: Iterable[Chunk], solve: Callable[[Chunk], Rows]
    ) -> Iterator[tuple[Chunk, Rows | None]]:
        """The chunks with their rows; without rows chunks of one point whose workers died."""
        waiting = iter(chunks)
        running: dict[Future, Chunk] = {}
        again: list[Chunk] = []
        while True:
            room = AHEAD * self.workers - len(running)
            for chunk in (*again, *islice(waiting, max(room, 0))):
                running[self.client.submit(solve, chunk, pure=False)] = chunk
            again = []
            if not running:
                return
            for future in self._ready(list(running)):
                chunk = running.pop(future)
                rows = self._rows(future, chunk)
                if isinstance(rows, Unsolved):
                    again += rows.chunks
                else:
                    yield chunk, rows

    def _ready(self, futures: list[Future]) -> list[Future]:
        """Those that are done; at least one."""
        from distributed import wait

        silent = monotonic()
        while True:
            try:
                with self.client.as_current():
                    return list(wait(futures, timeout=LOOKS, return_when="FIRST_COMPLETED").done)
            except CancelledError as error:
                raise self._gone() from error
            except TimeoutError:
                if self.client.status == "running":
                    silent = monotonic()
                elif monotonic() - silent > ANSWERS:
                    raise self._gone() from None

    def _rows(self, future: Future, chunk: Chunk) -> Rows | Unsolved | None:
        """The rows of a chunk that is done, or what of it is to be solved again.

        Rows stay with the worker that computed them until they are fetched: if it dies before,
        they are lost although the scheduler is well. None for one point whose workers died.
        """
        from distributed import KilledWorker

        if future.status == "cancelled":
            raise self._gone()
        try:
            return Unsolved((chunk,)) if _lost(future) else list(future.result(timeout=ANSWERS))
        except KilledWorker:
            return None if len(chunk.points) == 1 else Unsolved(tuple(chunk.split()))
        except (OSError, TimeoutError, CancelledError) as error:
            if _lost(future) and self.client.status == "running":
                return Unsolved((chunk,))
            raise self._gone() from error

    def require_same_version(self) -> None:
        """Raises InputError where this package is absent or of another version."""
        mine = version("token-planner")
        try:
            versions = {f"worker {where}": v for where, v in
                     self.client.run(version, "token-planner").items()}  # fmt: skip
            versions["scheduler"] = self.client.run_on_scheduler(version, "token-planner")
        except ImportError as error:
            raise InputError(
                f"the scheduler at {self.address} or a worker of it lacks this package; "
                f"install token-planner {mine} there"
            ) from error
        for where, theirs in sorted(versions.items()):
            if theirs != mine:
                raise InputError(f"the {where} has token-planner {theirs}, this is {mine}")

    def _gone(self) -> SolverError:
        return SolverError(f"the scheduler at {self.address} went away")
