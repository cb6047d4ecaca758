"""Measured chip: times of works on one device on one day, and the rates derived from them.

The file, TOML that is read again, holds times; rates are worked out from them here, once.

A straight line through times of messages: latency and rate.
"""

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, StrictBool, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from planner.benchmark import works
from planner.benchmark.device import Timing
from planner.catalogue.chips import chip_names
from planner.text.errors import InputError, Mistake, did_you_mean, quote
from planner.text.quantities import show
from planner.text.tables import toml_lines


@dataclass(frozen=True)
class TimeLine:
    """Time = latency [s] + bytes / rate [byte/s]; `error` the largest relative miss [1]."""

    latency: float
    rate: float
    error: float


def fit_alpha_beta(points: Sequence[tuple[float, float]]) -> TimeLine:
    """The line of least relative squares through (bytes, seconds), neither part negative.

    Raises ValueError if no size is twice another: latency and rate cannot be separated.
    """
    if not separable([size for size, _ in points]):
        raise ValueError("a latency and a rate need messages of two sizes, one twice the other")
    import numpy as np
    from scipy.optimize import nnls

    # Divided by their times, all points weigh the same: 1 = latency / time + (size / time) / rate.
    columns = np.array([(1 / time, size / time) for size, time in points])
    scale = columns.max(axis=0)
    latency, per_unit = (nnls(columns / scale, np.ones(len(points)))[0] / scale).tolist()
    miss = float(np.abs(columns @ (latency, per_unit) - 1).max())
    # Zero slope: the messages were too small to measure the rate, so it is infinite.
    return TimeLine(latency, 1 / per_unit if per_unit else math.inf, miss)


def separable(sizes: Sequence[float]) -> bool:
    """True if the sizes of messages span a factor of 2, so that latency and rate can be fitted."""
    return len(sizes) > 1 and max(sizes) >= 2 * min(sizes)


FORMAT = 1
LARGEST_FILE = 4 * 2**20  # [byte]
MEMORY_BOUND = 16  # tokens at most of a product that waits for its weights on any chip
W_co = TypeVar("W_co", bound=works.Work, covariant=True)
T = TypeVar("T")
ShortText = Annotated[str, Field(max_length=400)]


@dataclass(frozen=True)
class TimedKernel(Generic[W_co]):
    """A work and its times."""

    work: W_co
    timing: Timing

    @property
    def rate(self) -> float:
        """Amount of the work over its median time [byte/s, flop/s, 1/s]."""
        return self.work.amount / self.timing.median


@dataclass(frozen=True)
class SkippedWork(works.Closed):
    """A work without a time, and why."""

    what: ShortText
    why: ShortText


@dataclass(frozen=True)
class Head(works.Closed):
    """Header of a measurement file: device, date, software and completeness."""

    device: Annotated[str, Field(min_length=1, max_length=400)]
    kind: Annotated[str, Field(min_length=1, max_length=40)]
    chip: ShortText
    capacity: works.Count
    cache: works.Count
    as_of: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    complete: StrictBool
    seconds: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
    software: Mapping[str, ShortText] = field(default_factory=dict)
    format: Literal[1] = 1


@dataclass(frozen=True)
class MeasuredChip:
    """Times of works measured on one device.

    `head` names device, catalogue chip (or "" where the name is not known), memory [byte], date,
    software, and whether all was timed; then the works of each kind with their times. `refused`
    are works whose result was wrong, `left_out` those not done.
    """

    head: Head
    memory: tuple[TimedKernel[works.Stream], ...] = ()
    products: tuple[TimedKernel[works.Product], ...] = ()
    attention: tuple[TimedKernel[works.Attention], ...] = ()
    launch: tuple[TimedKernel[works.KernelLaunch], ...] = ()
    all_reduce: tuple[TimedKernel[works.AllReduce], ...] = ()
    refused: tuple[SkippedWork, ...] = ()
    left_out: tuple[SkippedWork, ...] = ()

    @cached_property
    def memory_bandwidth(self) -> float | None:
        """Maximum measured bandwidth, by arrays or weights larger than the caches [byte/s]."""
        beyond = works.CACHE_MULTIPLE * self.head.cache
        rates = [each.rate for each in self.memory if each.work.size >= beyond]
        rates += [
            each.work.weight_bytes / each.timing.median
            for each in self.products
            if each.work.m <= MEMORY_BOUND and each.work.copies * each.work.weight_bytes >= beyond
        ]
        return max(rates, default=None)

    @cached_property
    def product_rates(self) -> Mapping[str, float]:
        """Maximum measured rate of matrix products, by precision [flop/s]."""
        rates: dict[str, float] = {}
        for product in self.products:
            rates[product.work.dtype] = max(product.rate, rates.get(product.work.dtype, 0.0))
        return MappingProxyType(rates)

    @cached_property
    def attention_bandwidth(self) -> float | None:
        """Maximum measured rate of the library's attention reading a KV cache [byte/s]."""
        return max((each.rate for each in self.attention), default=None)

    @cached_property
    def launch_times(self) -> Mapping[str, float]:
        """Time of one launch, by `call` or in a `graph` [s]."""
        return MappingProxyType({each.work.how: each.timing.median for each in self.launch})

    @cached_property
    def all_reduces(self) -> Mapping[int, TimeLine]:
        """Latency and rate of an all-reduce, by number of devices."""
        by_size: dict[int, list[TimedKernel[works.AllReduce]]] = {}
        for reduction in self.all_reduce:
            by_size.setdefault(reduction.work.devices, []).append(reduction)
        points = {
            devices: [(each.work.amount, each.timing.median) for each in group]
            for devices, group in by_size.items()
        }
        enough = {n: each for n, each in points.items() if separable([size for size, _ in each])}
        return MappingProxyType({devices: fit_alpha_beta(each) for devices, each in enough.items()})


