"""Which accelerators can reach which, when only some nodes relay the traffic of others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import Any

import networkx as nx

from topologies.fabric.fabric import Fabric, accelerators

__all__ = ["unreachable"]


def unreachable(G: Fabric) -> Iterator[tuple[Any, Any]]:
    """Ordered pairs of accelerators with no path whose inner nodes all forward.

    Accelerators are first gathered into classes that see the same parts of the forwarding
    network, so that a rack of a thousand chips is one question and not a million.
    """
    relays = [node for node, forward in G.nodes(data="forward") if forward]
    parts = nx.condensation(G.subgraph(relays))
    part_of = parts.graph["mapping"]
    beyond = _closures(parts)
    classes: dict[tuple[frozenset[int], frozenset[int]], list[Any]] = defaultdict(list)
    for chip in accelerators(G):
        # A forwarding chip is itself a place in the network; so are the relays beside any chip.
        here = {part_of[chip]} if chip in part_of else set()
        first = here | {part_of[v] for v in G.succ[chip] if v in part_of}
        last = here | {part_of[v] for v in G.pred[chip] if v in part_of}
        reached = frozenset[int]().union(*(beyond[part] for part in first))
        classes[reached, frozenset(last)].append(chip)
    for (reached, _), sources in classes.items():
        for (_, entrances), targets in classes.items():
            if reached.isdisjoint(entrances):
                for a, b in product(sources, targets):
                    if a != b and not G.has_edge(a, b):
                        yield a, b


def _closures(parts: nx.DiGraph[Any]) -> dict[int, frozenset[int]]:
    """For each part, itself and every part that can be reached from it."""
    closure: dict[int, frozenset[int]] = {}
    for part in reversed(list(nx.topological_sort(parts))):
        closure[part] = frozenset({part}).union(*(closure[after] for after in parts.succ[part]))
    return closure
