"""Chips behind a switch or planes (HGX, NVL72), wired each to each (MI300X), and dragonflies.

Dragonflies are groups of routers wired each to each, and every group to every other.
"""

from __future__ import annotations  # signatures are read by their words (files.description)

from collections.abc import Sequence
from itertools import combinations

from topologies.fabric.fabric import ACCELERATOR, SCALE_OUT, SWITCH, Fabric, Group, fabric, link
from topologies.fabric.fabric import link as add_link
from topologies.fabric.limits import check_arguments, count_fault
from topologies.fabric.soundness import check


def switch(
    chips: int, *, up: float, latency: float = 0.0, in_network_reduce: bool = False
) -> Fabric:
    """`chips` accelerators `(i,)` on the switch `("switch",)`; none relays for another.

    Args:
        up: Bandwidth of one chip into the switch, and out of it. [byte/s one way]
        latency: Of the cable between a chip and the switch: two of them lie between two chips. [s]
        in_network_reduce: Whether the switch can add what passes through it.

    >>> G = switch(8, up=450e9)
    >>> G.number_of_edges(), G.edges[(0,), ("switch",)]["bandwidth"]
    (16, 450000000000.0)
    """
    check_arguments(
        "switch",
        counts={"chips": chips},
        rates={"up": up},
        latencies={"latency": latency},
        flags={"in_network_reduce": in_network_reduce},
    )
    centres = [("switch",)]
    return _behind(f"{chips} chips on a switch", chips, centres, up, latency, in_network_reduce)


def planes(
    chips: int, switches: int, *, up: float, latency: float = 0.0, in_network_reduce: bool = False
) -> Fabric:
    """`chips` accelerators `(i,)`, each with an equal share of its rate on every switch.

    The switches are `("plane", p)`: the 4 of an HGX board, the 18 of an NVL72 rack. No chip
    relays for another and no switch knows the next.

    Args:
        up: Bandwidth of one chip into all switches together. [byte/s one way]
        latency: Of the cable between a chip and a switch. [s]
        in_network_reduce: Whether the switches can add what passes through them.

    >>> G = planes(72, 18, up=900e9)
    >>> G.number_of_edges(), G.edges[(0,), ("plane", 3)]["bandwidth"]
    (2592, 50000000000.0)
    """
    check_arguments(
        "planes",
        counts={"chips": chips, "switches": switches},
        rates={"up": up},
        latencies={"latency": latency},
        flags={"in_network_reduce": in_network_reduce},
    )
    name = f"{chips} chips on {switches} switch planes"
    centres = [("plane", p) for p in range(switches)]
    return _behind(name, chips, centres, up / switches, latency, in_network_reduce)


def _behind(
    name: str, chips: int, centres: Sequence[Group], rate: float, latency: float, reduce: bool
) -> Fabric:
    """Each of the chips linked to each of the switches."""
    G = fabric(name, orbits=True)
    for centre in centres:
        G.add_node(centre, kind=SWITCH, forward=True, in_network_reduce=reduce, orbit="switch")
    for i in range(chips):
        G.add_node((i,), kind=ACCELERATOR, forward=False, domain=0, orbit="chip")
        for centre in centres:
            link(G, (i,), centre, bandwidth=rate, latency=latency, orbit=("up", "down"))
    return check(G)


def mesh(chips: int, *, link: float, latency: float = 0.0, relay: bool = False) -> Fabric:
    """`chips` accelerators `(i,)` with one link for each pair.

    Args:
        link: Bandwidth of the link between two chips. [byte/s one way]
        latency: Of that link. [s]
        relay: Whether chips pass on the traffic of others; those of an MI300X board do not.

    >>> mesh(4, link=64e9).number_of_edges()
    12
    """
    check_arguments(
        "mesh",
        counts={"chips": chips},
        rates={"link": link},
        latencies={"latency": latency},
        flags={"relay": relay},
    )
    G = fabric(f"{chips} chips each wired to each", orbits=True)
    for i in range(chips):
        G.add_node((i,), kind=ACCELERATOR, forward=relay, domain=0, orbit="chip")
    for i, j in combinations(range(chips), 2):
        add_link(G, (i,), (j,), bandwidth=link, latency=latency, orbit="pair")
    return check(G)


