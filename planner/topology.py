"""A network looked at: what it is, what it carries, where leaving a domain begins to cost.

A name is a machine of the catalogue, drawn with as many chips as are asked for; anything else is
a file. Rates are those of `topologies`, bounds without any overhead; all numbers are in base
units.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import CatalogueError, InputError, Mistake, did_you_mean, quoted
from topologies.errors import TopologyError
from topologies.hardware import Machine
from topologies.machines import graph, machine, names

if TYPE_CHECKING:
    from topologies.fabric import Fabric

__all__ = ["Network", "machines", "measured", "network"]

FILES = (".yaml", ".yml", ".json")
DOMAINS = 4  # drawn of a machine with a network between domains, if no number is given
ROWS = 11
MOST_CHIPS = 20_000
ROUTINGS = ("optimal", "shortest_ecmp")
PLACE = re.compile(r"line (\d+), column (\d+): ")


@dataclass(frozen=True)
class Network:
    """A fabric, and the machine of the catalogue that it is, if it is one."""

    name: str
    fabric: Fabric
    machine: Machine | None = None
    warnings: tuple[str, ...] = ()


def machines() -> list[dict[str, Any]]:
    """The machines of the catalogue, a line each."""
    return [
        {
            "name": name,
            "title": known.title,
            "kind": known.kind,
            "chips_per_domain": known.chips_per_domain,
            "dims": list(known.dims) or None,
            "scale_up": known.scale_up,
            "scale_out": known.scale_out,
        }
        for name in names()
        for known in (machine(name),)
    ]


def network(name: str, chips: int | None = None, shape: str | None = None) -> Network:
    """The network of a catalogue name or of a file.

    Parameters
    ----------
    chips : int, optional
        How many chips of a machine; a few domains, or all of a torus, if not given.
    shape : str, optional
        Sides of the slice of a torus, such as 4x4x8.

    Raises
    ------
    InputError
        When there is no such name or file, or the machine has no such slice.
    """
    if name not in names() and (Path(name).suffix.lower() in FILES or Path(name).exists()):
        given = [o for o, v in (("--chips", chips), ("--shape", shape)) if v is not None]
        if given:
            options = " and ".join(given)
            raise InputError(f"{options}: for machines of the catalogue; {name} says what it is")
        return _from_file(name)
    if name not in names():
        hint = did_you_mean(name, names()) or f"; known: {', '.join(names())}"
        raise CatalogueError(
            f"unknown machine {quoted(name)}{hint} (a file ends in {', '.join(FILES)})"
        )
    try:
        known = machine(name)
        if shape is not None:
            known = _slice(known, shape, chips)
        elif known.kind == "torus" or known.scale_out is None or chips is not None:
            known = machine(name, chips)
        wanted = chips or known.chips_per_domain
        if known.kind != "torus" and known.scale_out is not None and chips is None:
            wanted = DOMAINS * known.chips_per_domain
        if wanted > MOST_CHIPS:
            raise InputError(f"--chips {wanted}: at most {MOST_CHIPS:,} are laid out chip by chip")
        return Network(name, graph(known, wanted), known)
    except TopologyError as error:
        raise InputError(str(error)) from error


def measured(of: Network, sizes: Sequence[int] = (), routing: str = "optimal") -> dict[str, Any]:
    """What the network is and what groups of its chips reach, base units.

    Parameters
    ----------
    sizes : sequence of int, optional
        Chips of the groups; if none are given, powers of two, a domain, all.
    routing : {"optimal", "shortest_ecmp"}
        How an all-to-all is sent.

    Raises
    ------
    InputError
        When a group has more chips than the network, or the network cannot be measured.
    """
    from topologies.faults import suspicions
    from topologies.halves import bisection
    from topologies.picture.damage import damage
    from topologies.picture.reading import read

    G = of.fabric
    reading = read(G)
    chips = sum(map(len, reading.domains.values()))
    domain = max(map(len, reading.domains.values()))
    wrong = [f"--group {n}: the network has {chips} chips" for n in sizes if not 1 <= n <= chips]
    if wrong:
        raise InputError("; ".join(wrong))
    if routing not in ROUTINGS:
        hint = did_you_mean(routing, ROUTINGS) or f"; one of {', '.join(ROUTINGS)} was expected"
        raise InputError(f"--routing {quoted(routing)}: unknown{hint}")
    halves = bisection(G) if chips > 1 else None
    wanted = sorted(set(sizes)) or _sizes(chips, domain)
    try:
        groups = [_group(of, n, routing, why=n in sizes) for n in wanted]
    except TopologyError as error:
        raise InputError(str(error)) from error
    return {
        "name": of.name,
        "title": of.machine.title if of.machine else str(G.graph.get("name") or of.name),
        "chips": chips,
        "domains": {
            "count": len(reading.domains),
            "chips": sorted({len(members) for members in reading.domains.values()}),
        },
        "nodes": dict(Counter(str(kind) for _, kind in G.nodes(data="kind"))),
        "relays": any(G.nodes[c]["forward"] for chips_ in reading.domains.values() for c in chips_),
        "links": _links(reading),
        "routing": routing,
        "bisection": None
        if halves is None
        else {"rate": halves.rate, "chips": halves.chips, "across": halves.across},
        "leaving": _leaving(of, domain, chips),
        "in_network_reduce": _reduces(of),
        "groups": groups,
        "faults": [fault.said for fault in damage(reading)],
        "warnings": list(dict.fromkeys([*of.warnings, *suspicions(G)])),
        "source": G.graph.get("source"),
        "as_of": G.graph.get("as_of"),
        "figures": _figures(of.machine),
    }


def _from_file(name: str) -> Network:
    import topologies

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            G = topologies.read(name)
        except TopologyError as error:
            raise InputError(
                [_mistake(error.where, problem) for problem in error.problems]
            ) from error
    return Network(name, G, None, tuple(str(each.message) for each in told))


def _mistake(where: str, problem: str) -> Mistake:
    """A problem of a file, with its line and column if it has them."""
    found = PLACE.match(problem)
    if found is None:
        return Mistake(where, None, None, "", problem)
    return Mistake(where, int(found[1]), int(found[2]), "", problem[found.end() :])


def _slice(known: Machine, shape: str, chips: int | None) -> Machine:
    """The machine cut down to a box."""
    sides = re.split(r"[x×*]", shape.strip().lower())
    if known.kind != "torus":
        raise InputError(f"--shape {quoted(shape)}: {known.name} is no torus; use --chips")
    if not all(side.isdecimal() and 0 < int(side) < 10**6 for side in sides):
        raise InputError(f"--shape {quoted(shape)}: sides such as 4x4x8 were expected")
    dims = tuple(map(int, sides))
    whole = "x".join(map(str, known.dims))
    fits = all(a <= b for a, b in zip(sorted(dims), sorted(known.dims), strict=False))
    if len(dims) != len(known.dims) or not fits:
        raise InputError(f"--shape {quoted(shape)}: no slice of {known.name}, which is {whole}")
    if chips is not None and chips != prod(dims):
        raise InputError(f"--chips {chips}: the shape {shape} has {prod(dims)}")
    return replace(known, dims=dims, chips_per_domain=prod(dims))


def _sizes(chips: int, domain: int) -> list[int]:
    """Powers of two, the domain, the next whole number of domains, and all, thinned out."""
    powers = [2**k for k in range(1, chips.bit_length()) if 2**k <= chips]
    marks = {n for n in (domain, 2 * domain, chips) if 1 < n <= chips}
    while len(marks | set(powers)) > ROWS and len(powers) > 2:
        powers = powers[::2] if len(powers) % 2 else [powers[0], *powers[1::2]]
    return sorted(marks | set(powers)) or [1]


def _group(of: Network, n: int, routing: str, *, why: bool) -> dict[str, Any]:
    from topologies.groups import group_rate

    rate = group_rate(of.machine if of.machine is not None else of.fabric, n)
    return {
        "chips": n,
        "domains": rate.domains,
        "box": list(rate.box) if rate.box else None,
        "all_to_all": rate.all_to_all,
        "all_gather": rate.all_gather,
        "send": rate.send,
        "latency": rate.latency,
        "hops": rate.latency_hops,
    }


def _leaving(of: Network, domain: int, chips: int) -> dict[str, Any] | None:
    """From which group size a domain is left, and how much slower that is."""
    from topologies.groups import group_rate
    from topologies.measure import slowdown

    if chips == domain:
        return None
    what = of.machine if of.machine is not None else of.fabric
    inside = group_rate(what, domain)
    across = group_rate(what, min(2 * domain, chips))
    first = next(node for node, kind in of.fabric.nodes(data="kind") if kind == "accelerator")
    try:
        links: float | None = slowdown(of.fabric, first)
    except TopologyError:  # a chip without links of one of the tiers has no such ratio
        links = None
    return {
        "from_chips": domain + 1,
        "slowdown_all_to_all": inside.all_to_all / across.all_to_all if domain > 1 else None,
        "slowdown_all_gather": inside.all_gather / across.all_gather if domain > 1 else None,
        "slowdown_links": links,
    }


def _reduces(of: Network) -> dict[str, Any]:
    adds = [node for node, sums in of.fabric.nodes(data="in_network_reduce") if sums]
    return {
        "switches": len(adds),
        "from_chips": of.machine.reduce_from if of.machine and adds else None,
    }


def _links(reading: Any) -> list[dict[str, Any]]:
    """The classes of links, alike along several sides of a torus together."""
    found: dict[Any, dict[str, Any]] = {}
    for each in reading.classes:
        there, back, latency, cables = each.figures
        row = found.setdefault(
            (*each.kind[:3], each.figures, each.faulty),
            {
                "tier": each.tier,
                "ends": list(each.roles),
                "bandwidth": there,
                "bandwidth_back": back,
                "latency": latency,
                "cables": cables,
                "links": 0,
                "along": [],
                "degraded": each.faulty,
            },
        )
        row["links"] += each.number
        row["along"] = sorted({*row["along"], *("xyz"[d] for d in each.axis)})
    return list(found.values())


def _figures(known: Machine | None) -> list[dict[str, Any]]:
    figures: Iterable[Any] = known.figures if known else ()
    return [
        {
            "name": f.name,
            "value": list(f.value) if isinstance(f.value, tuple) else f.value,
            "unit": f.unit,
            "source": f.source,
            "as_of": f.as_of,
        }
        for f in figures
    ]
