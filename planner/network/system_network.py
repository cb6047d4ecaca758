"""The network of a system: of its topology, of its figures, or of a file; and between two pools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.catalogue.systems import System
from planner.text.errors import FieldError
from topologies import Machine, TopologyError, machine

if TYPE_CHECKING:
    from topologies.fabric.fabric import Fabric, Node

UNUSED = 1.0  # byte/s of a network that nothing is sent through


def fabric_of(file: Path, most: int) -> tuple[Fabric, Machine]:
    """The fabric of a topology file, and its figures as those of a machine.

    Domains that differ count as the largest of them; groups are rated where they fit. Raises
    FieldError with every mistake in the file, or if it has fewer chips than are paid for.
    """
    from topologies.fabric.fabric import SCALE_OUT, SCALE_UP, accelerators
    from topologies.groups.fabric_groups import grouped

    try:
        G = _fabric_written(file, file.stat().st_mtime_ns if file.exists() else 0)
    except TopologyError as error:
        raise FieldError(("system", " ".join(str(error).split()))) from error
    chips = accelerators(G)
    if len(chips) < most:
        message = f"{most} chips are asked for, but {file.name} wires {len(chips)}"
        raise FieldError(("chips", message))
    groups = grouped(G)
    rates = {tier: _leaving(G, tier, chips) for tier in (SCALE_UP, SCALE_OUT)}
    late = dict.fromkeys(rates, 0.0)
    for _, _, arc in G.edges(data=True):
        if arc["tier"] in late:
            late[arc["tier"]] = max(late[arc["tier"]], arc["latency"])
    joined = groups.joined
    machine_ = Machine.from_figures(
        str(G.graph.get("name") or file.name),
        groups.size,
        min(rates[SCALE_UP], default=UNUSED),
        # A chip without a card of its own reaches others through its neighbours' cards.
        min(rates[SCALE_OUT], default=UNUSED) if joined else None,
        scale_up_latency=late[SCALE_UP],
        scale_out_latency=late[SCALE_OUT],
    )
    return G, machine_


@lru_cache(maxsize=4)
def _fabric_written(file: Path, when: int) -> Fabric:
    """The fabric of a file as it was written at a time [ns]; every change of a question asks it."""
    from networkx import freeze

    from topologies import read

    return freeze(read(file))


def _leaving(G: Fabric, tier: str, chips: Iterable[Node]) -> list[float]:
    """Bandwidth out of each of the chips that have arcs of a tier [byte/s]."""
    rates = dict.fromkeys(chips, 0.0)
    for u, _, arc in G.edges(data=True):
        if arc["tier"] == tier and u in rates:
            rates[u] += arc["bandwidth"]
    return [rate for rate in rates.values() if rate > 0]


def machine_of(system: System, most: int, *, lecture: bool) -> Machine:
    """The network of a system; what the user varied in the system is varied in it.

    `most` is the largest number of chips paid for; the lecture sends nothing between them. Raises
    FieldError if the chips must talk and nothing says how fast, or no such network exists.
    """
    if system.topology is None:
        if system.scale_up is None and most > 1 and not lecture:
            message = f"{most} chips exchange activations; give scale_up, such as 450 GB/s one way"
            raise FieldError(("system", message))
        domain = system.chips_per_domain or most
        return Machine.from_figures(
            system.name, domain, system.scale_up or UNUSED, system.scale_out
        )
    rates: dict[str, Any] = {
        key: getattr(system, key) for key in ("scale_up", "scale_out") if key in system.varied
    }
    try:
        drawn = machine(system.topology)
        if "chips_per_domain" in system.varied and drawn.kind == "torus":
            drawn = machine(system.topology, system.chips_per_domain)
        elif "chips_per_domain" in system.varied:
            rates["chips_per_domain"] = system.chips_per_domain
        return replace(drawn, **rates)
    except TopologyError as error:
        raise FieldError(("system", " ".join(str(error).split()))) from error


def between(first: Machine, second: Machine, most: int, *, together: bool) -> tuple[float, float]:
    """Rate of one chip from one pool to the other [byte/s], and the latency of that way [s].

    Pools of one system that fit into one domain talk inside it, all others through their cards.
    Raises FieldError if nothing says how fast those cards are.
    """
    if together and most <= first.chips_per_domain:
        return first.links[0], 2 * first.scale_up_latency
    rates = []
    for machine_ in (first, second):
        if machine_.scale_out is None:
            message = (
                f"two pools on {machine_.name} move caches through its network cards, whose rate "
                "is not known; give scale_out, such as 50 GB/s, or choose mode: aggregated"
            )
            raise FieldError(("system", message))
        rates.append(machine_.scale_out)
    return min(rates), 2 * max(first.scale_out_latency, second.scale_out_latency)
