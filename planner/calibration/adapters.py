"""Published tables of measurements in, typed rows out; every row comes back, computed or with why.

Two column sets are read: steady batches with phases apart, and runs of whole engines at a
concurrency. Rates become times here, so that one comparison serves all rows.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path

from planner.calibration.measurements import (
    ONE,
    Measurement,
    NotComputed,
    Refused,
    aliases,
    chip_of,
    layout_of,
    sizes_of,
)

__all__ = ["read_runs", "read_steady", "run", "steady"]

Row = Mapping[str, str]

UNKNOWN = ("", "?")
# Where a table does not give the cache's format: what engines keep by default, and at the least.
USUAL_CACHE, NARROWEST_CACHE = "bf16", "fp8"
QUANTITY = {"decode": "step", "prefill": "ttft", "mixed": "e2e"}
TIMES = {"step_ms": "step", "ttft_ms": "ttft", "e2e_ms": "e2e"}
# One domain of these machines holds eight chips or fewer; larger numbers count other pools too.
LARGEST_POOL = 8


def read_steady(path: Path) -> tuple[list[Measurement], list[NotComputed]]:
    """Rows of a table of steady batches, and those without a prediction."""
    found: list[Measurement] = []
    refused: list[NotComputed] = []
    for row in _rows(path):
        try:
            found.append(steady(row))
        except Refused as why:
            refused.append(NotComputed(row["id"], str(why)))
    return found, refused


def read_runs(path: Path) -> tuple[list[Measurement], list[NotComputed]]:
    """TPOT and TTFT of every distinct run, and runs without a prediction, ids by line number."""
    found: list[Measurement] = []
    refused: list[NotComputed] = []
    seen: set[tuple[str, ...]] = set()
    for line, row in enumerate(_rows(path), start=2):
        key = tuple(
            value for name, value in row.items() if name not in ("measured_on", "image", "wip")
        )
        if key in seen:
            refused.append(NotComputed(str(line), "repeats another row"))
            continue
        seen.add(key)
        try:
            found += run(row, str(line))
        except Refused as why:
            refused.append(NotComputed(str(line), str(why)))
    return found, refused


def steady(row: Row) -> Measurement:
    """One row of the steady-batch columns.

    Raises
    ------
    Refused
        If a name has no entry in the catalogue, or the batch is not known.
    """
    chip = chip_of(row["chip"])
    weights, cache = row["weight_dtype"], row["kv_dtype"]
    weights = _format(weights)
    said = cache not in UNKNOWN
    kv = _format(cache) if said else USUAL_CACHE
    if weights == "nvfp4" and not chip.computes("nvfp4"):
        raise Refused(f"{chip.name} has no fp4 arithmetic")
    sizes = sizes_of(row["model"], weights, kv)
    chips = int(_number(row, "n_chips"))
    prompt, output, context = _lengths(row)
    batch = _batch(row, prompt)
    if row["phase"] == "prefill" and not row["batch"] and sizes.max_context:
        batch, prompt = max(1.0, prompt / sizes.max_context), min(prompt, sizes.max_context)
    quantity = TIMES.get(row["metric"], QUANTITY[row["phase"]])
    drafts = re.search(r"MTP(\d)", row["notes"])
    return Measurement(
        id=row["id"],
        source=row["source"],
        engine=aliases()["engines"].get(row["source"], row["source"]),
        model=aliases()["models"].get(row["model"], row["model"]),
        sizes=sizes,
        chip=chip,
        machine=aliases()["machines"].get(chip.name),
        chips=chips,
        layout=layout_of(row["layout"], chips, sizes.n_experts),
        batch=batch,
        prompt=prompt,
        output=output,
        context=context,
        quantity=quantity,
        seconds=_seconds(row, batch, prompt, output, chips, sizes.n_total, chip.peak("bf16")),
        quality=row["quality"],
        drafts=int(drafts[1]) if drafts else 0,
        precision=weights,
        leanest=None if said else sizes_of(row["model"], weights, NARROWEST_CACHE),
    )


def run(row: Row, line: str) -> list[Measurement]:
    """TPOT and TTFT of one run of one pool.

    Raises
    ------
    Refused
        If the run is disaggregated, or its columns do not say which layout ran.
    """
    if row["mode"] != "agg":
        raise Refused("disaggregated: the number of workers is not given")
    chip = chip_of(row["system"])
    name = row["model_path"].split("/")[-1]
    weights = _checkpoint(row, name)
    kv = "fp8" if row["backend"] == "trtllm" and weights != "bf16" else USUAL_CACHE
    sizes = sizes_of(name, weights, kv)
    layout = _pool(row, sizes.n_experts)
    prompt, output = _number(row, "isl"), _number(row, "osl")
    common = {
        "id": line,
        "source": "serving runs",
        "engine": f"{row['backend']}-2026",
        "model": aliases()["models"].get(name, name),
        "sizes": sizes,
        "chip": chip,
        "machine": aliases()["machines"].get(chip.name),
        "chips": layout["tp"] * layout["dp_attention"],
        "layout": layout,
        "batch": _number(row, "concurrency"),
        "prompt": prompt,
        "output": output,
        "context": prompt + output / 2,
        "quality": "wip" if row["wip"] == "True" else "run",
        "precision": weights or "own",
        "version": row["backend_version"],
        "looped": True,
        "leanest": sizes_of(name, weights, NARROWEST_CACHE),
    }
    return [
        Measurement(**common, quantity=quantity, seconds=_number(row, column) / 1e3)
        for quantity, column in (("tpot", "tpot_ms"), ("ttft", "ttft_ms"))
    ]


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(row: Row, name: str) -> float:
    if not row[name]:
        raise Refused(f"{name} is not given")
    return float(row[name])


def _format(name: str) -> str:
    known: Mapping[str, str] = aliases()["formats"]
    if name not in known:
        raise Refused(f"unknown number format {name!r}")
    return known[name]


def _lengths(row: Row) -> tuple[float, float, float]:
    """Prompt, output and mean context [token]: decode rows give the context, others the prompt."""
    length, output = _number(row, "context_or_isl"), float(row["osl"] or 0.0)
    if row["phase"] == "decode":
        return max(length - output / 2, 1.0), max(output, 2.0), length
    return length, max(output, 2.0), length + output / 2


def _batch(row: Row, prompt: float) -> float:
    if row["batch"]:
        return float(row["batch"])
    # Prefill efficiency is published against the tokens of the whole batch.
    if row["phase"] == "prefill" and row["metric"] == "mfu":
        return 1.0
    raise Refused("batch is not given")


def _seconds(
    row: Row, batch: float, prompt: float, output: float, chips: int, params: int, peak: float
) -> float:
    """The row's value as a time [s]; a rate or an efficiency is turned round."""
    value = _number(row, "value")
    if row["metric"] in TIMES:
        return value / 1e3
    tokens = {"decode": batch, "prefill": batch * prompt, "mixed": batch * (prompt + output)}
    work = tokens[row["phase"]]
    if row["metric"] == "tok_s_total":
        return work / value
    if row["metric"] == "tok_s_per_gpu":
        return work / (value * chips)
    if row["metric"] == "mfu":
        return 2 * params * work / (chips * peak * value)
    raise Refused(f"unknown metric {row['metric']!r}")


