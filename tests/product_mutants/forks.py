"""Work in forks of one process that has only the libraries loaded, some at a time."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

WAITED = 8.0  # seconds on the clock per second of the processor before a fork is ended


@dataclass(frozen=True)
class Job:
    """What a fork does: its status is what `work` returns; `processor` seconds end it."""

    name: str
    work: Callable[[], int]
    processor: float


def done(jobs: Iterable[Job], workers: int) -> Iterator[tuple[Job, int | None, float]]:
    """Every job with its status and its seconds, as they end; None is one that took too long."""
    running: dict[int, tuple[Job, float]] = {}
    waiting = iter(jobs)
    ended = False
    while running or not ended:
        while not ended and len(running) < workers:
            job = next(waiting, None)
            if job is None:
                ended = True
            else:
                running[_begun(job)] = job, time.monotonic()
        for pid in list(running):
            job, started = running[pid]
            took = time.monotonic() - started
            gone, status = os.waitpid(pid, os.WNOHANG)
            if not gone and took > WAITED * job.processor:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                gone, status = os.waitpid(pid, 0)
            if gone:
                del running[pid]
                code = os.waitstatus_to_exitcode(status)
                yield job, code if code >= 0 else None, took
        time.sleep(0.02)


def _begun(job: Job) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        os.setpgid(0, 0)
        spent = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        limit = int(spent + job.processor) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        status = job.work()
    finally:
        os._exit(status)
