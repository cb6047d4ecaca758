"""What a measurement asks of a device: facts about itself, works made ready, times and samples.

The library that runs the works is behind this one small protocol; nothing else here knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from planner.benchmark.kernels import AllReduce, Timed

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Device", "Facts", "Ready", "Reduced", "Sample", "Unsupported"]


class Unsupported(Exception):  # noqa: N818 - it says what the device is not able to do
    """The device or its library does not do this work; the message says why."""


@dataclass(frozen=True)
class Facts:
    """What a device says of itself.

    `name` as it is reported; `kind` of device (cuda, xpu, mps, cpu); `capacity` and `free` memory
    [byte]; `cache` last on-chip level [byte]; `count` visible devices; `dtypes` worth trying.
    """

    name: str
    kind: str
    capacity: int
    free: int
    cache: int
    count: int
    dtypes: tuple[str, ...]
    software: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """Part of a result and the operands it comes from, as the device holds them, in float64."""

    operands: Mapping[str, np.ndarray]
    result: np.ndarray


class Ready(Protocol):
    """A work in memory, to be run."""

    def seconds(self, calls: int) -> float:
        """Time of `calls` runs one after another, until the last has ended [s]."""

    def sample(self) -> Sample:
        """Part of the last result, with its operands."""

    def close(self) -> None:
        """Give its memory back."""


@dataclass(frozen=True)
class Reduced:
    """One message size of an all-reduce: times on the slowest device [s], and a sample."""

    work: AllReduce
    seconds: tuple[float, ...]
    sample: Sample


class Device(Protocol):
    """Something that works can be timed on."""

    facts: Facts

    def ready(self, work: Timed) -> Ready:
        """Make a work ready to be run; raises Unsupported."""

    def all_reduce(self, sizes: Sequence[int], repeats: int) -> Iterable[Reduced]:
        """Time an all-reduce over all visible devices; raises Unsupported."""
