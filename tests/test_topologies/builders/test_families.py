"""Builders of whole networks: what is wired to what, counted by hand, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loops import for_all
from topologies import (
    TopologyError,
    check,
    clos,
    dragonfly,
    hierarchy,
    hops,
    mesh,
    planes,
    rails,
    switch,
    torus,
    twisted_torus,
)
from topologies.builders import BUILDERS
from topologies.fabric.fabric import ACCELERATOR, SCALE_OUT, SWITCH, accelerators, fabric, link

SMALL = switch(4, up=8.0)


def test_every_family_is_known_by_name():
    """The registry holds the builders that the package exports."""
    known = {name: builder.__name__ for name, builder in BUILDERS.items()}
    assert known == {name: name for name in known}
    assert set(known) == {
        *("switch", "planes", "mesh", "torus", "twisted_torus"),
        *("rails", "clos", "dragonfly", "hierarchy"),
    }


COUNTS = [
    # Nodes and arcs of the study of network rates, where it lists them.
    (lambda: planes(8, 4, up=450e9), 8, 64),
    (lambda: planes(72, 18, up=900e9), 72, 2592),
    (lambda: rails(2, 8, up=450e9, out=50e9), 16, 64),
    (lambda: rails(16, 8, up=450e9, out=50e9), 128, 512),
    (lambda: hierarchy(switch(8, up=9.0), 16, out=1.0, join="clos", leaf=32, spines=4), 128, 544),
    (lambda: dragonfly(2, 4, 2, up=1.0, local=1.0, out=1.0), 72, 324),
    (lambda: twisted_torus((4, 4, 8), link=1.0), 128, 768),
    (lambda: hierarchy(switch(72, up=900e9), 16, out=1.0, join="rails"), 1152, 4608),
    # Each pair both ways; cards, then leaves to spines, then spines to cores.
    (lambda: mesh(8, link=64e9), 8, 56),
    (lambda: clos(12, out=1.0, leaf=4, levels=3, pod=2, spines=2, cores=3), 12, 24 + 12 + 24),
]


@for_all(("build", "chips", "arcs"), COUNTS)
def test_chips_and_arcs_are_as_many_as_counted(build, chips, arcs):
    """Every family at a size that can be counted on paper."""
    G = build()
    assert (len(accelerators(G)), G.number_of_edges()) == (chips, arcs)


@for_all("build", [row[0] for row in COUNTS])
def test_what_leaves_a_node_is_what_enters_it(build):
    """Cables are the same both ways, so the two sums of every node agree."""
    G = build()
    for node in G:
        out, into = G.out_degree(node, weight="bandwidth"), G.in_degree(node, weight="bandwidth")
        assert out == pytest.approx(into)
    assert all(G.has_edge(v, u) for u, v in G.edges)


def test_planes_share_a_chips_rate():
    """Eighteen switches of an NVL72 rack: 50 GB/s of 900 to each."""
    G = planes(72, 18, up=900e9)
    assert {rate for _, _, rate in G.edges(data="bandwidth")} == {50e9}
    assert G.out_degree((0,), weight="bandwidth") == pytest.approx(900e9)


def test_a_rail_joins_the_chips_of_its_rank():
    """Rank i of every node hangs on rail i, and on nothing else outside."""
    G = rails(3, 4, up=8.0, out=1.0)
    for i in range(4):
        assert set(G.succ["rail", i]) == {(r, i) for r in range(3)}
    assert all(G.nodes[chip]["forward"] for chip in accelerators(G))


def test_rails_without_relaying_need_a_spine():
    """Nobody passes on, nothing above: ranks of different nodes do not meet."""
    with pytest.raises(TopologyError, match="no permitted path from"):
        rails(2, 4, up=8.0, out=1.0, relay="none")
    G = rails(2, 4, up=8.0, out=1.0, relay="none", oversubscription=4, spines=2)
    assert G.edges[("rail", 0), ("spine", 1)]["bandwidth"] == pytest.approx(2 * 1.0 / 4 / 2)
    assert hops(G, (0, 0), (1, 1)) == 4


def test_a_sender_hands_over_to_the_card_of_the_receivers_rank():
    """With pxn the way is chip, switch, another's card, rail, receiver, and never by a chip."""
    G = rails(2, 4, up=8.0, out=1.0, relay="pxn")
    assert not any(G.nodes[chip]["forward"] for chip in accelerators(G))
    assert hops(G, (0, 0), (1, 0)) == 3
    assert hops(G, (0, 0), (1, 3)) == 4
    assert G.edges[(0, "switch"), (0, 3, "card")]["bandwidth"] == 1.0
    # What arrives goes to the chip itself: a node in between is no way to a third.
    assert set(G.pred[0, 3, "card"]) == {(0, 3), (0, "switch")}


