"""Description of a network and the rates of its groups, as one document in base units.

What it is, what groups of its chips reach, which engine says so and what holds them back, and where
leaving a domain begins to cost. Rates are those of `topologies`, bounds without any overhead.

A group that fits into a domain is looked at without the network between domains, as its rate
leaves out what network cards would add; all groups of a size talk at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import cached_property

from planner.network.network_source import DescribedNetwork
from planner.text.errors import InputError, did_you_mean, quote
from planner.text.tolerances import AGREE
from topologies.fabric.fabric import SCALE_OUT, Arc, Fabric, Node, accelerators
from topologies.fabric.limits import TopologyError
from topologies.groups.fabric_groups import FabricGroups, fabric_groups
from topologies.groups.group_rate import group_rate
from topologies.picture.scene import LinkClass, role
from topologies.rates.concurrent_collectives import ALGORITHM_PLAIN, all_reduce_bounds
from topologies.rates.cut import all_gather_rate
from topologies.rates.equal_domains import GroupRate
from topologies.rates.flow import concurrent_flow
from topologies.rates.traffic import all_to_all

MAX_ROWS = 11
MESSAGES = (64e3, 1e6, 16e6, 256e6)
ROUTINGS = ("optimal", "shortest_ecmp")


def measurements(
    of: DescribedNetwork,
    sizes: Sequence[int] = (),
    routing: str = "optimal",
    *,
    collective: str | None = None,
    messages: Sequence[float] = (),
) -> dict[str, object]:
    """Return the facts of a network and the rates of groups of its chips, base units.

    Raises InputError when a group has more chips than the network, or the network cannot be
    measured.

    Args:
        sizes: Chips of the groups; if none are given, powers of two, a domain, all.
        routing: How an all-to-all is sent.
        collective: An operation that is timed too, `all-reduce` or another.
        messages: Its sizes; a few that are usual if none are given. [byte]
    """
    from planner.network.collective_times import collective_time_table
    from topologies.fabric.measure import bisection
    from topologies.picture.degraded_links import find_link_faults
    from topologies.picture.scene import read
    from topologies.picture.svg_canvas import xml_text

    G = of.fabric
    reading = read(G)
    members = list(reading.domains.values())
    chips, domain = sum(map(len, members)), max(map(len, members))
    _checked(sizes, chips, routing)
    group_sizes = sorted(set(sizes) or {n for n in (domain, 2 * domain, chips) if n <= chips})
    adding = sum(bool(sums) for _, sums in G.nodes(data="in_network_reduce"))
    since = of.machine.reduce_from if of.machine else None
    rates = Rates(of, domain, routing)
    half = bisection(rates.around(chips)) if chips > 1 else None
    return {
        "name": of.name,
        "title": of.machine.title if of.machine else xml_text(G.graph.get("name") or of.name),
        "chips": chips,
        "domains": {"count": len(members), "chips": sorted(set(map(len, members)))},
        "nodes": dict(Counter(str(kind) for _, kind in G.nodes(data="kind"))),
        "relays": any(G.nodes[chip]["forward"] for group in members for chip in group),
        "links": _links(reading.classes),
        "routing": routing,
        "bisection": half and {"rate": half.rate, "chips": half.chips, "across": half.across},
        "leaving": _leaving(rates, domain, chips),
        "in_network_reduce": {"switches": adding, "from_chips": since if adding else None},
        "groups": _groups(rates, group_sizes if sizes else _sizes(chips, domain), group_sizes),
        "collectives": collective_time_table(of, collective, group_sizes, messages or MESSAGES)
        if collective
        else [],
        "faults": [fault.text for fault in find_link_faults(reading)],
        "warnings": list(of.warnings),
        "doubts": list(of.machine.doubts) if of.machine else [],
        "source": G.graph.get("source"),
        "as_of": G.graph.get("as_of"),
        "figures": [asdict(figure) for figure in (of.machine.figures if of.machine else ())],
    }


def _checked(sizes: Sequence[int], chips: int, routing: str) -> None:
    wrong = [f"--group {n}: the network has {chips} chips" for n in sizes if not 1 <= n <= chips]
    if wrong:
        raise InputError("; ".join(wrong))
    if routing not in ROUTINGS:
        hint = did_you_mean(routing, ROUTINGS) or f"; one of {', '.join(ROUTINGS)} was expected"
        raise InputError(f"--routing {quote(routing)}: unknown{hint}")


def _groups(
    rates: Rates, wanted: Sequence[int], group_sizes: Sequence[int]
) -> list[dict[str, object]]:
    try:
        return [rates.row(n, why=n in group_sizes) for n in wanted]
    except TopologyError as error:
        raise InputError(str(error)) from error


def _sizes(chips: int, domain: int) -> list[int]:
    powers = [2**k for k in range(1, chips.bit_length()) if 2**k <= chips]
    marks = {n for n in (domain, 2 * domain, chips) if 1 < n <= chips}
    while len(marks | set(powers)) > MAX_ROWS and len(powers) > 2:
        powers = powers[::2] if len(powers) % 2 else [powers[0], *powers[1::2]]
    return sorted(marks | set(powers)) or [1]


def _leaving(rates: Rates, domain: int, chips: int) -> dict[str, object] | None:
    """Smallest group size that leaves a domain, with the slow-down; None for a single domain."""
    from topologies.fabric.measure import slowdown

    if chips == domain:
        return None
    G, first = rates.of.fabric, accelerators(rates.of.fabric)[0]
    inside, across = rates.of_group(domain), rates.of_group(min(2 * domain, chips))
    try:
        links: float | None = slowdown(G, first)
    except TopologyError:  # a chip without links of one of the tiers has no such ratio
        links = None
    return {
        "from_chips": domain + 1,
        "slowdown_all_to_all": inside.all_to_all / across.all_to_all if domain > 1 else None,
        "slowdown_all_gather": inside.all_gather / across.all_gather if domain > 1 else None,
        "slowdown_links": links,
    }


def _links(classes: Iterable[LinkClass]) -> list[dict[str, object]]:
    """Return the classes of links; equal classes along several sides of a torus are merged."""
    from topologies.picture.scene import side_name

    alike: dict[tuple[object, ...], list[LinkClass]] = {}
    for link in classes:
        alike.setdefault((*link.kind[:3], link.figures, link.faulty), []).append(link)
    links: list[dict[str, object]] = []
    for group in alike.values():
        there, back, latency, cables = group[0].figures
        row: dict[str, object] = {"tier": group[0].kind.tier, "ends": list(group[0].kind.roles)}
        row |= {"bandwidth": there, "bandwidth_back": back, "latency": latency, "cables": cables}
        row["links"] = sum(each.number for each in group)
        row["along"] = sorted({side_name(d) for each in group for d in each.kind.axis})
        links.append(row | {"degraded": group[0].faulty})
    return links


OPTIMAL = "optimal"


class Rates:
    """The groups of a network.

    Args:
        domain: Chips of its largest domain.
        routing: How an all-to-all is sent.
    """

    def __init__(self, of: DescribedNetwork, domain: int, routing: str) -> None:
        self.of, self.domain, self.routing = of, domain, routing
        self.chips = len(accelerators(of.fabric))
        self.adds = any(sums for _, sums in of.fabric.nodes(data="in_network_reduce"))

    def row(self, n: int, *, why: bool) -> dict[str, object]:
        """Rates of a group of `n` chips; with `why`, also the binding links and the engine.

        Raises TopologyError when the network has no such group.
        """
        rate = self.of_group(n)
        row: dict[str, object] = {"chips": n, "domains": rate.domains}
        row |= {"box": list(rate.box) if rate.box else None, "all_to_all": rate.all_to_all}
        row |= {"all_gather": rate.all_gather, "all_reduce": rate.all_gather}
        row |= {"shared_evenly": rate.shared_evenly, "send": rate.send}
        row |= {"latency": rate.latency, "hops": rate.latency_hops}
        row |= {"engine": "formula" if self.of.machine is not None else None}
        row |= {"confirmed_by": None, "binding": [], "cut": None, "reduction": None}
        if n > 1 and (why or self.routing != OPTIMAL):
            row |= self._explained(n, rate.all_to_all)
        return row

    def of_group(self, n: int) -> GroupRate:
        """Rates of a group of `n` chips: of a machine by its figures, else by looking."""
        return group_rate(self.of.machine, n) if self.of.machine else self._grouped.rate(n)

    def _explained(self, n: int, formula: float) -> dict[str, object]:
        """Rates by the flow and cut engines for `n` chips; `formula` is the all-to-all [byte/s]."""
        G = self.around(n)
        groups = self._groups(n)
        flow = concurrent_flow(G, all_to_all(*groups), routing=self.routing)
        rate = flow.rate * (n - 1)
        row: dict[str, object] = {"all_to_all": min(formula, rate)}
        if self.routing == OPTIMAL and not flow.exact and formula < rate * (1 - AGREE):
            row["engine"] = "formula" if self.of.machine else "rates of the regular parts"
            flow = replace(flow, binding=())  # no examined cut binds
        elif self.routing != OPTIMAL or self.of.machine is None:
            row["engine"] = flow.engine
        elif abs(rate - formula) <= AGREE * rate:
            row["confirmed_by"] = flow.engine
        row["binding"] = _classes(
            G,
            ((arc, each.elasticity / len(each.arcs)) for each in flow.binding for arc in each.arcs),
        )
        # The formula may cap a group at the rate of a whole domain, a limit that no link shows.
        cut = all_gather_rate(G, groups[0])
        row["cut"] = {
            "all_gather": cut.bus_bandwidth,
            "chips": sum(1 for chip in groups[0] if chip in cut.starved),
            "links": _classes(G, ((arc, 0.0) for arc in cut.arcs)),
        }
        # Switches that add what passes through them change an all-reduce.
        since = self.of.machine.reduce_from if self.of.machine is not None else None
        for bound in all_reduce_bounds(G, groups[0], reduce_from=since) if self.adds else ():
            if bound.algorithm != ALGORITHM_PLAIN:
                row["reduction"] = {
                    "all_reduce": bound.bus_bandwidth,
                    "links": _classes(G, ((arc, 0.0) for arc in bound.binding)),
                }
        return row

    def _groups(self, n: int) -> list[tuple[Node, ...]]:
        if n == self.chips:
            return [tuple(accelerators(self.fabric))]
        return [tuple(group) for group in self._grouped.groups(n)]

    @property
    def fabric(self) -> Fabric:
        """Fabric of the groups, one object for all questions, so that cached results are shared."""
        return self.of.fabric if self.of.machine else self._grouped.fabric

    @cached_property
    def _grouped(self) -> FabricGroups:
        return fabric_groups(self.of.fabric)

    def around(self, n: int) -> Fabric:
        """Fabric used by groups of `n`: without scale-out links if the group fits a domain."""
        return self._inner if n <= self.domain else self.fabric

    @cached_property
    def _inner(self) -> Fabric:
        G = self.fabric
        out = [(u, v) for u, v, data in G.edges(data=True) if data["tier"] == SCALE_OUT]
        if not out:
            return G
        inner = G.copy()
        inner.remove_edges_from(out)
        return inner


def _classes(G: Fabric, arcs: Iterable[tuple[Arc, float]]) -> list[dict[str, object]]:
    """Group arcs by ends, tier and bandwidth; elasticities are summed, the strongest first."""
    classes: dict[tuple[str, str, str, float], list[float]] = {}
    for (u, v), elasticity in arcs:
        data = G.edges[u, v]
        first, last = sorted((role(G, u), role(G, v)), key=lambda name: (name != "chip", name))
        key = (first, last, data["tier"], data["bandwidth"])
        classes.setdefault(key, []).append(elasticity)
    ranked = sorted(classes.items(), key=lambda item: (-sum(item[1]), -len(item[1]), item[0][:2]))
    return [
        {"ends": [first, last], "tier": tier, "bandwidth": bandwidth}
        | {"arcs": len(elasticities), "elasticity": sum(elasticities)}
        for (first, last, tier, bandwidth), elasticities in ranked
    ]
