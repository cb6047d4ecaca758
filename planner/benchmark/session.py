"""A session on one device: every work of the suite is run, timed and checked.

What matters most comes first, so that a short budget still leaves a usable file. Sizes follow from
the device: arrays and caches are several times its last on-chip level.

A wrong result is refused and named, and its time is not kept: a chip that computes wrongly fast is
not fast. A sample of each is compared with the same work in float64. The tolerance follows from the
precision: the result is rounded once, partial sums may be too (split products add halves in bf16),
and a sum of k terms gathers the rounding of its accumulator. An interrupted session keeps what it
has.
"""

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import product
from typing import TypeVar

import numpy as np

from planner.benchmark import works
from planner.benchmark.device import (
    Device,
    Facts,
    TimingSample,
    UnsupportedByDevice,
    summary,
    time_repeatedly,
)
from planner.benchmark.record import Head, MeasuredChip, SkippedWork, TimedKernel
from planner.catalogue.chips import chip
from planner.text.tables import table

MIN_STREAM_BYTES = 64 * 2**20  # [byte] of an array, where that level is small
DECODE = (1, 8, 16, 32, 64, 128, 256, 512)  # tokens of a decode step
PREFILL = (1024, 2048, 4096, 8192)
# (n, k) of weights: a square one, Llama-3.1-70B's gate and up of a half and down, an expert of
# DeepSeek-V3
WEIGHTS = ((8192, 8192), (28672, 8192), (8192, 28672), (2048, 7168))
CPU_WEIGHTS = ((2048, 2048), (4096, 1024))
INT8_TOKENS = 32  # fewer than 17 rows are refused by CUDA's product of whole numbers
CONTEXTS = (1024, 8192, 65536)
HEADS, KV_HEADS, HEAD_DIM = 64, 8, 128  # Llama-3.1-70B
SMALLEST_MESSAGE, LARGEST_MESSAGE = 2**13, 2**28  # [byte]


def suite(facts: Facts, *, quick: bool = False) -> tuple[works.TimedKernelSpec, ...]:
    """The works for one device, most important first; an all-reduce is not among them."""
    processor = facts.kind == "cpu"
    weights = CPU_WEIGHTS if processor else WEIGHTS
    decode = DECODE[::4] if quick else DECODE
    prefill = (512,) if processor else (PREFILL[-2:-1] if quick else PREFILL)
    timed_works: list[works.TimedKernelSpec] = [*_streams(facts, 1), works.KernelLaunch("call")]
    if facts.kind == "cuda":
        timed_works.append(works.KernelLaunch("graph"))
    timed_works += _product_works(facts, (*prefill, *decode), weights[:1])
    timed_works.append(_attention_work(facts, CONTEXTS[1]))
    if quick:
        return tuple(dict.fromkeys(timed_works))
    timed_works += [_attention_work(facts, context) for context in CONTEXTS]
    timed_works += [*_streams(facts, 4), *_streams(facts, 16)]
    timed_works += _product_works(facts, (prefill[-1], *decode[::2]), weights[1:])
    return tuple(dict.fromkeys(timed_works))


