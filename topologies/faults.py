"""What is wrong with a fabric: every problem, each with its place, in one error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import networkx as nx

from topologies.errors import TopologyError, meant
from topologies.fabric import (
    ACCELERATOR,
    ARC_ATTRIBUTES,
    GRAPH_ATTRIBUTES,
    KINDS,
    NODE_ATTRIBUTES,
    TIERS,
    Fabric,
    accelerators,
)
from topologies.limits import count_fault, latency_fault, rate_fault, rate_suspicion
from topologies.reach import unreachable

__all__ = ["check", "suspicions"]


def check(G: Fabric) -> Fabric:
    """`G` itself, if it is sound.

    Raises
    ------
    TopologyError
        Listing every problem: attributes unknown, missing or of the wrong kind; ends of arcs
        that are not declared; self-loops; accelerators that cannot reach each other, either
        because no arcs lead there or because those in between do not forward.
    """
    problems = [*_graph_faults(G), *_node_faults(G), *_arc_faults(G)]
    # Reachability of a graph with undeclared ends or bad kinds would only repeat those faults.
    if not problems:
        problems = list(_reach_faults(G))
    if problems:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", problems)
    return G


def suspicions(G: Fabric) -> list[str]:
    """What is sound but odd: bandwidths below 1 MB/s or above 100 TB/s, most likely unit slips."""
    return [
        f"arc {u!r} -> {v!r}: bandwidth {odd}"
        for u, v, data in G.edges(data=True)
        if rate_fault(data.get("bandwidth")) is None
        and (odd := rate_suspicion(data["bandwidth"])) is not None
    ]


def _graph_faults(G: Fabric) -> Iterator[str]:
    if not isinstance(G, nx.DiGraph) or G.is_multigraph():
        raise TopologyError("check", f"a networkx.DiGraph was expected, not {type(G).__name__}")
    yield from _unknown("fabric", G.graph, GRAPH_ATTRIBUTES)
    if not accelerators(G):
        yield f"fabric: no node of kind {ACCELERATOR!r}"


def _node_faults(G: Fabric) -> Iterator[str]:
    orbits = G.graph.get("orbits")
    for node, data in G.nodes(data=True):
        place = f"node {node!r}"
        if not data:
            ends = [*G.pred[node], *G.succ[node]]
            yield (
                f"{place}: it is not declared"
                + (f"; an arc from or to {ends[0]!r} names it" if ends else "")
            )
            continue
        yield from _unknown(place, data, NODE_ATTRIBUTES)
        if data.get("kind") not in KINDS:
            yield f"{place}: kind is {data.get('kind')!r}; one of {', '.join(KINDS)} was expected"
        if not isinstance(data.get("forward"), bool):
            yield (
                f"{place}: forward is {data.get('forward')!r}; True or False was expected: "
                "may it relay the traffic of others?"
            )
        if data.get("kind") == ACCELERATOR and data.get("domain") is None:
            yield f"{place}: no domain; every accelerator names its scale-up domain"
        if orbits and data.get("orbit") is None:
            yield f"{place}: no orbit, though the fabric declares its orbits"


def _arc_faults(G: Fabric) -> Iterator[str]:
    orbits = G.graph.get("orbits")
    for u, v, data in G.edges(data=True):
        place = f"arc {u!r} -> {v!r}"
        if u == v:
            yield f"{place}: a node cannot be linked to itself"
        yield from _unknown(place, data, ARC_ATTRIBUTES)
        for name, fault in (("bandwidth", rate_fault), ("latency", latency_fault)):
            if name not in data:
                yield f"{place}: no {name}"
            elif (said := fault(data[name])) is not None:
                yield f"{place}: {name} {said}"
        if data.get("tier") not in TIERS:
            yield f"{place}: tier is {data.get('tier')!r}; one of {', '.join(TIERS)} was expected"
        if (said := count_fault(data.get("count", 1))) is not None:
            yield f"{place}: count {said}"
        if orbits and data.get("orbit") is None:
            yield f"{place}: no orbit, though the fabric declares its orbits"


def _unknown(place: str, given: Mapping[str, Any], known: Mapping[str, str]) -> Iterator[str]:
    for name in given:
        if name not in known:
            yield f"{place}: unknown attribute {name!r}; {meant(name, known)}"


def _reach_faults(G: Fabric) -> Iterator[str]:
    chips = set(accelerators(G))
    islands = [part & chips for part in nx.strongly_connected_components(G) if part & chips]
    if len(islands) > 1:
        sizes = Counter(map(len, islands))
        sample = ", ".join(repr(min(island, key=repr)) for island in islands[:4])
        yield (
            f"fabric: the accelerators form {len(islands)} islands, of "
            + ", ".join(f"{size} chips ({times} times)" for size, times in sorted(sizes.items()))
            + f", without a way there and back between them; members: {sample}"
        )
        return
    stranded = unreachable(G)
    examples = [f"{a!r} to {b!r}" for a, b in islice(stranded, 3)]
    if examples:
        yield (
            f"fabric: no permitted path from {', from '.join(examples)}"
            f"{' and others' if len(examples) == 3 else ''}: the nodes in between do not forward; "
            "set forward on those that may relay, or add a switch"
        )
