"""Fabrics: the builders give what they say, and every fault is named with its place."""

from __future__ import annotations

import math
import pickle

import networkx as nx
import numpy as np
import pytest

from tests.loops import for_all
from topologies import TopologyError, check, mesh, suspicions, switch
from topologies.fabric.fabric import ACCELERATOR, SWITCH, accelerators, fabric, link

ARC = {"bandwidth": 1e9, "latency": 1e-6, "tier": "scale_up"}
CHIP = {"kind": ACCELERATOR, "forward": False, "domain": 0}


def pair(**arc):
    """Two chips, linked soundly one way and by `arc` the other way."""
    G = fabric("pair")
    G.add_node("a", **CHIP)
    G.add_node("b", **CHIP)
    G.add_edge("a", "b", **ARC)
    G.add_edge("b", "a", **{**ARC, **arc})
    return G


def problems(G):
    with pytest.raises(TopologyError) as caught:
        check(G)
    return caught.value.problems


@for_all(
    ("arc", "said"),
    [
        ({"bandwidth": 0}, "bandwidth is 0; leave the link out to model a failure"),
        ({"bandwidth": 0.0}, "is 0; leave the link out"),
        ({"bandwidth": -5e9}, "must be above 0"),
        ({"bandwidth": math.nan}, "is nan; a finite number was expected"),
        ({"bandwidth": math.inf}, "is inf; a finite number was expected"),
        ({"bandwidth": True}, "is True; a number was expected"),
        ({"bandwidth": "45 GB/s"}, "is the text '45 GB/s'; a number was expected, in byte/s"),
        ({"bandwidth": None}, "is None; a number was expected"),
        ({"bandwidth": 1j}, "is 1j; a number was expected"),
        ({"latency": -1e-6}, "latency is -1e-06; it cannot be below 0"),
        ({"latency": 2.5}, "less than 0.1 s was expected (given in us or ns?)"),
        ({"latency": 0.1}, "less than 0.1 s was expected"),
        ({"latency": math.nan}, "latency is nan"),
        ({"latency": "1 us"}, "latency is the text '1 us'"),
        ({"tier": "scaleup"}, "tier is 'scaleup'; one of scale_up, scale_out, host was expected"),
        ({"count": 0}, "count is 0; it must be at least 1"),
        ({"count": 1.5}, "count is 1.5; a whole number"),
        ({"bandwith": 3}, "unknown attribute 'bandwith'; did you mean 'bandwidth'?"),
        ({"colour": "red"}, "unknown attribute 'colour'; known: bandwidth, latency"),
    ],
    ids=str,
)
def test_an_unsound_arc_is_named_with_what_is_wrong(arc, said):
    """One line, which begins with the place."""
    (problem,) = problems(pair(**arc))
    assert problem.startswith("arc 'b' -> 'a': ")
    assert said in problem


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"kind": "gpu"}, "kind is 'gpu'; one of accelerator, switch, nic, host was expected"),
        ({"forward": None}, "may it relay the traffic of others?"),
        ({"forward": "no"}, "forward is 'no'"),
        ({"domain": None}, "no domain"),
        ({"forwards": True}, "did you mean 'forward'?"),
    ],
    ids=str,
)
def test_an_unsound_node_is_named_with_what_is_wrong(node, said):
    """One line, which begins with the place."""
    G = pair()
    G.nodes["a"].update(node)
    (problem,) = problems(G)
    assert problem.startswith("node 'a': ")
    assert said in problem


def test_every_problem_is_listed_at_once():
    """Faults of graph, nodes and arcs stand together in one error."""
    G = pair(bandwidth=-1.0, latency=3)
    G.add_edge("a", "a", **ARC)
    G.add_edge("a", "c", **ARC)
    G.graph["colour"] = "red"
    found = problems(G)
    assert len(found) == 5
    for part in (
        "unknown attribute 'colour'",
        "node 'c': it is not declared; an arc from or to 'a' names it",
        "arc 'a' -> 'a': a node cannot be linked to itself",
        "arc 'b' -> 'a': bandwidth",
        "arc 'b' -> 'a': latency",
    ):
        assert any(part in problem for problem in found), part


