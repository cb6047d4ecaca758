"""How many arcs a builder would make, asked before it makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, prod
from typing import Any

from topologies.fabric.fabric import Fabric, accelerators

# A hundred times a pod of nine thousand chips; such a fabric takes a few hundred bytes an arc.
MOST_ARCS = 2_000_000

Arguments = Mapping[str, Any]


def arcs(kind: str, given: Arguments) -> int:
    """An upper bound on the arcs of the fabric; of an unknown kind, the product of its counts.

    >>> arcs("torus", {"dims": (4, 4, 4)})
    384
    """
    if kind in BOUNDS:
        return BOUNDS[kind](given)
    return prod(value for value in given.values() if isinstance(value, int))


def _planes(given: Arguments) -> int:
    return 2 * int(given["chips"]) * int(given.get("switches", 1))


def _mesh(given: Arguments) -> int:
    return int(given["chips"]) ** 2


def _torus(given: Arguments) -> int:
    return 2 * len(given["dims"]) * prod(given["dims"])


def _dragonfly(given: Arguments) -> int:
    p, a, h = (int(given[name]) for name in "pah")
    groups = min(given.get("groups", a * h + 1), a * h + 1)
    return int(groups * (2 * p * a + a * a + a * h))


def _rails(given: Arguments) -> int:
    nodes, chips = int(given["nodes"]), int(given["chips"])
    return nodes * chips * 8 + 2 * chips * int(given.get("spines", 1))


def _hierarchy(given: Arguments) -> int:
    count, domain = int(given["count"]), given["domain"]
    return count * _within(domain) + _above(given, count * len(domain))


def _clos(given: Arguments) -> int:
    chips, domain = int(given["chips"]), given.get("domain")
    if domain is None:
        return 2 * chips + _above(given, chips)
    size = max(len(accelerators(domain)), 1)
    return ceil(chips / size) * _within(domain) + _above(given, ceil(chips / size) * len(domain))


def _machine(given: Arguments) -> int:
    return int(given.get("chips", 0)) * (8 + 2 * int(given.get("spines", 1)))


def _within(domain: Fabric) -> int:
    """Arcs of one copy with every link out of it, a card for each chip included."""
    return 2 * domain.number_of_edges() + 4 * len(domain)


def _above(given: Arguments, ends: int) -> int:
    """Arcs between leaves, spines and cores."""
    leaves = ends if given.get("rail_optimised") else ceil(ends / given.get("leaf", 1))
    pods = ceil(leaves / given.get("pod", leaves or 1))
    spines = given.get("spines", 1)
    return int(2 * leaves * spines + 2 * pods * spines * given.get("cores", 1))


BOUNDS: Mapping[str, Callable[[Arguments], int]] = {
    "switch": _planes,
    "planes": _planes,
    "mesh": _mesh,
    "torus": _torus,
    "twisted_torus": _torus,
    "dragonfly": _dragonfly,
    "rails": _rails,
    "hierarchy": _hierarchy,
    "clos": _clos,
    "machine": _machine,
}
