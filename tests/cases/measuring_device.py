"""A device that takes exactly the time it is told to, and multiplies with NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.benchmark.device import AllReduceTime, Facts, TimingSample, UnsupportedByDevice
from planner.benchmark.works import (
    AllReduce,
    Attention,
    KernelLaunch,
    Product,
    Stream,
    TimedKernelSpec,
)

H200 = Facts("NVIDIA H200", "cuda", 150_000_000_000, 149_000_000_000, 50 * 2**20, 1,
             ("bf16", "fp8", "int8"), {"torch": "2.15.0", "cuda": "13.2"})  # fmt: skip


@dataclass
class Imagined:
    """Bandwidth [byte/s], arithmetic [flop/s], launch [s]; what it computes wrongly or not at all.

    `wrong` and `unable` are words that the name of a work begins with; `stops` is the number of
    works after which the user stops it.
    """

    facts: Facts = H200
    bandwidth: float = 4e12
    flops: Mapping[str, float] = field(
        default_factory=lambda: {"bf16": 7e14, "fp8": 1.4e15, "int8": 1e15}
    )
    launch: float = 4e-6
    link: tuple[float, float] = (20e-6, 360e9)
    wrong: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()
    stops: int | None = None
    now: float = 0.0
    seen: list[TimedKernelSpec] = field(default_factory=list)
    held: int = 0

    def clock(self) -> float:
        return self.now

    def ready(self, work: TimedKernelSpec) -> Held:
        if self.stops is not None and len(self.seen) >= self.stops:
            raise KeyboardInterrupt
        self.seen.append(work)
        if str(work).startswith(self.unable or "\0"):
            raise UnsupportedByDevice("no such kernel")
        self.held += 1
        return Held(self, work)

    def time(self, work: TimedKernelSpec) -> float:
        if isinstance(work, KernelLaunch):
            return self.launch
        if isinstance(work, Product):
            return max(work.weight_bytes / self.bandwidth, work.amount / self.flops[work.dtype])
        return work.amount / self.bandwidth

    def all_reduce(self, sizes: Sequence[int], repeats: int) -> Iterator[AllReduceTime]:
        if "all-reduce" in self.unable:
            raise UnsupportedByDevice("they do not meet")
        for size in sizes:
            work = AllReduce("nccl", self.facts.count, size)
            latency, rate = self.link
            parts = np.arange(3.0 * work.devices).reshape(work.devices, 3)
            result = parts.sum(axis=0) + ("all-reduce" in self.wrong)
            took = latency + work.amount / rate
            yield AllReduceTime(work, (took,) * repeats, TimingSample({"parts": parts}, result))


@dataclass
class Held:
    """A work on it."""

    device: Imagined
    work: TimedKernelSpec
    done: int = 0

    def seconds(self, calls: int) -> float:
        took = calls * self.device.time(self.work)
        self.done += calls
        self.device.now += took
        return took

    def sample(self) -> TimingSample:
        right = computed(self.work, self.done)
        if str(self.work).startswith(self.device.wrong or "\0"):
            return TimingSample(right.operands, right.result + 50.0)
        return right

    def close(self) -> None:
        self.device.held -= 1


def computed(work: TimedKernelSpec, done: int = 1) -> TimingSample:
    """Part of a right result, rounded as the precision rounds it."""
    draw = np.random.default_rng(1)
    if isinstance(work, KernelLaunch):
        return TimingSample({"calls": np.array([float(done)])}, np.array([float(done)]))
    if isinstance(work, Product):
        whole = work.dtype == "int8"
        a, b = (
            draw.integers(-127, 128, (3, work.k)) * 1.0 if whole else draw.normal(size=(3, work.k))
            for _ in range(2)
        )
        return TimingSample({"a": a, "b": b}, a @ b.T if whole else bf16(a @ b.T))
    if isinstance(work, Attention):
        context = min(work.context, 512)
        q = draw.normal(size=(2, work.head_dim))
        k, v = draw.normal(size=(2, 2, context, work.head_dim))
        scores = np.einsum("sd,scd->sc", q, k) / work.head_dim**0.5
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        return TimingSample({"q": q, "k": k, "v": v}, bf16(np.einsum("sc,scd->sd", weights, v)))
    x, y = draw.uniform(-1, 1, (2, 4, 16)).astype(np.float32).astype(float)
    held = {"x": x, "y": y, "scale": np.array(3.0)}
    result = {"read": x.sum(axis=1), "copy": x, "triad": x + 3 * y}[work.kind]
    return TimingSample(held, result.astype(np.float32).astype(float))


def bf16(values: np.ndarray) -> np.ndarray:
    """Rounded to bf16, to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (rounded & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(float)


STREAM = Stream("read", 2**30)