TABLES: Mapping[str, type[works.Work]] = MappingProxyType(
    {
        "memory": works.Stream,
        "products": works.Product,
        "attention": works.Attention,
        "launch": works.KernelLaunch,
        "all_reduce": works.AllReduce,
    }
)
LISTS = ("refused", "left_out")
TIMED_FIELDS = frozenset(each.name for each in fields(Timing))
_adapter: Any = cache(TypeAdapter)


def read_measured(path: Path) -> MeasuredChip:
    """A measured chip from its file.

    Raises InputError for every mistake in it at once: what is no TOML, missing, unknown, or
    impossible.
    """
    name = str(path)
    raw = _raw(path)
    mistakes: list[tuple[str, str]] = []
    head = _read(Head, {k: v for k, v in raw.items() if k not in {*TABLES, *LISTS}}, "", mistakes)
    parts: dict[str, Any] = {
        key: tuple(_rows(raw.get(key, []), key, work, mistakes)) for key, work in TABLES.items()
    }
    for key in LISTS:
        rows = enumerate(_list(raw.get(key, []), key, mistakes))
        parts[key] = tuple(_read(SkippedWork, row, f"{key}.{at}", mistakes) for at, row in rows)
    if head is not None:
        mistakes += _impossible(head)
    if head is None or mistakes:
        raise InputError(Mistake(name, None, None, *each) for each in mistakes)
    return MeasuredChip(head, **parts)


def _raw(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path}: too large for a measured chip")
        return tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error


def _rows(
    rows: object, key: str, work: type[works.Work], mistakes: list[tuple[str, str]]
) -> Iterator[TimedKernel[works.Work]]:
    for at, row in enumerate(_list(rows, key, mistakes)):
        if not isinstance(row, Mapping):
            mistakes.append((f"{key}.{at}", f"expected a table, got {quote(row)}"))
            continue
        done = {k: v for k, v in row.items() if k not in TIMED_FIELDS}
        times = {k: v for k, v in row.items() if k in TIMED_FIELDS}
        read = _read(work, done, f"{key}.{at}", mistakes)
        timing = _read(Timing, times, f"{key}.{at}", mistakes)
        if timing is not None and timing.best > timing.median:
            mistakes.append((f"{key}.{at}.best", "longer than the median"))
        if read is not None and timing is not None:
            yield TimedKernel(read, timing)


def _list(rows: object, key: str, mistakes: list[tuple[str, str]]) -> list[object]:
    if isinstance(rows, list):
        return rows
    mistakes.append((key, f"expected a list, got {quote(rows)}"))
    return []


def _read(kind: type[T], raw: object, path: str, mistakes: list[tuple[str, str]]) -> T | None:
    """The dataclass, or None with its mistakes added."""
    try:
        return _adapter(kind).validate_python(raw)
    except ValidationError as error:
        names = list(kind.__annotations__)
        for problem in error.errors():
            at = ".".join(str(part) for part in (path, *problem["loc"]) if part != "")
            mistakes.append((at, _message(problem, names)))
        return None


def _message(error: ErrorDetails, names: Iterable[str]) -> str:
    last = error["loc"][-1] if error["loc"] else ""
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"unknown key {quote(last)}{did_you_mean(str(last), names)}"
    if error["type"] == "missing":
        return f"missing required key {quote(last)}"
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, got {quote(error['input'])}"


def _impossible(head: Head) -> Iterator[tuple[str, str]]:
    if head.chip and head.chip not in chip_names():
        hint = did_you_mean(head.chip, chip_names()) or " (planner catalog chips lists them)"
        yield "chip", f"unknown chip {quote(head.chip)}{hint}"
    try:
        date.fromisoformat(head.as_of)
    except ValueError:
        yield "as_of", f"expected a day such as 2026-11-21, got {quote(head.as_of)}"


HEADING = """\
# A chip as it was measured by `planner measure`: times in s, sizes in bytes.
# median, best and spread (10th to 90th percentile over the median) are of so many repeats.
# Use it: system: {like: NAME, measured: THIS FILE}
"""
RATES = {"memory": "bandwidth", "attention": "bandwidth", "products": "compute"}


def toml(chip: MeasuredChip) -> str:
    """The contents of its file."""
    head = asdict(chip.head)
    software = head.pop("software")
    lines = [HEADING, f"format = {head.pop('format')}"]
    lines += [*_lines(head), f"software = {_inline(software)}"]
    for key in TABLES:
        rows = getattr(chip, key)
        rates = [show(each.rate, RATES[key]) if key in RATES else "" for each in rows]
        inner = [asdict(each.work) | asdict(each.timing) for each in rows]
        lines += ["", *_listed(key, zip(inner, rates, strict=True))]
    for key in LISTS:
        lines += ["", *_listed(key, [(asdict(each), "") for each in getattr(chip, key)])]
    return "\n".join(lines) + "\n"


def _listed(key: str, rows: Iterable[tuple[Mapping[str, object], str]]) -> list[str]:
    inner = [f"  {_inline(row)},{rate and f'  # {rate}'}" for row, rate in rows]
    return [f"{key} = [", *inner, "]"] if inner else [f"{key} = []"]


def _inline(row: Mapping[str, object]) -> str:
    return f"{{ {', '.join(_lines(row))} }}"


def _lines(row: Mapping[str, object]) -> Iterator[str]:
    texts = {name: text for name, text in row.items() if isinstance(text, str)}
    clean = {k: "".join(c if c.isprintable() else "?" for c in x) for k, x in texts.items()}
    yield from toml_lines({**row, **clean}, _number)


def _number(value: float) -> str:
    text = f"{value:.6g}"
    return text if any(c in text for c in ".e") else f"{value:.1f}"