@pytest.mark.parametrize(("levels", "pod"), [(2, None), (3, 2)])
def test_trunks_are_as_thin_as_their_oversubscription_says(levels, pod):
    """Four cards of 6 on a leaf at 2:1 and pods of two leaves at 3:1."""
    ratios = (2, 3)[: levels - 1]
    G = clos(16, out=6.0, leaf=4, levels=levels, oversubscription=ratios, spines=2, pod=pod)
    ups = Counter()
    for u, v, rate in G.edges(data="bandwidth"):
        ups[u[0], v[0]] += rate
    assert ups["leaf", "spine"] == pytest.approx(16 * 6.0 / 2)
    if levels == 3:
        assert ups["spine", "core"] == pytest.approx(16 * 6.0 / 2 / 3)


def test_rail_optimised_leaves_hold_one_rank_each():
    """Four nodes of four, two cards a leaf: two groups of four leaves."""
    G = clos(16, out=1.0, leaf=2, domain=SMALL, rail_optimised=True)
    assert set(G.succ["leaf", 1, 3]) == {(2, 3), (3, 3), ("spine", 0)}
    whole = clos(16, out=1.0, leaf=8, domain=SMALL)
    assert len([v for v in whole.succ["leaf", 1] if v[0] == 2]) == 4


def test_every_pair_of_dragonfly_groups_is_joined_alike():
    """All pairs of groups get equally many cables, all routers equally many out."""
    for groups, each in ((9, 1), (5, 2), (3, 4), (2, 8)):
        G = dragonfly(1, 4, 2, up=1.0, local=1.0, out=1.0, groups=groups)
        cables = Counter()
        for (g, *_), (o, *_), data in G.edges(data=True):
            if data["tier"] == SCALE_OUT:
                cables[g, o] += data["count"]
        assert set(cables.values()) == {each}
        assert len(cables) == groups * (groups - 1)


def test_hierarchies_nest_and_name_what_they_hold():
    """Pods of racks of nodes: chip 3 of node 1 of pod 2, in a scale-up domain of its own."""
    node = switch(4, up=8.0)
    rack = hierarchy(node, 2, out=1.0, join="rails")
    pod = hierarchy(rack, 3, out=0.5, at="switches")
    assert pod.nodes[2, 1, 3]["domain"] == (2, 1)
    assert len({pod.nodes[chip]["domain"] for chip in accelerators(pod)}) == 6
    assert set(pod.succ[("spine",)]) == {(r, "rail", i) for r in range(3) for i in range(4)}


def test_a_fabric_with_names_of_its_own_can_be_copied():
    """Names need not be tuples: copy r of node `a` is `(r, 'a')`."""
    G = fabric("given")
    G.add_node("sw", kind=SWITCH, forward=True)
    for chip in ("a", 1):
        G.add_node(chip, kind=ACCELERATOR, forward=False, domain="d")
        link(G, chip, "sw", bandwidth=1.0)
    several = hierarchy(G, 2, out=0.5, at="switches")
    assert set(several.succ[("spine",)]) == {(0, "sw"), (1, "sw")}
    assert several.nodes[1, "a"]["domain"] == 1


FAMILIES = st.sampled_from(
    [
        lambda: switch(3, up=5.0),
        lambda: planes(2, 2, up=5.0),
        lambda: mesh(3, link=2.0),
        lambda: torus((2, 3), link=2.0, wrap=False),
        lambda: twisted_torus((2, 4), link=2.0),
        lambda: rails(2, 2, up=5.0, out=1.0),
        lambda: clos(4, out=1.0, leaf=2),
        lambda: dragonfly(1, 2, 1, up=1.0, local=1.0, out=1.0),
    ]
)
JOINS = st.sampled_from(
    [
        {"join": "spine"},
        {"join": "rails"},
        {"join": "rails", "oversubscription": 2.0, "spines": 2, "relay": "none"},
        {"join": "clos", "leaf": 3, "spines": 2},
        {"join": "clos", "leaf": 2, "rail_optimised": True, "oversubscription": 4},
        {"join": "clos", "leaf": 2, "levels": 3, "pod": 2, "oversubscription": (2, 2)},
    ]
)


