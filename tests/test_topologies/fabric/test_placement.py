"""Ranks and groups: mixed radix, orders of filling, what cannot be placed."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loops import for_all
from topologies import TopologyError, hierarchy, switch, torus
from topologies.fabric.fabric import ACCELERATOR, SWITCH, fabric, link
from topologies.fabric.placement import AXES, Placement, filling, place


def pod(nodes: int = 16, chips: int = 8, up: float = 450e9, out: float = 50e9):
    """Nodes of `chips` GPUs behind a switch each, every GPU with a card of its own."""
    return hierarchy(switch(chips, up=up, latency=0.5e-6), nodes, out=out, latency=2.5e-6)


def test_the_first_axis_of_the_order_varies_fastest():
    """Tensor-parallel ranks are neighbours, pipeline stages are farthest apart."""
    ranks = place(pod(2, 4), {"tp": 2, "dp": 2, "pp": 2})
    assert ranks.groups("tp")[0] == ((0, 0), (0, 1))
    assert ranks.groups("dp")[0] == ((0, 0), (0, 2))
    assert ranks.groups("pp")[0] == ((0, 0), (1, 0))


def test_the_order_decides_who_sits_together():
    """With pipeline stages first, they are the neighbours."""
    ranks = place(pod(2, 4), {"tp": 4, "pp": 2}, order=("pp", "tp"))
    assert ranks.groups("pp")[0] == ((0, 0), (0, 1))
    assert ranks.groups("tp")[0] == ((0, 0), (0, 2), (1, 0), (1, 2))


def test_axes_together_span_a_stage():
    """tp and dp together are the chips of one stage."""
    ranks = place(pod(2, 8), {"tp": 2, "dp": 4, "pp": 2})
    assert ranks.groups("tp", "dp") == ranks.groups("dp", "tp")
    assert ranks.groups("tp", "dp")[1] == tuple((1, i) for i in range(8))
    assert ranks.size("tp", "dp") == 8


def test_experts_divide_a_stage_anew():
    """Sixteen ranks of tp * dp hold eight groups of experts, each over two chips."""
    ranks = place(pod(2, 8), {"tp": 4, "dp": 4})
    experts = ranks.divided(("tp", "dp"), {"tp_expert": 2, "ep": 8})
    assert experts.groups("tp_expert")[1] == ((0, 2), (0, 3))
    assert experts.groups("ep")[0] == tuple((r, i) for r in (0, 1) for i in (0, 2, 4, 6))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=5, max_size=5), st.permutations(AXES))
def test_the_groups_of_every_axis_hold_each_chip_once(sizes, order):
    """Groups of an axis divide the ranks, and two axes share at most one chip a pair."""
    layout = dict(zip(AXES, sizes, strict=True))
    n = prod(sizes)
    ranks = place(switch(n, up=1.0), layout, order=order) if n > 1 else None
    if ranks is None:
        return
    for axis, size in layout.items():
        groups = ranks.groups(axis)
        assert sorted(chip for group in groups for chip in group) == [(i,) for i in range(n)]
        assert {len(group) for group in groups} == {size}
    for tp in ranks.groups("tp"):
        assert all(len({*tp} & {*dp}) == 1 or not {*tp} & {*dp} for dp in ranks.groups("dp"))


def test_a_snake_makes_neighbours_in_rank_neighbours_in_the_torus():
    """Every step of the order is one link of the grid."""
    for dims in ((3, 4), (4, 4, 3), (2, 3, 4), (5,)):
        G = torus(dims, link=1.0, wrap=False)
        order = filling(G, "snake")
        assert len(set(order)) == prod(dims)
        assert all(G.has_edge(a, b) for a, b in pairwise(order))


def test_chips_are_filled_domain_after_domain():
    """Even where a fabric names its chips in turn."""
    G = fabric("interleaved")
    G.add_node("s", kind=SWITCH, forward=True)
    for i in range(6):
        G.add_node(i, kind=ACCELERATOR, forward=False, domain=i % 2)
        link(G, i, "s", bandwidth=1e9)
    assert filling(G) == [0, 2, 4, 1, 3, 5]


def test_chips_may_be_listed():
    """One GPU of each node, in the order given."""
    ranks = place(pod(4, 8), {"ep": 4}, chips=[(r, 0) for r in (3, 1, 2, 0)])
    assert ranks.groups("ep") == (((3, 0), (1, 0), (2, 0), (0, 0)),)


@for_all(
    ("layout", "said", "others"),
    [
        ({"tp": 8, "pp": 3}, "tp 8 * pp 3 = 24 ranks, on 16 accelerators", {}),
        ({"tpp": 8}, "unknown axis 'tpp'; did you mean 'tp'?", {}),
        ({"tp": 0}, "tp: size is 0; it must be at least 1", {}),
        ({"tp": 2.0}, "tp: size is 2.0", {}),
        ({"tp": True}, "tp: size is True", {}),
        ({"dp": -4}, "dp: size is -4", {}),
        ({"dp": 2}, "unknown axis 'dp'; known: tp, pp", {"order": ("tp", "pp")}),
        ({"tp": 2}, "'tp' stands in it twice", {"order": ("tp", "tp")}),
        ({"tp": 2}, "rank 1: (9, 9) is not in the fabric", {"chips": [(0, 0), (9, 9)]}),
        ({"tp": 2}, "rank 1: ('spine',) is no accelerator", {"chips": [(0, 0), ("spine",)]}),
        ({"tp": 2}, "rank 1: (0, 0) has rank 0 already", {"chips": [(0, 0), (0, 0)]}),
        ({"tp": 2}, "unknown order 'snail'; did you mean 'snake'?", {"chips": "snail"}),
        ({"tp": 2}, "needs coordinates and 16 accelerators have none", {"chips": "snake"}),
    ],
    ids=str,
)
def test_what_cannot_be_placed_is_said(layout, said, others):
    """Before anything is solved: counts, names, chips."""
    with pytest.raises(TopologyError) as caught:
        place(pod(2, 8), layout, **others)
    assert said in str(caught.value)


def test_every_fault_of_a_placement_is_listed():
    """A wrong axis, a wrong size and a missing chip are three problems."""
    with pytest.raises(TopologyError) as caught:
        place(pod(2, 8), {"tq": 2, "dp": 0}, chips=[(0, 0), "gone"])
    assert len(caught.value.problems) == 3


def test_a_group_that_crosses_a_missing_chip_is_refused():
    """The list names a chip that the fabric has lost; left out of the list, the rest is placed."""
    G = pod(2, 8)
    listed = filling(G)
    G.remove_node((0, 3))
    with pytest.raises(TopologyError, match=r"rank 3: \(0, 3\) is not in the fabric"):
        place(G, {"ep": 16}, chips=listed)
    assert len(place(G, {"ep": 15}).groups("ep")[0]) == 15


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda p: p.groups("cp", "xp"), "unknown axis 'xp'"),
        (lambda p: p.groups("tp", "tp"), "an axis is named twice"),
        (lambda p: p.groups(), "no axis named"),
        (lambda p: p.divided(("tp", "pp"), {"ep": 4}), "do not follow each other"),
        (lambda p: p.divided(("tp", "dp"), {"ep": 3}), "does not make up the 4 ranks"),
        (lambda p: p.divided(("tp", "dp"), {"ep": 0}), "ep: size is 0"),
        (lambda p: p.divided(("tp", "dp"), {"pp": 4}), "axis 'pp' is there already"),
    ],
)
def test_axes_that_are_not_there_are_refused(ask, said):
    """Unknown, doubled, none, or not divisible so."""
    ranks = Placement(tuple(range(8)), (("tp", 2), ("dp", 2), ("pp", 2), ("cp", 1)))
    with pytest.raises(TopologyError) as caught:
        ask(ranks)
    assert said in str(caught.value)
