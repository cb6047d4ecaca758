"""Device protocol of a measurement: facts of the device, prepared works, times and samples.

The library that runs the works is behind this one small protocol; nothing else here knows it.

Short works are run several times in one reading, so that the clock and the first launch do not
count; what comes first warms caches, clocks and compilers and is thrown away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import Field

from planner.benchmark.works import AllReduce, Closed, Count, Precision, TimedKernelSpec

if TYPE_CHECKING:
    import numpy as np


class UnsupportedByDevice(Exception):  # noqa: N818 - it says what the device is not able to do
    """The device or its library does not do this work; the message says why."""


@dataclass(frozen=True)
class Facts:
    """Facts that a device reports about itself.

    `name` as it is reported; `kind` of device (cuda, xpu, mps, cpu); `capacity` and `free` memory
    [byte]; `cache` last on-chip level [byte]; `count` visible devices; `dtypes` worth trying.
    """

    name: str
    kind: str
    capacity: int
    free: int
    cache: int
    count: int
    dtypes: tuple[Precision, ...]
    software: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TimingSample:
    """Part of a result and the operands it comes from, as the device holds them, in float64."""

    operands: Mapping[str, np.ndarray]
    result: np.ndarray


class Ready(Protocol):
    """A work in memory, to be run."""

    def seconds(self, calls: int) -> float:
        """Time of `calls` runs one after another, until the last has ended [s]."""

    def sample(self) -> TimingSample:
        """Part of the last result, with its operands."""

    def close(self) -> None:
        """Give its memory back."""


@dataclass(frozen=True)
class AllReduceTime:
    """One message size of an all-reduce: times on the slowest device [s], and a sample."""

    work: AllReduce
    seconds: tuple[float, ...]
    sample: TimingSample


class Device(Protocol):
    """Something that works can be timed on."""

    facts: Facts

    def ready(self, work: TimedKernelSpec) -> Ready:
        """Make a work ready to be run; raises UnsupportedByDevice."""

    def all_reduce(self, sizes: Sequence[int], repeats: int) -> Iterable[AllReduceTime]:
        """Time an all-reduce over all visible devices; raises UnsupportedByDevice."""


READING = 2e-3  # [s] of one reading at the least
WARM_UP_S = 0.05  # [s] of runs before the first reading
CALLS = 2000  # of one reading at the most
MIN_REPEATS, MAX_REPEATS = 5, 50  # readings
Seconds = Annotated[float, Field(strict=True, ge=1e-12, le=1e6, allow_inf_nan=False)]


@dataclass(frozen=True)
class Timing(Closed):
    """Seconds of one run: `repeats` readings, their `best` and `median` [s], and their `spread`.

    The spread is from the 10th to the 90th percentile, as a share of the median.
    """

    repeats: Count
    best: Seconds
    median: Seconds
    spread: Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)]


def summary(seconds: Sequence[float]) -> Timing:
    """Summarise repeated times of one run [s]: count, minimum, median and relative spread.

    Raises UnsupportedByDevice if a time is not positive: the clock is too coarse, or broken.
    """
    import numpy as np  # here, so that reading a scenario stays fast

    if not seconds or not all(math.isfinite(each) and each > 0 for each in seconds):
        raise UnsupportedByDevice("the clock did not move; the work is too short for it")
    low, middle, high = np.quantile(seconds, [0.1, 0.5, 0.9]).tolist()
    return Timing(len(seconds), min(seconds), middle, (high - low) / middle)


def time_repeatedly(ready: Ready, budget: float) -> Timing:
    """Repeated times of a work that is ready, within about `budget` seconds where that is enough.

    Raises UnsupportedByDevice if the clock does not move.
    """
    per_call = ready.seconds(1)
    warm = per_call
    while warm < WARM_UP_S:
        calls = _calls(per_call, WARM_UP_S - warm)
        spent = ready.seconds(calls)
        per_call = spent / calls
        # A clock that does not advance must not make this loop endless.
        warm += max(spent, WARM_UP_S / 100)
    calls = _calls(per_call, READING)
    fits = budget / max(per_call * calls, 1e-9)
    repeats = int(min(max(fits, MIN_REPEATS), MAX_REPEATS))
    return summary([ready.seconds(calls) / calls for _ in range(repeats)])


def _calls(per_call: float, wanted: float) -> int:
    return CALLS if per_call <= wanted / CALLS else max(1, math.ceil(wanted / per_call))
