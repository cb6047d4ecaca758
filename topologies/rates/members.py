"""The chips that take part in a collective, checked before anything is worked out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from topologies.errors import TopologyError
from topologies.fabric import ACCELERATOR, Fabric, accelerators

__all__ = ["chosen"]


def chosen(what: str, G: Fabric, members: Iterable[Hashable] | None) -> list[Any]:
    """The members in the order given; all accelerators of `G` if none are named.

    Raises
    ------
    TopologyError
        Listing every member that is no accelerator of `G` or is named twice; or because there
        are fewer than two: a chip alone has nobody to send to, it takes no time and has no rate.
    """
    group = accelerators(G) if members is None else list(members)
    seen: set[Hashable] = set()
    problems = []
    for member in group:
        if member not in G:
            problems.append(f"{member!r} is not a node of the fabric")
        elif G.nodes[member].get("kind") != ACCELERATOR:
            problems.append(f"{member!r} is a {G.nodes[member].get('kind')}, not an accelerator")
        elif member in seen:
            problems.append(f"{member!r} is named twice")
        seen.add(member)
    if not problems and len(group) < 2:
        problems.append(f"{len(group)} members; a rate needs at least two (one takes no time)")
    if problems:
        raise TopologyError(what, problems)
    return group
