"""Which of a user's own rows a profile may be fitted on, and what is left out, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calibration.adapters import Readings
from planner.calibration.features import features
from planner.calibration.ideal import bounds_of
from planner.calibration.measurements import Measurement
from planner.calibration.networks import network_between
from planner.calibration.places import place_of
from planner.calibration.profile import Place
from planner.calibration.sample import TTFT_WEIGHT, Sample

__all__ = ["BELOW", "Rows", "own_rows", "own_sample"]

BELOW = "faster than the bound: another chip, number format or layout, or drafted tokens?"
IN_FLIGHT = 0.5  # least share of the requests sent that must be decoding
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
        left_out.update(each.reason for each in readings.refused)
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
    tokens = {row.id: row for row in rows if row.quantity == "tpot"}
    steady = [_steady(row, prompts.get(row.id)) for row in rows]
    seen: set[tuple[object, ...]] = set()
    found = []
    for row, bound in zip(rows, bounds_of(steady), strict=True):
        key = _key(row)
        again = "a repeat of another row" if row.repeats or key in seen else ""
        queued = _queued(tokens.get(row.id), prompts.get(row.id))
        seen.add(key)
        found.append(again or _unfit(row) or queued or (BELOW if row.seconds < bound else ""))
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


def _queued(token: Measurement | None, prompt: Measurement | None) -> str:
    """Whether an engine that decodes fewer requests than are sent makes the others wait."""
    if token is None or prompt is None or not token.looped or token.pooled:
        return ""
    if _share(token, prompt) < IN_FLIGHT:
        return "more requests sent than decoded: the prompts queue"
    return ""


def _steady(row: Measurement, prompt: Measurement | None) -> Measurement:
    """The row with the requests that decode on average, where the wait for prompts is known."""
    if prompt is None or row.quantity != "tpot" or not row.looped or row.pooled:
        return row
    batch = max(1.0, _share(row, prompt) * row.batch)
    return replace(row, quantity="step", looped=False, batch=batch)


def _share(token: Measurement, prompt: Measurement) -> float:
    """The share of a request's time in which it decodes, by Little's law that of the requests."""
    decoding = token.output * token.seconds
    return decoding / (decoding + prompt.seconds)


def _key(row: Measurement) -> tuple[object, ...]:
    """What two rows of different files share if they are one."""
    return (
        row.model, row.chip.name, row.engine, row.version, row.precision, str(row.layout),
        row.quantity, row.prompt, row.output, row.batch, row.drafts, row.seconds,
    )  # fmt: skip
