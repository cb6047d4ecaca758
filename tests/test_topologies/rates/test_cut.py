"""The narrowest cut of a group against every cut there is, closed forms and published values."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from tests.loops import for_all
from topologies import TopologyError, hierarchy, mesh, rails, switch, torus
from topologies.fabric.fabric import ACCELERATOR, SWITCH, Fabric, accelerators, fabric, link
from topologies.rates import closed_forms
from topologies.rates.cut import CutSearch, all_gather_rate, all_reduce_rate, reduce_scatter_rate
from topologies.rates.flow_network import network, usable_subfabric
from topologies.rates.link_usage import Flows, group_subnetwork


def undeclared(G: Fabric) -> Fabric:
    H = G.copy()
    H.graph["orbits"] = False
    return H


def random_fabric(seed: int, *, chips: int = 5, switches: int = 2) -> Fabric:
    """A sound fabric with rates that differ by direction, some chips that do not relay."""
    rng = np.random.default_rng(seed)
    G = fabric(f"random {seed}")
    for i in range(chips):
        G.add_node(f"c{i}", kind=ACCELERATOR, forward=bool(rng.integers(2)), domain=0)
    for i in range(switches):
        G.add_node(f"s{i}", kind=SWITCH, forward=True)
    nodes = list(G)
    for v in nodes[1:]:
        link(G, v, "s0", bandwidth=float(rng.uniform(1, 9))) if v != "s0" else None
    link(G, "c0", "s0", bandwidth=float(rng.uniform(1, 9)))
    for a, b in combinations(nodes, 2):
        for u, v in ((a, b), (b, a)):
            if not G.has_edge(u, v) and rng.random() < 0.3:
                link(G, u, v, bandwidth=float(rng.uniform(1, 9)), one_way=True)
    return G


def every_cut(G: Fabric, members: list[Any]) -> float:
    """The least ratio over all sets of nodes that the group may use."""
    nodes = [v for v in G if G.nodes[v]["forward"] or v in members]
    H, best = G.subgraph(nodes), float("inf")
    for taken in product((False, True), repeat=len(nodes)):
        S = {v for v, there in zip(nodes, taken, strict=True) if there}
        held = sum(v in S for v in members)
        if 0 < held < len(members):
            out = [arc for u, v, arc in H.edges(data=True) if u in S and v not in S]
            leaving = sum(float(arc["bandwidth"]) for arc in out)
            best = min(best, leaving / held)
    return best


PUBLISHED = [
    ("HGX of 8", switch(8, up=450e9), 64.285714286),
    ("two HGX of 8", hierarchy(switch(8, up=450e9), 2, out=50e9), 33.333333333),
    ("NVL72", switch(72, up=900e9), 12.676056338),
    ("torus of 4x4x4", torus((4, 4, 4), link=45e9), 4.285714286),
    ("four times eight B200", hierarchy(switch(8, up=900e9), 4, out=50e9), 16.666666667),
]


@pytest.mark.parametrize(("name", "G", "value"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_cuts(name: str, G: Fabric, value: float) -> None:
    """The rates per share that the study of topologies found, in GB/s, orbits declared or not."""
    assert all_gather_rate(G).rate == pytest.approx(value * 1e9, rel=1e-9)
    assert all_gather_rate(undeclared(G)).rate == pytest.approx(value * 1e9, rel=1e-9)


@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_a_mesh_of_chips_that_do_not_relay(size: int) -> None:
    """In a part of a mesh each chip has its own links to the others and no more."""
    cut = all_gather_rate(mesh(8, link=64e9), [(i,) for i in range(size)])
    assert cut.bus_bandwidth == pytest.approx(64e9 * (size - 1), rel=1e-12)


def test_a_mesh_of_chips_that_relay() -> None:
    """Two chips of a mesh whose others relay receive over all their links."""
    G = mesh(8, link=64e9)
    for chip in G:
        G.nodes[chip]["forward"] = True
    assert all_gather_rate(G, [(0,), (1,)]).rate == pytest.approx(448e9, rel=1e-12)


@for_all("seed", range(12))
def test_no_cut_is_narrower(seed: int) -> None:
    """The rate is the least over all sets, of which there are few enough to try each."""
    G = random_fabric(seed)
    for members in (accelerators(G), accelerators(G)[:3]):
        assert all_gather_rate(G, members).rate == pytest.approx(every_cut(G, members), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_reduce_scatter_is_the_mirror(seed: int) -> None:
    """A reduce-scatter is an all-gather on the fabric with every arc turned round."""
    G = random_fabric(seed)
    turned = reduce_scatter_rate(G)
    assert turned.rate == pytest.approx(every_cut(G.reverse(), accelerators(G)), rel=1e-9)
    assert all(G.has_edge(u, v) and u in turned.starved for u, v in turned.arcs)


@pytest.mark.parametrize("seed", range(4))
def test_an_all_reduce_is_the_two_in_turn(seed: int) -> None:
    """Its time is the sum of their times."""
    G = random_fabric(seed)
    both = 1 / all_gather_rate(G).rate + 1 / reduce_scatter_rate(G).rate
    assert 2 / all_reduce_rate(G) == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_cut_is_full(seed: int) -> None:
    """The arcs of the cut carry what the members on the near side hold, and no more."""
    G = random_fabric(seed)
    cut = all_gather_rate(G)
    held = sum(chip not in cut.starved for chip in accelerators(G))
    entering = sum(G.edges[arc]["bandwidth"] for arc in cut.arcs)
    assert all(u not in cut.starved and v in cut.starved for u, v in cut.arcs)
    assert cut.rate * held == pytest.approx(entering, rel=1e-12)


SIDES = [(2,), (5,), (7,), (3, 3), (5, 3), (6, 4), (5, 5), (2, 8), (3, 4, 5), (2, 3, 7), (4, 4, 8)]


@for_all("sides", SIDES, ids=str)
@for_all("ring", [True, False], ids=["rings", "lines"])
def test_tori_and_grids_by_formula(sides: tuple[int, ...], ring: bool) -> None:
    """Odd, mixed and open boxes with a rate of its own on each side agree with the closed form."""
    links = [10e9, 7e9, 1e9][: len(sides)]
    expected = closed_forms.box(sides, links, [ring] * len(sides)).all_gather
    G = torus(sides, link=links, wrap=ring)
    assert all_gather_rate(G).rate == pytest.approx(expected, rel=1e-9)
    assert all_gather_rate(undeclared(G)).rate == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("g", "m", "out"), [(8, 2, 50e9), (8, 16, 50e9), (4, 3, 25e9), (3, 5, 7e9)]
)
def test_joined_domains_by_formula(g: int, m: int, out: float) -> None:
    """Switches joined by cards agree with the closed form."""
    inside = closed_forms.switch(g, 450e9)
    expected = closed_forms.multi_domain_rates(
        g * m, least=g, most=g, out=out, smallest=inside, largest=inside
    ).all_gather
    G = undeclared(hierarchy(switch(g, up=450e9), m, out=out))
    assert all_gather_rate(G).rate == pytest.approx(expected, rel=1e-9)


def test_a_slow_uplink_is_found() -> None:
    """A chip that can hardly send holds all others up, though it can receive."""
    G = undeclared(switch(64, up=64e9))
    G.edges[(5,), ("switch",)]["bandwidth"] = 1e6 / 3
    cut = all_gather_rate(G)
    assert cut.rate == pytest.approx(1e6 / 3, rel=1e-9)
    assert cut.arcs == (((5,), ("switch",)),)


@pytest.mark.parametrize("seed", range(4))
def test_rates_scale(seed: int) -> None:
    """All links a thousand and a seventh times as fast are as much faster together."""
    G = random_fabric(seed)
    H = G.copy()
    for _, _, arc in H.edges(data=True):
        arc["bandwidth"] *= 1000 + 1 / 7
    expected = all_gather_rate(G).rate * (1000 + 1 / 7)
    assert all_gather_rate(H).rate == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_more_links_never_harm(seed: int) -> None:
    """A link more, or a faster one, leaves the rate as it is or raises it."""
    G = random_fabric(seed)
    before = all_gather_rate(G).rate
    for a, b in combinations(list(G), 2):
        H = G.copy()
        if H.has_edge(a, b):
            H.edges[a, b]["bandwidth"] *= 2
        else:
            link(H, a, b, bandwidth=1.0, one_way=True)
        assert all_gather_rate(H).rate >= before * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_names_do_not_matter(seed: int) -> None:
    """Nodes under other names and in another order have the same rate."""
    G = random_fabric(seed)
    rng = np.random.default_rng(seed)
    names = {v: ("n", int(i)) for v, i in zip(G, rng.permutation(len(G)), strict=True)}
    H = fabric("other names")
    for v in sorted(names, key=names.__getitem__):
        H.add_node(names[v], **G.nodes[v])
    H.add_edges_from((names[u], names[v], data) for u, v, data in G.edges(data=True))
    assert all_gather_rate(H).rate == pytest.approx(all_gather_rate(G).rate, rel=1e-9)


def test_declared_orbits_hold_for_all_chips_only() -> None:
    """In a part of a torus the chips differ, though the torus declares that they do not."""
    G = torus((8,), link=1.0)
    members = [(0,), (1,), (2,), (5,)]
    assert all_gather_rate(G, members).rate == pytest.approx(every_cut(G, members), rel=1e-9)


def test_a_group_without_a_rate_is_a_mistake() -> None:
    """One member, strangers and chips named twice are reported, all at once."""
    G = switch(4, up=1.0)
    with pytest.raises(TopologyError, match="one takes no time"):
        all_gather_rate(G, [(0,)])
    with pytest.raises(TopologyError, match="3 problems"):
        all_gather_rate(G, [(0,), (0,), (9,), ("switch",)])


def test_chips_out_of_reach_are_named() -> None:
    """A group that no permitted path joins has no rate, not a rate of zero."""
    G = fabric("a line that does not relay")
    for i in range(3):
        G.add_node(i, kind=ACCELERATOR, forward=False, domain=0)
    link(G, 0, 1, bandwidth=1.0)
    link(G, 1, 2, bandwidth=1.0)
    with pytest.raises(TopologyError, match="no permitted path from"):
        all_gather_rate(G, [0, 2])
    assert all_gather_rate(G).rate == pytest.approx(0.5)


@for_all("members", [[(0, 0), (0, 1)], [(0, 0), (1, 3)], [(2, i) for i in range(4)]])
@for_all("relay", ["none", "pxn", "all"])
def test_chips_that_carry_nothing_change_nothing(members, relay):
    """A group of 16 chips on rails, among chips and switches that it has no use for."""
    G = rails(4, 4, up=450e9, out=50e9, relay=relay, oversubscription=2)
    part = usable_subfabric(G, members)
    assert (len(part) < len(G)) == (relay != "all")
    whole = group_subnetwork(network(G), np.array([list(G).index(node) for node in members]))
    search = CutSearch(Flows(whole))
    search.run([np.flatnonzero(whole.is_member)[i : i + 1] for i in range(len(members))])
    assert all_gather_rate(G, members).rate == pytest.approx(search.rate)
