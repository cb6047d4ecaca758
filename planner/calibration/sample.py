"""Selection of a user's measured rows for a fit, with a reason for each row left out.

A row that no steady decoding explains is left out and counted, never absorbed: repeats, runs
marked unfinished, rows faster than the bound, and rows in which tokens were drafted.

The rows that the fit of a shipped profile saw are kept as short digests, enough to know a row
again: measurements themselves may not be ours to ship. A digest names model, chip, quantity,
lengths, batch and value; nothing of them can be read back from it. What the rows cover is the
hull of a profile that is fitted on them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2s
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.hull import Hull, HullValue, dimensions, hull_names
from planner.measurements.measurement import (
    Measurement,
    Readings,
    network_for_chips,
    row_context,
    skip_reason,
)
from planner.measurements.prediction import Features, RowStep, features, group_similar_rows
from planner.measurements.roofline_bound import general_reason, row_bounds
from planner.problems.serving.step.layouts import EXPERT_SIZES, OVERLAP

TTFT_WEIGHT = 0.3  # first tokens under load hold queueing that no coefficient describes


@dataclass(frozen=True)
class Sample:
    """Rows with their columns, times [s], weights and places, and how many were left out, why."""

    rows: tuple[Measurement, ...]
    columns: Features
    seconds: np.ndarray
    weights: np.ndarray
    places: tuple[RunContext, ...]
    left_out: Mapping[str, int]

    def take(self, mask: np.ndarray) -> Sample:
        """Some of the rows, by mask or index."""
        index = np.arange(len(self.rows))[mask]
        return replace(
            self,
            rows=tuple(self.rows[i] for i in index),
            columns=self.columns.take(index),
            seconds=self.seconds[index],
            weights=self.weights[index],
            places=tuple(self.places[i] for i in index),
        )

    def column(self, name: str) -> np.ndarray:
        """An attribute of every row."""
        return np.array([getattr(row, name) for row in self.rows])

    @property
    def configurations(self) -> np.ndarray:
        """Configuration of each row as text; equal if only the number of requests differs."""
        return np.array([configuration_key(row) for row in self.rows])

    @property
    def prompts(self) -> np.ndarray:
        """Mask of the rows that time prompts; the others time tokens."""
        return self.column("quantity") == "ttft"


def configuration_key(row: Measurement) -> str:
    """A layout of a model, engine and chip at its lengths: rows that differ in the batch alone."""
    ways = " ".join(f"{name} {n}" for name, n in sorted((row.layout or {}).items()))
    conditions = f"{row.group} {row.precision} {row.version} {row.prompt:g} {row.output:g}"
    return f"{conditions} {ways} {row.chips} {row.pooled}"


Rule = tuple[str, Callable[[Measurement], bool]]  # why rows are left out, and which
REPEAT = "a repeat of another row"
EXCLUDE_UNFINISHED: Rule = ("marked unfinished", lambda row: row.quality == "wip")
EXCLUDE_QUEUED_PREFILL: Rule = (
    "prompts of a pool of their own: their queue is not published",
    lambda row: row.pooled and row.quantity == "ttft",
)
EXCLUDE_MIXED_STEPS: Rule = (
    "two batches overlap in steps and in prompts of one pool: what either hides is not separable",
    lambda row: row.halves > 1 and (row.quantity == "e2e" or (row.looped and not row.pooled)),
)
USER_EXCLUSION_RULES: Sequence[Rule] = (
    ("tokens are drafted, and how many is not given",
     lambda row: bool(row.speculated and not row.drafts)),
    EXCLUDE_QUEUED_PREFILL, EXCLUDE_MIXED_STEPS, EXCLUDE_UNFINISHED,
    ("marked suspect by its source", lambda row: row.quality.startswith("suspect")),
    ("workers or requests of the pools are not given",
     lambda row: row.pooled and bool(row.assumed)),
)  # fmt: skip


def first_reason(row: Measurement, rules: Sequence[Rule]) -> str:
    """Return the first reason whose rule applies to a row; empty string if no rule does."""
    return next((why.format(row) for why, holds in rules if holds(row)), "")


def make_sample(
    rows: Sequence[Measurement],
    places: Sequence[RunContext],
    weights: Sequence[float],
    left_out: Mapping[str, int] = MappingProxyType({}),
) -> Sample:
    """Sample of rows with their columns, times and weights in a fit.

    Raises InputError if the network between the chips of a row cannot be built.
    """
    return Sample(
        tuple(rows),
        features(rows),
        np.array([row.seconds for row in rows]),
        np.array(weights),
        tuple(places),
        left_out,
    )


BYTES = 4


def row_digest(row: Measurement) -> str:
    """Digest of a row; equal for repeats with equal values."""
    value = f"{row.seconds:.6g} {row.prompt:g} {row.output:g} {row.batch:g}"
    text = f"{row.model} {row.chip.name} {row.quantity} {value}"
    return blake2s(text.encode(), digest_size=BYTES).hexdigest()


@cache
def fitted_row_digests(profile: str) -> frozenset[str] | None:
    """Digests of the rows a profile was fitted on, None where they were not recorded."""
    path = files("planner.catalogue").joinpath("profiles", f"{profile}.rows")
    if not path.is_file():
        return None
    return frozenset(path.read_text(encoding="ascii").split())


BELOW_BOUND = "faster than the bound: another chip, number format or layout, or drafted tokens?"
WITH_IT = "the run's time per token is faster than the bound"
NO_ENGINE = "unknown"


@dataclass(frozen=True)
class UserRows:
    """The values of all files that may be fitted, and the rows of those left out, by reason.

    `lines` counts the data lines read. Ids hold the file's name, so that they are of one row.
    """

    usable: tuple[Measurement, ...]
    refused: Mapping[str, Sequence[str]]
    lines: int

    @property
    def left_out(self) -> dict[str, int]:
        """Number of values left out, by reason, most frequent first."""
        return dict(Counter({why: len(rows) for why, rows in self.refused.items()}).most_common())


def own_rows(files: Mapping[str, Readings]) -> UserRows:
    """The values of files, by name, that a fit may see; the others are counted by reason."""
    refused: dict[str, list[str]] = defaultdict(list)
    rows: list[Measurement] = []
    for name, readings in files.items():
        for value in readings.refused:
            refused[general_reason(value.reason)].append(f"{name}:{value.id}")
        rows += [replace(row, id=f"{name}:{row.id}") for row in readings.rows]
    reasons = _reasons(rows)
    for row, why in zip(rows, reasons, strict=True):
        if why:
            refused[why].append(row.id)
    usable = tuple(row for row, why in zip(rows, reasons, strict=True) if not why)
    lines = sum(readings.lines for readings in files.values())
    return UserRows(usable, refused, lines)


def own_sample(rows: UserRows, as_of: str) -> Sample:
    """The rows with their columns, weights and places, as seen by a profile of a date.

    Raises InputError if the network between the chips of a row cannot be built.
    """
    usable = rows.usable
    weights = [TTFT_WEIGHT if row.looped and row.quantity == "ttft" else 1.0 for row in usable]
    places = [row_context(row, as_of) for row in usable]
    seen = [replace(p, engine="") if p.engine == NO_ENGINE else p for p in places]
    return make_sample(usable, seen, weights, rows.left_out)


def _reasons(rows: Sequence[Measurement]) -> list[str]:
    """Reason for leaving out each row; empty for usable rows."""
    if not rows:
        return []
    prompts = {row.id: row for row in rows if row.quantity == "ttft"}
    bounds = row_bounds([_steady(row, prompts.get(row.id)) for row in rows])
    below = [row.seconds < bound for row, bound in zip(rows, bounds, strict=True)]
    runs = {row.id for row, less in zip(rows, below, strict=True) if less}
    seen: set[tuple[object, ...]] = set()
    reasons = []
    for row, less in zip(rows, below, strict=True):
        key = (*row_conditions(row), row.seconds)
        again = REPEAT if row.repeats or key in seen else ""
        seen.add(key)
        bounded = BELOW_BOUND if less else WITH_IT if row.id in runs else ""
        reasons.append(
            again or skip_reason(row) or first_reason(row, USER_EXCLUSION_RULES) or bounded
        )
    return reasons


def _steady(row: Measurement, prompt: Measurement | None) -> Measurement:
    """The row with the requests that decode on average, where the wait for prompts is known.

    By Little's law the share of requests that decode is that of a request's time.
    """
    if prompt is None or row.quantity != "tpot" or not row.looped or row.pooled:
        return row
    decoding = row.output * row.seconds
    batch = max(1.0, row.batch * decoding / (decoding + prompt.seconds))
    return replace(row, quantity="step", looped=False, batch=batch)


def row_conditions(row: Measurement) -> tuple[object, ...]:
    """Conditions of a row, all but its value: rows with equal conditions are repeats."""
    return (
        row.model, row.chip.name, row.engine, row.version, row.precision, str(row.layout),
        row.quantity, row.prompt, row.output, row.batch, row.drafts,
    )  # fmt: skip


def data_hull(
    sample: Sample, least: int = 1, widths: Mapping[str, float] = MappingProxyType({})
) -> Hull:
    """Hull of the data: names in `least` rows or more, ranges with fewer rows beyond each end.

    Args:
        widths: standard deviations of the logarithms of coefficients before any row was seen.
    """
    values: dict[str, list[Any]] = defaultdict(list)
    resident = np.empty(len(sample.rows))  # sequences of a replica that memory holds of those sent
    for members in group_similar_rows(sample.rows):
        resident[members] = RowStep([sample.rows[i] for i in members]).batch
    for row, place, batch in zip(sample.rows, sample.places, resident, strict=True):
        for name, value in _point(row, place, float(batch)):
            values[name].append(value)
    names, ranges = {}, {}
    for name, dimension in dimensions().items():
        if name in values and dimension.unit:
            column = values[name]
            ordered, k = sorted(column), min(least, (len(column) + 1) // 2)
            ranges[name] = (ordered[k - 1], ordered[-k])
        elif name in values:
            counts = Counter(values[name])
            names[name] = tuple(sorted(value for value, n in counts.items() if n >= least))
    return Hull(names, ranges, widths)


def _point(row: Measurement, place: RunContext, batch: float) -> Iterator[tuple[str, HullValue]]:
    """Hull dimensions of a row and their values; a checkpoint yields both of its names."""
    yield from hull_names(place).items()
    if row.model != place.model:
        yield "model", row.model
    layout = row.layout or {}
    yield from (("overlap", OVERLAP[row.halves]), ("ranks", "whole"))  # no row cuts them otherwise
    yield "stages", float(layout.get("pp", 1))
    yield "chips", float(row.chips)
    network = network_for_chips(row.chip.name, row.machine, row.chips)
    if network is not None:
        yield "domains", float(-(-row.chips // network.chips_per_domain))
    if row.sizes.n_experts:
        yield "ep", float(layout.get("ep", 1))
    if row.sizes.n_experts and not row.pooled:  # of two pools copies of experts are not published
        yield "uneven", EXPERT_SIZES[row.sizes.n_experts % layout.get("ep", 1) > 0]
    reads = row.quantity in ("ttft", "e2e") or (row.quantity == "tpot" and not row.pooled)
    if reads:
        yield "prompt", row.prompt
    if row.quantity != "ttft" or (row.looped and not row.pooled):
        yield from {"batch": batch / layout.get("dp_attention", 1), "context": row.context}.items()
        yield "drafts", float(row.drafts)
