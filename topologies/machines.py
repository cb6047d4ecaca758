"""Machines by name, and any machine drawn as a fabric."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from topologies.catalogue import entries, figures
from topologies.errors import TopologyError, meant
from topologies.hardware import Machine
from topologies.limits import count_fault

if TYPE_CHECKING:
    from topologies.fabric import Fabric

__all__ = ["graph", "machine", "names"]


def names() -> tuple[str, ...]:
    """The machines of the catalogue."""
    return tuple(entries())


def machine(name: str, chips: int | None = None) -> Machine:
    """A machine of the catalogue; of a torus, the slice of `chips` chips if that many are given.

    More chips than a domain has are several whole domains, joined by scale-out.

    Raises
    ------
    TopologyError
        When the name is unknown or no slice has that many chips.
    """
    whole = _named(name)
    if chips is None:
        return whole
    fault = count_fault(chips)
    if fault is not None:
        raise TopologyError(f"machine {name!r}", f"chips {fault}")
    if whole.kind != "torus" or chips >= whole.chips_per_domain:
        return whole
    return replace(whole, dims=whole.box(chips), chips_per_domain=chips)


def graph(which: str | Machine, chips: int | None = None) -> Fabric:
    """A machine as a fabric: one domain, or as many chips as are asked for.

    Raises
    ------
    TopologyError
        When `chips` is more than one domain but not a whole number of them, or when the
        domains cannot be joined because scale_out is not known.
    """
    from topologies.builders.hierarchy import hierarchy

    what = machine(which, chips) if isinstance(which, str) else which
    size = what.chips_per_domain
    wanted = size if chips is None else chips
    if wanted > size and wanted % size:
        below = wanted - wanted % size
        raise TopologyError(
            f"machine {what.name!r}",
            f"{wanted} chips are not whole domains of {size}; {below} or {below + size} are",
        )
    G = _domain(what, min(wanted, size))
    if wanted > size:
        if what.scale_out is None:
            raise TopologyError(
                f"machine {what.name!r}",
                f"{wanted} chips are several domains of {size} and scale_out is not known",
            )
        G = hierarchy(G, wanted // size, out=what.scale_out, latency=what.scale_out_latency)
    G.graph["name"] = f"{what.name}, {wanted} chips"
    G.graph["source"] = "; ".join(dict.fromkeys(f.source for f in what.figures)) or None
    G.graph["as_of"] = max((f.as_of for f in what.figures), default=None)
    return G


def _domain(what: Machine, chips: int) -> Fabric:
    from topologies.builders.mesh import mesh
    from topologies.builders.switches import switch
    from topologies.builders.torus import torus

    late = what.scale_up_latency
    if what.kind == "switch":
        reduce = what.in_network_reduce
        return switch(chips, up=what.scale_up, latency=late, in_network_reduce=reduce)
    if what.kind == "mesh":
        return mesh(chips, link=what.links[0], latency=late)
    dims, rings = what.dims, what.rings
    if chips < what.chips_per_domain:
        dims = what.box(chips)
        rings = what.rings_of(dims)
    return torus(dims, link=what.links, latency=late, wrap=rings)


@cache
def _named(name: str) -> Machine:
    if name not in entries():
        raise TopologyError("machines", f"unknown machine {name!r}; {meant(name, entries())}")
    plain = {key: value for key, value in entries()[name].items() if not isinstance(value, dict)}
    sourced = figures(name)
    values = {f.name: f.value for f in sourced if f.name != "links"}
    return Machine(name=name, figures=sourced, **{"scale_out": None, **plain, **values})
