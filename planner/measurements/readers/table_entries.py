"""Entries from rows of every kind of table: measured quantities, and reasons for unusable rows.

What the readers refuse keeps its reason. A run of training has a bound and no estimate yet: the
model's arithmetic alone at the chip's peak, three passes of two FLOP per weight and token, and of
attention only the half that a causal mask leaves. Nothing recomputed, nothing sent and no idle
stage is in it.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from planner.measurements.entry import Entry
from planner.measurements.measurement import CollectiveRow, Measurement, NotComputed, Readings
from planner.measurements.published_names import BadRow
from planner.measurements.readers.collective_rows import collective_row, exchange_row, is_fitted_row
from planner.measurements.readers.engine_runs import QUANTITIES, runs
from planner.measurements.readers.sheets import Measurements, positive_or_none
from planner.measurements.readers.steady_batches import steady_batch
from planner.text.tolerances import REL_TOL

# Columns that may differ between two rows of one configuration.
RUN_CONDITION_COLUMNS = frozenset({"ttft_ms", "tpot_ms", "measured_on", "image", "wip"})
LABELS = frozenset({"id", "url", "notes", "quality", "value"})
TRAINING_LABELS = frozenset({"id", "notes", "source"})
TIMES = frozenset({"step_ms", "ttft_ms", "e2e_ms"})
AXIS_COLUMNS = {
    "tp": "tp_size", "dp": "attention_dp_size", "etp": "moe_tp_size", "ep": "moe_ep_size",
}  # fmt: skip


def run_entries(table: Measurements) -> list[Entry]:
    """TPOT and TTFT of every run; of rows of one configuration the first counts."""
    readings, repeats = runs(table.sheet), table.repeats(RUN_CONDITION_COLUMNS)
    measured = {(each.id, each.quantity): each for each in readings.rows}
    entries = []
    for row, line, cells in table.numbered:
        for column in table.measured:
            quantity = QUANTITIES[column]
            run = measured.get((str(line), quantity))
            together = not run.pooled if run else cells.get("mode", "agg") == "agg"
            part = "aggregated" if together else "disaggregated"
            made = (cells["model_path"].split("/")[-1], cells["system"], cells["backend"])
            setting = (cells.get("backend_version", ""), _run_setting(cells))
            entry = Entry(row, line, column, quantity, part, *made, *setting)
            repeat = row in repeats or bool(run and run.repeats)
            entry = replace(entry, repeat=repeat, reason=readings.reason(str(line), quantity))
            entries.append(_filled(entry, cells, run))
    return entries


def steady_entries(table: Measurements) -> list[Entry]:
    """The value of every steady batch, repeats marked."""
    entries, repeats = [], table.repeats(LABELS)
    for row, line, cells in table.numbered:
        batch, reason = None, ""
        try:
            batch = steady_batch({name: text.strip() for name, text in cells.items()})
        except BadRow as why:
            reason = str(why)
        except KeyError as why:
            reason = f"{why.args[0]} is not given"
        quantity = batch.quantity if batch else cells["phase"]
        part = "clean" if cells.get("quality", "").startswith("clean") else "not clean"
        made = (cells["model"], cells["chip"], cells.get("source", ""))
        setting = f"{cells.get('layout', '')} batch {cells['batch'] or '?'} {cells['metric']}"
        entry = Entry(row, line, "value", quantity, part, *made, "", setting, reason=reason)
        entry = replace(entry, rate=cells["metric"] not in TIMES, repeat=row in repeats)
        entries.append(_filled(entry, cells, batch))
    return entries


def _filled(entry: Entry, cells: Mapping[str, str], row: Measurement | None) -> Entry:
    text = cells.get(entry.column, "")
    value = positive_or_none(text)
    if value is None:
        missing = f"{entry.column} is {text!r}, not a positive number"
        return replace(entry, reason=entry.reason or missing)
    return replace(entry, measured=value) if row is None else entry.measuring(row, value)


def _run_setting(cells: Mapping[str, str]) -> str:
    ways = " ".join(
        f"{label}{float(cells[name]):g}"
        for label, name in AXIS_COLUMNS.items()
        if positive_or_none(cells.get(name, "")) is not None
    )
    lengths = f"{cells.get('isl', '')}/{cells.get('osl', '')}"
    numbers = cells.get("moe_quant_mode") or cells.get("gemm_quant_mode") or cells.get("precision")
    return f"{ways} {lengths} x{cells['concurrency']} {numbers or ''}".strip()


COLUMNS = ("iter_time_derived_s", "measured_iter_time_s")
MIN_SECONDS, MAX_SECONDS = 1e-3, 1e9  # of any width, length, peak or number of chips
NO_PLANNER = "only the bound: steps of training are not estimated yet"


def training_entries(table: Measurements) -> list[Entry]:
    """The iteration time of every run, in whichever column states it."""
    entries, repeats = [], table.repeats(TRAINING_LABELS)
    for row, line, cells in table.numbered:
        stated = (name for name in COLUMNS if positive_or_none(cells.get(name, "")) is not None)
        column = next(stated, COLUMNS[1])
        bound, reason = None, NO_PLANNER
        try:
            bound = step_bound(cells)
        except KeyError as error:
            reason = f"{error.args[0]} is not given"
        except ValueError as error:
            reason = str(error)
        seconds = positive_or_none(cells.get(column, ""))
        if seconds is None:
            reason = f"{column} is {cells.get(column, '')!r}, not a positive number"
        made = (cells.get("model", ""), cells.get("gpu", ""), cells.get("recompute", ""))
        setting = " ".join(f"{n}{cells.get(n, '')}" for n in ("tp", "pp", "dp"))
        entry = Entry(row, line, column, "iteration", "", *made, "", setting, reason=reason)
        floor = bound if seconds is not None else None
        entry = replace(entry, measured=seconds, seconds=seconds, bound=floor, roofline=bound)
        entries.append(replace(entry, repeat=row in repeats))
    return entries


def step_bound(cells: Mapping[str, str]) -> float:
    """Model FLOP of one iteration over the peak of all chips [s].

    Raises KeyError if a column is missing; ValueError if a shape is not a positive number; the
    message names it.
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
    value = positive_or_none(cells[name])
    if value is None or not MIN_SECONDS <= value <= MAX_SECONDS:
        raise ValueError(f"{name} is {cells[name]!r}, not a positive number of that kind")
    return value


