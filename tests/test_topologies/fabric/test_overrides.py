"""Overrides: links and nodes that are gone or slower, and every change that cannot be made."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loops import for_all
from topologies import TopologyError, mesh, override, planes, rails, switch, torus
from topologies.fabric.fabric import accelerators
from topologies.rates.cut import all_gather_rate
from topologies.rates.flow import all_to_all_rate

CUBE = torus((4, 4, 4), link=45e9)
BOARDS = rails(2, 8, up=450e9, out=50e9)


def test_a_link_at_half_its_rate_slows_a_cube_by_what_is_published():
    """4x4x4 of 45 GB/s links, one of them half as fast: 1.38428 GB/s per pair."""
    G = override(CUBE, [{"link": [[0, 0, 0], [0, 0, 1]], "factor": 0.5}])
    assert G.edges[(0, 0, 0), (0, 0, 1)]["bandwidth"] == 22.5e9
    assert G.edges[(0, 0, 1), (0, 0, 0)]["bandwidth"] == 22.5e9
    assert all_to_all_rate(G).rate == pytest.approx(1.38428e9, rel=1e-5)


def test_a_card_that_is_down_leaves_seven_for_eight():
    """Two boards of eight, one card gone: 350/64 GB/s per pair."""
    G = override(BOARDS, [{"node": [0, 3], "tier": "scale_out", "remove": True}])
    assert set(G.succ[0, 3]) == {(0, "switch")}
    assert all_to_all_rate(G).rate == pytest.approx(350e9 / 64)


def test_a_change_may_be_meant_for_one_direction():
    """Only what chip 0 sends to chip 1 is slower."""
    G = override(mesh(3, link=8.0), [{"link": [0, 1], "bandwidth": 2.0, "one_way": True}])
    assert (G.edges[(0,), (1,)]["bandwidth"], G.edges[(1,), (0,)]["bandwidth"]) == (2.0, 8.0)


def test_changes_are_made_in_turn():
    """A switch at half rate, and one of its links at half of that."""
    changes = [
        {"node": ["plane", 0], "factor": 0.5, "latency": 1e-6},
        {"link": [[0], ["plane", 0]], "factor": 0.5},
    ]
    G = override(planes(4, 2, up=16.0), changes)
    assert G.edges[(0,), ("plane", 0)] == {
        "bandwidth": 2.0,
        "latency": 1e-6,
        "tier": "scale_up",
        "count": 1,
    }
    assert G.edges[(1,), ("plane", 0)]["bandwidth"] == 4.0
    assert G.edges[(1,), ("plane", 1)]["bandwidth"] == 8.0


def test_a_node_may_be_gone():
    """A plane less carries a plane less; a chip less is a chip less."""
    whole = planes(4, 4, up=16.0)
    G = override(whole, [{"node": ["plane", 2], "remove": True}])
    assert all_gather_rate(G).rate == pytest.approx(all_gather_rate(whole).rate * 3 / 4)
    assert len(accelerators(override(whole, [{"node": 3, "remove": True}]))) == 3


def test_what_is_overridden_stays_as_it_was():
    """A copy is changed, and declares no orbits any more; nothing changed keeps them."""
    G = override(CUBE, [{"node": [0, 0, 0], "factor": 0.5}])
    assert CUBE.graph["orbits"]
    assert not G.graph["orbits"]
    assert not any("orbit" in data for _, data in G.nodes(data=True))
    assert all(rate == 45e9 for _, _, rate in CUBE.edges(data="bandwidth"))
    assert override(CUBE, []).graph["orbits"]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 31), st.floats(0.05, 1.0))
def test_no_degraded_link_makes_anything_faster(which, factor):
    """Neither exchange nor gather gains when a cable slows."""
    G = torus((4, 4), link=8.0)
    u, v = [arc for arc in G.edges if arc[0] < arc[1]][which]
    slow = override(G, [{"link": [u, v], "factor": factor}])
    assert all_to_all_rate(slow).rate <= all_to_all_rate(G).rate * (1 + 1e-9)
    assert all_gather_rate(slow).rate <= all_gather_rate(G).rate * (1 + 1e-9)


@for_all(
    ("change", "said"),
    [
        ({"node": [0, 9], "remove": True}, "no node (0, 9); did you mean (0, "),
        ({"node": "swich", "remove": True}, "no node 'swich'; "),
        ({"node": {}, "remove": True}, "no node {}; the fabric has 26 nodes, such as (0,"),
        ({"link": [[0, 0], ["rial", 0]], "remove": True}, "did you mean ('rail', 0)?"),
        (
            {"link": [[0, 0], [1, 0]], "remove": True},
            "no link joins (0, 0) and (1, 0); (0, 0) is linked to ('rail', 0), (0, 'switch')",
        ),
        ({"link": [0, 0, 1], "remove": True}, "a list of two nodes was expected"),
        ({"link": "a-b", "remove": True}, "a list of two nodes was expected"),
        ({"lnk": 1, "node": [0, 0], "remove": True}, "unknown key 'lnk'; did you mean 'link'?"),
        ({"node": [0, 0]}, "it changes nothing"),
        ({"node": [0, 0], "remove": False}, "remove is False, which changes nothing"),
        ({"node": [0, 0], "remove": 1}, "remove is 1; True or False was expected"),
        ({"remove": True}, "either link or node"),
        ({"node": [0, 0], "link": [[0, 0], [0, 1]], "remove": True}, "either link or node"),
        ({"node": [0, 0], "remove": True, "factor": 0.5}, "a removed link has no bandwidth"),
        ({"node": [0, 0], "bandwidth": 1e9, "factor": 0.5}, "one says the rate"),
        ({"node": [0, 0], "factor": 0}, "factor is 0; remove=True takes the link away"),
        ({"node": [0, 0], "factor": -1}, "a number above 0 was expected"),
        ({"node": [0, 0], "factor": float("nan")}, "factor is nan"),
        ({"node": [0, 0], "bandwidth": "3 GB/s"}, "bandwidth is the text '3 GB/s'"),
        ({"node": [0, 0], "latency": 3}, "given in us or ns?"),
        ({"node": [0, 0], "tier": "scaleout", "remove": True}, "did you mean 'scale_out'?"),
        ({"node": [0, 0], "tier": "host", "remove": True}, "(0, 0) has no link of tier host"),
        ({"link": [[0, 0], ["rail", 0]], "tier": "scale_out", "factor": 0.5}, "tier goes with"),
        ("remove (0, 0)", "is no mapping"),
    ],
    ids=str,
)
def test_a_change_that_cannot_be_made_is_named_by_its_index(change, said):
    """The place first, then what is wrong and what was probably meant."""
    with pytest.raises(TopologyError) as caught:
        override(BOARDS, [{"node": [0, 0], "factor": 0.9}, change])
    (problem,) = caught.value.problems
    assert problem.startswith("override[1]: ")
    assert said in problem


def test_every_change_that_cannot_be_made_is_listed():
    """Three of four, and what is gone cannot change any more."""
    rail = [[0, 0], ["rail", 0]]
    changes = [
        {"link": rail, "remove": True},
        {"link": rail, "factor": 0.5},
        {"node": [0, 1], "bandwidth": 1e9},
        {"node": [0, 1], "bandwidth": 2e9, "one_way": True},
        {"nod": 3},
    ]
    with pytest.raises(TopologyError) as caught:
        override(BOARDS, changes)
    said = str(caught.value)
    assert "override[1]: link (0, 0) - ('rail', 0) is gone already, by override[0]" in said
    assert "override[3]: bandwidth of (0, 1) -> " in said
    assert "is set by override[2] already" in said
    assert "override[4]: unknown key 'nod'; did you mean 'node'?" in said
    with pytest.raises(TopologyError, match=r"node \(0,\) is gone already, by override\[0\]"):
        override(switch(3, up=1.0), [{"node": 0, "remove": True}] * 2)


def test_a_change_that_cuts_the_fabric_is_named():
    """The second of three changes leaves islands."""
    changes = [
        {"node": 0, "factor": 0.5},
        {"node": "switch", "remove": True},
        {"node": 1, "remove": True},
    ]
    with pytest.raises(TopologyError) as caught:
        override(switch(4, up=1.0), changes)
    assert str(caught.value).startswith("overrides of fabric '4 chips on a switch': override[1]: ")
    assert "form 4 islands" in str(caught.value)
    # A chip that is cut off and then taken away is no island any more.
    link = {"link": [0, "switch"], "remove": True}
    G = override(switch(4, up=1.0), [link, {"node": 0, "remove": True}])
    assert len(accelerators(G)) == 3


@pytest.mark.parametrize("changes", [{"node": 0}, "node", None, 3])
def test_changes_are_a_list(changes):
    """One change alone is a list of one."""
    with pytest.raises(TopologyError, match="a list of mappings was expected"):
        override(switch(2, up=1.0), changes)
