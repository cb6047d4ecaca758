"""Traffic of parallel axes: known rates of placements, what binds, what a layout costs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loops import for_all
from topologies import TopologyError, hierarchy, mesh, switch, torus
from topologies.fabric.placement import filling, place
from topologies.groups.parallel_axes import axis_rate, axis_rates
from topologies.rates.flow import concurrent_flow
from topologies.rates.traffic import all_to_all


def rail_pod(nodes: int = 16):
    """Nodes of eight GPUs, a card for each GPU, a rail for the cards of each rank."""
    board = switch(8, up=450e9, latency=0.5e-6)
    return hierarchy(board, nodes, out=50e9, latency=2.5e-6, join="rails")


def test_two_whole_nodes_exchange_faster_than_one_gpu_of_each():
    """EP16 on 128 GPUs: 93.75 GB/s per GPU over two nodes, 50 over sixteen."""
    G = rail_pod()
    packed = axis_rate(G, place(G, {"ep": 16, "dp": 8}, order=("ep", "dp")), "ep")
    spread = axis_rate(G, place(G, {"ep": 16, "dp": 8}, order=("dp", "ep")), "ep")
    assert packed.rate == pytest.approx(93.75e9)
    assert spread.rate == pytest.approx(50e9)
    assert (packed.domains, spread.domains) == ((2, 2), (16, 16))
    assert packed.tiers == spread.tiers == ("scale_out",)
    assert (packed.groups, packed.size) == (8, 16)
    assert packed.latency == pytest.approx(6e-6)


def test_one_moe_layer_wants_one_rack():
    """EP64 within a rack of 72, and astride two of them: the cards are sixteen times slower."""
    G = hierarchy(switch(72, up=900e9), 2, out=50e9)
    inside = axis_rate(G, place(G, {"ep": 64}), "ep")
    astride = axis_rate(G, place(G, {"ep": 64}, chips=filling(G)[40:]), "ep")
    assert inside.rate == pytest.approx(900e9)
    assert (inside.tiers, inside.domains) == (("scale_up",), (1, 1))
    assert astride.rate == pytest.approx(63 / 32 * 50e9)
    assert (astride.tiers, astride.domains) == (("scale_out",), (2, 2))


def test_a_group_that_straddles_slows_its_whole_axis():
    """Groups of three on boards of eight: every third straddles, and all are given its rate."""
    G = hierarchy(switch(8, up=450e9), 3, out=50e9)
    three = axis_rate(G, place(G, {"ep": 3, "dp": 8}, order=("ep", "dp")), "ep")
    four = axis_rate(G, place(G, {"ep": 4, "dp": 6}, order=("ep", "dp")), "ep")
    assert three.domains == (1, 2)
    assert three.rate == pytest.approx(2 * 50e9 / 2)
    assert four.rate == pytest.approx(450e9)


def test_every_axis_of_a_layout_has_its_pattern():
    """tp inside a node, dp over nodes, stages from node to node."""
    G = rail_pod(8)
    rates = axis_rates(G, place(G, {"tp": 4, "dp": 8, "pp": 2, "cp": 1}))
    assert {axis: rate.pattern for axis, rate in rates.items()} == {
        "tp": "gather", "cp": "ring", "dp": "gather", "pp": "stages",
    }  # fmt: skip
    assert rates["tp"].rate == pytest.approx(450e9)
    assert rates["pp"].rate == pytest.approx(50e9)
    assert rates["pp"].tiers == ("scale_out",)
    assert rates["dp"].domains == (4, 4)
    assert rates["tp"].time(450e9) == pytest.approx(1.0)


def test_a_group_of_one_takes_no_time_and_has_no_rate():
    """Exactly 0, and nothing is solved."""
    G = rail_pod(2)
    alone = axis_rate(G, place(G, {"tp": 8, "cp": 1}), "cp")
    assert (alone.rate, alone.latency_hops, alone.latency) == (None, 0, 0.0)
    assert alone.time(1e9) == 0.0


def test_experts_span_the_whole_stage():
    """tp and dp together hold the experts: two groups of 32 over four nodes each."""
    G = rail_pod(8)
    ranks = place(G, {"tp": 4, "dp": 8, "pp": 2})
    together = axis_rate(G, ranks, "tp", "dp", pattern="exchange")
    divided = axis_rate(G, ranks.divided(("tp", "dp"), {"ep": 32}), "ep")
    assert together.rate == pytest.approx(divided.rate) == pytest.approx(31 / 24 * 50e9)


def test_stages_of_a_torus_hand_on_to_their_neighbours():
    """A row of rings: each stage sends along links of its own, and around the other way."""
    G = torus((4, 8), link=45e9)
    stages = axis_rate(G, place(G, {"dp": 8, "pp": 4}, order=("dp", "pp")), "pp")
    assert stages.rate == pytest.approx(45e9, rel=0.5)
    assert stages.rate >= 45e9


def test_a_ring_over_neighbours_has_their_links():
    """Context blocks around a side of a torus; a mesh that does not relay has one link a pair."""
    G = torus((4, 8), link=45e9)
    ring = axis_rate(G, place(G, {"cp": 8, "dp": 4}, order=("cp", "dp")), "cp")
    assert ring.rate >= 45e9 * (1 - 1e-9)
    M = mesh(8, link=64e9)
    assert axis_rate(M, place(M, {"cp": 8}), "cp").rate == pytest.approx(64e9)


def test_shortest_paths_are_never_faster():
    """On a torus a ring may take both ways round, if routing is free."""
    G = torus((4, 4), link=45e9)
    ranks = place(G, {"cp": 4, "dp": 4}, order=("cp", "dp"))
    free, short = (axis_rate(G, ranks, "cp", routing=r) for r in ("optimal", "shortest_ecmp"))
    assert short.rate == pytest.approx(45e9)
    assert free.rate >= short.rate


def test_one_copy_a_node_saves_what_crosses():
    """Cards bind: half the copies, twice the rate; every copy crossing is a plain exchange."""
    G = rail_pod(8)
    ranks = place(G, {"ep": 64})
    plain = axis_rate(G, ranks, "ep")
    all_cross = axis_rate(G, ranks, "ep", crossing=1.0)
    half = axis_rate(G, ranks, "ep", crossing=0.5)
    assert all_cross.rate == pytest.approx(plain.rate)
    assert half.rate == pytest.approx(2 * plain.rate)


def test_spreading_inside_may_bind_instead():
    """Few copies cross a fast network; each is passed on to seven others of the node."""
    G = hierarchy(switch(4, up=8e9), 2, out=6e9)
    few = axis_rate(G, place(G, {"ep": 8}), "ep", crossing=0.1)
    # Beside 3 of its own each chip passes on 3 for its partner, and 0.4 cross: all links are full.
    assert few.rate == pytest.approx(7 * (8e9 + 6e9) / 6.4)
    assert "scale_up" in few.tiers


@for_all(
    ("ask", "said"),
    [
        ({"axes": ("tq",)}, "unknown axis 'tq'"),
        ({"axes": ("tp", "ep")}, "what tp and ep send is open; give one of gather, exchange"),
        ({"axes": ("tp",), "pattern": "gossip"}, "unknown pattern 'gossip'"),
        ({"axes": ("tp",), "crossing": 0.5}, "which belongs to an exchange, not to a gather"),
        ({"axes": ("ep",), "crossing": 0.0}, "crossing is 0.0; a share above 0"),
        ({"axes": ("ep",), "crossing": 1.5}, "crossing is 1.5"),
        ({"axes": ("ep",), "crossing": float("nan")}, "crossing is nan"),
        ({"axes": ("ep",), "crossing": True}, "crossing is True"),
        ({"axes": ("ep",), "routing": "fastest"}, "routing"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_of_an_axis_is_said(ask, said):
    """Axes, patterns and shares that do not fit, before anything is solved."""
    G = switch(8, up=1e9)
    axes = ask.pop("axes")
    with pytest.raises(TopologyError) as caught:
        axis_rate(G, place(G, {"tp": 2, "ep": 4}), *axes, **ask)
    assert said in str(caught.value)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([(2, 4), (3, 4), (4, 2)]),
    st.sampled_from([("ep", "dp"), ("dp", "ep")]),
    st.sampled_from([1, 2, 4]),
)
def test_an_exchange_is_the_flow_of_all_groups(pod, order, size):
    """Against the program of all chips, whatever sits together."""
    nodes, chips = pod
    G = hierarchy(switch(chips, up=9e9), nodes, out=2e9)
    n = nodes * chips
    ep = n // size if n % size == 0 else n
    ranks = place(G, {"ep": ep, "dp": n // ep}, order=order)
    rate = axis_rate(G, ranks, "ep")
    flow = concurrent_flow(G, all_to_all(*ranks.groups("ep"))).rate * (ep - 1)
    if rate.domains[1] > 1:
        assert rate.rate == pytest.approx(flow, rel=1e-6)
    else:
        assert rate.rate == pytest.approx(9e9)
