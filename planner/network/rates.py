"""What groups of chips reach on a network, which engine says so, and what holds them back.

A group that fits into a domain is looked at without the network between domains, as its rate
leaves out what network cards would add; all groups of a size talk at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from planner.network.network_source import Network
from topologies.fabric.fabric import SCALE_OUT, Fabric, accelerators
from topologies.groups.groups import group_rate
from topologies.picture.reading import role
from topologies.rates.cut.cut import all_gather_rate
from topologies.rates.flow.flow import concurrent_flow
from topologies.rates.routing.all_reduce import PLAIN, all_reduce_bounds
from topologies.rates.traffic import all_to_all

__all__ = ["Rates"]

OPTIMAL = "optimal"
SAME = 1e-6  # two engines that differ by less agree


class Rates:
    """The groups of a network.

    Parameters
    ----------
    domain : int
        Chips of its largest domain.
    routing : {"optimal", "shortest_ecmp"}
        How an all-to-all is sent.
    """

    def __init__(self, of: Network, domain: int, routing: str) -> None:
        self.of, self.domain, self.routing = of, domain, routing
        self.known = of.machine if of.machine is not None else of.fabric
        self.chips = len(accelerators(of.fabric))
        self.adds = any(sums for _, sums in of.fabric.nodes(data="in_network_reduce"))

    def row(self, n: int, *, why: bool) -> dict[str, Any]:
        """Rates of a group of `n` chips; with `why`, also what binds and who found it.

        Raises
        ------
        TopologyError
            When the network has no such group.
        """
        rate = group_rate(self.known, n)
        found = {
            "chips": n,
            "domains": rate.domains,
            "box": list(rate.box) if rate.box else None,
            "all_to_all": rate.all_to_all,
            "all_gather": rate.all_gather,
            "all_reduce": rate.all_gather,
            "shared_evenly": rate.shared_evenly,
            "send": rate.send,
            "latency": rate.latency,
            "hops": rate.latency_hops,
            "engine": "formula" if self.of.machine is not None else None,
            "confirmed_by": None,
            "binding": [],
            "cut": None,
            "reduction": None,
        }
        if n > 1 and (why or self.routing != OPTIMAL):
            self._explain(found)
        return found

    def _explain(self, found: dict[str, Any]) -> None:
        """Add what the flow and cut engines say of the same groups."""
        n = found["chips"]
        G = self._inner if n <= self.domain else self.of.fabric
        groups = self._groups(n)
        flow = concurrent_flow(G, all_to_all(*groups), routing=self.routing)
        rate = flow.rate * (n - 1)
        if self.routing != OPTIMAL or found["engine"] is None:
            found["engine"] = flow.engine
        elif abs(rate - found["all_to_all"]) <= SAME * rate:
            found["confirmed_by"] = flow.engine
        found["all_to_all"] = min(found["all_to_all"], rate)
        found["binding"] = _classes(
            G,
            ((arc, each.elasticity / len(each.arcs)) for each in flow.binding for arc in each.arcs),
        )
        # A formula may hold a group to what a whole domain reaches, which no link says.
        cut = all_gather_rate(G, groups[0])
        found["cut"] = {
            "all_gather": cut.bus_bandwidth,
            "chips": sum(1 for chip in groups[0] if chip in cut.starved),
            "links": _classes(G, ((arc, 0.0) for arc in cut.arcs)),
        }
        if self.adds:
            self._reduce(found, G, groups[0])

    def _reduce(self, found: dict[str, Any], G: Fabric, group: Sequence[Any]) -> None:
        """Add what an all-reduce reaches with switches that add what passes through them."""
        since = self.of.machine.reduce_from if self.of.machine is not None else None
        for bound in all_reduce_bounds(G, group, reduce_from=since):
            if bound.algorithm != PLAIN:
                found["reduction"] = {
                    "all_reduce": bound.bus_bandwidth,
                    "links": _classes(G, ((arc, 0.0) for arc in bound.binding)),
                }

    def _groups(self, n: int) -> list[tuple[Any, ...]]:
        if n == self.chips:
            return [tuple(accelerators(self.of.fabric))]
        from topologies.groups.group_rate import grouped

        return [tuple(group) for group in grouped(self.of.fabric).groups(n)]

    @cached_property
    def _inner(self) -> Fabric:
        """The fabric without what joins its domains."""
        G = self.of.fabric
        out = [(u, v) for u, v, data in G.edges(data=True) if data["tier"] == SCALE_OUT]
        if not out:
            return G
        inner = G.copy()
        inner.remove_edges_from(out)
        return inner


def _classes(G: Fabric, arcs: Iterable[tuple[tuple[Any, Any], float]]) -> list[dict[str, Any]]:
    """Arcs by what they join and how fast they are, elasticities added up, the strongest first."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (u, v), elasticity in arcs:
        data = G.edges[u, v]
        ends = sorted((role(G, u), role(G, v)), key=lambda name: (name != "chip", name))
        row = found.setdefault(
            (*ends, data["tier"], data["bandwidth"]),
            {
                "ends": ends,
                "tier": data["tier"],
                "bandwidth": data["bandwidth"],
                "arcs": 0,
                "elasticity": 0.0,
            },
        )
        row["arcs"] += 1
        row["elasticity"] += elasticity
    return sorted(found.values(), key=lambda row: (-row["elasticity"], -row["arcs"], row["ends"]))
