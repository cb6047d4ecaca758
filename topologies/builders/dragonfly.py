"""Dragonflies: groups of routers wired each to each, and every group to every other."""

from topologies.fabric.fabric import ACCELERATOR, SCALE_OUT, SWITCH, Fabric, fabric, link
from topologies.fabric.limits import check_arguments, count_fault
from topologies.fabric.soundness import check


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

    Parameters
    ----------
    up : Bandwidth of a chip to its router. [byte/s one way]
    local : Between two routers of a group. [byte/s one way]
    out : Of one cable between groups. [byte/s one way]
    groups : How many; a h + 1 unless said, and at most that. All pairs of groups get equally many
        cables: a h must be a multiple of groups - 1.
    latency, out_latency : Of links inside a group and of cables between groups. [s]

    Notes
    -----
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
            # The cable that counts as far back among those of the group that it leads to.
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
