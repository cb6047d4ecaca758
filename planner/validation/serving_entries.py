"""Rows of the two serving tables as entries; what the adapters refuse keeps its reason.

Rows of the table of training runs as entries: a bound for each, and no estimate yet.

The bound is the model's arithmetic alone at the chip's peak: three passes of two FLOP per weight
and token, and of attention only the half that a causal mask leaves. Nothing recomputed, nothing
sent and no idle stage is in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from planner.measurements.entry import Entry
from planner.measurements.measurement import Measurement
from planner.measurements.published_names import Refused
from planner.measurements.readers import runs, steady
from planner.measurements.readers.kinds import MeasurementTable, positive_of

RUN_COLUMNS = {"tpot_ms": "tpot", "ttft_ms": "ttft"}
# What may differ between two rows of one configuration.
OCCASION = frozenset({"ttft_ms", "tpot_ms", "measured_on", "image", "wip"})
LABELS = frozenset({"id", "url", "notes", "quality", "value"})
TIMES = frozenset({"step_ms", "ttft_ms", "e2e_ms"})


@dataclass(frozen=True)
class _EntryPlace:
    """Where a value stands, and what its row says of itself in its own words."""

    row: int
    line: int
    column: str
    quantity: str
    part: str
    model: str
    chip: str
    engine: str
    version: str
    setting: str
    repeat: bool
    rate: bool


def run_entries(table: MeasurementTable) -> list[Entry]:
    """TPOT and TTFT of every run; of rows of one configuration the first counts."""
    readings = runs(table.sheet)
    by_run = {(each.id, each.quantity): each for each in readings.rows}
    refusals: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for lacking in readings.refused:
        refusals[lacking.id].append((lacking.quantity, lacking.reason))
    entries, seen = [], set()
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        key = tuple(value for name, value in cells.items() if name not in OCCASION)
        for column in table.measured:
            quantity = RUN_COLUMNS[column]
            measurement = by_run.get((str(line), quantity))
            reasons = [why for of, why in refusals[str(line)] if of in ("", quantity)]
            place = _EntryPlace(
                index,
                line,
                column,
                quantity,
                "aggregated" if _together(cells, measurement) else "disaggregated",
                cells["model_path"].split("/")[-1],
                cells["system"],
                cells["backend"],
                cells.get("backend_version", ""),
                _run_setting(cells),
                key in seen or bool(measurement and measurement.repeats),
                False,
            )
            entries.append(_entry(place, cells, measurement, "; ".join(reasons)))
        seen.add(key)
    return entries


def steady_entries(table: MeasurementTable) -> list[Entry]:
    """The value of every steady batch, repeats marked."""
    entries, seen = [], set()
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        key = tuple(value for name, value in cells.items() if name not in LABELS)
        measurement, reason = _steady(cells)
        place = _EntryPlace(
            index,
            line,
            "value",
            measurement.quantity if measurement else cells["phase"],
            "clean" if cells.get("quality", "").startswith("clean") else "not clean",
            cells["model"],
            cells["chip"],
            cells.get("source", ""),
            "",
            f"{cells.get('layout', '')} batch {cells['batch'] or '?'} {cells['metric']}",
            key in seen,
            cells["metric"] not in TIMES,
        )
        entries.append(_entry(place, cells, measurement, reason))
        seen.add(key)
    return entries


def _together(cells: Mapping[str, str], measurement: Measurement | None) -> bool:
    """Whether one pool reads prompts and decodes."""
    if measurement is not None:
        return not measurement.pooled
    return cells.get("mode", "agg") == "agg"


def _steady(cells: Mapping[str, str]) -> tuple[Measurement | None, str]:
    try:
        return steady({name: text.strip() for name, text in cells.items()}), ""
    except Refused as why:
        return None, str(why)
    except KeyError as why:
        return None, f"{why.args[0]} is not given"


def _entry(
    place: _EntryPlace, cells: Mapping[str, str], measurement: Measurement | None, reason: str
) -> Entry:
    value = positive_of(cells.get(place.column, ""))
    if value is None and not reason:
        reason = f"{place.column} is {cells.get(place.column, '')!r}, not a positive number"
    sound = measurement if value is not None else None
    return Entry(
        place.row,
        place.line,
        place.column,
        place.quantity,
        place.part,
        sound.model if sound else place.model,
        sound.chip.name if sound else place.chip,
        sound.engine if sound else place.engine,
        place.version,
        place.setting,
        measured=value,
        seconds=sound.seconds if sound else None,
        rate=place.rate,
        reason=reason,
        repeat=place.repeat,
        measurement=sound,
    )


def _run_setting(cells: Mapping[str, str]) -> str:
    ways = " ".join(
        f"{label}{float(cells[name]):g}"
        for label, name in (
            ("tp", "tp_size"),
            ("dp", "attention_dp_size"),
            ("etp", "moe_tp_size"),
            ("ep", "moe_ep_size"),
        )
        if positive_of(cells.get(name, "")) is not None
    )
    lengths = f"{cells.get('isl', '')}/{cells.get('osl', '')}"
    numbers = cells.get("moe_quant_mode") or cells.get("gemm_quant_mode") or cells.get("precision")
    return f"{ways} {lengths} x{cells['concurrency']} {numbers or ''}".strip()


COLUMNS = ("iter_time_derived_s", "measured_iter_time_s")
LEAST, MOST = 1e-3, 1e9  # of any width, length, peak or number of chips
NO_PLANNER = "only the bound: steps of training are not estimated yet"


def training_entries(table: MeasurementTable) -> list[Entry]:
    """The iteration time of every run, in whichever column states it."""
    entries, seen = [], set()
    for index, line in enumerate(table.lines):
        cells = table.cells(index)
        column = next((c for c in COLUMNS if positive_of(cells.get(c, "")) is not None), COLUMNS[1])
        seconds, bound, reason = positive_of(cells.get(column, "")), None, NO_PLANNER
        try:
            bound = step_bound(cells)
        except KeyError as error:
            reason = f"{error.args[0]} is not given"
        except ValueError as error:
            reason = str(error)
        if seconds is None:
            reason = f"{column} is {cells.get(column, '')!r}, not a positive number"
        key = tuple(value for name, value in cells.items() if name not in ("id", "notes", "source"))
        entries.append(
            Entry(
                index,
                line,
                column,
                "iteration",
                "",
                cells.get("model", ""),
                cells.get("gpu", ""),
                cells.get("recompute", ""),
                setting=" ".join(f"{n}{cells.get(n, '')}" for n in ("tp", "pp", "dp")),
                measured=seconds,
                seconds=seconds,
                bound=bound if seconds is not None else None,
                roofline=bound,
                reason=reason,
                repeat=key in seen,
            )
        )
        seen.add(key)
    return entries


def step_bound(cells: Mapping[str, str]) -> float:
    """Model FLOP of one iteration over the peak of all chips [s].

    Raises
    ------
    KeyError
        If a column is missing.
    ValueError
        If a shape is not a positive number; the message names it.
    """
    hidden, layers, tokens, vocabulary, chips = (
        _positive(cells, name) for name in ("hidden", "layers", "seq_len", "vocab", "gpus")
    )
    stated = cells.get("ffn_hidden", "").strip()
    width = _positive(cells, "ffn_hidden") if stated else 4 * hidden
    sequences = _positive(cells, "global_batch")
    peak = _positive(cells, "gpu_peak_tflops_bf16") * 1e12
    weights = layers * (4 * hidden**2 + 2 * hidden * width) + vocabulary * hidden
    attended = layers * hidden * tokens  # keys and values of half the positions
    return 6 * sequences * tokens * (weights + attended) / (chips * peak)


def _positive(cells: Mapping[str, str], name: str) -> float:
    value = positive_of(cells[name])
    if value is None or not LEAST <= value <= MOST:
        raise ValueError(f"{name} is {cells[name]!r}, not a positive number of that kind")
    return value