def test_islands_are_counted_and_shown():
    """Chips that cannot reach each other are told by island, size and member."""
    G = nx.union(mesh(3, link=1.0), nx.relabel_nodes(mesh(2, link=1.0), {(0,): "x", (1,): "y"}))
    G.graph.update(fabric("two islands").graph)
    (problem,) = problems(G)
    assert "form 2 islands, of 2 chips (1 times), 3 chips (1 times)" in problem
    assert "'x'" in problem


def test_a_link_in_one_direction_only_makes_islands():
    """A way there without a way back is no connection."""
    G = pair()
    G.remove_edge("b", "a")
    assert "form 2 islands" in problems(G)[0]


def test_chips_that_do_not_forward_leave_no_permitted_path():
    """Two boards on two rails: a chip reaches another place of the other board through a chip."""
    G = fabric("rails")
    for i in range(2):
        G.add_node(("rail", i), kind=SWITCH, forward=True)
        G.add_node(("board", i), kind=SWITCH, forward=True)
    for r, i in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        G.add_node((r, i), **CHIP)
        link(G, (r, i), ("rail", i), bandwidth=1e9)
        link(G, (r, i), ("board", r), bandwidth=1e9)
    (problem,) = problems(G)
    assert "no permitted path from (0, 0) to (1, 1)" in problem
    assert "(0, 0) to (1, 0)" not in problem
    assert "the nodes in between do not forward" in problem
    for chip in accelerators(G):
        G.nodes[chip]["forward"] = True
    assert check(G) is G


def test_an_incomplete_mesh_is_no_fabric():
    """Two chips of a mesh without a link between them have no permitted path."""
    G = mesh(4, link=1.0)
    G.remove_edge((1,), (3,))
    (problem,) = problems(G)
    assert "no permitted path from (1,) to (3,):" in problem


def test_a_fabric_needs_accelerators():
    """A lone switch is nothing to plan on."""
    G = fabric("empty")
    G.add_node("s", kind=SWITCH, forward=True)
    assert problems(G) == ("fabric: no node of kind 'accelerator'",)


def test_declared_orbits_must_cover_everything():
    """A fabric that declares its orbits names one for each node and arc."""
    G = switch(2, up=1.0)
    del G.nodes[(0,)]["orbit"]
    del G.edges[(1,), ("switch",)]["orbit"]
    assert len(problems(G)) == 2


def test_an_undirected_graph_is_refused():
    """Both directions of a cable are arcs of their own."""
    with pytest.raises(TopologyError, match=r"a networkx\.DiGraph was expected, not Graph"):
        check(nx.Graph())


def test_slips_of_units_are_suspicious_but_sound():
    """45 byte/s and 45e15 byte/s pass the check and are pointed out."""
    assert len(suspicions(check(switch(2, up=45.0)))) == 1
    assert "above 100 TB/s" in suspicions(switch(1, up=45e15))[0]
    assert suspicions(switch(8, up=45e9)) == []


def test_a_link_given_twice_is_not_summed_in_silence():
    """Cables in parallel are said with a count."""
    G = fabric("two")
    link(G, 0, 1, bandwidth=1e9, count=3)
    assert G.edges[0, 1] == {"bandwidth": 3e9, "latency": 0.0, "tier": "scale_up", "count": 3}
    with pytest.raises(TopologyError, match="joined already") as caught:
        link(G, 1, 0, bandwidth=1e9)
    assert len(caught.value.problems) == 2


def test_numbers_of_numpy_are_numbers():
    """A bandwidth may come out of an array, in single precision too."""
    assert check(pair(bandwidth=np.float32(1e9), count=np.int64(2)))


def test_the_error_survives_a_process_boundary():
    """Sweeps run in processes; the error arrives with its problems."""
    error = pickle.loads(pickle.dumps(TopologyError("here", ["one", "two"])))
    assert str(error) == "here: 2 problems\n  one\n  two"
