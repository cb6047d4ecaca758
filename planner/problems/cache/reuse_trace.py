"""A trace of block hashes with times: hit rates of leading blocks by lifetime and by capacity.

A block is found where it and all blocks before it in the prompt are still recent. Lifetimes are
renewed by use; a capacity is enforced after each request, least recently used first.
"""

import csv
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.text.errors import FieldError, quote

TIMES = {"timestamp_ms": 1e-3, "timestamp_s": 1.0, "timestamp": 1e-3}  # column: seconds of one
HASHES = ("block_hashes", "hash_ids")
MAX_BLOCKS = 20_000_000


@dataclass(frozen=True)
class BlockTrace:
    """Uses of blocks in their order, of requests in theirs.

    Args:
        blocks, starts: hashes as whole numbers, shape (uses,); where each request begins in them.
        needed: least lifetime at which a use is a hit, infinite where none is [s], shape (uses,).
        following: time to the next use of the block, infinite where there is none [s].
        duration: from the first request to the last [s].
    """

    blocks: NDArray[np.int64]
    starts: NDArray[np.int64]
    needed: NDArray[np.float64]
    following: NDArray[np.float64]
    duration: float

    def hit_rate(self, lifetime: float) -> float:
        """Share of the blocks that are found at a lifetime [s]."""
        return float(np.mean(self.needed <= lifetime))

    def stored(self, lifetimes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Stored block-seconds at each lifetime; the full lifetime after a block's last use."""
        ordered = np.sort(self.following)
        sums = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0))])
        within = np.searchsorted(ordered, lifetimes, side="right")
        return np.asarray(sums[within] + (len(ordered) - within) * lifetimes)

    def hits_within(self, capacity: int) -> float:
        """Prefix hit rate of the blocks in an LRU cache with a capacity of `capacity` blocks."""
        recent: OrderedDict[int, None] = OrderedDict()
        hits, blocks = 0, self.blocks.tolist()
        ends = [*self.starts[1:].tolist(), len(blocks)]
        for start, end in zip(self.starts.tolist(), ends, strict=True):
            prompt = blocks[start:end]
            for block in prompt:
                if block not in recent:
                    break
                hits += 1
            for block in prompt:
                recent[block] = None
                recent.move_to_end(block)
            while len(recent) > capacity:
                recent.popitem(last=False)
        return hits / max(len(blocks), 1)


@lru_cache(maxsize=4)
def read_trace(path: Path, written: str) -> BlockTrace:
    """The trace in a file; raises FieldError for one that has no times or no hashes."""
    try:
        rows = _rows(path)
        times: list[float] = []
        prompts: list[list[str]] = []
        for number, (time, hashes) in enumerate(rows, start=2):
            if times and time < times[-1]:
                raise ValueError(f"line {number}: earlier than the line before it")
            times.append(time)
            prompts.append(hashes)
    except (ValueError, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise FieldError(("reuse.trace", f"{written}: {error}")) from None
    if not any(prompts):
        raise FieldError(("reuse.trace", f"{written}: no request has a block"))
    return trace_of_requests(times, prompts)


def trace_of_requests(times: Sequence[float], prompts: Sequence[Sequence[str]]) -> BlockTrace:
    """The trace of requests in the order of their times, each with the hashes of its blocks."""
    number: dict[str, int] = {}
    blocks = [number.setdefault(block, len(number)) for block in chain.from_iterable(prompts)]
    lengths = np.array([len(prompt) for prompt in prompts])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    moments = np.repeat(np.asarray(times, dtype=float), lengths)
    last, previous = np.full(len(number), -1, dtype=np.int64), np.empty(len(blocks), dtype=np.int64)
    needed = np.empty(len(blocks))
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        uses = blocks[start : start + length]
        before = last[uses]
        previous[start : start + length] = before
        gaps = np.where(before >= 0, moments[start : start + length] - moments[before], np.inf)
        # A time in milliseconds is no sum of powers of two: gaps are equal to the nanosecond.
        needed[start : start + length] = np.round(np.maximum.accumulate(gaps), 9)
        last[uses] = np.arange(start, start + length)
    following = np.full(len(blocks), np.inf)
    again = previous >= 0
    following[previous[again]] = np.round(moments[again] - moments[previous[again]], 9)
    return BlockTrace(
        np.array(blocks, dtype=np.int64), starts, needed, following, float(times[-1] - times[0])
    )


def _rows(path: Path) -> Iterator[tuple[float, list[str]]]:
    """(time [s], hashes) of every request of a CSV file, or of one of JSON lines."""
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            yield from _parsed(json.loads(line) for line in file if line.strip())
        else:
            yield from _parsed(csv.DictReader(file))


def _parsed(rows: Iterable[dict[str, object]]) -> Iterator[tuple[float, list[str]]]:
    total = 0
    for row in rows:
        time = next((name for name in TIMES if name in row), None)
        hashes = next((name for name in HASHES if name in row), None)
        if time is None or hashes is None:
            wanted = " or ".join(TIMES) if time is None else " or ".join(HASHES)
            raise KeyError(f"no column {wanted}; it has {', '.join(map(quote, row))}")
        blocks = row[hashes]
        listed = blocks.split() if isinstance(blocks, str) else list(map(str, blocks or ()))  # type: ignore[call-overload]
        total += len(listed)
        if total > MAX_BLOCKS:
            raise ValueError(f"more than {MAX_BLOCKS:,} blocks")
        yield float(str(row[time])) * TIMES[time], listed
