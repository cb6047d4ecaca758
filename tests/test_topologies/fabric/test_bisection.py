"""The bisection of a fabric: published figures, brute force, and how it answers to changes."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest

import topologies
from tests.loops import for_all
from topologies.fabric.fabric import fabric, link


def narrowest(G: topologies.fabric.Fabric) -> float:
    """The least that any half of the accelerators can send to the rest, by trying them all."""
    chips = [node for node, kind in G.nodes(data="kind") if kind == "accelerator"]
    found = []
    for half in combinations(chips, len(chips) // 2):
        H = nx.DiGraph()
        for u, v, rate in G.edges(data="bandwidth"):
            H.add_edge(u, v, capacity=rate)
        for chip in chips:
            ends = ("from", chip) if chip in half else (chip, "to")
            H.add_edge(*ends)
        found.append(nx.maximum_flow_value(H, "from", "to"))
    return min(found)


@pytest.mark.parametrize(("name", "rate"), [("tpu-v5e", 1.6e12), ("tpu-v6e", 3.2e12)])
def test_published_bisections(name, rate):
    """Google's pages of TPU v5e and v6e: 1.6 and 3.2 TB/s across a pod of 16x16."""
    assert topologies.bisection(topologies.graph(name)).rate == pytest.approx(rate)


SMALL = {
    "switch": topologies.switch(6, up=450e9),
    "odd switch": topologies.switch(5, up=450e9),
    "planes": topologies.planes(6, 3, up=450e9),
    "mesh": topologies.mesh(6, link=64e9),
    "ring": topologies.torus((8,), link=45e9),
    "torus": topologies.torus((4, 2), link=(45e9, 30e9)),
    "odd torus": topologies.torus((3, 3), link=45e9),
    "grid": topologies.torus((3, 2), link=45e9, wrap=False),
    "racks": topologies.hierarchy(topologies.switch(3, up=450e9), 2, out=50e9),
    "clos": topologies.clos(8, out=50e9, leaf=4, oversubscription=4),
}


@for_all("name", SMALL)
def test_regular_fabrics_have_no_narrower_half(name):
    """The cuts that are tried are the narrowest of all where a fabric is regular."""
    assert topologies.bisection(SMALL[name]).rate == pytest.approx(narrowest(SMALL[name]))


def test_the_slower_direction_counts():
    """Where one way is slower than the other, the halves exchange at the slower rate."""
    G = fabric("lopsided")
    for i in (0, 1):
        G.add_node(i, kind="accelerator", forward=False, domain=i)
    link(G, 0, 1, bandwidth=9.0, one_way=True)
    link(G, 1, 0, bandwidth=4.0, one_way=True)
    assert topologies.bisection(G).rate == 4.0


def test_it_is_linear_in_the_rates():
    """Links three times as fast, halves three times as fast."""
    slow, fast = (topologies.torus((4, 6), link=scale * 45e9) for scale in (1, 3))
    assert topologies.bisection(fast).rate == pytest.approx(3 * topologies.bisection(slow).rate)


def test_a_torus_is_halved_across_its_longest_side():
    """The longest side has fewest links across it."""
    assert topologies.bisection(topologies.torus((4, 4, 8), link=45e9)) == topologies.Bisection(
        rate=2 * 16 * 45e9, chips=64, across="z"
    )


def test_one_chip_has_no_halves():
    """It is a mistake to ask, not a rate of 0."""
    with pytest.raises(topologies.TopologyError, match="no halves"):
        topologies.bisection(topologies.switch(1, up=1e9))