def _checkpoint(row: Row, name: str) -> str | None:
    """The format of the weights, or None where the checkpoint's own is meant."""
    told = row["moe_quant_mode"] or row["gemm_quant_mode"] or row["precision"]
    if name == "gpt-oss-120b":
        return None  # published in MXFP4 only
    if not told:
        return None
    return _format(told)


def _pool(row: Row, experts: int) -> dict[str, int]:
    """Ways of the pool: the columns hold either ways or products of two of them."""
    tp = int(_number(row, "tp_size"))
    dp = max(int(float(row["attention_dp_size"] or 1)), 1)
    ep = max(int(float(row["moe_ep_size"] or 1)), 1)
    side = math.isqrt(tp * dp)
    if experts and side * side == tp * dp and int(float(row["moe_tp_size"] or 1)) == ep == side > 1:
        # Both columns repeat the size of the group, and attention holds their product.
        tp, dp, ep = (1, side, side) if dp > 1 else (side, 1, side)
    elif dp > 1 and tp == dp and ep == tp * dp:
        tp, ep = 1, dp
    if tp * dp > LARGEST_POOL:
        raise Refused("the ways of several pools are added up")
    if not experts:
        return {**ONE, "tp": tp}
    if tp * dp % ep:
        raise Refused(f"{ep} expert groups on {tp * dp} chips")
    return {**ONE, "tp": tp, "dp_attention": dp, "ep": ep, "tp_expert": tp * dp // ep}
