"""Rates of every group size a layout may ask for, looked up once before the search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topologies.groups import RateTable, rate_table
from topologies.machines import Machine

__all__ = ["GroupRates", "Network", "network"]


@dataclass(frozen=True)
class GroupRates:
    """Rates per chip, one way [byte/s], and latencies [s], of the sizes asked for, shape (n,)."""

    all_to_all: np.ndarray
    all_gather: np.ndarray
    send: np.ndarray
    latency: np.ndarray
    extra_latency: np.ndarray  # beyond a step inside one domain


@dataclass(frozen=True)
class Network:
    """The rate table of one machine, by group size."""

    table: RateTable
    step_inside: float  # latency of a step between two chips of one domain [s]

    def rows(self, sizes: np.ndarray) -> GroupRates:
        """Rates of each group size; every size must be in the table."""
        at = np.searchsorted(self.table.n, sizes)
        inside = self.step_inside
        latency = self.table.step_latency[at]
        return GroupRates(
            all_to_all=self.table.all_to_all[at],
            all_gather=self.table.all_gather[at],
            send=self.table.send[at],
            latency=latency,
            extra_latency=np.maximum(latency - inside, 0.0),
        )


def network(machine: Machine, sizes: np.ndarray) -> Network:
    """The network of a machine for these group sizes.

    Raises
    ------
    TopologyError
        If a group leaves its domain on a machine whose scale-out rate is not known.
    """
    pair = min(2, machine.chips_per_domain)
    wanted = np.unique(np.concatenate([np.array([1, pair]), sizes]))
    table = rate_table(machine, wanted.tolist())
    return Network(table, float(table.step_latency[np.searchsorted(table.n, pair)]))