def message_sizes(*, quick: bool = False) -> tuple[int, ...]:
    """Bytes of the all-reduces that are timed [byte]."""
    steps = int(math.log2(LARGEST_MESSAGE // SMALLEST_MESSAGE))
    return tuple(SMALLEST_MESSAGE << step for step in range(0, steps + 1, 5 if quick else 1))


def _streams(facts: Facts, times: int) -> list[works.Stream]:
    size = times * 2 ** math.ceil(math.log2(_bytes_off_chip(facts)))
    return [works.Stream(kind, size) for kind in ("read", "copy", "triad")]


def _product_works(
    facts: Facts, tokens: Iterable[int], shapes: Iterable[tuple[int, int]]
) -> Iterator[works.Product]:
    for (n, k), m, dtype in product(shapes, tokens, facts.dtypes):
        if dtype != "int8" or m >= INT8_TOKENS:
            single = works.Product(dtype, m, n, k)
            beyond = math.ceil(works.CACHE_MULTIPLE * facts.cache / single.weight_bytes)
            yield replace(single, copies=1 if m > DECODE[-1] else beyond)


def _attention_work(facts: Facts, context: int) -> works.Attention:
    dtype: works.Floating = "fp32" if facts.kind == "cpu" else "bf16"
    single = works.Attention(dtype, 1, context, HEADS, KV_HEADS, HEAD_DIM)
    return replace(single, batch=math.ceil(_bytes_off_chip(facts) / single.amount))


def _bytes_off_chip(facts: Facts) -> int:
    return max(2 * works.CACHE_MULTIPLE * facts.cache, MIN_STREAM_BYTES)


SINGLE = 2.0**-24
# Half a step of the precision that a result of each dtype is rounded to; whole numbers are exact.
HALF_STEP = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp8": 2.0**-8, "fp32": SINGLE, "int8": 0.0}
PARTIAL = 4  # roundings of partial sums, at random and at the worst of the sample


def fault(work: works.Work, sample: TimingSample) -> str | None:
    """Return the error found in the result of a work, or None.

    `sample.operands` hold, by kind of work: `x` and, of a triad, `y` and `scale`; `a` of shape
    (rows, k) and `b` of shape (columns, k); `q` (samples, head_dim), `k` and `v` (samples, context,
    head_dim); `calls`; `parts` (devices, samples).
    """
    expected, tolerance = _expected(work, sample)
    result = sample.result
    if result.shape != expected.shape:
        return f"its shape is {result.shape}, expected {expected.shape}"
    if not np.isfinite(result).all():
        return "it holds numbers that are not finite"
    beyond = np.abs(result - expected) - tolerance
    if not beyond.size or beyond.max() <= 0:
        return None
    at = np.unravel_index(beyond.argmax(), beyond.shape)
    wrong = int((beyond > 0).sum())
    return (
        f"{wrong} of {beyond.size} sampled numbers are wrong: "
        f"{result[at]:.7g} where {expected[at]:.7g} was expected"
    )


def _expected(work: works.Work, sample: TimingSample) -> tuple[np.ndarray, np.ndarray]:
    """The result in float64, and how far from it rounding may lead."""
    operands = sample.operands
    if isinstance(work, works.Product):
        terms = operands["a"][:, None, :] * operands["b"][None, :, :]
        return _sum(terms, HALF_STEP[work.dtype], exact=work.dtype == "int8")
    if isinstance(work, works.Attention):
        return _attention(operands["q"], operands["k"], operands["v"], HALF_STEP[work.dtype])
    if isinstance(work, works.AllReduce):
        return _sum(operands["parts"].T, SINGLE)
    if isinstance(work, works.KernelLaunch):
        return operands["calls"], np.zeros_like(operands["calls"])
    if work.kind == "read":
        return _sum(operands["x"], SINGLE)
    if work.kind == "copy":
        return operands["x"], np.zeros_like(operands["x"])
    expected = operands["x"] + operands["scale"] * operands["y"]
    return expected, 8 * SINGLE * (
        np.abs(operands["x"]) + np.abs(operands["scale"] * operands["y"])
    )


def _sum(terms: np.ndarray, step: float, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
    total = terms.sum(axis=-1)
    if exact:
        return total, np.zeros_like(total)
    scale = np.abs(total) + PARTIAL * np.sqrt((terms**2).sum(axis=-1))
    gathered = 2 * SINGLE * np.sqrt(terms.shape[-1]) * np.abs(terms).sum(axis=-1)
    return total, 2 * step * scale + gathered


def _attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Softmax attention of single queries; shape (samples, head_dim)."""
    scores = np.einsum("sd,scd->sc", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    expected = np.einsum("sc,scd->sd", weights, v)
    # Weights are rounded to the precision of the values before they are multiplied.
    spread = np.sqrt(np.einsum("sc,scd->sd", weights**2, v**2))
    gathered = 2 * SINGLE * np.sqrt(k.shape[1]) * np.einsum("sc,scd->sd", weights, np.abs(v))
    return expected, 2 * step * (np.abs(expected) + PARTIAL * spread) + gathered


W = TypeVar("W", bound=works.Work)
WORD_PATTERN = re.compile(r"[A-Z0-9]+")
MEMORY_MATCH_TOLERANCE = 0.2  # relative difference of listed and reported memory


def catalogue_chip_name(name: str, capacity: float) -> str:
    """Catalogue name of a device by its reported name and memory [byte], "" without a match.

    Names of kin are no match: a laptop's or a quarter of a chip is another chip.
    """
    words, names = set(WORD_PATTERN.findall(name.upper())), table("planner.benchmark", "names.toml")
    for row in names["name"]:
        without = (*names["part"], *row.get("without", ()))
        if words.issuperset(row["words"]) and words.isdisjoint(without):
            candidate = chip(row["chip"])
            if abs(capacity / candidate.memory - 1) <= MEMORY_MATCH_TOLERANCE:
                return candidate.name
    return ""


MAX_FREE_MEMORY_SHARE = 0.8  # of free memory is used at the most
MAX_KERNEL_SECONDS = 2.0  # [s] for one work
REPEATS = 20  # readings of an all-reduce


@dataclass(frozen=True)
class ChipTimes:
    """Measured chip, and a flag that is true if the user interrupted the measurement."""

    chip: MeasuredChip
    interrupted: bool


@dataclass
class _Session:
    """Measurement session: a device, its progress callback, and the works timed or skipped."""

    device: Device
    facts: Facts
    say: Callable[[str], None]
    done: list[TimedKernel[works.Work]] = field(default_factory=list)
    refused: list[SkippedWork] = field(default_factory=list)
    left_out: list[SkippedWork] = field(default_factory=list)
    complete: bool = False

    def run(self, budget: float, spent: Callable[[], float], *, quick: bool) -> None:
        """Every work of the suite, while the budget [s] lasts."""
        suited = suite(self.facts, quick=quick)
        together = self.facts.count > 1
        parts = len(suited) + together
        share = min(0.5 * budget / parts, MAX_KERNEL_SECONDS)
        for at, work in enumerate(suited):
            if spent() > budget:
                rest = f"the last {len(suited) - at} of {len(suited)} works"
                self.left_out.append(SkippedWork(rest, f"no time left of {budget:g} s"))
                break
            self.say(f"{at + 1}/{parts} {work}")
            try:
                room = MAX_FREE_MEMORY_SHARE * self.device.facts.free
                if work.needs > room:
                    needs = f"needs {work.needs / 1e9:.1f} GB, {room / 1e9:.1f} GB are free for it"
                    raise UnsupportedByDevice(needs)
                ready = self.device.ready(work)
                try:
                    timing = time_repeatedly(ready, share)
                    wrong = fault(work, ready.sample())
                finally:
                    ready.close()
                self._record(TimedKernel(work, timing), wrong)
            except UnsupportedByDevice as error:
                self.left_out.append(SkippedWork(str(work), str(error)))
        else:
            self.complete = True
        if together:
            self.say(f"{parts}/{parts} all-reduce over {self.facts.count} devices")
            try:
                for sums in self.device.all_reduce(message_sizes(quick=quick), REPEATS):
                    done = TimedKernel(sums.work, summary(sums.seconds))
                    self._record(done, fault(sums.work, sums.sample))
            except UnsupportedByDevice as error:
                self.left_out.append(SkippedWork("all-reduce", str(error)))

    def _record(self, done: TimedKernel[works.Work], wrong: str | None) -> None:
        if wrong is None:
            self.done.append(done)
        else:
            self.refused.append(SkippedWork(str(done.work), wrong))
            self.say(f"warning: {done.work}: {wrong}; its time is not kept")

    def of(self, kind: type[W]) -> tuple[TimedKernel[W], ...]:
        """Return the timed works of one kind."""
        return tuple(
            TimedKernel(each.work, each.timing) for each in self.done if isinstance(each.work, kind)
        )


def measure(
    device: Device,
    *,
    quick: bool = False,
    budget: float = 120.0,
    today: date | None = None,
    say: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
) -> ChipTimes:
    """Time the suite on a device within about `budget` seconds.

    `say` is given one line for each work as it begins, and for each that is refused.
    """
    start, facts = clock(), device.facts
    name = catalogue_chip_name(facts.name, facts.capacity)
    # Drivers may tell a lower level on the chip than the last, which the catalogue knows.
    listed = (chip(name).sram or 0.0) if name else 0.0
    facts = replace(facts, cache=max(facts.cache, int(listed)))
    session, interrupted = _Session(device, facts, say), False
    try:
        session.run(budget, lambda: clock() - start, quick=quick)
    except KeyboardInterrupt:
        interrupted = True
        session.left_out.append(SkippedWork("the rest", "interrupted"))
    day, seconds = (today or date.today()).isoformat(), round(clock() - start, 1)
    of = (facts.name, facts.kind, name, facts.capacity, facts.cache)
    head = Head(*of, day, session.complete, seconds, dict(facts.software))
    skipped = (tuple(session.refused), tuple(session.left_out))
    alone = (session.of(works.Stream), session.of(works.Product), session.of(works.Attention))
    record = MeasuredChip(
        head, *alone, session.of(works.KernelLaunch), session.of(works.AllReduce), *skipped
    )
    return ChipTimes(record, interrupted)
