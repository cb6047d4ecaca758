"""The chips that take part in a collective, checked before anything is worked out."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from topologies.fabric.fabric import ACCELERATOR, Fabric, Node, accelerators
from topologies.fabric.limits import TopologyError


def chosen(what: str, G: Fabric, members: Iterable[Hashable] | None) -> list[Node]:
    """The members in the order given; all accelerators of `G` if none are named.

    Raises
    ------
    TopologyError
        Listing every member that is no accelerator of `G` or is named twice; or because there
        are fewer than two: a chip alone has nobody to send to, it takes no time and has no rate.
    """
    group = accelerators(G) if members is None else list(members)
    problems = list(_faults(G, group))
    if not problems and len(group) < 2:
        problems.append(f"{len(group)} members; a rate needs at least two (one takes no time)")
    if problems:
        raise TopologyError(what, problems)
    return group


def disjoint(what: str, G: Fabric, groups: Sequence[Iterable[Hashable]]) -> list[list[Node]]:
    """The groups of two or more members; a group of one has nothing to do.

    Raises
    ------
    TopologyError
        Listing every member that is no accelerator, or is named twice in one group or in two;
        or because no group has two.
    """
    listed = [list(group) for group in groups]
    problems = list(_faults(G, [member for group in listed for member in group]))
    several = [group for group in listed if len(group) > 1]
    if not problems and not several:
        problems.append("no group has two members; a rate needs at least two (one takes no time)")
    if problems:
        raise TopologyError(what, problems)
    return several


def _faults(G: Fabric, members: list[Node]) -> Iterator[str]:
    seen: set[Hashable] = set()
    kinds = dict(G.nodes(data="kind"))
    for member in members:
        if member not in kinds:
            yield f"{member!r} is not a node of the fabric"
        elif kinds[member] != ACCELERATOR:
            yield f"{member!r} is a {kinds[member]}, not an accelerator"
        elif member in seen:
            yield f"{member!r} is named twice"
        seen.add(member)
