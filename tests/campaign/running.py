"""Many cases in several processes: counts, and those that ended badly."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign.hostile import case
from tests.campaign.judged import judged

CHUNK = 50  # cases that a process takes at a time


@dataclass
class Tally:
    """How cases ended: how many by status, CPU seconds in all and of the slowest, the failures."""

    statuses: Counter[int] = field(default_factory=Counter)
    cpu: float = 0.0
    slowest: tuple[float, str] = (0.0, "")
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many there are."""
        return self.statuses.total()

    def add(self, other: Tally) -> None:
        """Count those of another."""
        self.statuses += other.statuses
        self.cpu += other.cpu
        self.slowest = max(self.slowest, other.slowest)
        self.failures += other.failures


def run_chunk(chunk: tuple[str, int, int]) -> tuple[str, Tally]:
    """Cases `first` to `last` of a family, one after the other."""
    family, first, last = chunk
    tally = Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, last):
            with tempfile.TemporaryDirectory() as folder:
                end = judged(case(family, number), Path(folder))
            name = f"{family}:{number}"
            tally.statuses[end.status] += 1
            tally.cpu += end.cpu
            tally.slowest = max(tally.slowest, (end.cpu, name))
            tally.failures += [(name, fault) for fault in end.faults]
    return family, tally


def run_all(counts: dict[str, int], workers: int, limit: float) -> Iterator[tuple[str, Tally]]:
    """Chunks of every family in turn until `limit` seconds are over, whichever are done first."""
    begun = time.monotonic()
    most = max(counts.values(), default=0)
    chunks = [
        (family, first, min(first + CHUNK, count))
        for family, count in counts.items()
        for first in range(0, count, CHUNK)
    ]
    chunks.sort(key=lambda chunk: chunk[1] / counts[chunk[0]] * most)
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, maxtasksperchild=40) as pool:
        for done in pool.imap_unordered(run_chunk, chunks):
            yield done
            if time.monotonic() - begun > limit:
                return
