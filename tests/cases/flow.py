"""Fabrics and a flow program without any reduction, for the tests of the flow engine."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

from topologies import dragonfly, hierarchy, mesh, planes, switch, torus, twisted_torus
from topologies.fabric.fabric import ACCELERATOR, SWITCH, fabric, link

GB = 1e9

# Rate per ordered pair [GB/s] of an all-to-all of all chips.
KNOWN = {
    "HGX-8 on one switch": (lambda: switch(8, up=450 * GB), 450 / 7),
    "HGX-8 on four switches": (lambda: planes(8, 4, up=450 * GB), 450 / 7),
    "MI300X mesh": (lambda: mesh(8, link=64 * GB), 64.0),
    "two HGX-8 on rails": (lambda: pods(8, 2, 450, 50, "rails"), 6.25),
    "4x4 torus": (lambda: torus((4, 4), link=64 * GB), 8.0),
    "NVL72 on one switch": (lambda: switch(72, up=900 * GB), 900 / 71),
    "NVL72 on 18 switches": (lambda: planes(72, 18, up=900 * GB), 900 / 71),
    "8x8 torus": (lambda: torus((8, 8), link=45 * GB), 0.703125),
    "4x4x4 torus": (lambda: torus((4, 4, 4), link=45 * GB), 1.40625),
    "4x4x8 torus": (lambda: torus((4, 4, 8), link=45 * GB), 0.3515625),
    "ring of 7": (lambda: torus((7,), link=10 * GB), 2 * 10 * 7 / (7 * 12)),
    "6x4 torus of two rates": (
        lambda: torus((6, 4), link=[30 * GB, 10 * GB]),
        min(2 * 30 * 6 / (24 * 9), 2 * 10 * 4 / (24 * 4)),
    ),
    "5x3 torus": (lambda: torus((5, 3), link=10 * GB), 2 * 10 * 5 / (15 * 6)),
    "3x2x2 torus": (lambda: torus((3, 2, 2), link=10 * GB), 10 * 2 / (12 * 1)),
    "16 nodes of 8 on rails": (lambda: pods(8, 16, 450, 50, "rails"), 50 / 120),
    "fat tree of 16 nodes": (lambda: tree(16, 1.0), 50 / 120),
    "fat tree, 4 to 1": (lambda: tree(16, 4.0), 400 / 4 / (8 * 120)),
    "dragonfly": (lambda: dragonfly(2, 4, 2, up=50 * GB, local=50 * GB, out=50 * GB), 50 / 71),
    "16x16 torus": (lambda: torus((16, 16), link=90 * GB), 0.17578125),
    "8x8x8 torus": (lambda: torus((8, 8, 8), link=90 * GB), 0.17578125),
    "576-port star": (lambda: switch(576, up=900 * GB), 900 / 575),
    "16 racks of 72 on rails": (lambda: pods(72, 16, 900, 100, "rails"), 100 / 1080),
    "4x4x8 twisted torus": (lambda: twisted_torus((4, 4, 8), link=45 * GB), 0.3515625 * 96 / 55),
    "4x8x8 twisted torus": (
        lambda: twisted_torus((4, 8, 8), link=45 * GB),
        8 * 45 / (256 * 8) * 32 / 23,
    ),
}


def pods(chips, count, up, out, join):
    return hierarchy(switch(chips, up=up * GB), count, out=out * GB, join=join)


def tree(nodes, ratio):
    return hierarchy(
        switch(8, up=450 * GB),
        nodes,
        out=50 * GB,
        join="clos",
        leaf=8,
        spines=4,
        oversubscription=ratio,
    )


def changed(G, *arcs, factor):
    """The fabric with some links faster or slower, both ways; 0 removes them."""
    H = G.copy()
    H.graph["orbits"] = False
    for u, v in arcs:
        for a, b in ((u, v), (v, u)):
            if factor:
                H.edges[a, b]["bandwidth"] *= factor
            else:
                H.remove_edge(a, b)
    return H


def renamed(G, seed):
    """The same fabric under other names, in another order, without any declaration."""
    draw = random.Random(seed)
    nodes, arcs = list(G), list(G.edges(data=True))
    draw.shuffle(nodes)
    draw.shuffle(arcs)
    number = {node: i for i, node in enumerate(nodes)}
    H = nx.DiGraph(**{**G.graph, "orbits": False})
    for node in nodes:
        kept = {k: x for k, x in G.nodes[node].items() if k not in ("orbit", "coord")}
        H.add_node(number[node], **kept)
    for u, v, data in arcs:
        kept = {k: x for k, x in data.items() if k != "orbit"}
        H.add_edge(number[u], number[v], **kept)
    return H, number


@st.composite
def fabrics(draw, most=6):
    """Chips that relay or not around a switch, and any further arcs of a few rates."""
    chips = draw(st.integers(2, most))
    G = fabric("any")
    G.add_node("hub", kind=SWITCH, forward=True)
    rates = st.sampled_from([1.0, 1.0, 2.0, 3.0, 5.0])
    for i in range(chips):
        G.add_node(i, kind=ACCELERATOR, forward=draw(st.booleans()), domain=0)
        link(G, i, "hub", bandwidth=draw(rates) * GB)
    ends = st.tuples(st.integers(0, chips - 1), st.integers(0, chips - 1))
    for u, v in sorted(draw(st.sets(ends.filter(lambda e: e[0] != e[1]), max_size=2 * chips))):
        link(G, u, v, bandwidth=draw(rates) * GB, one_way=True)
    return G


def pair_rate(G, demands):
    """The most that all of `{(from, to): weight}` can have at once, one commodity for each pair."""
    arcs = list(G.edges(data="bandwidth"))
    unit = max(rate for *_, rate in arcs)
    nodes = {node: i for i, node in enumerate(G)}
    rows, columns, values, loads = [], [], [], []
    width = height = 0
    for (a, b), weight in demands.items():
        for e, (u, v, _) in enumerate(arcs):
            if (u == a or G.nodes[u]["forward"]) and u != b and v != a:
                rows += [height + nodes[u], height + nodes[v]]
                columns += [width, width]
                values += [-1.0, 1.0]
                loads.append((e, width))
                width += 1
        rows += [height + nodes[a], height + nodes[b]]
        columns += [-1, -1]
        values += [weight, -weight]
        height += len(nodes)
    columns = [width if j < 0 else j for j in columns]
    balance = coo_array((values, (rows, columns)), shape=(height, width + 1))
    e, j = zip(*loads, strict=True)
    load = coo_array((np.ones(len(e)), (e, j)), shape=(len(arcs), width + 1))
    answer = linprog(
        np.r_[np.zeros(width), -1.0],
        A_ub=load.tocsr(),
        b_ub=[rate / unit for *_, rate in arcs],
        A_eq=balance.tocsr(),
        b_eq=np.zeros(height),
    )
    assert answer.status == 0
    return -answer.fun * unit


__all__ = ["GB", "KNOWN", "changed", "fabrics", "pair_rate", "pods", "renamed", "tree"]
