"""Measured collectives as rows of one vocabulary; what a row does not say is never guessed."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from formulas.network.collectives import (
    all_gather_traffic,
    all_reduce_traffic,
    all_to_all_traffic,
    in_network_traffic,
)
from formulas.network.expert_copies import distinct_nodes_of
from topologies import group_rate, machine

# The machine whose network joins chips of a kind, and the family whose habits a chip shares.
MACHINES = {
    "a100": "hgx-a100",
    "h100": "hgx-h100",
    "h200": "hgx-h200",
    "b200": "hgx-b200",
    "b300": "hgx-b300",
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
}
FAMILIES = {
    "a100": "ampere",
    "a100-40gb": "ampere",
    "h100": "hopper",
    "h200": "hopper",
    "h800": "hopper",
    "h20": "hopper",
    "b200": "blackwell",
    "b300": "blackwell",
    "gb200": "blackwell",
    "gb300": "blackwell",
}
# Group size from which all-reduce times of the default settings leave those without NVLS
# (ml-engineering, network notes: H200 from 5 chips, B200 from 6).
REDUCE_FROM = {"hopper": 5, "blackwell": 6}

CHIPS = {
    "A100-SXM": "a100",
    "H100-SXM": "h100",
    "H200-SXM": "h200",
    "H800 + CX7 400G": "h800",
    "H20": "h20",
    "B200-SXM": "b200",
    "B300-SXM": "b300",
    "GB200": "gb200",
    "GB300": "gb300",
    "MI300X": "mi300x",
}
OPERATIONS = {
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_reduce": "all-reduce",
    "alltoall": "all-to-all",
    "moe_dispatch": "dispatch",
    "moe_combine": "combine",
    "p2p": "p2p",
}
LIBRARY = {"all-gather": "ring", "reduce-scatter": "ring", "all-to-all": "pairwise"}
BY_SYSTEM = {
    "custom one-shot/two-shot all-reduce": "fused",
    "GB200 NVL72 NVLinkTwoSided": "nvlink-two-sided",
    "DeepEP low-latency in one node (NVLink)": "deepep-low-latency",
    "DeepEP V1 low-latency": "deepep-low-latency",
    "DeepEP first release low-latency": "deepep-low-latency",
}
SWEEPS = ("one node", "one tray (4 of an NVL72)")
TRAFFIC = {
    "all-reduce": all_reduce_traffic,
    "all-gather": all_gather_traffic,
    "reduce-scatter": all_gather_traffic,
}
TOP_K, EXPERTS = 8, 256  # of the published dispatch and combine tables


@dataclass(frozen=True)
class Row:
    """One measured time.

    `size` counts as nccl-tests does; of dispatch and combine it is what a chip would send if its
    own group were like the others [byte]. `sweep` marks the sweeps that profiles are fitted on.
    """

    chip: str
    operation: str
    algorithm: str
    n: int
    nodes: int
    size: float
    seconds: float
    system: str
    sweep: bool
    source: str


def read_collectives(path: Path) -> tuple[list[Row], Mapping[str, int]]:
    """Rows that state a time and a size, and how many others there are, by reason."""
    rows, reasons = [], Counter[str]()
    with path.open(encoding="utf-8", newline="") as file:
        for raw in csv.DictReader(file):
            made = row_of(raw)
            if isinstance(made, str):
                reasons[made] += 1
            else:
                rows.append(made)
    return rows, dict(sorted(reasons.items()))


def row_of(raw: Mapping[str, str]) -> Row | str:
    """The row of one line of the table, or why it says too little."""
    if raw["kind"] != "measured":
        return "not measured"
    if not raw["time_us"]:
        return "no time"
    chip, operation = CHIPS.get(raw["accelerator"]), OPERATIONS.get(raw["operation"])
    if chip is None or operation is None:
        return "chip or operation not known"
    seconds, n = float(raw["time_us"]) / 1e6, int(raw["ranks"])
    algorithm = _algorithm(raw, chip, operation, n)
    size = _size(raw, operation, algorithm, n, seconds)
    if size is None:
        return "no size"
    system = raw["system"]
    sweep = (system in SWEEPS and "nccl-tests" in raw["note"]) or algorithm in (
        "fused",
        "nvlink-two-sided",
    )
    return Row(
        chip, operation, algorithm, n, round(float(raw["nodes"])), size, seconds, system,
        sweep or "in one node (NVLink)" in system, raw["source"],
    )  # fmt: skip


def _algorithm(raw: Mapping[str, str], chip: str, operation: str, n: int) -> str:
    if raw["system"] in BY_SYSTEM:
        return BY_SYSTEM[raw["system"]]
    if operation != "all-reduce":
        return LIBRARY.get(operation, "library")
    off = any(sign in raw["note"] for sign in ("NVLS_ENABLE=0", "NVLS off"))
    least = REDUCE_FROM.get(FAMILIES.get(chip, ""))
    return "ring" if off or least is None or n < least else "in-network"


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
        copies = distinct_nodes_of(TOP_K).numpy()(n_experts=EXPERTS, m_group=n)
        size *= float(copies) / TOP_K
    return size


def rate_of(chip: str, operation: str, n: int) -> float:
    """Rate of one chip in a group of its usual machine [byte/s]."""
    rate = group_rate(machine(MACHINES[chip]), n)
    exchange = operation in ("all-to-all", "dispatch", "combine")
    return rate.all_to_all if exchange else rate.all_gather


def reduces(family: str, algorithm: str, n: int) -> bool:
    """Whether the switch adds up what an all-reduce sends; fused kernels let it do long ones."""
    if algorithm == "fused":
        return n >= REDUCE_FROM.get(family, n + 1)
    return algorithm == "in-network"


def traffic_of(operation: str, algorithm: str, n: int, *, family: str = "") -> float:
    """Bytes on the wire per byte in a group of `n` chips."""
    if reduces(family, algorithm, n):
        return float(in_network_traffic.rhs)
    return float(TRAFFIC.get(operation, all_to_all_traffic).numpy()(n_group=n))
