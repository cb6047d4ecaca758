"""Many cases in several processes: counts, those that ended badly, and a log to go on from."""

from __future__ import annotations

import json
import multiprocessing
import signal
import subprocess
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import typer.main

from tests.campaign.judged import memory
from tests.campaign.kinds import KINDS
from tests.paths import ROOT

Chunk = tuple[str, int, int]  # a kind, its first case, the one after its last


@dataclass
class Tally:
    """How cases ended: how many by status, CPU seconds in all and of the slowest, the failures.

    `peak` is the most memory that a process has had by then [byte].
    """

    statuses: Counter[int] = field(default_factory=Counter)
    cpu: float = 0.0
    slowest: tuple[float, str] = (0.0, "")
    failures: list[tuple[str, str]] = field(default_factory=list)
    peak: int = 0

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
        self.peak = max(self.peak, other.peak)


class Log:
    """Chunks that are done, a line of JSON each; the last line of a chunk is the one that counts.

    Every line names the commit whose code ran it. Without a file nothing is kept.
    """

    def __init__(self, file: Path | None) -> None:
        self.file, self.commit = file, _commit()
        self.done: dict[Chunk, Tally] = {}
        self.commits: dict[Chunk, str] = {}
        lines = file.read_text(encoding="utf-8").splitlines() if file and file.exists() else ()
        for row in map(json.loads, lines):
            tally = Tally(
                Counter({int(status): count for status, count in row["statuses"].items()}),
                row["cpu"],
                tuple(row["slowest"]),
                [(name, fault) for name, fault in row["failures"]],
                row.get("peak", 0),
            )
            self._take((row["family"], row["first"], row["last"]), tally, row["commit"])

    def add(self, chunk: Chunk, tally: Tally) -> None:
        """Keep what became of a chunk."""
        self._take(chunk, tally, self.commit)
        if self.file:
            family, first, last = chunk
            row = {"commit": self.commit, "family": family, "first": first, "last": last}
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row | vars(tally)) + "\n")

    def _take(self, chunk: Chunk, tally: Tally, commit: str) -> None:
        self.done[chunk], self.commits[chunk] = tally, commit


def _commit() -> str:
    """The commit that is checked out, with a plus where files differ from it."""
    words = ["git", "describe", "--always", "--dirty=+", "--abbrev=8", "--exclude=*"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or "no commit"


def run_chunk(chunk: Chunk) -> tuple[Chunk, Tally]:
    """Cases `first` to `last` of a family, one after the other."""
    family, first, last = chunk
    kind, tally = KINDS[family], Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, last, kind.each):
            end, name = kind.run(number), f"{family}:{number}"
            tally.statuses += end.statuses
            tally.cpu += end.cpu
            tally.slowest = max(tally.slowest, (end.cpu, name))
            tally.failures += [(name, fault) for fault in end.faults]
    tally.peak = memory()
    return chunk, tally


def chunks_of(counts: dict[str, int]) -> list[Chunk]:
    """All cases of every kind, so that after any time as large a share of each is done."""
    chunks = [
        (family, first, min(first + KINDS[family].block, count))
        for family, count in counts.items()
        for first in range(0, count, KINDS[family].block)
    ]
    return sorted(chunks, key=lambda chunk: chunk[1] / counts[chunk[0]])


def run_all(chunks: list[Chunk], workers: int, limit: float) -> Iterator[tuple[Chunk, Tally]]:
    """Chunks in turn until `limit` seconds are over, whichever are done first."""
    begun = time.monotonic()
    if limit <= 0 or not chunks:
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=prepared, maxtasksperchild=40) as pool:
        for done in pool.imap_unordered(run_chunk, chunks):
            yield done
            if time.monotonic() - begun > limit:
                return


def prepared() -> None:
    """Ctrl-C is for the process that counts; the tree of commands is made once, a fifth of a case.

    Neither that nor what is imported counts as time of a case: a second that a user pays once.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    typer.main.get_command = cache(typer.main.get_command)
