"""Scene of a picture: domains, levels and link classes, and which of many like nodes are drawn.

Nothing is asked of a fabric but the vocabulary of a fabric: a builder's network, a file's and one
made by hand are read alike. Links that join nodes of the same roles at the same rate are one
class, which is labelled once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import networkx as nx

from topologies.fabric.fabric import ACCELERATOR, SCALE_OUT, Fabric, Node, accelerators, by_domain
from topologies.picture.svg_canvas import counted_text


@dataclass(frozen=True)
class PictureLimits:
    """Limits of detail: chips in all, domains, switches of one row, places along a torus' side."""

    chips: int
    domains: int
    row: int
    side: int


T = TypeVar("T")


class LinkKind(NamedTuple):
    """Class of links regardless of rate; `axis` gives the sides that its links run along."""

    tier: str
    roles: tuple[str, str]  # of the two ends
    one_way: bool
    axis: tuple[int, ...] = ()  # of a torus; empty elsewhere


class LinkFigures(NamedTuple):
    """Bandwidths there and back [byte/s; None for one way], latency [s], parallel cables."""

    there: float
    back: float | None
    latency: float
    cables: int


# Tried in turn until the picture has few enough marks.
DETAIL_LEVELS = (
    PictureLimits(36, 4, 9, 8),
    PictureLimits(28, 4, 8, 5),
    PictureLimits(20, 3, 6, 4),
    PictureLimits(12, 3, 4, 3),
)


@dataclass(frozen=True, eq=False)
class Gap:
    """More of the same, not drawn; each gap is itself alone."""

    items: tuple[Node, ...]

    @property
    def count(self) -> int:
        """Number of items left out."""
        return len(self.items)


def limit_items(items: Sequence[T], limit: int, must: Collection[T] = ()) -> list[T | Gap]:
    """At most `limit` of the items in their order, with a `Gap` wherever some are left out.

    Those that `must` be there come first, then the first ones, and the last.
    """
    limit = max(limit, 2)
    if len(items) <= limit:
        return list(items)
    wanted = [i for i, item in enumerate(items) if item in must][: limit - 1]
    wanted = list(dict.fromkeys([*wanted, len(items) - 1]))
    others = [i for i in range(limit) if i not in wanted][: max(limit - 1 - len(wanted), 0)]
    picked: list[T | Gap] = []
    for before, i in pairwise([-1, *sorted([*wanted, *others])]):
        left_out = items[before + 1 : i]
        picked += left_out if len(left_out) < 2 else [Gap(tuple(left_out))]
        picked.append(items[i])
    return picked


def without_gaps(items: Iterable[T | Gap]) -> list[T]:
    """The items themselves, without the gaps."""
    return [item for item in items if not isinstance(item, Gap)]


CHIP = "chip"


@dataclass(frozen=True)
class Link:
    """A cable between two nodes, or an arc without a reverse arc."""

    a: Node
    b: Node
    kind: LinkKind
    figures: LinkFigures


@dataclass(frozen=True)
class LinkClass:
    """Links of one kind and one rate; `faulty` are those that are slower than their like."""

    kind: LinkKind
    figures: LinkFigures
    number: int
    faulty: bool = False

    @property
    def rate(self) -> float:
        """Bandwidth of one of its links, all cables in it together. [byte/s one way]"""
        return self.figures.there


@dataclass(frozen=True)
class Scene:
    """A fabric, sorted for drawing.

    `domains` holds the chips of each domain; `inside` the domain of every other node that only
    one domain has; `level` is 0 for chips, then counts outwards, inside and above domains apart.
    """

    G: Fabric
    domains: dict[Node, list[Node]]
    inside: dict[Node, Node]
    level: dict[Node, int]
    links: tuple[Link, ...]
    classes: tuple[LinkClass, ...]

    @property
    def above(self) -> dict[int, list[Node]]:
        """Nodes that several domains share, by level."""
        rows: dict[int, list[Node]] = defaultdict(list)
        for node, level in self.level.items():
            if node not in self.inside and self.G.nodes[node].get("kind") != ACCELERATOR:
                rows[level].append(node)
        return dict(sorted(rows.items()))

    def inner_rows(self, domain: Node) -> dict[Node, list[Node]]:
        """Nodes of a domain that are not chips: network cards, then switches and hosts by level."""
        rows: dict[Node, list[Node]] = defaultdict(list)
        for node, where in self.inside.items():
            if where == domain:
                card = self.G.nodes[node].get("kind") == "nic"
                rows["nic" if card else self.level[node]].append(node)
        return dict(sorted(rows.items(), key=lambda pair: str(pair[0])))

    def domain_title(self, domain: Node) -> str:
        """Title of a domain, with the count of nodes of each role."""
        roles = Counter(role(self.G, n) for n, where in self.inside.items() if where == domain)
        counts = {CHIP: len(self.domains[domain]), **roles}
        inside = ", ".join(counted_text(many, name) for name, many in counts.items())
        name = "one scale-up domain" if len(self.domains) == 1 else f"domain {label(domain)}"
        return f"{name}: {inside}"

    def beside(self, node: Node, others: Container[Node]) -> bool:
        """Is the node linked to any of the others?"""
        return any(other in others for other in (*self.G.succ[node], *self.G.pred[node]))

    def faulty(self, link: Link) -> bool:
        """Is the link slower than others of its kind?"""
        alike = (c for c in self.classes if (c.kind, c.figures) == (link.kind, link.figures))
        return any(c.faulty for c in alike)


