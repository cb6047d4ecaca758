"""Where chunks are solved: in this process, in processes of this machine, on a Dask cluster.

All three take chunks and give (chunk, rows) back as they are done, whatever the order. Where a
worker dies its chunks are tried again alone, then point by point; a point that kills the worker
that is alone with it is a row with that reason.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeAlias

from planner.protocol.columns import Row
from planner.sweep.chunk import Chunk, refused, solved

ATTEMPTS = 3  # of one point alone, whose worker may have been killed for no fault of its own
AHEAD = 2  # chunks per worker that wait for it

Rows: TypeAlias = list[Row]
Done: TypeAlias = tuple[Chunk, Rows]


def serially(chunks: Iterable[Chunk]) -> Generator[Done, None, None]:
    """One chunk after the other, here."""
    for chunk in chunks:
        yield chunk, solved(chunk)


def in_processes(
    chunks: Iterable[Chunk], workers: int, solve: Callable[[Chunk], Rows] = solved
) -> Generator[Done, None, None]:
    """The same in this many processes, which are started anew and end with this one."""
    waiting = iter(chunks)
    while True:
        pool = _pool(workers)
        try:
            running: dict[Future[Rows], Chunk] = {}
            yield from _drained(pool, waiting, running, workers, solve)
            return
        except BrokenProcessPool:
            alone = sorted(running.values(), key=lambda chunk: chunk.first)
        finally:
            _stop(pool)
        yield from _isolated(alone, solve)


def killed(chunk: Chunk) -> Rows:
    """The rows of points that end every worker that tries them."""
    reason = "the worker process was killed at this point; is there enough memory?"
    return [refused("failed", reason, 0.0) for _ in chunk.points]


def _drained(
    pool: ProcessPoolExecutor,
    waiting: Iterator[Chunk],
    running: dict[Future[Rows], Chunk],
    workers: int,
    solve: Callable[[Chunk], Rows],
) -> Generator[Done, None, None]:
    """What a pool makes of the chunks; `running` holds those that are not yet passed on."""
    while True:
        for chunk in islice(waiting, AHEAD * workers - len(running)):
            future = _submitted(pool, solve, chunk)
            running[future] = chunk
        if not running:
            return
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        # Those that ended well are passed on before a broken one breaks off.
        for future in sorted(ready, key=lambda done: done.exception() is not None):
            rows = future.result()
            yield running.pop(future), rows


def _submitted(
    pool: ProcessPoolExecutor, solve: Callable[[Chunk], Rows], chunk: Chunk
) -> Future[Rows]:
    """A future of the chunk; of a pool that broke in this moment one that says so."""
    try:
        return pool.submit(solve, chunk)
    except BrokenProcessPool as error:
        future: Future[Rows] = Future()
        future.set_exception(error)
        return future


def _isolated(
    chunks: Sequence[Chunk], solve: Callable[[Chunk], Rows]
) -> Generator[Done, None, None]:
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
                    yield piece, killed(piece)
                continue
            yield piece, rows
    finally:
        if pool is not None:
            _stop(pool)


def _pool(workers: int) -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begun)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the workers at once: what they are at is not wanted any more."""
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
    """A worker ends with its parent, however that ends, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_ended_with_parent, daemon=True).start()


def _ended_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
