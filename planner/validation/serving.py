"""Rows of the two serving tables as entries; what the adapters refuse keeps its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping

from planner.calibration.adapters import run, steady
from planner.calibration.measurements import Measurement, Refused
from planner.validation.entries import Entry
from planner.validation.tables import Table

__all__ = ["run_entries", "steady_entries"]

RUN_COLUMNS = {"tpot_ms": "tpot", "ttft_ms": "ttft"}
# What may differ between two rows of one configuration.
OCCASION = frozenset({"ttft_ms", "tpot_ms", "measured_on", "image", "wip"})
LABELS = frozenset({"id", "url", "notes", "source", "quality", "value"})
TIMES = frozenset({"step_ms", "ttft_ms", "e2e_ms"})


def run_entries(table: Table) -> list[Entry]:
    """TPOT and TTFT of every run, repeats marked."""
    found: list[Entry] = []
    seen: set[tuple[str, ...]] = set()
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        key = tuple(value for name, value in cells.items() if name not in OCCASION)
        measurements, reason = _run(cells, str(line))
        for column, quantity in RUN_COLUMNS.items():
            found.append(
                _entry(
                    index,
                    line,
                    column,
                    cells,
                    measurements.get(quantity),
                    reason,
                    quantity=quantity,
                    part="aggregated" if cells.get("mode", "agg") == "agg" else "disaggregated",
                    model=cells["model_path"].split("/")[-1],
                    chip=cells["system"],
                    engine=cells["backend"],
                    version=cells.get("backend_version", ""),
                    setting=_run_setting(cells),
                    repeat=key in seen,
                )
            )
        seen.add(key)
    return found


def steady_entries(table: Table) -> list[Entry]:
    """The value of every steady batch, repeats marked."""
    found: list[Entry] = []
    seen: set[tuple[str, ...]] = set()
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        key = tuple(value for name, value in cells.items() if name not in LABELS)
        reason, measurement = "", None
        try:
            measurement = steady(cells)
        except (Refused, ValueError, KeyError) as why:
            reason = _told(why)
        found.append(
            _entry(
                index,
                line,
                "value",
                cells,
                measurement,
                reason,
                quantity=measurement.quantity if measurement else cells["phase"],
                part="clean" if cells.get("quality", "").startswith("clean") else "not clean",
                model=cells["model"],
                chip=cells["chip"],
                engine=cells.get("source", ""),
                setting=f"{cells.get('layout', '')} batch {cells['batch']} {cells['metric']}",
                repeat=key in seen,
                rate=cells["metric"] not in TIMES,
            )
        )
        seen.add(key)
    return found


def _run(cells: Mapping[str, str], line: str) -> tuple[dict[str, Measurement], str]:
    try:
        return {each.quantity: each for each in run(cells, line)}, ""
    except (Refused, ValueError, KeyError) as why:
        return {}, _told(why)


def _entry(
    index: int,
    line: int,
    column: str,
    cells: Mapping[str, str],
    measurement: Measurement | None,
    reason: str,
    *,
    quantity: str,
    part: str,
    model: str,
    chip: str,
    engine: str,
    version: str = "",
    setting: str = "",
    repeat: bool = False,
    rate: bool = False,
) -> Entry:
    value = _value(cells.get(column, ""))
    if value is None and not reason:
        reason = f"{column} is {cells.get(column, '')!r}, not a positive number"
    sound = measurement if value is not None else None
    if sound is not None:
        model, chip, engine = sound.model, sound.chip.name, sound.engine
    return Entry(
        index,
        line,
        column,
        quantity,
        part,
        model,
        chip,
        engine,
        version,
        setting,
        measured=value,
        seconds=sound.seconds if sound else None,
        rate=rate,
        reason=reason,
        repeat=repeat,
        measurement=sound,
    )


def _value(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _told(why: Exception) -> str:
    return f"{why.args[0]} is not given" if isinstance(why, KeyError) else str(why)


def _run_setting(cells: Mapping[str, str]) -> str:
    ways = " ".join(
        f"{label}{float(cells[name]):g}"
        for label, name in (
            ("tp", "tp_size"),
            ("dp", "attention_dp_size"),
            ("etp", "moe_tp_size"),
            ("ep", "moe_ep_size"),
        )
        if _value(cells.get(name, "")) is not None
    )
    lengths = f"{cells.get('isl', '')}/{cells.get('osl', '')}"
    told = cells.get("moe_quant_mode") or cells.get("gemm_quant_mode") or cells.get("precision")
    return f"{ways} {lengths} x{cells['concurrency']} {told or ''}".strip()
