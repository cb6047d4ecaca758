"""Switches that add: their bound, who may use them, and what is left of it across nodes."""

from __future__ import annotations

import pytest

from topologies import TopologyError, hierarchy, mesh, switch, torus
from topologies.builders.clusters import clos
from topologies.builders.switches import planes
from topologies.rates.concurrent_collectives import (
    ALGORITHM_PLAIN,
    IN_NETWORK,
    all_reduce_bounds,
    best_all_reduce,
)
from topologies.rates.cut import all_reduce_rate


@pytest.mark.parametrize("n", [2, 3, 8, 72])
def test_one_switch_takes_all_once_and_gives_all_once(n: int) -> None:
    """With a switch that adds, S bytes are reduced at the rate of the link."""
    plain, reduced = all_reduce_bounds(switch(n, up=900e9, in_network_reduce=True))
    assert plain.bus_bandwidth == pytest.approx(900e9, rel=1e-7)
    assert reduced.algorithm_bandwidth == pytest.approx(900e9, rel=1e-7)
    assert reduced.bus_bandwidth == pytest.approx(900e9 * 2 * (n - 1) / n, rel=1e-7)


@pytest.mark.parametrize("switches", [2, 4, 18])
def test_planes_add_up(switches: int) -> None:
    """Several switches reduce a part each; together they are as one."""
    G = planes(8, switches, up=450e9, in_network_reduce=True)
    assert best_all_reduce(G).algorithm_bandwidth == pytest.approx(450e9, rel=1e-7)


def test_some_planes_that_add() -> None:
    """Where two of three planes add, the third still carries a plain all-reduce beside them."""
    G = planes(8, 3, up=3.0, in_network_reduce=True)
    some = [v for v, kind in G.nodes(data="kind") if kind == "switch"][:2]
    best = best_all_reduce(G, adding=some)
    assert best.algorithm_bandwidth == pytest.approx(2.0 + 8 / 14, rel=1e-7)


def test_small_groups_do_not_use_it() -> None:
    """Below the threshold of a machine the plain algorithm is all there is."""
    G = switch(8, up=450e9, in_network_reduce=True)
    four, five = ([(i,) for i in range(n)] for n in (4, 5))
    assert [b.algorithm for b in all_reduce_bounds(G, four, reduce_from=5)] == [ALGORITHM_PLAIN]
    assert best_all_reduce(G, four, reduce_from=5).algorithm == ALGORITHM_PLAIN
    assert best_all_reduce(G, five, reduce_from=5).algorithm == IN_NETWORK


def test_two_chips_gain_nothing() -> None:
    """To send S once is what two chips do anyway."""
    assert best_all_reduce(switch(2, up=1.0, in_network_reduce=True)).algorithm == ALGORITHM_PLAIN


def test_nothing_that_adds() -> None:
    """Meshes, tori and plain switches have one algorithm, of the rate of their cuts."""
    for G in (mesh(8, link=64e9), torus((4, 4), link=45e9), switch(8, up=300e9)):
        (only,) = all_reduce_bounds(G)
        others = only.members - 1
        assert only.bus_bandwidth == pytest.approx(all_reduce_rate(G) * others, rel=1e-7)


@pytest.mark.parametrize("nodes", [2, 4, 8])
def test_across_nodes_the_cards_bind(nodes: int) -> None:
    """Nodes reduce inside; between m of them 2 (m - 1)/m S cross the cards of each."""
    G = hierarchy(switch(8, up=900e9, in_network_reduce=True), nodes, out=50e9)
    cards = 8 * 50e9 / (2 * (nodes - 1) / nodes)
    assert best_all_reduce(G).algorithm_bandwidth == pytest.approx(cards, rel=1e-7)


def test_a_spine_that_adds_too() -> None:
    """With a spine that adds, S leaves a node once and enters it once."""
    G = hierarchy(switch(8, up=900e9, in_network_reduce=True), 4, out=50e9)
    every = [v for v, kind in G.nodes(data="kind") if kind == "switch"]
    best = best_all_reduce(G, adding=every)
    assert best.algorithm_bandwidth == pytest.approx(8 * 50e9, rel=1e-7)


def test_trees_of_switches_over_two_levels() -> None:
    """Leaves and spines that add: an oversubscribed leaf sends one sum up for all its chips."""
    G = clos(16, out=50e9, leaf=4, spines=2, oversubscription=4.0)
    every = [v for v, kind in G.nodes(data="kind") if kind == "switch"]
    leaves = [v for v in every if v[0] == "leaf"]
    rates = [best_all_reduce(G, adding=a).algorithm_bandwidth for a in ([], leaves, every)]
    # The cards bind, then 2 * 3/4 S on the link of each leaf, then S on every link.
    assert rates == pytest.approx([50e9 * 16 / 30, 50e9 * 4 / 6, 50e9], rel=1e-7)


def test_mistakes_are_named() -> None:
    """A threshold that counts nothing and nodes that are no switches."""
    G = switch(4, up=1.0)
    with pytest.raises(TopologyError, match="reduce_from is 0"):
        all_reduce_bounds(G, reduce_from=0)
    with pytest.raises(TopologyError, match="is not a switch of the fabric"):
        all_reduce_bounds(G, adding=[(0,)])