def dragonfly(
    p: int,
    a: int,
    h: int,
    *,
    up: float,
    local: float,
    out: float,
    groups: int | None = None,
    latency: float = 0.0,
    out_latency: float = 0.0,
) -> Fabric:
    """A dragonfly of `p` chips per router, `a` routers per group, `h` cables out per router.

    Chips are `(g, r, i)`, routers `(g, r, "router")`. Cable k of a group (of its router k // h)
    goes to the group k + 1 farther on, where it is the cable that counts back as far; with
    fewer groups than a h + 1 the count begins anew and cables run in parallel.

    Args:
        up: Bandwidth of a chip to its router. [byte/s one way]
        local: Between two routers of a group. [byte/s one way]
        out: Of one cable between groups. [byte/s one way]
        groups: How many; a h + 1 unless said, and at most that. All pairs of groups get equally
            many cables: a h must be a multiple of groups - 1.
        latency, out_latency: Of links inside a group and of cables between groups. [s]

    Groups may be shifted round and mirrored, which is what the declared orbits say. Kim,
    Dally, Scott, Abts, Technology-driven, highly-scalable dragonfly topology, ISCA 2008.

    >>> G = dragonfly(2, 4, 2, up=50e9, local=50e9, out=50e9)
    >>> len(G), G.number_of_edges()
    (108, 324)
    """
    counts = {"p": p, "a": a, "h": h, **({} if groups is None else {"groups": groups})}
    check_arguments(
        "dragonfly",
        counts=counts,
        rates={"up": up, "local": local, "out": out},
        latencies={"latency": latency, "out_latency": out_latency},
        others=[_group_fault(a, h, groups)],
    )
    many = a * h + 1 if groups is None else groups
    G = fabric(f"dragonfly of {many} groups of {a} routers of {p} chips", orbits=True)
    for g in range(many):
        _group(G, g, p, a, up, local, latency)
    if many > 1:
        _cables(G, many, a, h, out, out_latency)
    return check(G)


def _group_fault(a: int, h: int, groups: int | None) -> str | None:
    if groups is None or any(count_fault(n) is not None for n in (a, h, groups)):
        return None
    ports = a * h
    if groups == 1 or (groups <= ports + 1 and ports % (groups - 1) == 0):
        return None
    sound = ", ".join(str(n + 1) for n in range(1, ports + 1) if ports % n == 0)
    return f"groups is {groups}; the {ports} cables of a group go evenly to all of {sound} groups"


def _group(G: Fabric, g: int, p: int, a: int, up: float, local: float, latency: float) -> None:
    """The routers and chips of one group."""
    for r in range(a):
        seat = min(r, a - 1 - r)
        router = (g, r, "router")
        G.add_node(router, kind=SWITCH, forward=True, orbit=f"router {seat}")
        for i in range(p):
            G.add_node((g, r, i), kind=ACCELERATOR, forward=False, domain=g, orbit=f"chip {seat}")
            orbits = (f"up {seat}", f"down {seat}")
            link(G, (g, r, i), router, bandwidth=up, latency=latency, orbit=orbits)
        for s in range(r):
            there, back = _local_orbit(s, r, a), _local_orbit(r, s, a)
            neighbour = (g, s, "router")
            link(G, neighbour, router, bandwidth=local, latency=latency, orbit=(there, back))


def _local_orbit(r: int, s: int, a: int) -> str:
    return "local {} to {}".format(*min((r, s), (a - 1 - r, a - 1 - s)))


def _cables(G: Fabric, many: int, a: int, h: int, out: float, latency: float) -> None:
    """The cables between groups, parallel ones as one link with a count."""
    counts: dict[tuple[int, int, int, int], int] = {}
    ports = a * h
    for g in range(many):
        for k in range(ports):
            # Port k of a group meets port ports - 1 - k of the peer group.
            away, back = k % (many - 1) + 1, ports - 1 - k
            ends = (g, k // h, (g + away) % many, back // h)
            counts[ends] = counts.get(ends, 0) + 1
    for (g, r, o, s), cables in counts.items():
        there = (o - g) % many
        # The mirror turns the way round the groups about, and the routers with it.
        seat = min((r, s, there), (a - 1 - r, a - 1 - s, many - there))
        link(
            G,
            (g, r, "router"),
            (o, s, "router"),
            bandwidth=out,
            latency=latency,
            tier=SCALE_OUT,
            count=cables,
            one_way=True,
            orbit="out {} to {}, {} groups on".format(*seat),
        )
