"""ASTRA-sim's format of dimensions: read as its simulator means it, written where it is exact."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import networkx as nx
import pytest

from tests.loops import for_all
from topologies import (
    TopologyError,
    dragonfly,
    hierarchy,
    mesh,
    planes,
    rails,
    read,
    switch,
    torus,
    twisted_torus,
    write,
)
from topologies.fabric.fabric import accelerators, fabric, link

GIB = 2**30


def parsed(tmp_path, topology, counts, bandwidth, latency):
    """The fabric of the four lists."""
    text = (
        f"topology: [ {', '.join(topology)} ]\nnpus_count: {counts}\n"
        f"bandwidth: {bandwidth}  # GB/s\nlatency: {latency}  # ns\n"
    )
    file = tmp_path / "network.yml"
    file.write_text(text, encoding="utf-8")
    return read(file)


def wired(G):
    """Nodes with their permission and arcs with their figures: what the format can hold."""
    nodes = {node: data["forward"] for node, data in G.nodes(data=True)}
    return nodes, {(u, v): (d["bandwidth"], d["latency"]) for u, v, d in G.edges(data=True)}


def simulated(topology, counts):
    """{(chip, chip): links between them} as the simulator counts them.

    From its sources: a ring is closed and goes both ways, chips of a mesh are one link apart,
    those of a switch two; the address of chip i in dimension 0 is i mod its count, and so on.
    """
    addresses = [place[::-1] for place in product(*map(range, counts[::-1]))]
    links = {}
    for (i, a), (j, b) in product(enumerate(addresses), repeat=2):
        differ = [d for d in range(len(counts)) if a[d] != b[d]]
        if len(differ) == 1:
            (d,) = differ
            way = (b[d] - a[d]) % counts[d]
            hops = {"Ring": min(way, counts[d] - way), "FullyConnected": 1, "Switch": 2}
            links[i, j] = d, hops[topology[d]]
    return links


@pytest.mark.parametrize(
    ("topology", "counts"),
    [
        (["Ring"], [16]),
        (["FullyConnected"], [16]),
        (["Switch"], [16]),
        (["Ring", "FullyConnected", "Switch"], [2, 8, 4]),
        (["Switch", "Ring"], [3, 5]),
        (["Ring", "Ring"], [2, 3]),
    ],
    ids=str,
)
def test_chips_are_as_far_apart_as_in_the_simulator(topology, counts, tmp_path):
    """Within a dimension the hops, the latency and the rate are those of its sources."""
    many = len(counts)
    rates, late = [200.0, 100.0, 50.0][:many], [50.0, 500.0, 2000.0][:many]
    G = parsed(tmp_path, topology, counts, rates, late)
    chips = accelerators(G)
    assert len(chips) == prod(counts)
    for (i, j), (d, hops) in simulated(topology, counts).items():
        path = nx.shortest_path(G, chips[i], chips[j])
        assert len(path) - 1 == hops
        for u, v in pairwise(path):
            assert G.edges[u, v]["bandwidth"] == rates[d] * GIB
            assert G.edges[u, v]["latency"] == late[d] / 1e9


@for_all(
    "G",
    [
        torus((4, 4, 8), link=45e9, latency=1e-6),
        torus((2, 3), link=(45e9, 50e9)),
        torus((2, 2, 2), link=45e9, latency=3e-7),
        torus((5,), link=1 / 3e-9),
        torus((3,), link=1e9),
        mesh(8, link=64e9, latency=1e-6),
        mesh(3, link=64e9),
        switch(8, up=450e9, latency=5e-7),
    ],
    ids=lambda G: G.graph["name"],
)
def test_what_is_written_is_read_again(G, tmp_path):
    """The same chips, links, figures and permissions."""
    write(G, tmp_path / "a.yml")
    assert wired(read(tmp_path / "a.yml")) == wired(G)


def test_rails_are_two_dimensions_of_switches(tmp_path):
    """One inside the nodes and one for each rank; only the names of the switches differ."""
    G = rails(4, 8, up=450e9, out=50e9, latency=5e-7, out_latency=2.5e-6)
    write(G, tmp_path / "a.yml")
    assert (tmp_path / "a.yml").read_text("utf-8").splitlines()[:2] == [
        "topology: [ Switch, Switch ]",
        "npus_count: [ 8, 4 ]",
    ]
    H = read(tmp_path / "a.yml")
    names = {(r, "switch"): (r, "switch") for r in range(4)}
    names |= {("switch", i): ("rail", i) for i in range(8)}
    assert wired(nx.relabel_nodes(H, names)) == wired(G)


def test_a_list_of_chips_with_names_is_one_dimension(tmp_path):
    """A measured switch keeps its figures; its chips are numbered in their order."""
    G = fabric("named")
    G.add_node("nvswitch", kind="switch", forward=True)
    for name in "abcd":
        G.add_node(name, kind="accelerator", forward=False, domain=0)
        link(G, name, "nvswitch", bandwidth=450e9, latency=5e-7)
    write(G, tmp_path / "a.yaml")
    assert wired(read(tmp_path / "a.yaml")) == wired(switch(4, up=450e9, latency=5e-7))


def slower(G, u, v):
    """`G` with one arc of half its rate."""
    G = G.copy()
    G.edges[u, v]["bandwidth"] /= 2
    return G


@for_all(
    ("G", "said"),
    [
        (twisted_torus((2, 4), link=1e9), "its ends differ in 2 coordinates"),
        (torus((4, 4), link=1e9, wrap=False), "neither a ring nor each to each"),
        (planes(4, 2, up=1e9), "one switch for each of 1 lines was expected"),
        (hierarchy(switch(4, up=1e9), 2, out=1e9), "not one whole line of the box of [2, 4]"),
        (hierarchy(mesh(4, link=1e9), 2, out=1e9), "not one whole line of the box of [2, 4]"),
        (dragonfly(1, 2, 1, up=1e9, local=1e9, out=1e9), "linked to other nodes than chips"),
        (mesh(4, link=1e9, relay=True), "on one switch or one mesh does not relay"),
        (switch(4, up=1e9, in_network_reduce=True), "adds what passes through it"),
        (switch(1, up=1e9), "a single chip has no dimension"),
        (rails(2, 2, up=1e9, out=1e9, relay="pxn"), "it is a nic"),
        (slower(torus((4, 4), link=2e9), (0, 0), (0, 1)), "one bandwidth was expected, not"),
    ],
    ids=lambda value: value.graph["name"] if isinstance(value, nx.DiGraph) else "",
)
def test_what_the_format_cannot_express_is_refused_with_the_reason(G, said, tmp_path):
    """Nothing is approximated in silence, and no file is left."""
    with pytest.raises(TopologyError) as caught:
        write(G, tmp_path / "a.yml")
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_every_fault_of_the_lists_has_its_place(tmp_path):
    """Kinds, counts and figures, each with line and column."""
    with pytest.raises(TopologyError) as caught:
        parsed(tmp_path, ["Ring", "Rng"], "[2, 1, true]", "[0, .nan]", "[-1, 1e9]\nlatencies: 3")
    for said in (
        "line 1, column 19: topology[1] is 'Rng'; did you mean 'Ring'?",
        "line 2, column 13: npus_count has 3 entries, topology has 2",
        "line 2, column 17: npus_count[1] is 1; a dimension joins at least 2 chips",
        "line 2, column 20: npus_count[2] is True; a whole number",
        "line 3, column 13: bandwidth[0] is 0; leave the link out",
        "line 3, column 16: bandwidth[1] is nan; a number was expected, in GB/s",
        "line 4, column 11: latency[0] is -1e-09; it cannot be below 0",
        "line 4, column 15: latency[1] is 1.0; less than 0.1 s was expected",
        "line 5, column 1: unknown key 'latencies'; did you mean 'latency'?",
    ):
        assert any(problem.startswith(said) for problem in caught.value.problems), said
    assert len(caught.value.problems) == 9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topology: [Ring]\n", "npus_count is missing"),
        ("topology: Ring\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n", "a list was expected"),
        (
            "topology: [FullyConnected]\nnpus_count: [1000000]\nbandwidth: [1]\nlatency: [1]\n",
            "up to 999,999,000,000 arcs",
        ),
        (
            "topology: [Ring]\nnpus_count: [4]\nbandwidth: [1e300]\nlatency: [1e300]\n",
            "a number was expected, in ns",
        ),
    ],
    ids=["missing", "no list", "too large", "beyond range"],
)
def test_lists_that_are_no_network_are_refused(text, said, tmp_path):
    """With what was expected."""
    (tmp_path / "a.yml").write_text(text, encoding="utf-8")
    with pytest.raises(TopologyError) as caught:
        read(tmp_path / "a.yml")
    assert said in str(caught.value)
