"""No published measurement is faster than the bound of its fabric allows.

Bus bandwidths are compared with the bound of the plain algorithm. Only an all-reduce whose
switches add may be faster, and then not faster than the bound of that.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache
from math import comb

from tests.loops import for_all
from tests.paths import SHARED, shared
from topologies import graph, group_rate, hierarchy, machine, switch
from topologies.fabric.fabric import Fabric, accelerators
from topologies.rates.concurrent_collectives import ALGORITHM_PLAIN, IN_NETWORK, all_reduce_bounds
from topologies.rates.cut import all_gather_rate, reduce_scatter_rate

FILE = SHARED / "collectives.csv"
GB = 1e9

MACHINES = {
    "A100-SXM": "hgx-a100",
    "H100-SXM": "hgx-h100",
    "H200-SXM": "hgx-h200",
    "B200-SXM": "hgx-b200",
    "B300-SXM": "hgx-b300",
    "H20": "hgx-h20",
    "MI300X": "mi300x-8",
    "GB200": "gb200-nvl72",
    "GB300": "gb300-nvl72",
    "H800 + CX7 400G": "hgx-h800",
    "H-series (SM90) + CX7": "hgx-h100",
    "Blackwell (SM100)": "hgx-b200",
    "Blackwell (SM100) + CX7": "hgx-b200",
}
Row = dict[str, str]


def rows() -> list[Row]:
    if not FILE.exists():
        return []
    with FILE.open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["kind"] == "measured"]


@cache
def built(system: str, accelerator: str, ranks: int) -> tuple[Fabric, tuple[object, ...]]:
    """The fabric of a measurement and its members."""
    if "across racks" in system:
        # Islands of four over cards of 400 Gbit/s, one for each chip.
        inside = switch(4, up=900e9, latency=5e-7, in_network_reduce=True)
        G = hierarchy(inside, ranks // 4, out=50e9, latency=2.5e-6)
        return G, tuple(accelerators(G))
    what = machine(MACHINES[accelerator])
    size = what.chips_per_domain
    G = graph(what, max(size, ranks))
    return G, tuple(accelerators(G)[:ranks])


def busiest(some: list[Row]) -> float:
    """The highest bus bandwidth among rows of one kind; from the times where none is stated."""
    factor = {"all_reduce": 2.0}.get(some[0]["operation"], 1.0)
    n = int(some[0]["ranks"])
    found = [float(row["busbw_GBps"]) * GB for row in some if row["busbw_GBps"]]
    for row in some:
        if not row["busbw_GBps"] and row["size_bytes"] and row["time_us"]:
            took = float(row["time_us"]) * 1e-6
            found.append(factor * (n - 1) / n * float(row["size_bytes"]) / took)
    return max(found)


def grouped(operations: set[str]) -> list[tuple[tuple[str, str, int, str], list[Row]]]:
    kinds: dict[tuple[str, str, int, str], list[Row]] = defaultdict(list)
    for row in rows():
        if row["operation"] in operations:
            system, accelerator, operation = row["system"], row["accelerator"], row["operation"]
            kinds[system, accelerator, int(row["ranks"]), operation].append(row)
    return list(kinds.items())


def named(kind: tuple[str, str, int, str]) -> str:
    return " ".join(map(str, kind))


def needs_rows() -> None:
    shared(FILE.name)


def test_every_row_has_its_test() -> None:
    """No measured operation is left out."""
    needs_rows()
    tested = {"all_gather", "reduce_scatter", "all_reduce", "alltoall", "p2p"}
    assert {row["operation"] for row in rows()} <= tested | {"moe_dispatch", "moe_combine"}


GATHERS = grouped({"all_gather", "reduce_scatter"})


@for_all(("kind", "some"), GATHERS, ids=[named(kind) for kind, _ in GATHERS])
def test_gathers_and_scatters(kind: tuple[str, str, int, str], some: list[Row]) -> None:
    """Below the narrowest cut."""
    G, members = built(*kind[:3])
    rate = all_gather_rate if kind[3] == "all_gather" else reduce_scatter_rate
    assert busiest(some) <= rate(G, members).bus_bandwidth


REDUCTIONS = grouped({"all_reduce"})
# Faster than any algorithm without switches that add: NVLS, chosen by NCCL or by the kernel.
IN_NETWORK_ONLY = {
    ("Azure ND H100_v5", 8),
    ("8-GPU node", 7),
    ("8-GPU node", 8),
    ("custom one-shot/two-shot all-reduce", 8),
}


@for_all(("kind", "some"), REDUCTIONS, ids=[named(kind) for kind, _ in REDUCTIONS])
def test_all_reduces(kind: tuple[str, str, int, str], some: list[Row]) -> None:
    """Below the plain bound, or, with NVLS alone, below the bound of switches that add."""
    G, members = built(*kind[:3])
    bounds = {bound.algorithm: bound.bus_bandwidth for bound in all_reduce_bounds(G, members)}
    reached = busiest(some)
    if reached > bounds[ALGORITHM_PLAIN]:
        assert (kind[0], kind[2]) in IN_NETWORK_ONLY
        assert reached <= bounds[IN_NETWORK]


def test_rings_stay_below_the_plain_bound() -> None:
    """With NVLS turned off no all-reduce is faster than the links."""
    needs_rows()
    off = [row for row in rows() if "NVLS_ENABLE=0" in row["note"]]
    assert off
    for row in off:
        G, members = built(row["system"], row["accelerator"], int(row["ranks"]))
        plain, *_ = all_reduce_bounds(G, members)
        assert busiest([row]) <= plain.bus_bandwidth


EXCHANGES = grouped({"alltoall"})


@for_all(("kind", "some"), EXCHANGES, ids=[named(kind) for kind, _ in EXCHANGES])
def test_exchanges(kind: tuple[str, str, int, str], some: list[Row]) -> None:
    """Below what each chip can send to all others at once."""
    what = machine(MACHINES[kind[1]])
    assert busiest(some) <= group_rate(what, kind[2]).all_to_all


def test_copies_between_two() -> None:
    """Below the link of one chip."""
    needs_rows()
    for row in rows():
        if row["operation"] == "p2p":
            send = group_rate(machine(MACHINES[row["accelerator"]]), 2).send
            assert busiest([row]) <= send


EXPERTS = grouped({"moe_dispatch", "moe_combine"})
TOP, OF = 8, 256


def copies(parts: int) -> float:
    """Parts of a machine, of equally many experts, in which a token's experts are expected."""
    return parts * (1 - comb(OF - OF // parts, TOP) / comb(OF, TOP))


@for_all(("kind", "some"), EXPERTS, ids=[named(kind) for kind, _ in EXPERTS])
def test_experts(kind: tuple[str, str, int, str], some: list[Row]) -> None:
    """Below what the cards or the scale-up links pass, of the bytes that take that way.

    DeepEP counts a copy for the sender's own chip or node too, of which nothing is on the wire:
    of m equal parts that leaves (m - 1)/m. Low-latency kernels send each copy by itself,
    normal ones one for each node; rows of NVL72 count eight copies where fewer are sent.
    """
    system, accelerator, ranks, _ = kind
    what = machine(MACHINES[accelerator])
    domains = max(1, ranks // what.chips_per_domain)
    rate = group_rate(what, ranks)
    for row in some:
        if "TwoSided" in system:
            sent = float(row["algbw_GBps"]) * GB * copies(ranks) / TOP * (ranks - 1) / ranks
            assert sent <= rate.all_to_all
        elif domains == 1 or "low-latency" in system:
            assert busiest([row]) * (ranks - 1) / ranks <= rate.all_to_all
        else:
            assert what.scale_out is not None
            assert busiest([row]) * (domains - 1) / domains <= what.scale_out
