"""Rows of the two tables of collectives as entries, predicted by the profile of collectives."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from planner.calibration.collectives.predictions import predictions
from planner.catalogue.collective_curves import collectives
from planner.measurements.entry import Entry
from planner.measurements.prediction import Prediction
from planner.measurements.readers.collective_rows import Row, row_of
from planner.measurements.readers.kinds import MeasurementTable
from planner.text.errors import PlannerError

MICRO = 1e-6
LEAST, MOST = 1e-12, {"time": 1e6, "size": 1e15}  # s, byte
MOST_CHIPS = 1_000_000
NODE = 8  # chips of the nodes in the table of exchanges
KILO = 1024  # messages of its all-reduces are counted in these
SCALED = 128  # values of fp8 that share a scale of four bytes in a dispatch
EXCHANGE_CHIPS = {"H800": "h800", "H100": "h100", "H100-SXM": "h100"}
# Rows from which latencies between domains were taken.
CROSSINGS = frozenset(
    {
        "AWS P6-B200 (EFAv4 50 GB/s/GPU)",
        "2x8 H20, IB NDR, NVLSTree",
        "GB200 across racks (IB only)",
        "DeepEP V1 low-latency",
    }
)


def collective_entries(table: MeasurementTable) -> list[Entry]:
    """The time of every collective."""
    entries, seen = [], set()
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        row = _collective(cells)
        key = (
            tuple(cells.values())
            if isinstance(row, str)
            else (row.system, row.chip, row.operation, row.algorithm, row.n, row.nodes, row.size)
        )
        entries.append(
            _entry(index, line, "time_us", cells, row, cells["accelerator"], key in seen)
        )
        seen.add(key)
    return entries


def exchange_entries(table: MeasurementTable) -> list[Entry]:
    """The latency of every dispatch, combine and fused all-reduce."""
    entries, seen = [], set()
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        row = _exchange(cells)
        key = tuple(cells.values())
        entries.append(_entry(index, line, "latency_us", cells, row, cells["chip"], key in seen))
        seen.add(key)
    return entries


def _entry(
    index: int,
    line: int,
    column: str,
    cells: Mapping[str, str],
    row: Row | str,
    chip: str,
    repeat: bool,
) -> Entry:
    if isinstance(row, str):
        operation = cells.get("operation") or cells.get("op", "")
        return Entry(index, line, column, "collective", "", operation, chip, "", reason=row,
                     repeat=repeat)  # fmt: skip
    try:
        made = predictions([row])[0]
    except PlannerError as error:
        why = " ".join(str(error).split())
        return Entry(index, line, column, "collective", "other rows", row.operation, row.chip,
                     row.algorithm, measured=float(cells[column]), seconds=row.seconds, reason=why,
                     repeat=repeat, collective=row)  # fmt: skip
    prediction = None
    if made.bound is not None and made.estimate is not None:
        low, high = made.low or made.estimate, made.high or made.estimate
        prediction = Prediction(made.bound, made.estimate, low, high)
    return Entry(
        index,
        line,
        column,
        "collective",
        "fitted curves" if _fitted(row) else "other rows",
        row.operation,
        row.chip,
        row.algorithm,
        setting=f"{row.n} chips {row.size:.0f} byte {row.system}",
        measured=float(cells[column]),
        seconds=row.seconds,
        prediction=prediction,
        bound=made.bound,
        roofline=made.bound,
        reason=made.reason,
        repeat=repeat,
        profile="collectives" if prediction else "",
        seen=_fitted(row),
        collective=row,
    )


def _fitted(row: Row) -> bool:
    """Whether the profile's curves, or its crossings, were taken from such rows."""
    if row.system in CROSSINGS and row.nodes > 1:
        return True
    return row.sweep and any(
        curve.n == row.n and curve.chip == row.chip and curve.evidence == "measured"
        for curve in collectives().of(row.chip, row.operation, row.algorithm)
    )


def _collective(cells: Mapping[str, str]) -> Row | str:
    """The row, or why it cannot be used."""
    try:
        row = row_of(cells)
    except KeyError as error:
        return f"{error.args[0]} is not given"
    except (ValueError, OverflowError) as error:
        return f"not a number: {error}"
    return row if isinstance(row, str) else _sound(row)


def _exchange(cells: Mapping[str, str]) -> Row | str:
    """A row of the table of exchanges, or why it cannot be used."""
    chip = EXCHANGE_CHIPS.get(cells["chip"])
    if not cells["latency_us"]:
        return "no latency"
    if cells.get("topology", "").startswith("in-situ"):
        return "timed inside an engine, waiting included: no bytes of one message"
    if chip is None:
        return f"no chip figures for {cells['chip']!r}"
    try:
        n, seconds = int(float(cells["ep"])), float(cells["latency_us"]) * MICRO
        size = _bytes(cells)
    except (ValueError, OverflowError) as error:
        return f"not a number: {error}"
    if size is None:
        return "no size"
    fused = cells["op"].startswith("allreduce")
    if not fused and cells["op"] not in ("dispatch", "combine"):
        return f"unknown operation {cells['op']!r}"
    return _sound(
        Row(
            chip,
            "all-reduce" if fused else cells["op"],
            "fused" if fused else "deepep-low-latency",
            n,
            max(1, -(-n // NODE)),
            size,
            seconds,
            "custom one-shot/two-shot all-reduce" if fused else _system(cells),
            False,
            cells.get("url", ""),
        )
    )


def _system(cells: Mapping[str, str]) -> str:
    return "DeepEP V1 low-latency" if cells["source"] == "deepep-v1" else cells["source"]


def _bytes(cells: Mapping[str, str]) -> float | None:
    """What a chip sends, as it is counted in the table of collectives [byte]."""
    if cells["op"].startswith("allreduce"):
        message_size = re.match(r"(\d+) KB", cells.get("notes", ""))
        return float(message_size[1]) * KILO if message_size else None
    if not cells["tokens_per_gpu"] or not cells["hidden"] or not cells["topk"]:
        return None
    hidden = float(cells["hidden"])
    copies = float(cells["tokens_per_gpu"]) * float(cells["topk"])
    per_token = {"fp8": hidden + 4 * hidden / SCALED, "bf16": 2 * hidden}.get(cells["dtype"])
    return None if per_token is None else copies * per_token


def _sound(row: Row) -> Row | str:
    for name, value in (("time", row.seconds), ("size", row.size)):
        if not (math.isfinite(value) and value > 0):
            return f"the {name} is {value:g}, not a positive number"
        if not LEAST <= value <= MOST[name]:
            return f"the {name} is beyond any measurement: {value:g}"
    if max(row.n, row.nodes) > MOST_CHIPS:
        return f"the group is beyond any machine: {max(row.n, row.nodes):g}"
    return row if row.n > 1 else f"a group of {row.n}"
