"""Collectives side by side, against cuts, closed forms and sums worked out by hand."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest

from topologies import TopologyError, hierarchy, mesh, switch, torus
from topologies.fabric.fabric import ACCELERATOR, SWITCH, Fabric, accelerators, fabric, link
from topologies.rates import concurrent_collectives as jointly
from topologies.rates.concurrent_collectives import joint_rate
from topologies.rates.cut import all_gather_rate, all_reduce_rate, reduce_scatter_rate


def chips_only(seed: int, chips: int = 5) -> Fabric:
    """Chips joined at random, rates that differ by direction; some do not relay."""
    rng = np.random.default_rng(seed)
    G = fabric(f"random {seed}")
    for i in range(chips):
        G.add_node(i, kind=ACCELERATOR, forward=bool(rng.integers(2)), domain=0)
        if i:
            link(G, i, int(rng.integers(i)), bandwidth=float(rng.uniform(1, 9)))
    for u, v in product(range(chips), repeat=2):
        if u != v and not G.has_edge(u, v) and rng.random() < 0.3:
            link(G, u, v, bandwidth=float(rng.uniform(1, 9)), one_way=True)
    return G


@pytest.mark.parametrize("seed", range(6))
def test_one_group_is_its_cut(seed: int) -> None:
    """Where every node is a member nothing but cuts limits a gather or a scatter."""
    G = chips_only(seed)
    everyone = [accelerators(G)]
    gathered, scattered = all_gather_rate(G).rate, reduce_scatter_rate(G).rate
    assert joint_rate(G, everyone).rate == pytest.approx(gathered, rel=1e-7)
    assert joint_rate(G, everyone, "reduce_scatter").rate == pytest.approx(scattered, rel=1e-7)


FABRICS = {
    "switch": switch(8, up=450.0),
    "mesh": mesh(5, link=64.0),
    "nodes": hierarchy(switch(4, up=900.0), 3, out=50.0),
    "torus": torus((3, 4), link=(2.0, 3.0)),
    "cube": torus((4, 4, 4), link=45.0),
    "rack": switch(72, up=900.0),
}


@pytest.mark.parametrize("name", FABRICS)
def test_both_halves_at_once_gain_nothing_on_regular_fabrics(name: str) -> None:
    """Cut and program agree, and an all-reduce is as fast as its two halves in turn."""
    G = FABRICS[name]
    everyone = [accelerators(G)]
    assert joint_rate(G, everyone).rate == pytest.approx(all_gather_rate(G).rate, rel=1e-7)
    both = joint_rate(G, everyone, "all_reduce").rate
    assert both == pytest.approx(all_reduce_rate(G), rel=1e-7)


@pytest.mark.parametrize("name", FABRICS)
def test_flows_and_cuts_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow for every target, or just the cuts that are needed: one optimum."""
    G = FABRICS[name].copy()
    G.edges[next(iter(G.edges))]["bandwidth"] *= 0.7
    flows = joint_rate(G, [accelerators(G)], "all_reduce")
    monkeypatch.setattr(jointly, "MAX_FOLD", 0)
    cuts = joint_rate(G, [accelerators(G)], "all_reduce")
    assert cuts.engine.endswith("cuts")
    assert cuts.rate == pytest.approx(flows.rate, rel=1e-7)


def test_a_torus_without_any_symmetry() -> None:
    """Where no two links are alike, cuts are added until the bound is proven."""
    rng = np.random.default_rng(1)
    G = torus((4, 4, 4), link=90.0)
    for _, _, arc in G.edges(data=True):
        arc["bandwidth"] *= float(rng.uniform(0.5, 1))
    joint = joint_rate(G, [accelerators(G)], "all_reduce")
    # Both halves cross at least one link to each chip: 2 n (n - 1) shares on all links together.
    most = G.size(weight="bandwidth") / (64 * 63)
    assert all_reduce_rate(G) * (1 - 1e-9) <= joint.rate <= most
    assert joint.engine.endswith("cuts")


def test_both_halves_at_once_gain_on_a_line() -> None:
    """In a line of three a link carries the sum up, the result down: S each way, not 4/3 S."""
    G = torus((3,), link=1.0, wrap=False)
    assert all_reduce_rate(G) == pytest.approx(1 / 2)
    assert joint_rate(G, [accelerators(G)], "all_reduce").rate == pytest.approx(2 / 3)


