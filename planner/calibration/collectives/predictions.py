"""What the profile says of measured rows: bound, estimate and band, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.measurements.readers.collective_rows import FAMILIES, MACHINES, Row
from planner.network import collective_time, group_of
from topologies import Machine, TopologyError, machine

OTHERS = {"h800": "hgx-h800", "h20": "hgx-h20", "mi300x": "mi300x-8"}
ISLANDS = "across racks (IB only)"  # of as many chips as a node has
CARDS_ONLY = "DeepEP first release low-latency"  # pure RDMA, inside a node too
EFA = "EFA"


@dataclass(frozen=True)
class CollectivePrediction:
    """Times of one row [s]; `reason` says why there are none, and is empty where there are."""

    bound: float | None
    estimate: float | None
    low: float | None
    high: float | None
    reason: str


def predictions(rows: Sequence[Row]) -> list[CollectivePrediction]:
    """A prediction for every row, in order."""
    return [_prediction(row) for row in rows]


def _prediction(row: Row) -> CollectivePrediction:
    if row.operation == "p2p":
        return CollectivePrediction(None, None, None, None, "one copy, not a collective")
    try:
        group = group_of(_machine(row), row.n, row.chip if row.chip in FAMILIES else None)
    except TopologyError as error:
        return CollectivePrediction(None, None, None, None, " ".join(str(error).split()))
    network = "efa" if EFA in row.system else "infiniband"
    name = row.algorithm
    if row.operation == "all-reduce" and name == "in-network":
        name = "library"
    timed = collective_time(group, row.operation, row.size, algorithm=name, network=network)
    return CollectivePrediction(
        float(timed.bound), float(timed.seconds), float(timed.low), float(timed.high), ""
    )


def _machine(row: Row) -> Machine:
    """The machine of a row, with the scale-up domains that the row used."""
    whole = machine({**MACHINES, **OTHERS}[row.chip])
    if row.system.endswith(ISLANDS):
        return replace(whole, chips_per_domain=row.n // row.nodes)
    if row.system == CARDS_ONLY:
        return replace(whole, chips_per_domain=1)
    return whole
