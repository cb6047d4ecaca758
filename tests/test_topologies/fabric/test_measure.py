"""Plain numbers of fabrics small enough to check by hand."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies import (
    TopologyError,
    domain,
    domain_size,
    hierarchy,
    hops,
    latency,
    mesh,
    path_rate,
    slowdown,
    switch,
    torus,
)
from topologies.fabric.fabric import ACCELERATOR, fabric, link

RACKS = hierarchy(switch(4, up=9.0, latency=1e-6), 3, out=1.0, latency=3e-6)


def test_a_domain_is_the_chips_of_one_rack():
    """The four of rack 1, and no switch."""
    assert domain(RACKS, (1, 2)) == [(1, 0), (1, 1), (1, 2), (1, 3)]
    assert domain_size(RACKS, (1, 2)) == 4
    assert domain_size(torus((3, 3), link=1.0), (0, 0)) == 9


def test_slowdown_is_the_rate_inside_over_the_rate_outside():
    """Nine times slower between racks; for a mesh all links inside count together."""
    assert slowdown(RACKS, (0, 0)) == 9.0
    assert slowdown(hierarchy(mesh(8, link=64e9), 2, out=50e9), (0, 0)) == pytest.approx(8.96)


def test_a_path_within_a_rack_avoids_the_spine():
    """Both ways have two arcs; the one of less latency counts."""
    assert hops(RACKS, (0, 0), (0, 3)) == 2
    assert latency(RACKS, (0, 0), (0, 3)) == pytest.approx(2e-6)
    assert path_rate(RACKS, (0, 0), (0, 3)) == 9.0


def test_a_path_between_racks_takes_the_spine():
    """Two cards of 3 us each, at the card's rate."""
    assert hops(RACKS, (0, 0), (2, 3)) == 2
    assert latency(RACKS, (0, 0), (2, 3)) == pytest.approx(6e-6)
    assert path_rate(RACKS, (0, 0), (2, 3)) == 1.0


def test_chips_that_do_not_relay_are_no_way_through():
    """a - b - c in a line: there is a path in the graph, but b does not forward."""
    G = fabric("line")
    for node in "abc":
        G.add_node(node, kind=ACCELERATOR, forward=False, domain=0)
    link(G, "a", "b", bandwidth=1.0)
    link(G, "b", "c", bandwidth=1.0)
    with pytest.raises(TopologyError, match="no permitted path from 'a' to 'c'"):
        hops(G, "a", "c")
    G.nodes["b"]["forward"] = True
    assert hops(G, "a", "c") == 2


def test_of_equal_paths_the_widest_is_rated():
    """Two ways round a ring of four, one of them wider."""
    G = torus((4,), link=1.0)
    for u, v in ((0, 1), (1, 2)):
        G.edges[(u,), (v,)]["bandwidth"] = 5.0
    assert path_rate(G, (0,), (2,)) == 5.0
    assert path_rate(G, (2,), (0,)) == 1.0


def test_a_node_is_at_no_distance_from_itself_and_has_no_rate():
    """Never infinite: the question is refused."""
    assert (hops(RACKS, (0, 0), (0, 0)), latency(RACKS, (0, 0), (0, 0))) == (0, 0.0)
    with pytest.raises(TopologyError, match="crosses no link"):
        path_rate(RACKS, (0, 0), (0, 0))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: hops(RACKS, "x", "y"), "2 problems"),
        (lambda: domain(RACKS, ("spine",)), "is not an accelerator"),
        (lambda: slowdown(switch(2, up=1.0), (0,)), "has no scale_out link"),
    ],
)
def test_questions_about_what_is_not_there_are_refused(ask, said):
    """Unknown nodes, switches asked for their domain, domains without a way out."""
    with pytest.raises(TopologyError, match=said):
        ask()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
def test_hops_on_a_torus_are_those_of_the_plain_graph(dims, data):
    """Where everybody forwards, the permitted distance is the distance."""
    G = torus(dims, link=1.0, latency=2e-6)
    place = st.sampled_from(sorted(G))
    a, b = data.draw(place), data.draw(place)
    assert hops(G, a, b) == nx.shortest_path_length(G, a, b)
    assert latency(G, a, b) == pytest.approx(2e-6 * hops(G, a, b))