def test_groups_that_share_nothing_do_not_meet() -> None:
    """Groups of a rack have links of their own: all at once are as fast as each alone."""
    G = switch(24, up=900.0)
    groups = [[(8 * g + i,) for i in range(8)] for g in range(3)]
    alone = all_gather_rate(G, groups[0]).rate
    assert joint_rate(G, groups).rate == pytest.approx(alone, rel=1e-7)


def test_groups_that_share_a_link_divide_it() -> None:
    """Two pairs across one cable have half of it each; a third pair beside them is no matter."""
    G = fabric("two switches and a cable")
    for s in "ab":
        G.add_node(s, kind=SWITCH, forward=True)
        for i in range(3):
            G.add_node((s, i), kind=ACCELERATOR, forward=False, domain=0)
            link(G, (s, i), s, bandwidth=10.0)
    link(G, "a", "b", bandwidth=3.0)
    across = [[("a", i), ("b", i)] for i in range(2)]
    assert joint_rate(G, across[:1]).rate == pytest.approx(3.0)
    assert joint_rate(G, across).rate == pytest.approx(1.5)
    joint = joint_rate(G, [*across, [("a", 2)]])
    assert joint.rate == pytest.approx(1.5)
    assert set(joint.binding) <= {("a", "b"), ("b", "a")}


def test_opposite_corners_of_a_ring() -> None:
    """Two pairs of opposite chips in a ring of four send over two hops each: half of all links."""
    G = torus((4,), link=1.0)
    opposite = [[(0,), (2,)], [(1,), (3,)]]
    assert joint_rate(G, opposite[:1]).rate == pytest.approx(2.0)
    assert joint_rate(G, opposite).rate == pytest.approx(1.0)


def test_cubes_of_a_torus_cannot_lend_each_other_links() -> None:
    """Alone, a 2x2x2 cube of a torus uses links all round; when all work, only its own."""
    G = torus((4, 4, 4), link=45.0)
    corners = list(product((0, 2), repeat=3))
    steps = list(product((0, 1), repeat=3))
    groups = [[(x + a, y + b, z + c) for a, b, c in steps] for x, y, z in corners]
    assert all_gather_rate(G, groups[0]).bus_bandwidth == pytest.approx(270.0)
    assert joint_rate(G, groups).rate * 7 == pytest.approx(135.0, rel=1e-7)


def test_data_parallel_groups_across_racks() -> None:
    """Chips of equal place in 16 racks of 72 have their cards: the same at any number of groups."""
    G = hierarchy(switch(72, up=900.0), 16, out=100.0)
    groups = [[(r, i) for r in range(16)] for i in range(72)]
    assert joint_rate(G, groups, "all_reduce").rate * 15 == pytest.approx(100.0, rel=1e-7)


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_reduce"])
def test_scale_links_and_names(collective: str) -> None:
    """Rates scale with the links, do not fall with one more, and know no names."""
    G = chips_only(3, chips=6)
    groups = [[0, 1, 2], [3, 4, 5]]
    before = joint_rate(G, groups, collective).rate
    faster = G.copy()
    for _, _, arc in faster.edges(data=True):
        arc["bandwidth"] *= 7.5e9
    assert joint_rate(faster, groups, collective).rate == pytest.approx(before * 7.5e9, rel=1e-7)
    for u, v in nx.non_edges(G):
        more = G.copy()
        link(more, u, v, bandwidth=1.0, one_way=True)
        assert joint_rate(more, groups, collective).rate >= before * (1 - 1e-7)
    other = nx.relabel_nodes(G, {i: f"n{(5 * i + 2) % 6}" for i in range(6)})
    named = [[f"n{(5 * i + 2) % 6}" for i in group] for group in groups]
    assert joint_rate(other, named, collective).rate == pytest.approx(before, rel=1e-7)


def test_groups_that_cannot_be_judged() -> None:
    """Members in two groups, strangers, groups of one only, an unknown collective."""
    G = switch(4, up=1.0)
    with pytest.raises(TopologyError, match="2 problems"):
        joint_rate(G, [[(0,), (1,)], [(1,), (9,)]])
    with pytest.raises(TopologyError, match="no group has two members"):
        joint_rate(G, [[(0,)], [(1,)]])
    with pytest.raises(TopologyError, match="did you mean 'all_gather'"):
        joint_rate(G, [[(0,), (1,)]], "allgather")
    line = torus((3,), link=1.0, wrap=False)
    for chip in line:
        line.nodes[chip]["forward"] = False
    with pytest.raises(TopologyError, match="no permitted path"):
        joint_rate(line, [[(0,), (2,)]])
