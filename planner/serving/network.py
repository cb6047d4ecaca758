"""The network of a system, and the rates of every group size, looked up before the search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.catalogue.systems import System
from planner.errors import FieldError
from topologies import Machine, TopologyError, machine
from topologies.groups import RateTable, rate_table

__all__ = ["GroupRates", "Network", "between", "machine_of", "network"]

UNUSED = 1.0  # byte/s of a network that nothing is sent through


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


def machine_of(system: System, most: int, *, lecture: bool) -> Machine:
    """The network of a system; what the user varied in the system is varied in it.

    `most` is the largest number of chips paid for; the lecture sends nothing between them.

    Raises
    ------
    FieldError
        If the chips must talk and nothing says how fast, or no such network exists.
    """
    if system.topology is None:
        if system.scale_up is None and most > 1 and not lecture:
            told = f"{most} chips exchange activations; give scale_up, such as 450 GB/s one way"
            raise FieldError(("system", told))
        domain = system.chips_per_domain or most
        return Machine.from_figures(
            system.name, domain, system.scale_up or UNUSED, system.scale_out
        )
    rates: dict[str, Any] = {
        key: getattr(system, key) for key in ("scale_up", "scale_out") if key in system.varied
    }
    try:
        known = machine(system.topology)
        if "chips_per_domain" in system.varied and known.kind == "torus":
            known = machine(system.topology, system.chips_per_domain)
        elif "chips_per_domain" in system.varied:
            rates["chips_per_domain"] = system.chips_per_domain
        return replace(known, **rates)
    except TopologyError as error:
        raise FieldError(("system", " ".join(str(error).split()))) from error


def between(first: Machine, second: Machine, most: int, *, together: bool) -> tuple[float, float]:
    """Rate of one chip from one pool to the other [byte/s], and the latency of that way [s].

    Pools of one system that fit into one domain talk inside it, all others through their cards.

    Raises
    ------
    FieldError
        If nothing says how fast those cards are.
    """
    if together and most <= first.chips_per_domain:
        return first.links[0], 2 * first.scale_up_latency
    rates = [machine.scale_out for machine in (first, second)]
    for machine_, rate in zip((first, second), rates, strict=True):
        if rate is None:
            told = (
                f"two pools on {machine_.name} move caches through its network cards, whose rate "
                "is not known; give scale_out, such as 50 GB/s, or choose mode: aggregated"
            )
            raise FieldError(("system", told))
    known = [rate for rate in rates if rate is not None]
    return min(known), 2 * max(first.scale_out_latency, second.scale_out_latency)
