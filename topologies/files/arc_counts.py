"""Upper bounds on the number of arcs of a fabric, before it is built."""

from collections.abc import Callable, Mapping
from math import ceil, prod
from typing import Any

from topologies.fabric.fabric import Fabric, accelerators

# A torus of 9,216 chips has 55,296; measuring more takes beyond five seconds, and 3.3 kB an arc.
MAX_ARCS = 60_000
TOO_MANY = f"at most {MAX_ARCS:,} are made; a machine with these figures has formulas instead"

Arguments = Mapping[str, Any]


def arcs(kind: str, arguments: Arguments) -> int:
    """An upper bound on the arcs of the fabric; of an unknown kind, the product of its counts.

    >>> arcs("torus", {"dims": (4, 4, 4)})
    384
    """
    if kind in BOUNDS:
        return BOUNDS[kind](arguments)
    return prod(value for value in arguments.values() if isinstance(value, int))


def _dragonfly(arguments: Arguments) -> int:
    p, a, h = (int(arguments[name]) for name in "pah")
    groups = min(arguments.get("groups", a * h + 1), a * h + 1)
    return int(groups * (2 * p * a + a * a + a * h))


def _hierarchy(arguments: Arguments) -> int:
    count, domain = int(arguments["count"]), arguments["domain"]
    return count * _domain_arcs(domain) + _above(arguments, count * len(domain))


def _clos(arguments: Arguments) -> int:
    chips, domain = int(arguments["chips"]), arguments.get("domain")
    if domain is None:
        return 2 * chips + _above(arguments, chips)
    count = ceil(chips / max(len(accelerators(domain)), 1))
    return count * _domain_arcs(domain) + _above(arguments, count * len(domain))


def _domain_arcs(domain: Fabric) -> int:
    return 2 * domain.number_of_edges() + 4 * len(domain)


def _above(arguments: Arguments, ends: int) -> int:
    leaves = ends if arguments.get("rail_optimised") else ceil(ends / arguments.get("leaf", 1))
    pods = ceil(leaves / arguments.get("pod", leaves or 1))
    spines = arguments.get("spines", 1)
    return int(2 * leaves * spines + 2 * pods * spines * arguments.get("cores", 1))


BOUNDS: Mapping[str, Callable[[Arguments], int]] = {
    "switch": lambda a: 2 * a["chips"],
    "planes": lambda a: 2 * a["chips"] * a["switches"],
    "mesh": lambda a: a["chips"] ** 2,
    **dict.fromkeys(("torus", "twisted_torus"), lambda a: 2 * len(a["dims"]) * prod(a["dims"])),
    "dragonfly": _dragonfly,
    "rails": lambda a: 2 * a["chips"] * (4 * a["nodes"] + a.get("spines", 1)),
    "hierarchy": _hierarchy,
    "clos": _clos,
    "machine": lambda a: a.get("chips", 0) * (8 + 2 * a.get("spines", 1)),
}