@settings(max_examples=60, deadline=None)
@given(FAMILIES, st.integers(1, 3), JOINS, JOINS, st.integers(1, 2))
def test_anything_can_be_copied_and_joined_in_any_way(family, count, join, above, times):
    """Sound, with all chips and domains there, every arc with its equal back, twice over."""
    domain = family()
    G = check(hierarchy(hierarchy(domain, count, out=1.0, **join), times, out=0.5, **above))
    chips = accelerators(G)
    assert len(chips) == count * times * len(accelerators(domain))
    domains = {G.nodes[chip]["domain"] for chip in chips}
    inner = {domain.nodes[chip]["domain"] for chip in accelerators(domain)}
    assert len(domains) == count * times * len(inner)
    for u, v, data in G.edges(data=True):
        assert G.edges[v, u]["bandwidth"] == data["bandwidth"]


@for_all(
    ("build", "said"),
    [
        (lambda: planes(4, 0, up=1.0), ["switches is 0"]),
        (lambda: switch(4, up=1.0, in_network_reduce="yes"), ["in_network_reduce is 'yes'"]),
        (lambda: switch(0, up=0.0, latency=2.0), ["chips is 0", "bandwidth is 0", "latency is 2"]),
        (lambda: torus((4, 0), link=(1.0, "x"), wrap=(True, 1)), ["dims[1]", "link[1]", "wrap[1]"]),
        (lambda: twisted_torus((4, 4, 4), link=1.0), ["sides k and 2k were expected"]),
        (lambda: twisted_torus((4,), link=1.0), ["sides k and 2k were expected"]),
        (
            lambda: rails(0, 2, up=-1.0, out="x", relay="pnx", oversubscription=0.5),
            ["nodes is 0", "up: bandwidth", "out: bandwidth", "mean 'pxn'", "oversubscription is"],
        ),
        (lambda: rails(2, 2, up=1.0, out=1.0, spines=2), ["rails have no spine unless"]),
        (lambda: clos(8, out=1.0, leaf=0, spines=0), ["spines is 0", "leaf is 0"]),
        (lambda: clos(8, out=1.0, leaf=2, levels=4), ["levels is 4; 2 or 3 was expected"]),
        (lambda: clos(8, out=1.0, leaf=2, levels=3), ["goes with levels=3 and only with it"]),
        (lambda: clos(8, out=1.0, leaf=2, oversubscription=(2, 2)), ["2 entries; 1 were expected"]),
        (lambda: clos(9, out=1.0, leaf=4, domain=SMALL), ["not whole domains of 4; 8 or 12 are"]),
        (lambda: clos(8, out=1.0, leaf=4, rail_optimised=True), ["without a domain"]),
        (lambda: dragonfly(1, 2, 0, up=1.0, local=0, out=1.0), ["h is 0", "local: bandwidth"]),
        (
            lambda: dragonfly(1, 4, 2, up=1.0, local=1.0, out=1.0, groups=8),
            ["groups is 8; the 8 cables of a group go evenly to all of 2, 3, 5, 9 groups"],
        ),
        (lambda: hierarchy(SMALL, 2, out=1.0, join="ring"), ["join is 'ring'"]),
        (lambda: hierarchy(SMALL, 2, out=1.0, leaf=2), ["which the joint 'spine' does not have"]),
        (lambda: hierarchy(SMALL, 2, out=1.0, join="clos"), ["leaf is not given"]),
        (lambda: hierarchy(mesh(2, link=1.0), 2, out=1.0, at="switches"), ["has none on top"]),
        (lambda: hierarchy(mesh(2, link=1.0), 2, out=1.0, relay="pxn"), ["no switch inside"]),
        (
            lambda: hierarchy(SMALL, 2, out=1.0, relay="pxn", at="switches"),
            ["which needs at='accelerators'"],
        ),
    ],
)
def test_all_arguments_are_looked_at_before_anything_is_built(build, said):
    """One error with every argument that is wrong."""
    with pytest.raises(TopologyError) as caught:
        build()
    assert len(caught.value.problems) == len(said), caught.value
    for part in said:
        assert part in str(caught.value)
