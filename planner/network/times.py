"""How long one collective takes on groups of a network, beside the least that it could take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.network import collective_time, group_of
from planner.network.network_source import DescribedNetwork
from planner.text.errors import InputError
from topologies.fabric.limits import TopologyError


def timed(
    of: DescribedNetwork, operation: str, sizes: Sequence[int], messages: Sequence[float]
) -> list[dict[str, Any]]:
    """Seconds of an operation for each size of group and of message, base units.

    Parameters
    ----------
    operation : str
        `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `dispatch` or `combine`.
    messages : sequence of float
        What each chip holds, ends with, begins with or sends, its own part included. [byte]

    Raises
    ------
    InputError
        When there is no such operation or group.
    """
    rows = []
    for n in sizes:
        try:
            group = group_of(of.machine if of.machine is not None else of.fabric, n)
        except TopologyError as error:
            raise InputError(str(error)) from error
        times = collective_time(group, operation, list(messages))
        rows += [
            {
                "operation": operation,
                "chips": n,
                "domains": group.domains,
                "bytes": size,
                "seconds": float(times.seconds[i]),
                "low": float(times.low[i]),
                "high": float(times.high[i]),
                "bound": float(times.bound[i]),
                "algorithm": str(times.algorithm[i]),
                "reason": str(times.reason[i]),
            }
            for i, size in enumerate(messages)
        ]
    return rows
