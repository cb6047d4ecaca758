"""Builders: what they give is sound, symmetric as declared, and counted by hand."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loops import for_all
from topologies import TopologyError, check, hierarchy, mesh, switch, torus
from topologies.fabric.fabric import ARC_ATTRIBUTES, NODE_ATTRIBUTES, accelerators


@for_all(
    ("build", "said"),
    [
        (lambda: switch(0, up=1.0), "chips is 0"),
        (lambda: switch(2.5, up=1.0), "chips is 2.5"),
        (lambda: switch(2, up=0), "bandwidth is 0"),
        (lambda: mesh(True, link=1.0), "chips is True"),
        (lambda: mesh(2, link="1 GB/s"), "the text '1 GB/s'"),
        (lambda: torus((), link=1.0), "one to three sides"),
        (lambda: torus(4, link=1.0), "one to three sides"),
        (lambda: torus((2, 2, 2, 2), link=1.0), "one to three sides"),
        (lambda: torus((4, -1), link=1.0), "dims[1] is -1"),
        (lambda: torus((4, 4), link=(1.0,)), "link has 1 entries for 2 dimensions"),
        (lambda: torus((4, 4), link=1.0, wrap=(True,)), "wrap has 1 entries for 2 dimensions"),
        (lambda: torus((4, 4), link="fast"), "the text 'fast'"),
        (lambda: torus((4,), link=1.0, latency=1), "less than 0.1 s"),
        (lambda: hierarchy(switch(2, up=1.0), 0, out=1.0), "count is 0"),
    ],
)
def test_builders_refuse_what_they_cannot_build(build, said):
    """Counts, sides and rates are looked at before a fabric is given out."""
    with pytest.raises(TopologyError) as caught:
        build()
    assert said in str(caught.value)


side = st.integers(1, 5)
rate = st.floats(1e6, 1e13)


@st.composite
def domains(draw):
    """Any domain the builders know."""
    kind = draw(st.sampled_from(["switch", "mesh", "torus"]))
    if kind == "torus":
        dims = draw(st.lists(side, min_size=1, max_size=3))
        rates = draw(st.lists(rate, min_size=len(dims), max_size=len(dims)))
        wrap = draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
        return torus(dims, link=rates, latency=1e-6, wrap=wrap), prod(dims)
    chips = draw(st.integers(1, 8))
    return (
        switch(chips, up=draw(rate)) if kind == "switch" else mesh(chips, link=draw(rate))
    ), chips


@settings(max_examples=60, deadline=None)
@given(domains(), st.integers(1, 3), rate)
def test_whatever_is_built_is_sound_and_the_same_both_ways(built, count, out):
    """Builders speak only the vocabulary; every arc has its equal back."""
    domain, chips = built
    G = check(hierarchy(domain, count, out=out))
    assert len(accelerators(G)) == count * chips
    for u, v, data in G.edges(data=True):
        assert G.edges[v, u]["bandwidth"] == data["bandwidth"]
        assert data.keys() <= ARC_ATTRIBUTES.keys()
    assert all(data.keys() <= NODE_ATTRIBUTES.keys() for _, data in G.nodes(data=True))


@settings(max_examples=40, deadline=None)
@given(domains())
def test_declared_orbits_are_alike_in_degree_and_rate(built):
    """Nodes of an orbit have the same multiset of outgoing rates, a need of any symmetry."""
    G, _ = built
    if not G.graph["orbits"]:
        return
    seen = {}
    for node, orbit in G.nodes(data="orbit"):
        out = sorted((d["bandwidth"], d["orbit"]) for _, _, d in G.out_edges(node, data=True))
        assert seen.setdefault(orbit, out) == out
    rates = {}
    for _, _, data in G.edges(data=True):
        assert rates.setdefault(data["orbit"], data["bandwidth"]) == data["bandwidth"]


@pytest.mark.parametrize(
    ("dims", "wrap", "arcs"),
    [
        ((4, 4, 4), True, 384),
        ((2, 2), True, 8),
        ((1, 3), True, 6),
        ((3,), False, 4),
        ((1,), True, 0),
    ],
)
def test_a_torus_has_two_links_per_chip_and_long_side(dims, wrap, arcs):
    """A side of two has one link, a side of one none."""
    assert torus(dims, link=1.0, wrap=wrap).number_of_edges() == arcs


def test_a_pod_of_nine_thousand_chips_is_built_whole():
    """Six arcs leave every chip of 16x24x24."""
    G = torus((16, 24, 24), link=90e9, latency=1e-6)
    assert (len(G), G.number_of_edges()) == (9216, 55296)
