"""A fabric as GraphML, for programs that draw or study graphs; it is written and never read.

Ids that are tuples become texts such as `0,1` and `spine`, and their parts are lost: who wants
the fabric back writes JSON.
"""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Integral, Real
from typing import Any

import networkx as nx

from topologies.fabric.errors import TopologyError
from topologies.fabric.fabric import Fabric

__all__ = ["text_of"]


def text_of(G: Fabric) -> str:
    """`G` as GraphML with typed attributes.

    Raises
    ------
    TopologyError
        When two ids would be the same text.
    """
    names = {node: _readable(node) for node in G}
    first: dict[str, Hashable] = {}
    twins = [
        f"node {node!r}: its id would be {name!r}, as that of {first[name]!r}"
        for node, name in names.items()
        if first.setdefault(name, node) != node
    ]
    if twins:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", twins)
    H: nx.DiGraph[Any] = nx.DiGraph(**_plain(G.graph))
    for node, data in G.nodes(data=True):
        H.add_node(names[node], **_plain(data))
    for u, v, data in G.edges(data=True):
        H.add_edge(names[u], names[v], **_plain(data))
    return "\n".join(nx.generate_graphml(H, named_key_ids=True)) + "\n"


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """Attributes of the types that GraphML has; what is not known is left out."""
    return {key: _typed(value) for key, value in data.items() if value is not None}


def _typed(value: Any) -> bool | int | float | str:
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else _readable(value)


def _readable(label: Any) -> str:
    """A label as one text: the parts of a tuple with commas between them."""
    if isinstance(label, tuple):
        return ",".join(
            f"({_readable(part)})" if isinstance(part, tuple) else _readable(part) for part in label
        )
    # XML cannot hold control characters, not even escaped.
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(label))
