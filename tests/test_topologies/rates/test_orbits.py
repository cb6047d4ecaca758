"""Declared orbits are orbits: a symmetry of the fabric takes each member to each other one."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from networkx.algorithms.isomorphism import DiGraphMatcher

from tests.sizes import first
from topologies import clos, dragonfly, hierarchy, mesh, planes, rails, switch, torus, twisted_torus

RATES = {"up": 8.0, "out": 1.0}
SMALL = switch(3, up=8.0)
GRID = torus((3, 2), link=2.0, wrap=False)

FABRICS = {
    "switch": lambda: switch(5, up=1.0),
    "planes": lambda: planes(4, 3, up=1.0),
    "mesh": lambda: mesh(5, link=1.0),
    "ring": lambda: torus((5,), link=1.0),
    "line": lambda: torus((5,), link=1.0, wrap=False),
    "torus": lambda: torus((4, 3), link=1.0),
    "equal sides": lambda: torus((3, 3), link=1.0),
    "unequal rates": lambda: torus((3, 3), link=(1.0, 2.0)),
    "sides of two": lambda: torus((2, 2, 3), link=1.0),
    "grid": lambda: torus((3, 4), link=1.0, wrap=False),
    "square grid": lambda: torus((3, 3), link=1.0, wrap=False),
    "cylinder": lambda: torus((3, 4), link=1.0, wrap=(True, False)),
    "box": lambda: torus((2, 3, 3), link=(1.0, 2.0, 2.0), wrap=(True, False, False)),
    "twisted 2x4": lambda: twisted_torus((2, 4), link=1.0),
    "twisted 3x6": lambda: twisted_torus((3, 6), link=1.0),
    "twisted unequal": lambda: twisted_torus((2, 2, 4), link=(1.0, 2.0, 1.0)),
    "rails": lambda: rails(2, 3, **RATES),
    "rails of one": lambda: rails(3, 1, **RATES),
    "rails with cards": lambda: rails(2, 3, **RATES, relay="pxn"),
    "rails with spines": lambda: rails(2, 3, **RATES, relay="none", oversubscription=2, spines=2),
    "leaves": lambda: clos(6, out=1.0, leaf=2, spines=2),
    "leaves not full": lambda: clos(5, out=1.0, leaf=2),
    "pods": lambda: clos(8, out=1.0, leaf=2, levels=3, pod=2, spines=2, cores=2),
    "pods not full": lambda: clos(10, out=1.0, leaf=2, levels=3, pod=2),
    "pods and leaves not full": lambda: clos(11, out=1.0, leaf=2, levels=3, pod=2),
    "domains below leaves": lambda: clos(12, out=1.0, leaf=6, domain=SMALL),
    "domains cut by leaves": lambda: clos(6, out=1.0, leaf=2, domain=SMALL),
    "rail-optimised": lambda: clos(12, out=1.0, leaf=2, domain=SMALL, rail_optimised=True),
    "rail-optimised not full": lambda: clos(9, out=1.0, leaf=2, domain=SMALL, rail_optimised=True),
    "rail-optimised grids": lambda: clos(
        12, out=1.0, leaf=1, domain=GRID, rail_optimised=True, spines=2
    ),
    "dragonfly": lambda: dragonfly(1, 3, 1, up=1.0, local=2.0, out=3.0),
    "dragonfly two out": lambda: dragonfly(1, 2, 2, up=1.0, local=2.0, out=3.0),
    "dragonfly few groups": lambda: dragonfly(1, 4, 1, up=1.0, local=2.0, out=3.0, groups=3),
    "two groups": lambda: dragonfly(2, 3, 2, up=1.0, local=2.0, out=3.0, groups=2),
    "grids on a spine": lambda: hierarchy(GRID, 2, out=1.0),
    "grids on rails": lambda: hierarchy(GRID, 2, out=1.0, join="rails"),
    "racks of nodes": lambda: hierarchy(rails(2, 2, **RATES), 2, out=0.5),
    "racks above rails": lambda: hierarchy(rails(2, 2, **RATES), 2, out=0.5, at="switches"),
    "rails above rails": lambda: hierarchy(
        rails(2, 2, **RATES), 2, out=0.5, at="switches", join="rails"
    ),
    "leaves above racks": lambda: hierarchy(
        hierarchy(switch(2, up=8.0), 2, out=1.0), 3, out=0.5, join="clos", leaf=8
    ),
}
PLACES = ("domain", "coord")  # say where a node is, not what it is


def marked(G, marks):
    H = G.copy()
    for node, data in H.nodes(data=True):
        for place in PLACES:
            data.pop(place, None)
        data["mark"] = marks.get(node)
    return H


def symmetric(G, here, there):
    """Does a symmetry that keeps every orbit take the nodes `here` to `there`, in order?"""
    a = marked(G, {node: i for i, node in enumerate(here)})
    b = marked(G, {node: i for i, node in enumerate(there)})
    same = dict.__eq__
    return DiGraphMatcher(a, b, node_match=same, edge_match=same).is_isomorphic()


@pytest.mark.parametrize("name", first(13, FABRICS))
def test_members_of_an_orbit_are_interchangeable(name):
    """For any two nodes, or arcs, of one label a symmetry that keeps all labels exists."""
    G = FABRICS[name]()
    if not G.graph["orbits"]:
        assert name in ("domains cut by leaves",)
        return
    orbits = {}
    for node, orbit in G.nodes(data="orbit"):
        orbits.setdefault(orbit, []).append((node,))
    for u, v, orbit in G.edges(data="orbit"):
        orbits.setdefault(("arc", orbit), []).append((u, v))
    for members in orbits.values():
        for here, there in pairwise(members):
            assert symmetric(G, here, there), (here, there)


@pytest.mark.parametrize("dims", [(2, 4), (2, 2, 4), (4, 4, 8), (4, 8, 8), (6, 3, 6)], ids=str)
def test_a_twisted_torus_looks_the_same_along_every_axis(dims):
    """Any exchange of axes and any shift maps links to links: there is one orbit of arcs."""
    G, short, all_axes = twisted_torus(dims, link=1.0), min(dims), range(len(dims))

    def chip(vector):
        """The chip that so many steps along each axis lead to."""
        turns = sum(x // short for x, side in zip(vector, dims, strict=True) if side == short)
        return tuple(
            x % short if side == short else (x + turns * short) % side
            for x, side in zip(vector, dims, strict=True)
        )

    for axes in permutations(all_axes):
        image = {v: chip(tuple(v[a] + 1 for a in axes)) for v in G}
        assert len(set(image.values())) == len(G)
        assert all(G.has_edge(image[u], image[v]) for u, v in G.edges)
    assert {degree for _, degree in G.out_degree} == {2 * len(dims)}


def test_the_check_of_symmetry_sees_a_wrong_label():
    """The end and the middle of a line are no orbit."""
    G = torus((3,), link=1.0, wrap=False)
    for _, data in G.nodes(data=True):
        data["orbit"] = "chip"
    assert not symmetric(G, [(0,)], [(1,)])
    assert symmetric(G, [(0,)], [(2,)])
