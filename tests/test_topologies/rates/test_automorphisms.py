"""Symmetry shortens the work and never changes the answer, whatever is declared or hashed."""

from __future__ import annotations

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tests.cases.flow import GB, KNOWN, changed, fabrics, pods, renamed
from tests.loops import for_all
from topologies import clos, switch, torus
from topologies.fabric.fabric import accelerators, fabric, link
from topologies.rates import color_refinement as refinement
from topologies.rates.automorphisms import ColoredStructure
from topologies.rates.color_refinement import equitable_partition
from topologies.rates.flow import all_to_all_rate, concurrent_flow
from topologies.rates.flow_network import demand, network
from topologies.rates.flow_program import ReducedProgram, by_program
from topologies.rates.orbits import orbits
from topologies.rates.traffic import all_to_all, pairs

TRANSITIVE = [name for name in KNOWN if "dragonfly" not in name]


def found(G, traffic=None):
    """Numbers of orbits among the sources and among the arcs."""
    net = network(G)
    what = demand(net, traffic or all_to_all(accelerators(G)))
    orbit = orbits(net, what)
    return np.unique(orbit.nodes[what.sources()]).size, np.unique(orbit.arcs).size


def unreduced(G, traffic=None):
    """The rate of the program with every source and every arc."""
    net = network(G)
    what = demand(net, traffic or all_to_all(accelerators(G)))
    from topologies.rates.automorphisms import Orbits

    none = Orbits(np.arange(what.size), np.arange(net.tail.size))
    program = ReducedProgram(net, what, none, "any")
    return by_program(program, fold=False).theta * program.unit


@for_all("name", TRANSITIVE)
def test_chips_that_are_alike_are_found_to_be(name):
    """One source stands for all, under the names of the builder and under any others."""
    G = KNOWN[name][0]()
    assert found(G)[0] == 1
    assert found(renamed(G, 1)[0])[0] == 1


@pytest.mark.parametrize(
    "build",
    [
        lambda: clos(8000, out=50 * GB, leaf=2, levels=3, pod=20, cores=2),
        lambda: clos(512, out=50 * GB, leaf=16, levels=3, pod=4, domain=switch(8, up=450 * GB)),
        lambda: clos(600, out=50 * GB, leaf=6, spines=5, oversubscription=2),
    ],
)
def test_blocks_of_a_large_clos_network_are_seen_in_their_names(build, monkeypatch):
    """One source of thousands, without a search of what looks alike."""
    monkeypatch.setattr("topologies.rates.orbits.AutomorphismSearch", None)
    assert found(build())[0] == 1


