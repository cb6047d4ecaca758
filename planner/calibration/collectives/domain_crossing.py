"""What it adds to leave a scale-up domain: latency of a step, efficiency, mid-range delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2

import numpy as np

from planner.calibration.collectives.pooling import DELAY, envelope
from planner.catalogue.collective_curves import ANY, Between
from planner.measurements.readers.collective_rows import Row, traffic_of
from planner.network.coefficients import fit_triple
from topologies import Machine, group_rate, machine

EFA = "AWS P6-B200 (EFAv4 50 GB/s/GPU)"
FLOOR = "2x8 H20, IB NDR, NVLSTree"
ISLANDS = "GB200 across racks (IB only)"
DEEP_EP = "DeepEP V1 low-latency"
# DeepEP's normal kernels at 16 chips reach 43 of 50 GB/s in both directions, where what stays in
# the node is not counted with what leaves it (docs/legacy.md at dd758ca).
NORMAL = 0.86
# Send and receive from end to end, connections set up: 10 us by NVLink and 20 us by a network card
# in the defaults of aiconfigurator and Calculon; the rest is what long copies reach of their link.
HOPS = (
    Between("scale-up", "p2p", ANY, 10e-6, 0.75, 0.0),
    Between("infiniband", "p2p", ANY, 20e-6, 0.92, 0.0),
    Between("efa", "p2p", ANY, 20e-6, 0.92, 0.0),
    Between("tcp", "p2p", ANY, 100e-6, 1.0, 0.0),
)


def crossings(rows: Sequence[Row], inner: dict[str, float]) -> list[Between]:
    """What each network adds.

    Parameters
    ----------
    rows : measured times, those between domains among them.
    inner : floor of an all-reduce inside one full domain of a family. [s]
    """
    by_system: dict[str, list[Row]] = {}
    for row in rows:
        by_system.setdefault(row.system, []).append(row)
    made = [
        _sweep(by_system.get(EFA, []), "efa", inner["blackwell"]),
        _infiniband(by_system.get(FLOOR, []), by_system.get(ISLANDS, []), inner["hopper"]),
        *_exchanges(by_system.get(DEEP_EP, [])),
    ]
    return [*filter(None, made), *HOPS]


def _sweep(rows: Sequence[Row], network: str, inner: float) -> Between | None:
    """From all-reduces of many sizes over several nodes."""
    rows = sorted((r for r in rows if r.nodes > 1), key=lambda r: r.size)
    if not rows:
        return None
    sizes = np.array([row.size for row in rows])
    rate = group_rate(machine("hgx-b200"), rows[0].n).all_gather
    traffic = traffic_of("all-reduce", "ring", rows[0].n)
    triple = fit_triple(
        sizes, traffic * sizes / rate, envelope(np.array([row.seconds for row in rows]))
    )
    steps = 2 * log2(rows[0].nodes)
    step = (triple.alpha - inner) / steps
    return Between(network, ANY, ANY, step, triple.efficiency, triple.gamma**2 * rate / traffic)


def _infiniband(floors: Sequence[Row], longs: Sequence[Row], inner: float) -> Between | None:
    """From the floor over two nodes and from the best long message over islands."""
    if not floors or not longs:
        return None
    step = (min(row.seconds for row in floors) - inner) / (2 * log2(floors[0].nodes))
    best = min(longs, key=lambda row: row.seconds)
    island = replace(machine("gb200-nvl72"), chips_per_domain=best.n // best.nodes)
    bound = traffic_of("all-reduce", "ring", best.n) * best.size / _rate(island, best.n)
    # A share of the bound; what the square-root term takes of a message this long is part of it.
    root = np.sqrt(bound * DELAY)
    return Between("infiniband", ANY, ANY, step, bound / (best.seconds - root), DELAY)


def _rate(island: Machine, n: int) -> float:
    return group_rate(island, n).all_gather


def _exchanges(rows: Sequence[Row]) -> list[Between]:
    """From dispatches and combines of one size over many nodes."""
    made = []
    for operation in ("dispatch", "combine"):
        over = [row for row in rows if row.operation == operation and row.nodes > 1]
        if not over:
            continue
        sizes = np.array([row.size for row in over])
        nodes = machine("hgx-h800")
        rates = np.array([group_rate(nodes, row.n).all_to_all for row in over])
        traffic = np.array([traffic_of(operation, row.algorithm, row.n) for row in over])
        seconds = np.array([row.seconds for row in over])
        triple = fit_triple(sizes, traffic * sizes / rates, seconds, root=False)
        floor, share = triple.alpha, triple.efficiency
        low = Between("infiniband", operation, "deepep-low-latency", floor, share, 0.0)
        made += [low, replace(low, algorithm="deepep-normal", efficiency=NORMAL)]
    return made
