"""Solvers of chunks: this process, processes of this machine, or a Dask cluster.

All three take chunks and give (chunk, rows) back as they are done, whatever the order. Where a
worker dies its chunks are tried again alone, then point by point; a point that kills the worker
that is alone with it is a row with that reason.

A cluster's scheduler and workers need this package in the same version, workers the files that the
scenario names at the same paths. One thread a worker is best: points of one process take turns.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from planner.protocol.output import CellRow
from planner.sweep.chunk import Chunk, refused_row, solved
from planner.text.errors import InputError, MissingExtra, SolverError

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as TaskOnCluster

ATTEMPTS = 3  # of one point alone, whose worker may have been killed for no fault of its own
CHUNKS_AHEAD = 2  # chunks per worker that wait for it

ResultRows: TypeAlias = list[CellRow]
ChunkResult: TypeAlias = tuple[Chunk, ResultRows]


def serially(chunks: Iterable[Chunk]) -> Generator[ChunkResult, None, None]:
    """One chunk after the other, here."""
    for chunk in chunks:
        yield chunk, solved(chunk)


def in_processes(
    chunks: Iterable[Chunk], workers: int, solve: Callable[[Chunk], ResultRows] = solved
) -> Generator[ChunkResult, None, None]:
    """Solve the chunks in `workers` fresh processes, which end with this process."""
    waiting = iter(chunks)
    while True:
        pool = _pool(workers)
        try:
            running: dict[Future[ResultRows], Chunk] = {}
            yield from _drained(pool, waiting, running, workers, solve)
            return
        except BrokenProcessPool:
            alone = sorted(running.values(), key=lambda chunk: chunk.first)
        finally:
            _stop(pool)
        yield from _isolated(alone, solve)


def killed_rows(chunk: Chunk) -> ResultRows:
    """The rows of points that end every worker that tries them."""
    reason = "the worker process was killed at this point; is there enough memory?"
    return [refused_row("failed", reason, 0.0) for _ in chunk.points]


def _drained(
    pool: ProcessPoolExecutor,
    waiting: Iterator[Chunk],
    running: dict[Future[ResultRows], Chunk],
    workers: int,
    solve: Callable[[Chunk], ResultRows],
) -> Generator[ChunkResult, None, None]:
    """Yield the results of a pool as chunks finish; `running` holds chunks not yet yielded."""
    while True:
        for chunk in islice(waiting, CHUNKS_AHEAD * workers - len(running)):
            future = _submitted(pool, solve, chunk)
            running[future] = chunk
        if not running:
            return
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        # Yield the successful chunks before a failed future raises.
        for future in sorted(ready, key=lambda done: done.exception() is not None):
            rows = future.result()
            yield running.pop(future), rows


def _submitted(
    pool: ProcessPoolExecutor, solve: Callable[[Chunk], ResultRows], chunk: Chunk
) -> Future[ResultRows]:
    """A future of the chunk; of a pool that broke in this moment one that says so."""
    try:
        return pool.submit(solve, chunk)
    except BrokenProcessPool as error:
        future: Future[ResultRows] = Future()
        future.set_exception(error)
        return future


def _isolated(
    chunks: Sequence[Chunk], solve: Callable[[Chunk], ResultRows]
) -> Generator[ChunkResult, None, None]:
    """Chunks that were in flight when a worker died, alone; what dies again, point by point."""
    waiting = deque((chunk, 1) for chunk in chunks)
    pool: ProcessPoolExecutor | None = None
    try:
        while waiting:
            piece, attempt = waiting.popleft()
            pool = pool or _pool(1)
            try:
                rows = pool.submit(solve, piece).result()
            except BrokenProcessPool:
                _stop(pool)
                pool = None
                if len(piece.points) > 1:
                    waiting.extendleft((each, 1) for each in reversed(piece.split()))
                elif attempt < ATTEMPTS:
                    waiting.appendleft((piece, attempt + 1))
                else:
                    yield piece, killed_rows(piece)
                continue
            yield piece, rows
    finally:
        if pool is not None:
            _stop(pool)


def _pool(workers: int) -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begun)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the workers at once; their current work is discarded."""
    processes = list((pool._processes or {}).values())
    manager: threading.Thread | None = pool._executor_manager_thread  # type: ignore[assignment]
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()
    if manager is not None:
        manager.join()  # else it may close its pipe while the interpreter, at its end, writes there


def _begun() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_ended_with_parent, daemon=True).start()


def _ended_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


ANSWERS = 10.0  # seconds; timeout for a scheduler to answer and to have a worker
LOOKS = 1.0  # seconds between looks at a scheduler that says nothing
ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://([^\s/:]+|\[[0-9a-fA-F:]+\]):\d{1,5}/?")


@contextmanager
def connect_dask(address: str) -> Iterator[Cluster]:
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
        # Report a failure once here, not by every part of the connection.
        for name in [n for n in logging.root.manager.loggerDict if n.startswith("distributed")]:
            logger = logging.getLogger(name)
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
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


def _lost(future: TaskOnCluster) -> bool:
    return future.status in ("lost", "pending")


@dataclass(frozen=True)
class UnsolvedChunks:
    """Chunks to be solved again: the halves of one that killed its workers, or one lost."""

    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Cluster:
    """The workers of a connected scheduler."""

    address: str
    client: Client

    @property
    def workers(self) -> int:
        """Number of workers that the scheduler has now, at least 1."""
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    def solved(
        self, chunks: Iterable[Chunk], solve: Callable[[Chunk], ResultRows] = solved
    ) -> Iterator[ChunkResult]:
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
                yield chunk, killed_rows(chunk) if rows is None else rows

    def _together(
        self, chunks: Iterable[Chunk], solve: Callable[[Chunk], ResultRows]
    ) -> Iterator[tuple[Chunk, ResultRows | None]]:
        """The chunks with their rows; without rows chunks of one point whose workers died."""
        waiting = iter(chunks)
        running: dict[TaskOnCluster, Chunk] = {}
        again: list[Chunk] = []
        while True:
            room = CHUNKS_AHEAD * self.workers - len(running)
            for chunk in (*again, *islice(waiting, max(room, 0))):
                running[self.client.submit(solve, chunk, pure=False)] = chunk
            again = []
            if not running:
                return
            for future in self._ready(list(running)):
                chunk = running.pop(future)
                rows = self._rows(future, chunk)
                if isinstance(rows, UnsolvedChunks):
                    again += rows.chunks
                else:
                    yield chunk, rows

    def _ready(self, futures: list[TaskOnCluster]) -> list[TaskOnCluster]:
        """Wait until at least one future is done; returns the futures that are done."""
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

    def _rows(self, future: TaskOnCluster, chunk: Chunk) -> ResultRows | UnsolvedChunks | None:
        """The rows of a chunk that is done, or what of it is to be solved again.

        Rows stay with the worker that computed them until they are fetched: if it dies before,
        they are lost although the scheduler is well. None for one point whose workers died.
        """
        from distributed import KilledWorker

        if future.status == "cancelled":
            raise self._gone()
        try:
            return (
                UnsolvedChunks((chunk,)) if _lost(future) else list(future.result(timeout=ANSWERS))
            )
        except KilledWorker:
            return None if len(chunk.points) == 1 else UnsolvedChunks(tuple(chunk.split()))
        except (OSError, TimeoutError, CancelledError) as error:
            if _lost(future) and self.client.status == "running":
                return UnsolvedChunks((chunk,))
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
