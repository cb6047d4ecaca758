"""Formulas of whole networks against the linear program, the minimum cut and published rates."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.cases import network_forms
from tests.loops import for_all
from topologies import clos, dragonfly, hierarchy, mesh, planes, rails, switch, torus, twisted_torus
from topologies.fabric.fabric import accelerators
from topologies.rates import closed_forms
from topologies.rates.cut import all_gather_rate
from topologies.rates.flow import all_to_all_rate
from topologies.rates.shortest_paths import ShortestPaths

RATE = st.sampled_from([1.0, 2.0, 3.0, 5.0, 9.0, 45.0])
RATIO = st.sampled_from([1, 1.5, 2, 4])


def hop_bound(G, members=None):
    """What the links allow each pair: their capacity over the hops that all pairs need."""
    group = members or accelerators(G)
    usable = {node for node, forward in G.nodes(data="forward") if forward or node in group}
    rate = sum(arc["bandwidth"] for u, v, arc in G.edges(data=True) if {u, v} <= usable)
    return rate / ShortestPaths(G).distances(group, group).hops.sum()


def assert_agree(G, shares):
    """Exchange as the linear program, gather as the minimum cut."""
    assert all_to_all_rate(G).rate == pytest.approx(shares.all_to_all, rel=1e-6)
    assert all_gather_rate(G).rate == pytest.approx(shares.all_gather, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), RATE, RATE, st.none() | RATIO, st.booleans())
def test_rails_reach_their_formula(nodes, chips, up, out, ratio, relay):
    """Any number of nodes and chips, any rates, with and without spines and relaying."""
    assume(nodes * chips > 1)
    relay = relay or ratio is None
    G = rails(
        nodes, chips, up=up, out=out, relay="all" if relay else "none", oversubscription=ratio
    )
    given = {"up": up, "out": out, "relay": relay, "oversubscription": ratio}
    assert_agree(G, network_forms.rails(nodes, chips, **given))


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), RATE, RATE)
def test_handing_over_to_a_card_exchanges_as_much_as_relaying(nodes, chips, up, out):
    """What senders do alone is enough where all do the same."""
    handed = all_to_all_rate(rails(nodes, chips, up=up, out=out, relay="pxn")).rate
    assert handed == pytest.approx(all_to_all_rate(rails(nodes, chips, up=up, out=out)).rate)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.integers(2, 6), RATE, RATE)
def test_clos_networks_reach_their_formula(data, chips, below, domains, up, out):
    """Two levels and three, chips alone and in domains, leaves and pods full and not."""
    leaf, n = chips * below, chips * domains
    pod = data.draw(st.none() | st.integers(1, 3))
    ratios = data.draw(st.tuples(RATIO) if pod is None else st.tuples(RATIO, RATIO))
    cut = {"out": out, "leaf": leaf, "oversubscription": ratios, "pod": pod}
    domain = None if chips == 1 else switch(chips, up=up)
    G = clos(n, levels=len(ratios) + 1, spines=2, domain=domain, **cut)
    assert_agree(G, network_forms.clos(n, **cut, chips=chips, up=up))


@pytest.mark.parametrize("dims", [(2, 4), (3, 6), (2, 2, 4), (2, 4, 4), (8, 4), (4, 4, 8)], ids=str)
def test_twisted_tori_reach_their_formula(dims):
    """Every way that can be the same is: capacity over distances is the flow itself."""
    assert_agree(twisted_torus(dims, link=45.0), closed_forms.twisted_torus_rates(dims, 45.0))


@pytest.mark.parametrize(
    ("dims", "gain"), [((4, 4, 8), 1.7454545), ((4, 8, 8), 1.3913043)], ids=str
)
def test_a_twist_gains_what_is_published(dims, gain):
    """Over the plain torus of the same sides, by formula and by the bound of hops."""
    plain = closed_forms.box(dims, (50e9,) * 3, (True,) * 3).all_to_all
    assert closed_forms.twisted_torus_rates(dims, 50e9).all_to_all / plain == pytest.approx(
        gain, rel=1e-7
    )
    assert hop_bound(twisted_torus(dims, link=50e9)) / plain == pytest.approx(gain, rel=1e-7)


@pytest.mark.parametrize(("chips", "switches"), [(2, 1), (5, 3), (8, 4)])
def test_planes_are_one_switch_in_parts(chips, switches):
    """As fast as one switch with the sum of the links."""
    shares = network_forms.planes(chips, switches, 12.0 / switches)
    assert shares == closed_forms.switch(chips, 12.0)
    assert_agree(planes(chips, switches, up=12.0), shares)


PUBLISHED = [
    ("rails", network_forms.rails(2, 8, up=450e9, out=50e9).all_to_all, 6.25e9),
    ("gather", network_forms.rails(2, 8, up=450e9, out=50e9).all_gather, 33.3333e9),
    ("B200", network_forms.rails(4, 8, up=900e9, out=50e9).all_gather, 16.6667e9),
    ("pod", network_forms.rails(16, 8, up=450e9, out=50e9).all_to_all, 0.416667e9),
    ("racks", network_forms.rails(16, 72, up=900e9, out=100e9).all_to_all, 0.0925926e9),
    (
        "relaying at 4:1",
        network_forms.rails(4, 8, up=450e9, out=50e9, oversubscription=4).all_to_all,
        2.083333e9,
    ),
    (
        "no relaying at 4:1",
        network_forms.rails(4, 8, up=450e9, out=50e9, relay=False, oversubscription=4).all_to_all,
        0.595238e9,
    ),
    (
        "leaves at 4:1",
        network_forms.clos(
            128, out=50e9, leaf=32, oversubscription=(4,), chips=8, up=450e9
        ).all_to_all,
        0.130208e9,
    ),
]


@for_all(("value", "expected"), [row[1:] for row in PUBLISHED], ids=str)
def test_known_values_of_networks_come_out(value, expected):
    """Rates of the study of network rates, solved there without a formula."""
    assert value == pytest.approx(expected, rel=4e-6)


def test_a_dragonfly_exchanges_what_the_study_found():
    """p 2, a 4, h 2 at 50 GB/s a link: what enters a chip binds, 50/71."""
    G = dragonfly(2, 4, 2, up=50e9, local=50e9, out=50e9)
    assert all_to_all_rate(G).rate == pytest.approx(0.704225e9, rel=1e-6)


BOUNDED = [
    lambda: switch(5, up=4.0),
    lambda: mesh(4, link=3.0),
    lambda: torus((3, 5), link=(1.0, 2.0)),
    lambda: torus((4, 3), link=1.0, wrap=False),
    lambda: rails(2, 3, up=8.0, out=1.0),
    lambda: clos(8, out=1.0, leaf=2, oversubscription=2),
    lambda: dragonfly(1, 3, 1, up=1.0, local=2.0, out=3.0),
    lambda: hierarchy(torus((2, 2), link=2.0), 2, out=1.0, join="rails"),
]


@for_all("build", BOUNDED)
def test_no_exchange_beats_the_lengths_of_its_ways(build):
    """The bound of hops holds on any fabric."""
    G = build()
    assert all_to_all_rate(G).rate <= hop_bound(G) * (1 + 1e-9)


@pytest.mark.parametrize("dims", [(5,), (4, 4), (3, 3, 3)], ids=str)
def test_the_bound_of_hops_is_reached_where_all_links_are_alike(dims):
    """Tori of equal sides."""
    rings = (True,) * len(dims)
    theta = closed_forms.box(dims, (7.0,) * len(dims), rings).all_to_all
    assert hop_bound(torus(dims, link=7.0)) == pytest.approx(theta, rel=1e-12)


def test_the_bound_of_hops_counts_only_links_that_can_be_used():
    """Two chips of a mesh have one link between them: the others do not relay."""
    assert hop_bound(mesh(8, link=64e9), [(0,), (5,)]) == 64e9
