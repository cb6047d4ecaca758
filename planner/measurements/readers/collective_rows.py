"""Measured collectives as rows of one vocabulary; values missing in a row are not guessed."""

import math
import re
from collections.abc import Mapping

from formulas.network.expert_copies import distinct_nodes_equation
from planner.catalogue.collective_curves import collectives
from planner.measurements.measurement import CollectiveRow
from planner.text.tables import table

TABLES = table("planner.measurements", "collective_names.toml")
MACHINES: Mapping[str, str] = TABLES["machines"]
OTHER_MACHINES: Mapping[str, str] = TABLES["other_machines"]
FAMILIES: Mapping[str, str] = TABLES["families"]
REDUCE_FROM: Mapping[str, int] = TABLES["reduce_from"]
SWEEPS = ("one node", "one tray (4 of an NVL72)")
TOP_K, EXPERTS = 8, 256  # of the published dispatch and combine tables
MICRO = 1e-6
MIN_VALUES, MAX_VALUES = 1e-12, {"time": 1e6, "size": 1e15}  # s, byte
MAX_CHIPS = 1_000_000
NODE = 8  # chips of the nodes in the table of exchanges
KIBI = 1024  # messages of its all-reduces are counted in these
SCALE_BLOCK = 128  # values of fp8 that share a scale of four bytes in a dispatch


def collective_row(cells: Mapping[str, str]) -> CollectiveRow | str:
    """The row of one line of the table of collectives, or why it cannot be used."""
    try:
        row = _collective(cells)
    except KeyError as error:
        return f"{error.args[0]} is not given"
    except (ValueError, OverflowError) as error:
        return f"not a number: {error}"
    return row if isinstance(row, str) else _sound(row)


def exchange_row(cells: Mapping[str, str]) -> CollectiveRow | str:
    """The row of one line of the table of exchanges, or why it cannot be used."""
    chip = TABLES["exchange_chips"].get(cells["chip"])
    if not cells["latency_us"]:
        return "no latency"
    if cells.get("topology", "").startswith("in-situ"):
        return "timed inside an engine, waiting included: no bytes of one message"
    if chip is None:
        return f"no chip figures for {cells['chip']!r}"
    try:
        n, seconds = int(float(cells["ep"])), float(cells["latency_us"]) * MICRO
        size = _exchanged(cells)
    except (ValueError, OverflowError) as error:
        return f"not a number: {error}"
    if size is None:
        return "no size"
    fused = cells["op"].startswith("allreduce")
    if not fused and cells["op"] not in ("dispatch", "combine"):
        return f"unknown operation {cells['op']!r}"
    system = "DeepEP V1 low-latency" if cells["source"] == "deepep-v1" else cells["source"]
    what = (cells["op"], "deepep-low-latency")
    if fused:
        what, system = ("all-reduce", "fused"), "custom one-shot/two-shot all-reduce"
    nodes, url = max(1, -(-n // NODE)), cells.get("url", "")
    return _sound(CollectiveRow(chip, *what, n, nodes, size, seconds, system, False, url))


def is_fitted_row(row: CollectiveRow) -> bool:
    """True if the curves or the crossings of the profile were fitted to rows like this."""
    if row.system in TABLES["crossings"].values() and row.nodes > 1:
        return True
    return row.sweep and any(
        curve.n == row.n and curve.chip == row.chip and curve.evidence == "measured"
        for curve in collectives().of(row.chip, row.operation, row.algorithm)
    )


def _collective(raw: Mapping[str, str]) -> CollectiveRow | str:
    if raw["kind"] != "measured":
        return "not measured"
    if not raw["time_us"]:
        return "no time"
    chip = TABLES["chips"].get(raw["accelerator"])
    operation = TABLES["operations"].get(raw["operation"])
    if chip is None or operation is None:
        return "chip or operation not known"
    seconds, n = float(raw["time_us"]) / 1e6, int(raw["ranks"])
    by_system: str | None = TABLES["by_system"].get(raw["system"])
    if by_system is not None:
        algorithm = by_system
    elif operation != "all-reduce":
        algorithm = str(TABLES["library"].get(operation, "library"))
    else:
        off = any(sign in raw["note"] for sign in ("NVLS_ENABLE=0", "NVLS off"))
        least = REDUCE_FROM.get(FAMILIES.get(chip, ""))
        algorithm = "ring" if off or least is None or n < least else "in-network"
    size = _size(raw, operation, algorithm, n, seconds)
    if size is None:
        return "no size"
    system = raw["system"]
    sweep = algorithm in ("fused", "nvlink-two-sided")
    sweep |= system in SWEEPS and "nccl-tests" in raw["note"]
    return CollectiveRow(
        chip, operation, algorithm, n, round(float(raw["nodes"])), size, seconds, system,
        sweep or "in one node (NVLink)" in system, raw["source"],
    )  # fmt: skip


def _sound(row: CollectiveRow) -> CollectiveRow | str:
    for name, value in (("time", row.seconds), ("size", row.size)):
        if not (math.isfinite(value) and value > 0):
            return f"the {name} is {value:g}, not a positive number"
        if not MIN_VALUES <= value <= MAX_VALUES[name]:
            return f"the {name} is beyond any measurement: {value:g}"
    if max(row.n, row.nodes) > MAX_CHIPS:
        return f"the group is beyond any machine: {max(row.n, row.nodes):g}"
    return row if row.n > 1 else f"a group of {row.n}"


def _exchanged(cells: Mapping[str, str]) -> float | None:
    """Bytes sent by a chip, counted as in the table of collectives [byte]; None if unknown."""
    if cells["op"].startswith("allreduce"):
        message_size = re.match(r"(\d+) KB", cells.get("notes", ""))
        return float(message_size[1]) * KIBI if message_size else None
    if not cells["tokens_per_gpu"] or not cells["hidden"] or not cells["topk"]:
        return None
    hidden = float(cells["hidden"])
    copies = float(cells["tokens_per_gpu"]) * float(cells["topk"])
    per_token = {"fp8": hidden + 4 * hidden / SCALE_BLOCK, "bf16": 2 * hidden}.get(cells["dtype"])
    return None if per_token is None else copies * per_token


def _size(
    raw: Mapping[str, str], operation: str, algorithm: str, n: int, seconds: float
) -> float | None:
    if raw["size_bytes"]:
        size = float(raw["size_bytes"])
    elif operation in ("dispatch", "combine") and raw["busbw_GBps"]:
        size = float(raw["busbw_GBps"]) * 1e9 * seconds
    else:
        return None
    if algorithm == "nvlink-two-sided":  # one copy for each chip, not for each expert
        copies = distinct_nodes_equation(TOP_K).numpy()(n_experts=EXPERTS, m_group=n)
        size *= float(copies) / TOP_K
    return size
