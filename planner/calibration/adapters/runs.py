"""Runs of whole engines at a concurrency, of one pool or of two: TPOT and TTFT of each.

The table mixes exports. A run may stand in it twice with the same times to the last digit, under
`DeepSeek-R1` and, with more columns, under `DeepSeek-V3`: the second export holds runs without
speculation only, and gives the workers of both pools. The first row is then read as the second.
Where the second export holds the same version, layout and concurrency with other times, the first
row speculated; where it holds nothing, the table does not say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.architecture.counts import Sizes
from planner.calibration.adapters.pools import in_decode, pools_of
from planner.calibration.adapters.tables import Readings, Row, count, given, positive, rows_of
from planner.calibration.adapters.ways import chips_of, ways_of
from planner.calibration.measurements import Measurement, NotComputed
from planner.calibration.names import (
    Refused,
    base_of,
    chip_of,
    format_of,
    machine_of,
    model_of,
    sizes_of,
)
from planner.catalogue.chips import Chip

__all__ = ["read_runs", "run", "runs"]

# Where a table does not give the cache's format: what engines keep by default, and at the least.
USUAL_CACHE, NARROWEST_CACHE = "bf16", "fp8"
QUANTITIES = (("tpot", "tpot_ms"), ("ttft", "ttft_ms"))
# What two rows of one run share beside both times. Exports differ in the sixteenth digit; times of
# fewer than TELLING digits agree by chance.
SAME_RUN = ("mode", "system", "backend", "isl", "osl", "concurrency")
TELLING, SAME_DIGITS = 8, 12
OTHER_DAY = ("measured_on", "image", "wip")
# What a run with speculation shares with one of the plain export, beside the layout.
SAME_SWEEP = (*SAME_RUN, "backend_version", "gemm_quant_mode")
# The id of the export without speculation: of its 165 disaggregated rows whose concurrency the
# published sweep definitions hold, 161 have the workers that are defined there without drafts.
PLAIN = "deepseek-ai/DeepSeek-V3"
LARGEST_DOMAIN = 8


def runs(path: Path) -> Readings:
    """TPOT and TTFT of every run, ids by line number; repeats are marked, not left out."""
    table = rows_of(path)
    fullest = _fullest(table)
    drafting = _drafting(table, fullest)
    found: list[Measurement] = []
    refused: list[NotComputed] = []
    for i, said in enumerate(fullest):
        repeats = "" if said == i else str(said + 2)
        try:
            each = _measured(table[said], str(i + 2), repeats, refused)
            found += [replace(one, speculated=True) for one in each] if i in drafting else each
        except Refused as why:
            refused.append(NotComputed(str(i + 2), str(why)))
    return Readings("serving runs", tuple(found), tuple(refused), len(table))


def read_runs(path: Path) -> tuple[list[Measurement], list[NotComputed]]:
    """Distinct runs of one pool that give both times, and every other row with why it is none."""
    readings = runs(path)
    lacking = {each.id: each.reason for each in readings.refused}
    found = []
    for row in readings.rows:
        if row.pooled:
            lacking[row.id] = "disaggregated"
        elif row.repeats:
            lacking[row.id] = "repeats another row"
        elif row.id not in lacking:
            found.append(row)
    return found, [NotComputed(line, reason) for line, reason in lacking.items()]


def run(row: Row, line: str) -> list[Measurement]:
    """TPOT and TTFT of one run; raises Refused if neither can be put into the catalogue's words."""
    refused: list[NotComputed] = []
    found = _measured(row, line, "", refused)
    if not found:
        raise Refused(refused[0].reason)
    return found


def _measured(row: Row, line: str, repeats: str, refused: list[NotComputed]) -> list[Measurement]:
    """The row's measurements; a value that is no time goes to `refused`."""
    chip = chip_of(row["system"])
    name = row["model_path"]
    weights = _checkpoint(row)
    kv = "fp8" if row["backend"] == "trtllm" and weights != "bf16" else USUAL_CACHE
    sizes = sizes_of(name, weights, kv)
    prompt, output = positive(row, "isl"), positive(row, "osl")
    common: dict[str, Any] = {
        "id": line,
        "source": "serving runs",
        "engine": f"{row['backend']}-2026",
        "model": base_of(model_of(name).name),
        "sizes": sizes,
        "chip": chip,
        "machine": machine_of(chip.name),
        "prompt": prompt,
        "output": output,
        "context": prompt + output / 2,
        "quality": "wip" if row.get("wip") == "True" else "run",
        "precision": weights or "own",
        "version": row["backend_version"],
        "looped": True,
        "leanest": sizes_of(name, weights, NARROWEST_CACHE),
        "speculated": None if sizes.mtp_blocks and name != PLAIN else False,
        "repeats": repeats,
    }
    places = _places(row, sizes, chip)
    found = []
    for quantity, column in QUANTITIES:
        try:
            seconds = positive(row, column) / 1e3
        except Refused as why:
            refused.append(NotComputed(line, str(why), quantity))
            continue
        found.append(Measurement(**common, **places[quantity], quantity=quantity, seconds=seconds))
    return found