@for_all("name", KNOWN)
def test_names_and_order_do_not_matter(name):
    """The rate after shuffling, without a declaration, is the rate before."""
    G = KNOWN[name][0]()
    H, _ = renamed(G, 7)
    assert all_to_all_rate(H).rate == pytest.approx(all_to_all_rate(G).rate, rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(fabrics(most=5))
def test_what_is_joined_is_an_orbit(G):
    """Against all permutations of the chips of a small fabric: never coarser."""
    net = network(G)
    what = demand(net, all_to_all(accelerators(G)))
    orbit = orbits(net, what)
    whole = ColoredStructure(net, what)
    fixed = net.index["hub"]
    alike = {(i, i) for i in range(len(net.nodes))}
    for chips in permutations([i for i in range(len(net.nodes)) if i != fixed]):
        move = np.insert(np.array(chips), fixed, fixed)
        extended = whole.extended(move)
        if extended is not None and whole.images(extended) is not None:
            alike |= set(enumerate(move.tolist()))
    joined = {
        (int(i), int(j))
        for i in range(len(net.nodes))
        for j in np.flatnonzero(orbit.nodes == orbit.nodes[i])
    }
    assert joined <= alike
    assert joined == alike


def frucht():
    """Three links at each of twelve chips, and yet no two chips are alike."""
    G = fabric("Frucht graph", orbits=True)
    for i in range(12):
        G.add_node(i, kind="accelerator", forward=True, domain=0, orbit="chip")
    for u, v in nx.frucht_graph().edges:
        link(G, u, v, bandwidth=GB, orbit="cable")
    return G


def test_a_false_declaration_does_not_change_the_answer():
    """Every chip is declared like every other, and local colours agree; none is."""
    G = frucht()
    assert found(G) == (12, 36)
    assert all_to_all_rate(G).rate == pytest.approx(unreduced(G), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_largest_torus_is_known_by_any_name(seed):
    """9,216 chips whose names say nothing: every chip is like every other."""
    G, _ = renamed(torus((16, 24, 24), link=GB), seed)
    assert found(G, all_to_all(list(G)))[0] == 1


def test_a_declaration_that_a_fault_has_made_false_is_not_believed():
    """A link is slowed after the torus has declared its orbits."""
    G = torus((4, 4), link=GB)
    G.edges[(0, 0), (0, 1)]["bandwidth"] /= 4
    assert G.graph["orbits"]
    assert all_to_all_rate(G).rate == pytest.approx(unreduced(G), rel=1e-9)


def test_traffic_breaks_the_symmetry_of_a_fabric():
    """Three chips of a torus are not four lines of it."""
    G = torus((4, 4), link=GB)
    corner = all_to_all([(0, 0), (0, 1), (1, 2)])
    assert found(G, corner)[0] > 1
    assert concurrent_flow(G, corner).rate == pytest.approx(unreduced(G, corner), rel=1e-9)


def test_groups_move_as_groups():
    """Blocks of a ring: a step by a block is a symmetry, a step by one is not."""
    G = torus((12,), link=GB)
    blocks = all_to_all(*([(3 * k + i,) for i in range(3)] for k in range(4)))
    assert found(G, blocks)[0] == 2
    rate = concurrent_flow(G, blocks).rate
    assert rate == pytest.approx(unreduced(G, blocks), rel=1e-9)


def test_weights_of_pairs_tell_chips_apart():
    """A ring in which each sends to the next is a ring; one heavier pair makes it none."""
    G = torus((6,), link=GB)
    steps = {((i,), ((i + 1) % 6,)): 1.0 for i in range(6)}
    assert found(G, pairs(steps))[0] == 1
    heavier = steps | {((0,), (1,)): 2.0}
    assert found(G, pairs(heavier))[0] > 1
    assert concurrent_flow(G, pairs(heavier)).rate == pytest.approx(
        unreduced(G, pairs(heavier)), rel=1e-9
    )


def test_relaying_tells_chips_apart():
    """A chip that passes on is unlike one that does not."""
    G = switch(4, up=GB)
    G.nodes[(0,)]["forward"] = True
    assert found(G)[0] == 2


@settings(max_examples=20, deadline=None)
@given(fabrics(), st.integers(0, 99))
def test_any_fabric_has_its_rate_under_any_names(G, seed):
    """Random fabrics, shuffled."""
    H, _ = renamed(G, seed)
    assert all_to_all_rate(H).rate == pytest.approx(all_to_all_rate(G).rate, rel=1e-7)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.data())
def test_copies_in_a_matrix_fold_into_one(rows, columns, copies, data):
    """A matrix beside itself folds to what it folds to alone, and sums over classes agree."""
    cells = st.lists(st.sampled_from([0.0, 1.0, -2.0]), min_size=columns, max_size=columns)
    block = np.array(data.draw(st.lists(cells, min_size=rows, max_size=rows)))
    whole = csr_array(np.kron(np.eye(copies), block))
    zeros = np.zeros(rows * copies, dtype=np.int64), np.zeros(columns * copies, dtype=np.int64)
    small = equitable_partition(whole, *zeros)
    alone = equitable_partition(csr_array(block), zeros[0][:rows], zeros[1][:columns])
    assert small.matrix.shape == alone.matrix.shape
    sums = np.zeros((rows * copies, small.matrix.shape[1]))
    for j, which in enumerate(small.columns):
        sums[:, which] += whole.toarray()[:, j]
    assert np.allclose(sums, small.matrix.toarray()[small.rows])


def test_hashes_that_collide_change_nothing(monkeypatch):
    """With three colours in all, refinement proves nothing and nothing false is concluded."""
    G = changed(pods(4, 2, 9, 1, "rails"), ((0, 1), ("rail", 1)), factor=0.5)
    rate = all_to_all_rate(G).rate
    proper = refinement.mix_hashes

    def weak(values, seed=0):
        return proper(values, seed) % np.uint64(3)

    monkeypatch.setattr(refinement, "mix_hashes", weak)
    assert all_to_all_rate(G).rate == pytest.approx(rate, rel=1e-9)
    program = ReducedProgram(
        network(G),
        what := demand(network(G), all_to_all(accelerators(G))),
        orbits(network(G), what),
        "any",
    )
    assert by_program(program).theta * program.unit == pytest.approx(rate, rel=1e-9)
