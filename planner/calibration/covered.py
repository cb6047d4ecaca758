"""What the rows of a sample cover, as the hull of a profile that is fitted on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.hull import Hull, Value, dimensions, names_at
from planner.catalogue.profile import Place
from planner.measurements.measurement import Measurement, network_between
from planner.measurements.prediction import RowStep, alike_rows
from planner.problems.serving.step.layouts import OVERLAP

if TYPE_CHECKING:
    from planner.calibration.sample import Sample


def hull_of(
    sample: Sample, least: int = 1, widths: Mapping[str, float] = MappingProxyType({})
) -> Hull:
    """The names that `least` rows or more have, and the ranges beyond whose ends fewer lie.

    Parameters
    ----------
    widths : standard deviations of the logarithms of coefficients before any row was seen.
    """
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    numbers: dict[str, list[float]] = defaultdict(list)
    resident = _resident(sample)
    for row, place, batch in zip(sample.rows, sample.places, resident, strict=True):
        for name, value in _point(row, place, float(batch)):
            if isinstance(value, str):
                seen[name][value] += 1
            else:
                numbers[name].append(value)
    names = {
        name: tuple(sorted(value for value, n in seen[name].items() if n >= least))
        for name in dimensions()
        if name in seen
    }
    ranges = {name: _ends(numbers[name], least) for name in dimensions() if name in numbers}
    return Hull(names, ranges, widths)


def _ends(values: list[float], least: int) -> tuple[float, float]:
    ordered, k = sorted(values), min(least, (len(values) + 1) // 2)
    return ordered[k - 1], ordered[-k]


def _resident(sample: Sample) -> np.ndarray:
    """Sequences of a replica that memory holds of those sent, shape (n_rows,)."""
    batch = np.empty(len(sample.rows))
    for members in alike_rows(sample.rows):
        batch[members] = RowStep([sample.rows[i] for i in members]).batch
    return batch


def _point(row: Measurement, place: Place, batch: float) -> Iterator[tuple[str, Value]]:
    """Where a row lies: its checkpoint is called by either of its names."""
    yield from names_at(place, experts=bool(row.sizes.n_experts)).items()
    if row.model != place.model:
        yield "model", row.model
    layout = row.layout or {}
    yield "overlap", OVERLAP[row.halves]
    yield "chips", float(row.chips)
    network = network_between(row.chip.name, row.machine, row.chips)
    if network is not None:
        yield "domains", float(-(-row.chips // network.chips_per_domain))
    if row.sizes.n_experts:
        yield "ep", float(layout.get("ep", 1))
    reads = row.quantity in ("ttft", "e2e") or (row.quantity == "tpot" and not row.pooled)
    if reads:
        yield "prompt", row.prompt
    if row.quantity != "ttft" or (row.looped and not row.pooled):
        yield from {"batch": batch / layout.get("dp_attention", 1), "context": row.context}.items()
        yield "drafts", float(row.drafts)