def _places(row: Row, sizes: Sizes, chip: Chip) -> dict[str, dict[str, Any]]:
    """Where each quantity is made: layout, chips and batch of one replica or of one worker."""
    if row["mode"] != "disagg" and not _added_up(row):
        layout = ways_of(row, sizes.n_experts)
        one: dict[str, Any] = {"layout": layout, "chips": chips_of(layout), "batch": _batch(row)}
        return {"tpot": one, "ttft": one}
    pools = pools_of(row, sizes, chip)
    decoding = in_decode(pools, positive(row, "isl"), positive(row, "osl"), sizes, chip)
    waiting = pools.concurrency - decoding
    assumed = "" if pools.decode.given else "the workers of both pools and what they copy"
    if given(row, "concurrency") is None:
        assumed = "as many requests as the decode pool holds"
    batches = {"tpot": (pools.decode, decoding), "ttft": (pools.prefill, waiting)}
    return {
        quantity: {
            "layout": pool.layout,
            "chips": pool.chips,
            "batch": max(1.0, requests / pool.workers),
            "pools": pools,
            "assumed": assumed,
        }
        for quantity, (pool, requests) in batches.items()
    }


def _added_up(row: Row) -> bool:
    """Whether a row that is called aggregated holds the chips of two pools as tensor ways.

    Runs on GB200 whose tensor ways are 12 to 72 without an image: the same concurrencies with
    times within 2 % stand in the table once more, as disaggregated.
    """
    tp, experts = count(row, "tp_size"), count(row, "moe_tp_size", 1)
    return tp > LARGEST_DOMAIN and tp == experts and not row.get("image")


def _batch(row: Row) -> float:
    """Requests in flight in one replica.

    `batch_size` is that of a copy of attention. Where fewer fit in than the concurrency holds,
    there were several replicas behind one address.
    """
    each = given(row, "batch_size")
    copies = count(row, "attention_dp_size", 1)
    requests = given(row, "concurrency")
    if requests is None:
        if each is None:
            raise Refused("neither concurrency nor batch_size is given")
        return each * copies
    if each is None:
        return requests
    replicas = max(1, round(requests / (each * copies)))
    return requests / replicas


def _checkpoint(row: Row) -> str | None:
    """The format of the weights, or None where the checkpoint's own is meant."""
    told = row.get("moe_quant_mode") or row.get("gemm_quant_mode") or row.get("precision")
    return format_of(told) if told else None


def _fullest(table: Sequence[Row]) -> list[int]:
    """For every row that which says most of the same run: itself where no other row is that run."""
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(table):
        same[_identity(row)].append(i)
    fullest = list(range(len(table)))
    for rows in same.values():
        best = max(rows, key=lambda i: (_says(table[i]), -i))
        for i in rows:
            fullest[i] = best
    return fullest


def _drafting(table: Sequence[Row], fullest: Sequence[int]) -> set[int]:
    """Rows that speculate, by what the export without speculation holds beside them.

    Of the rows found so in the open part all but three are 1.1 to 2 times as fast as the plain run.
    """
    plain = {_sweep(row) for row in table if row["model_path"] == PLAIN} - {None}
    return {
        i
        for i, row in enumerate(table)
        if table[fullest[i]]["model_path"] != PLAIN
        and _sweep(row) in plain
        and base_of(model_of(row["model_path"]).name) == base_of(model_of(PLAIN).name)
    }


def _sweep(row: Row) -> tuple[object, ...] | None:
    """What tells a configuration of a sweep; sweeps of two pools were tuned from day to day."""
    try:
        if row["mode"] == "disagg":
            tp, copies = count(row, "decode_tp_size"), count(row, "decode_attention_dp_size", 1)
            layout: tuple[object, ...] = (tp * copies, row["measured_on"])
        else:
            ways = ways_of(row, 1)
            layout = (chips_of(ways), ways["dp_attention"] > 1)
    except Refused:
        return None
    return (*(row.get(name, "") for name in SAME_SWEEP), *layout)


def _identity(row: Row) -> tuple[str, ...]:
    times = [row.get(column, "") for _, column in QUANTITIES]
    if all(sum(map(str.isdigit, time)) >= TELLING for time in times):
        try:
            rounded = [f"{float(time):.{SAME_DIGITS}g}" for time in times]
        except ValueError:
            rounded = times
        return (*(row.get(name, "") for name in SAME_RUN), *rounded)
    return tuple(value for name, value in row.items() if name not in OTHER_DAY)


def _says(row: Row) -> tuple[bool, bool, int]:
    return (
        bool(row.get("decode_num_workers")),
        row.get("model_path") == PLAIN,
        sum(bool(value) for value in row.values()),
    )
