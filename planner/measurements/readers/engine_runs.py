"""Runs of whole engines at a concurrency, of one pool or of two: TPOT and TTFT of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.architecture.counts import Sizes
from planner.catalogue.chips import Chip
from planner.measurements.measurement import Measurement, NotComputed
from planner.measurements.published_names import (
    Refused,
    base_of,
    chip_of,
    format_of,
    machine_of,
    model_of,
    sizes_on,
)
from planner.measurements.readers.pool_completion import in_decode, pools_of
from planner.measurements.readers.published_settings import drafting, settings_of
from planner.measurements.readers.speculation import PLAIN, fullest_of, speculated_in
from planner.measurements.readers.tables_adapters_part import (
    Readings,
    Row,
    Source,
    count,
    day,
    given,
    header_of,
    positive,
    rows_of,
    tokens,
)
from planner.measurements.readers.ways import chips_of, ways_of
from planner.text.errors import InputError

__all__ = ["read_runs", "run", "runs"]

# Where a table does not give the cache's format: what engines keep by default, and at the least.
USUAL_CACHE, NARROWEST_CACHE = "bf16", "fp8"
# What the published scripts draft: num_nextn_predict_layers, speculative-num-steps.
DRAFTS, DRAFTS_OF_COPIES = 3, 1
QUANTITIES = (("tpot", "tpot_ms"), ("ttft", "ttft_ms"))
# A table needs the first, and one of the times; others may be missing, as if all were blank.
NEEDED = ("model_path", "system", "backend", "isl", "osl", "concurrency", "tp_size")
OTHERS = (
    "backend_version",
    "precision",
    "mode",
    "gemm_quant_mode",
    "moe_quant_mode",
    "batch_size",
    "measured_on",
    "wip",
    "image",
)
LARGEST_DOMAIN = 8


def runs(path: Source) -> Readings:
    """TPOT and TTFT of every run, ids by line number; repeats are marked, not left out."""
    table = _table(path)
    fullest = fullest_of(table)
    told = speculated_in(table, fullest)
    found: list[Measurement] = []
    refused: list[NotComputed] = []
    for i, said in enumerate(fullest):
        repeats = "" if said == i else str(said + 2)
        try:
            each = _measured(table[said], str(i + 2), repeats, refused)
            found += [_speculating(one, told.get(i), table[said]) for one in each]
        except Refused as why:
            refused.append(NotComputed(str(i + 2), str(why)))
    return Readings("serving runs", tuple(found), tuple(refused), len(table))


def read_runs(path: Source) -> tuple[list[Measurement], list[NotComputed]]:
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


def _speculating(one: Measurement, told: bool | None, row: Row) -> Measurement:
    """The row with what is known of its drafts, by its sweep where no row beside it tells."""
    known, drafts = told is not None, bool(told)
    if one.speculated is None and not known:
        drafts = drafting(row["backend"], row["backend_version"], one.as_of, pooled=one.pooled)
        known = drafts and not one.pooled
    number = (DRAFTS if (one.layout or {})["dp_attention"] == 1 else DRAFTS_OF_COPIES) * drafts
    if drafts and not known:
        # More than half of the published definitions of such sweeps draft; the row does not say.
        said = "; ".join(filter(None, (one.assumed, "that tokens are drafted")))
        return replace(one, drafts=number, assumed=said)
    return replace(one, drafts=number, speculated=drafts) if known else one


def _table(path: Source) -> list[Row]:
    """Lines with every column that is read; raises InputError if one that is needed is missing."""
    names = header_of(path)
    missing = [name for name in NEEDED if name not in names]
    if not {column for _, column in QUANTITIES} & set(names):
        missing.append("tpot_ms or ttft_ms")
    if missing:
        raise InputError(f"{path}: missing columns {', '.join(missing)}")
    blank = dict.fromkeys((*OTHERS, *(column for _, column in QUANTITIES)), "")
    return [{**blank, **row} for row in rows_of(path)]


def _measured(row: Row, line: str, repeats: str, refused: list[NotComputed]) -> list[Measurement]:
    """The row's measurements; a value that is no time goes to `refused`."""
    chip = chip_of(row["system"])
    name = row["model_path"]
    weights = _checkpoint(row)
    base = base_of(model_of(name).name)
    prompt, output = tokens(row, "isl"), tokens(row, "osl")
    told = settings_of(
        row["backend"],
        base,
        chip,
        weights or USUAL_CACHE,
        prompt,
        output,
        given(row, "concurrency") or 0.0,
        count(row, "tp_size", 1),
        count(row, "attention_dp_size", 1),
        day(row, "measured_on"),
    )
    sizes = sizes_on(chip, name, weights, told.cache or USUAL_CACHE)
    prompt, output = told.length * prompt, told.length * output
    common: dict[str, Any] = {
        "id": line,
        "source": "serving runs",
        "engine": f"{row['backend']}-2026",
        "model": base,
        "sizes": sizes,
        "chip": chip,
        "machine": machine_of(chip.name),
        "prompt": prompt,
        "output": max(output, 2.0),
        "context": prompt + output / 2,
        "quality": "wip" if row.get("wip") == "True" else "run",
        "precision": weights or "own",
        "version": row["backend_version"],
        "looped": True,
        "leanest": sizes_on(chip, name, weights, NARROWEST_CACHE),
        "speculated": None if sizes.mtp_blocks and name != PLAIN else False,
        "repeats": repeats,
        "as_of": row["measured_on"],
        "even": told.even,
        "poll": told.poll,
        "hold": told.hold,
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