def read(G: Fabric) -> Scene:
    """`G` sorted for drawing."""
    # The domain of each node that is no accelerator and that only one domain can claim. Two or more
    # domains are needed for a network between them; a node joined by scale-out is drawn above,
    # even if a single domain hangs on it.
    kinds = dict(G.nodes(data="kind"))
    joined: nx.Graph[Node] = nx.Graph()
    joined.add_nodes_from(node for node, kind in kinds.items() if kind != ACCELERATOR)
    near = [(u, v) for u, v, arc in G.edges(data=True) if arc["tier"] != SCALE_OUT]
    joined.add_edges_from((u, v) for u, v in near if u in joined and v in joined)
    inside: dict[Node, Node] = {}
    for plane in nx.connected_components(joined):
        claims = {
            None if arc["tier"] == SCALE_OUT else G.nodes[end].get("domain")
            for node in plane
            for beside in (G.succ[node], G.pred[node])
            for end, arc in beside.items()
            if kinds[end] == ACCELERATOR
        }
        if len(claims) == 1 and None not in claims:
            inside |= dict.fromkeys(plane, *claims)
    inside = {node: inside[node] for node in G if node in inside}
    links = tuple(_links(G))
    # Link classes in order of first occurrence, each marked as faulty or not.
    found_by: dict[LinkKind, Counter[LinkFigures]] = defaultdict(Counter)
    for link in links:
        found_by[link.kind][link.figures] += 1
    classes = tuple(
        LinkClass(kind, figures, number, _slow(figures, number, found))
        for kind, found in found_by.items()
        for figures, number in found.items()
    )
    return Scene(G, by_domain(G), inside, _levels(G, inside), links, classes)


def label(node: Node, *, short: bool = False) -> str:
    """A node's name for people: `("leaf", 0, 1)` is `leaf 0.1`; short, the last part alone."""
    if not isinstance(node, tuple):
        return str(node)
    if short and len(node) > 1 and not isinstance(node[-1], tuple):
        return str(node[-1])
    words = [str(part) for part in node if isinstance(part, str)]
    places = ".".join(str(part) for part in node if not isinstance(part, str))
    return " ".join([*words, places]).strip()


def side_name(d: int) -> str:
    """Name of a side of a torus: x, y, z, then w4 and so on."""
    return "xyz"[d] if d < len("xyz") else f"w{d + 1}"


def role(G: Fabric, node: Node) -> str:
    """Role of a node: chip, or its kind of switch by its name."""
    kind = G.nodes[node].get("kind")
    if kind == ACCELERATOR:
        return CHIP
    if kind in ("nic", "host"):
        return str(kind)
    parts = node if isinstance(node, tuple) else (node,)
    for part in parts:
        if isinstance(part, str):
            stem = re.match(r"[^\W\d_]+", part)
            return stem.group()[:40] if stem else "switch"
    return "switch"


def _levels(G: Fabric, inside: dict[Node, Node]) -> dict[Node, int]:
    """Steps from the nearest chip, counted inside the domains first, then above them."""
    level: dict[Node, int] = dict.fromkeys(accelerators(G), 0)
    for within in (True, False):
        steps, queue = dict.fromkeys(level, 0), list(level)
        for node in queue:  # which grows
            for neighbour in (*G.succ[node], *G.pred[node]):
                if neighbour not in steps and (neighbour in inside) == within:
                    steps[neighbour] = steps[node] + 1
                    queue.append(neighbour)
        level = steps | level
    return level | dict.fromkeys((node for node in G if node not in level), 1)  # nothing joins them


def _links(G: Fabric) -> Iterator[Link]:
    """Cables once each; where the two ways differ in more than their rate, as two."""
    order = {node: i for i, node in enumerate(G)}
    named = {node: role(G, node) for node in G}
    coords = {node: tuple(at or ()) for node, at in G.nodes(data="coord")}
    for u, v, there in G.edges(data=True):
        back = G.succ[v].get(u)
        if back is not None and order[u] > order[v]:
            continue
        roles = tuple(sorted((named[u], named[v]), key=lambda r: (r != CHIP, r)))
        places = coords[u], coords[v]
        axis: tuple[int, ...] = ()
        if len(places[0]) == len(places[1]):
            axis = tuple(d for d, (p, q) in enumerate(zip(*places, strict=True)) if p != q)
        kind = LinkKind(there["tier"], (roles[0], roles[1]), back is None, axis)
        rates = there["bandwidth"], None if back is None else back["bandwidth"]
        figures = LinkFigures(*rates, there.get("latency", 0.0), there.get("count", 1))
        yield Link(u, v, kind, figures)


def _slow(figures: LinkFigures, number: int, others: Counter[LinkFigures]) -> bool:
    usual, many = others.most_common(1)[0]
    there, back = figures.there, figures.back or figures.there
    slower = there < usual.there or back < (usual.back or usual.there)
    return slower and number * 5 <= many
