"""Groups at a stride: the closed form on a machine, counting against flows, what slows them."""

from __future__ import annotations

from itertools import product

import pytest

from topologies import TopologyError, graph, hierarchy, machine, mesh, pairs, rails, switch
from topologies.groups.strided_groups import strided_groups
from topologies.rates.flow import concurrent_flow

LINK, CARD, NODE, RANKS = 450e9, 50e9, 8, 128
POWERS = [2**i for i in range(8)]
GROUPS = [(n, s) for n, s in product(POWERS, POWERS) if n > 1 and n * s <= RANKS]


@pytest.mark.parametrize("pattern", ["gather", "exchange"])
@pytest.mark.parametrize("pooled", [True, False])
def test_hgx_written_out_is_its_closed_form(pattern, pooled):
    """Cards of the members in a node add up, to no more than their links inside."""
    wired = strided_groups(graph(machine("hgx-h100"), RANKS))
    for size, stride in GROUPS:
        near = min(size, max(1, NODE // stride)) if pooled else 1
        expected = LINK if size * stride <= NODE else min(LINK, CARD * near)
        assert wired.rate(pattern, size, stride, RANKS, pooled=pooled) == pytest.approx(
            expected, rel=1e-12
        )


def test_stages_hand_on_inside_a_node_or_through_a_card():
    """The slowest hop counts: one that leaves the node, where any does."""
    wired = strided_groups(graph(machine("hgx-h100"), RANKS))
    for size, stride in GROUPS:
        expected = LINK if size * stride <= NODE else CARD
        assert wired.rate("stages", size, stride, size * stride) == pytest.approx(expected)


def test_counting_on_a_tree_is_what_flows_reach():
    """An exchange across four nodes below oversubscribed leaves, beside the linear program."""
    trunks = {"leaf": 8, "oversubscription": 4, "spines": 2}
    G = hierarchy(switch(4, up=LINK), 4, join="clos", out=CARD, **trunks)
    wired = strided_groups(G)
    chips = wired.chips
    sent = {(chips[a], chips[b]): 1 / 3
            for a in range(16) for b in range(16) if a != b and a % 4 == b % 4}  # fmt: skip
    assert wired.rate("exchange", 4, 4, 16) == pytest.approx(
        concurrent_flow(G, pairs(sent)).rate, rel=1e-6
    )


def test_more_oversubscription_is_never_faster():
    """Rings of neighbouring nodes feel it beyond the nodes of a leaf, exchanges at once."""
    rates = {"gather": [], "exchange": []}
    for above in (1, 2, 4, 8):
        trunks = {"leaf": 32, "oversubscription": above, "spines": 4}
        G = hierarchy(switch(8, up=LINK), 8, join="clos", out=CARD, **trunks)
        wired = strided_groups(G)
        for pattern, column in rates.items():
            column.append(wired.rate(pattern, 8, 8, 64))
    assert rates["gather"] == pytest.approx([CARD, CARD, CARD, CARD / 2])
    across = [min(1, 7 / 4 / above) * CARD for above in (1, 2, 4, 8)]  # four of seven are beyond
    assert rates["exchange"] == pytest.approx(across)


def test_a_group_that_straddles_nodes_pools_fewest_cards():
    """Ranks 12 to 17 of nodes of six: six chips in one node; ranks 4 to 7: two and two."""
    wired = strided_groups(hierarchy(switch(6, up=LINK), 4, out=CARD))
    assert wired.rate("gather", 4, 1, 24) == pytest.approx(2 * CARD)
    assert wired.rate("gather", 6, 1, 24) == pytest.approx(LINK)


def test_a_mesh_has_a_link_to_each_neighbour():
    """Two chips of a mesh of four use one link of three."""
    wired = strided_groups(mesh(4, link=10e9))
    assert wired.rate("gather", 2, 2, 4) == pytest.approx(10e9)
    assert wired.rate("gather", 4, 1, 4) == pytest.approx(30e9)
    assert wired.rate("stages", 2, 2, 4) == pytest.approx(10e9)


def test_a_torus_shares_its_lines():
    """Columns four apart in a row of sixteen go through each other's links."""
    wired = strided_groups(graph(machine("tpu-v5p", 64)))
    close, far = (wired.rate("gather", 4, stride, 64) for stride in (1, 16))
    assert 0 < far <= close * (1 + 1e-9)


def test_rails_across_spines_cost_nothing_to_chips_of_equal_place():
    """Chips of equal place meet on their rail, whatever the spines carry."""
    G = rails(4, 8, up=LINK, out=CARD, relay="none", oversubscription=8, spines=2)
    wired = strided_groups(G)
    assert wired.rate("gather", 4, 8, 32) == pytest.approx(CARD)


def test_ranks_that_do_not_go_together_are_refused():
    """More ranks than chips, or no whole groups."""
    wired = strided_groups(switch(8, up=LINK))
    assert wired.rate("gather", 1, 8, 8) == float("inf")
    for size, stride, ranks in ((4, 2, 16), (3, 1, 8)):
        with pytest.raises(TopologyError, match=f"groups of {size} at stride {stride}"):
            wired.rate("gather", size, stride, ranks)
