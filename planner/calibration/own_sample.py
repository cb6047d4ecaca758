"""Which of a user's own rows a profile may be fitted on, and what is left out, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calibration.features import features
from planner.calibration.sample import TTFT_WEIGHT, Sample
from planner.catalogue.profile import Place
from planner.measurements.measurement import Measurement
from planner.measurements.networks import network_between
from planner.measurements.places import place_of
from planner.measurements.readers import Readings
from planner.measurements.roofline_bound import alike, bounds_of

__all__ = ["BELOW", "Rows", "own_rows", "own_sample"]

BELOW = "faster than the bound: another chip, number format or layout, or drafted tokens?"
WITH_IT = "the run's time per token is faster than the bound"
NO_ENGINE = "unknown"


@dataclass(frozen=True)
class Rows:
    """The values of all files that may be fitted, and how many were left out, by reason.

    `lines` counts the data lines read. Ids hold the file's name, so that they are of one row.
    """

    kept: tuple[Measurement, ...]
    left_out: dict[str, int]
    lines: int


def own_rows(files: Mapping[str, Readings]) -> Rows:
    """The values of files, by name, that a fit may see; the others are counted by reason."""
    left_out: Counter[str] = Counter()
    rows: list[Measurement] = []
    for name, readings in files.items():
        left_out.update(alike(each.reason) for each in readings.refused)
        rows += [replace(row, id=f"{name}:{row.id}") for row in readings.rows]
    reasons = _reasons(rows)
    left_out.update(why for why in reasons if why)
    kept = tuple(row for row, why in zip(rows, reasons, strict=True) if not why)
    lines = sum(readings.lines for readings in files.values())
    return Rows(kept, dict(left_out.most_common()), lines)


def own_sample(rows: Rows, as_of: str) -> Sample:
    """The rows with their columns, weights and places, as seen by a profile of a date.

    Raises
    ------
    InputError
        If the network between the chips of a row cannot be built.
    """
    kept = rows.kept
    return Sample(
        rows=kept,
        columns=features(kept),
        seconds=np.array([row.seconds for row in kept]),
        weights=np.array([_weight(row) for row in kept]),
        places=tuple(_place(row, as_of) for row in kept),
        left_out=dict(rows.left_out),
    )


def _place(row: Measurement, as_of: str) -> Place:
    found = place_of(row, as_of)
    return replace(found, engine="") if found.engine == NO_ENGINE else found


def _weight(row: Measurement) -> float:
    """First tokens under load hold queueing that no coefficient describes."""
    return TTFT_WEIGHT if row.looped and row.quantity == "ttft" else 1.0


def _reasons(rows: Sequence[Measurement]) -> list[str]:
    """Why each row is left out, empty for those that are kept."""
    if not rows:
        return []
    prompts = {row.id: row for row in rows if row.quantity == "ttft"}
    bounds = bounds_of([_steady(row, prompts.get(row.id)) for row in rows])
    below = [row.seconds < bound for row, bound in zip(rows, bounds, strict=True)]
    runs = {row.id for row, less in zip(rows, below, strict=True) if less}
    seen: set[tuple[object, ...]] = set()
    found = []
    for row, less in zip(rows, below, strict=True):
        key = _key(row)
        again = "a repeat of another row" if row.repeats or key in seen else ""
        seen.add(key)
        bounded = BELOW if less else WITH_IT if row.id in runs else ""
        found.append(again or _unfit(row) or bounded)
    return found


def _unfit(row: Measurement) -> str:
    if row.layout is None:
        return "the layout is not understood"
    if network_between(row.chip.name, row.machine, row.chips) is None:
        return f"no network is known that joins {row.chips} {row.chip.name}"
    if row.speculated and not row.drafts:
        return "tokens are drafted, and how many is not given"
    if row.pooled and row.quantity == "ttft":
        return "prompts of a pool of their own: their queue is not told"
    if row.quality == "wip":
        return "marked unfinished"
    if row.quality.startswith("suspect"):
        return "marked suspect by its source"
    return "workers or requests of the pools are not given" if row.pooled and row.assumed else ""


def _steady(row: Measurement, prompt: Measurement | None) -> Measurement:
    """The row with the requests that decode on average, where the wait for prompts is known.

    By Little's law the share of requests that decode is that of a request's time.
    """
    if prompt is None or row.quantity != "tpot" or not row.looped or row.pooled:
        return row
    decoding = row.output * row.seconds
    batch = max(1.0, row.batch * decoding / (decoding + prompt.seconds))
    return replace(row, quantity="step", looped=False, batch=batch)


def _key(row: Measurement) -> tuple[object, ...]:
    """What two rows of different files share if they are one."""
    return (
        row.model, row.chip.name, row.engine, row.version, row.precision, str(row.layout),
        row.quantity, row.prompt, row.output, row.batch, row.drafts, row.seconds,
    )  # fmt: skip
