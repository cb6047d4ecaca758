"""Changes to a built fabric: links, network cards and nodes removed or degraded.

A change is a mapping. It names a `link` (two nodes) or a `node` (all links of it), and says
`remove`, or any of `factor` and `bandwidth` and `latency`:

    {"link": [[0, 0, 0], [0, 0, 1]], "factor": 0.5}
    {"node": [0, 3], "tier": "scale_out", "remove": True}
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeAlias

from topologies.fabric.fabric import TIERS, Arc, Fabric, Node, without_orbits
from topologies.fabric.limits import TopologyError, as_tuples, latency_fault, rate_fault, suggest
from topologies.fabric.soundness import check

KEYS = {
    "link": "the two nodes that a link joins",
    "node": "a node: the change is for all its links",
    "remove": "True: the link is gone, or the node with all its links",
    "factor": "what the bandwidth is multiplied by",
    "bandwidth": "of the link in each direction that is meant. [byte/s one way]",
    "latency": "of the link. [s]",
    "one_way": "True: only the arc from the first node to the second, or out of the node",
    "tier": "of a node's links only those of this tier",
}
CHANGE_KEYS = ("remove", "factor", "bandwidth", "latency")


OverrideChange: TypeAlias = Mapping[str, Any]  # by the words of `KEYS`


def override(G: Fabric, changes: Sequence[OverrideChange]) -> Fabric:
    """A copy of `G` with the changes made in turn, checked again.

    Raises TopologyError, listing every problem with the index of its change: unknown keys and
    nodes, links that are not there or are gone already, unsound figures, and changes after which
    accelerators cannot reach each other.

    Args:
        changes: Each with the keys of `KEYS`. Nodes are given as the builder names them, lists for
            tuples, a lone word or number for a tuple of one. A node with a `tier` keeps its other
            links, which is how a network card fails.

    Orbits that `G` declares are dropped as soon as anything changes: what was interchangeable
    before need not be so any more.

    >>> from topologies import torus
    >>> G = override(torus((4, 4), link=45e9), [{"link": [(0, 0), (0, 1)], "factor": 0.5}])
    >>> G.edges[(0, 1), (0, 0)]["bandwidth"], G.graph["orbits"]
    (22500000000.0, False)
    """
    if isinstance(changes, Mapping | str) or not isinstance(changes, Sequence):
        raise TopologyError("override", f"changes is {changes!r}; a list of mappings was expected")
    check(G)
    state = _State(without_orbits(G.copy()) if changes else G.copy())
    for index, change in enumerate(changes):
        _change(state, index, change)
    if state.problems:
        raise TopologyError(_where(G), state.problems)
    try:
        return check(state.fabric)
    except TopologyError:
        index, problems = _cut(G, changes)
        faults = [f"override[{index}]: after it, {problem}" for problem in problems]
        raise TopologyError(_where(G), faults) from None


@dataclass
class _State:
    """Fabric with all changes applied, nodes removed from it, and problems found."""

    fabric: Fabric
    gone: dict[Node, int] = field(default_factory=dict)
    set_by: dict[tuple[Node, Node, str], int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def _where(G: Fabric) -> str:
    return f"overrides of fabric {G.graph.get('name')!r}"


def _cut(G: Fabric, changes: Sequence[OverrideChange]) -> tuple[int, tuple[str, ...]]:
    """Return the index of the change after which the fabric stays unsound, and its problems."""
    state = _State(without_orbits(G.copy()))
    first: tuple[int, tuple[str, ...]] | None = None
    for index, change in enumerate(changes):
        _change(state, index, change)
        try:
            check(state.fabric)
        except TopologyError as error:
            # A later change may remove the nodes that this change cuts off.
            first = first or (index, error.problems)
        else:
            first = None
    return first or (len(changes) - 1, ())


def _change(state: _State, index: int, change: OverrideChange) -> None:
    """Make one change, or note why it cannot be made."""
    faults = _form_faults(change)
    arcs: list[Arc] = []
    node: Node | None = None
    if not faults:
        try:
            node, arcs = _subject(state, change)
        except TopologyError as error:
            faults += error.problems
    if not faults and not change.get("remove"):
        faults += _repeats(state, index, change, arcs)
    if faults:
        state.problems += [f"override[{index}]: {fault}" for fault in faults]
        return
    if change.get("remove"):
        state.gone |= dict.fromkeys(arcs, index)
        state.fabric.remove_edges_from(arcs)
        if node is not None and "tier" not in change and not change.get("one_way"):
            state.gone[node] = index
            state.fabric.remove_node(node)
        return
    for u, v in arcs:
        data = state.fabric.edges[u, v]
        data["bandwidth"] = change.get("bandwidth", data["bandwidth"]) * change.get("factor", 1)
        data["latency"] = change.get("latency", data["latency"])


def _form_faults(change: object) -> list[str]:
    """Faults of a change that do not depend on the fabric."""
    if not isinstance(change, Mapping):
        return [f"{change!r} is no mapping; one with link or node was expected"]
    faults = [f"unknown key {key!r}; {suggest(key, KEYS)}" for key in change if key not in KEYS]
    if ("link" in change) == ("node" in change):
        faults.append("either link or node is to be given, and not both")
    if not any(key in change for key in CHANGE_KEYS):
        faults.append(f"it changes nothing; one of {', '.join(CHANGE_KEYS)} was expected")
    for flag in ("remove", "one_way"):
        if flag in change and not isinstance(change[flag], bool):
            faults.append(f"{flag} is {change[flag]!r}; True or False was expected")
    if change.get("remove") is False and not any(key in change for key in CHANGE_KEYS[1:]):
        faults.append("remove is False, which changes nothing")
    if change.get("remove") is True and any(key in change for key in CHANGE_KEYS[1:]):
        faults.append("a removed link has no bandwidth, latency or factor")
    if "factor" in change and "bandwidth" in change:
        faults.append("factor and bandwidth are both given; one says the rate")
    for key, fault in FAULTS.items():
        if key in change and (wrong := fault(change[key])) is not None:
            faults.append(f"{key} {wrong}")
    if "tier" in change and "link" in change:
        faults.append("tier goes with node: a link has one tier")
    elif "tier" in change and change["tier"] not in TIERS:
        faults.append(f"tier is {change['tier']!r}; {suggest(change['tier'], TIERS)}")
    return faults


def _factor_fault(value: object) -> str | None:
    fault = rate_fault(value)
    if fault is None:
        return None
    if value == 0 and not isinstance(value, bool):
        return "is 0; remove=True takes the link away"
    return f"is {value!r}; a number above 0 was expected, such as 0.5"


FAULTS = {"bandwidth": rate_fault, "factor": _factor_fault, "latency": latency_fault}


def _subject(state: _State, change: OverrideChange) -> tuple[Node, list[Arc]]:
    """The node that a change names, if any, and its arcs; TopologyError for what is not there."""
    G, one_way = state.fabric, change.get("one_way", False)
    if "node" in change:
        (node,) = _nodes(state, [change["node"]])
        tier = change.get("tier")
        arcs = [*G.out_edges(node), *([] if one_way else G.in_edges(node))]
        arcs = [arc for arc in arcs if tier is None or G.edges[arc].get("tier") == tier]
        if not arcs and not (change.get("remove") and tier is None):
            raise TopologyError("node", f"{node!r} has no link{f' of tier {tier}' if tier else ''}")
        return node, arcs
    ends = change["link"]
    if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
        raise TopologyError("link", f"link is {ends!r}; a list of two nodes was expected")
    u, v = _nodes(state, ends)
    arcs = [(u, v)] if one_way else [(u, v), (v, u)]
    present = [arc for arc in arcs if G.has_edge(*arc)]
    if present:
        return None, present
    if arcs[0] in state.gone:
        fault = f"link {u!r} - {v!r} is gone already, by override[{state.gone[arcs[0]]}]"
        raise TopologyError("link", fault)
    beside = sorted({repr(w) for w in [*G.succ[u], *([] if one_way else G.pred[u])]})
    more = f" and {len(beside) - 6} more" if len(beside) > 6 else ""
    raise TopologyError(
        "link",
        f"no link {'from' if one_way else 'joins'} {u!r} {'to' if one_way else 'and'} {v!r}; "
        f"{u!r} is linked to {', '.join(beside[:6]) or 'nothing'}{more}",
    )


def _nodes(state: _State, names: Iterable[object]) -> list[Node]:
    """Return the nodes of the given names; raises TopologyError if any is missing."""
    G, nodes, faults = state.fabric, [], []
    for name in names:
        plain = as_tuples(name)
        present = [node for node in (plain, (plain,)) if _is_in(node, G)]
        if present:
            nodes.append(present[0])
            continue
        gone = [node for node in (plain, (plain,)) if _is_in(node, state.gone)]
        if gone:
            faults.append(f"node {gone[0]!r} is gone already, by override[{state.gone[gone[0]]}]")
        else:
            faults.append(f"no node {plain!r}; {_nearest(plain, G)}")
    if faults:
        raise TopologyError("nodes", faults)
    return nodes


def _is_in(node: Node, among: Container[Node]) -> bool:
    try:
        return node in among
    except TypeError:  # a mapping, say, is no name of a node
        return False


def _nearest(name: object, G: Fabric) -> str:
    written = [repr(node) for node in G]
    wanted = repr(name if isinstance(name, tuple) else (name,))
    close = get_close_matches(wanted, written, n=1) or get_close_matches(repr(name), written, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"the fabric has {len(written)} nodes, such as {', '.join(written[:4])}"


def _repeats(state: _State, index: int, change: OverrideChange, arcs: Iterable[Arc]) -> list[str]:
    """Figures that an earlier change has set to something else."""
    faults = []
    for key in ("bandwidth", "latency"):
        for u, v in arcs:
            before = state.set_by.get((u, v, key)) if key in change else None
            if before is not None:
                faults.append(f"{key} of {u!r} -> {v!r} is set by override[{before}] already")
        if key in change:
            state.set_by |= {(u, v, key): index for u, v in arcs}
    return faults[:2]