def collective_entries(table: Measurements) -> list[Entry]:
    """The time of every collective."""
    entries, earlier = [], set()
    for row, line, cells in table.numbered:
        timed = collective_row(cells)
        key: object = tuple(cells.values())
        if not isinstance(timed, str):  # nodes and all, but for the time
            key = replace(timed, seconds=0.0, sweep=False, source="")
        entry = _collective(row, line, cells, ("time_us", "operation", "accelerator"), timed)
        entries.append(replace(entry, repeat=key in earlier))
        earlier.add(key)
    return entries


def exchange_entries(table: Measurements) -> list[Entry]:
    """The latency of every dispatch, combine and fused all-reduce."""
    repeats, columns = table.repeats(), ("latency_us", "op", "chip")
    return [
        replace(_collective(row, line, cells, columns, exchange_row(cells)), repeat=row in repeats)
        for row, line, cells in table.numbered
    ]


def _collective(
    row: int,
    line: int,
    cells: Mapping[str, str],
    columns: tuple[str, str, str],
    timed: CollectiveRow | str,
) -> Entry:
    """The entry of a collective; `columns` hold its time, operation and chip."""
    column, operation, chip = columns
    if isinstance(timed, str):
        what = (cells[operation], cells[chip], "")
        return Entry(row, line, column, "collective", "", *what, reason=timed)
    part = "fitted curves" if is_fitted_row(timed) else "other rows"
    made = (timed.operation, timed.chip, timed.algorithm)
    setting = f"{timed.n} chips {timed.size:.0f} byte {timed.system}"
    entry = Entry(row, line, column, "collective", part, *made, "", setting)
    return replace(entry, measured=float(cells[column]), seconds=timed.seconds, collective=timed)


TOKEN = ("tpot", "step")
STEMS: Mapping[str, tuple[str, ...]] = {
    **{"ttft": ("ttft",), "e2e": ("e2e",)},
    **dict.fromkeys(("tpot", "itl", "step", "tokens_per"), TOKEN),
}
UNITS = {"ms": 1e-3, "s": 1.0}
HEADER = 1  # lines before the first row


def own_entries(table: Measurements, readings: Readings, meant: Mapping[str, str]) -> list[Entry]:
    """Every value of every run; a value that others state is scored once, and predicted for all.

    Args:
        readings: the table's measurements, ids by line.
        meant: what each column of the table means.
    """
    by_line: dict[str, list[Measurement]] = defaultdict(list)
    for measured in readings.rows:
        by_line[measured.id].append(measured)
    entries = []
    for row, line, cells in table.numbered:
        runs_of_line, scored = by_line[str(line)], set[str]()
        stated = [column for column in table.measured if cells[column].strip()]
        for column in stated:
            stem, unit = meant[column].rsplit("_", 1)
            run = next((run for run in runs_of_line if run.quantity in STEMS[stem]), None)
            value = positive_or_none(cells[column])
            reason = readings.reason(str(line), stem, *STEMS[stem]) or "no time of its own"
            entry = _run_entry(row, line, column, run, reason)
            rate = stem == "tokens_per"  # of steps, or a column says the very time that was read
            if (
                run is not None
                and value is not None
                and (rate or math.isclose(value * UNITS[unit], run.seconds, rel_tol=REL_TOL))
            ):
                again = bool(run.repeats) or run.quantity in scored
                entry = replace(entry, reason="", rate=rate, repeat=again)
                entry = entry.measuring(run, value)
                scored.add(run.quantity)
            entries.append(entry)
        if not stated:
            reason = readings.reason(str(line)) or "no measured value is given"
            entries.append(_run_entry(row, line, table.measured[0], None, reason))
    return entries


def generator_entries(readings: Readings) -> list[Entry]:
    """Times [s] of the runs of a load generator, one line each."""
    entries = []
    every: tuple[Measurement | NotComputed, ...] = (*readings.rows, *readings.refused)
    for run in every:
        at = int(run.id) - 1 - HEADER, int(run.id)
        if isinstance(run, Measurement):
            entry = replace(_run_entry(*at, run.quantity, run, ""), repeat=bool(run.repeats))
            entries.append(entry.measuring(run, run.seconds))
        else:
            entries.append(_run_entry(*at, run.quantity or "all", None, run.reason))
    return entries


def _run_entry(row: int, line: int, column: str, run: Measurement | None, reason: str) -> Entry:
    """Entry with the fields of a run; without a run, with the reason alone."""
    if run is None:
        return Entry(row, line, column, column, "", "", "", "", reason=reason)
    ways = " ".join(f"{name}{n}" for name, n in (run.layout or {}).items() if n > 1)
    load = "x" if run.looped else "batch "
    setting = f"{ways} {run.prompt:.0f}/{run.output:.0f} {load}{run.batch:g}".strip()
    return Entry(
        row, line, column, run.quantity, "", run.model, run.chip.name, run.engine, run.version,
        setting, reason=reason,
    )  # fmt: skip
