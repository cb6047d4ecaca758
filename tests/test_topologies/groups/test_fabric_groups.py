"""Rates of groups on any fabric: the tables of machines, shared uplinks, faults, twins."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies import (
    TopologyError,
    dragonfly,
    graph,
    group_rate,
    hierarchy,
    machine,
    mesh,
    rate_table,
    switch,
    torus,
)
from topologies.fabric.fabric import SCALE_UP, SWITCH, Fabric, accelerators, link
from topologies.groups import concurrent_groups as joint
from topologies.groups import concurrent_groups as ways
from topologies.groups.concurrent_groups import GroupPaths, group_rates
from topologies.groups.fabric_groups import FabricGroups, fabric_groups
from topologies.groups.tree_networks import switch_tree
from topologies.rates.concurrent_collectives import joint_rate
from topologies.rates.flow import concurrent_flow
from topologies.rates.traffic import all_to_all

COLUMNS = ("all_to_all", "all_gather", "send", "latency", "step_latency")
WHOLE = ("latency_hops", "domains")
BOTH = [
    ("hgx-h200", 32, [1, 2, 3, 4, 8, 9, 10, 12, 16, 17, 24, 32]),
    ("gb200-nvl72", 144, [1, 2, 64, 72, 73, 100, 144]),
    ("mi300x-8", 16, [1, 2, 4, 8, 9, 16]),
    ("trainium2", 64, [1, 2, 4, 8, 16, 32, 64]),
    ("tpu-v5e", 16, [2, 3, 4, 8, 16]),
    ("tpu-v5p", 64, [2, 8, 16, 64]),
]


def blemished(G: Fabric) -> Fabric:
    """The same with a dead end on every chip: nothing changes but that no formula fits."""
    for i, (chip, kind) in enumerate(list(G.nodes(data="kind"))):
        if kind == "accelerator":
            G.add_node(("end", i), kind=SWITCH, forward=True)
            late = next(iter(G.succ[chip].values()))["latency"]
            link(G, chip, ("end", i), bandwidth=1e9, latency=late, tier=SCALE_UP)
    G.graph["orbits"] = False
    return G


def clos(domains: int, leaf: int, ratio: float, **others) -> Fabric:
    """Boards of eight on leaves of `leaf` cards, uplinks narrower by `ratio`."""
    board = switch(8, up=450e9, latency=0.5e-6)
    given = {"out": 50e9, "latency": 1e-6, "join": "clos", "leaf": leaf, "spines": 4}
    return hierarchy(board, domains, oversubscription=ratio, **(given | others))


@pytest.mark.parametrize(("name", "chips", "sizes"), BOTH)
def test_the_table_of_a_fabric_is_that_of_its_machine(name, chips, sizes):
    """A machine drawn as a fabric is recognised, whatever it was drawn from."""
    fabric, figures = rate_table(graph(name, chips), sizes), rate_table(_cut(name, chips), sizes)
    for column in (*COLUMNS, *WHOLE):
        assert getattr(fabric, column) == pytest.approx(getattr(figures, column), rel=1e-12)


@pytest.mark.parametrize(("name", "chips", "sizes"), BOTH)
def test_the_engines_find_what_the_formulas_say(name, chips, sizes):
    """With every formula out of reach: flows and cuts, all groups of a size at once."""
    sizes = [n for n in sizes if n > 1][-5:]
    groups = FabricGroups(blemished(graph(name, chips)))
    figures = rate_table(_cut(name, chips), sizes)
    for i, n in enumerate(sizes):
        rate = groups.rate(n)
        for column in COLUMNS:
            assert getattr(rate, column) == pytest.approx(getattr(figures, column)[i], rel=1e-6)
        assert rate.domains == figures.domains[i]


def _cut(name: str, chips: int):
    known = machine(name)
    return machine(name, chips) if known.kind == "torus" else known


def test_groups_that_cross_leaves_share_their_uplinks():
    """Three boards a group, four a leaf: two groups cross each leaf, at half of what one has."""
    G = clos(16, 32, 4.0)
    groups = FabricGroups(G).groups(24)
    alone = GroupPaths(G, groups[1:2]).exchange()
    assert alone.rate == pytest.approx(400e9 / (8 * 16))
    assert group_rate(G, 24).all_to_all / 23 == pytest.approx(400e9 / (2 * 8 * 16))


@pytest.mark.parametrize(
    ("n", "share"),
    [
        (16, 50e9 / 8),  # two boards on one leaf: their cards
        (32, 50e9 / 24),  # a whole leaf
        (64, 400e9 / (32 * 32)),  # two leaves: the uplink of one to the other
        (128, 400e9 / (32 * 96)),  # the study's four to one
    ],
)
def test_an_oversubscribed_clos_pays_at_its_leaves(n, share):
    """Rates by hand, per ordered pair."""
    assert group_rate(clos(16, 32, 4.0), n).all_to_all / (n - 1) == pytest.approx(share)


def test_a_clos_without_oversubscription_is_a_spine():
    """The closed form of cards, leaf after leaf."""
    for n in (16, 32, 64, 128):
        rate = group_rate(clos(16, 32, 1.0), n)
        assert rate.all_to_all == pytest.approx(group_rate(machine("hgx-h200"), n).all_to_all)


@pytest.mark.parametrize("leaf", [16, 32])
@pytest.mark.parametrize("ratio", [1.0, 4.0])
def test_a_machine_on_a_clos_has_the_table_of_its_fabric(leaf, ratio):
    """Whole boards below a leaf: uplinks shared by all groups, as the engines find."""
    what = replace(machine("hgx-h200"), join="clos", leaf=leaf, oversubscription=ratio)
    sizes = [2, 8, 9, 16, 20, 24, 32, 64]
    drawn, figures = rate_table(graph(what, 96), sizes), rate_table(what, sizes)
    for column in (*COLUMNS, *WHOLE):
        assert getattr(figures, column) == pytest.approx(getattr(drawn, column), rel=1e-6)


@pytest.mark.parametrize(
    "how",
    [
        {"join": "clos", "leaf": 12, "oversubscription": 2.0},  # boards lie below two leaves
        {"join": "clos", "leaf": 32, "oversubscription": 4.0},
        {"join": "rails", "oversubscription": 2.0},
        {"join": "rails"},
    ],
    ids=str,
)
def test_a_machine_is_never_faster_than_its_fabric(how):
    """Where the formulas leave something out, it is what would have made groups faster."""
    what = replace(machine("hgx-h200"), **how)
    sizes = [2, 8, 9, 12, 16, 20, 24, 40, 48, 72]
    drawn, figures = rate_table(graph(what, 96), sizes), rate_table(what, sizes)
    for column in COLUMNS[:3]:
        assert (getattr(figures, column) <= getattr(drawn, column) * (1 + 1e-9)).all()
    assert figures.latency == pytest.approx(drawn.latency)


@pytest.mark.parametrize("shape", [(4, 4, 8), (4, 8, 8)])
def test_a_twisted_torus_exchanges_as_the_engines_say(shape):
    """The formula of the machine, the program of the fabric."""
    what = machine("tpu-v4", shape=shape, twisted=True)
    drawn, figures = (
        group_rate(graph(what), what.chips_per_domain),
        group_rate(what, what.chips_per_domain),
    )
    assert drawn.all_to_all == pytest.approx(figures.all_to_all, rel=1e-6)
    assert drawn.all_gather == pytest.approx(figures.all_gather, rel=1e-6)
    assert drawn.latency_hops == figures.latency_hops
    assert group_rate(what, 64).all_to_all < group_rate(machine("tpu-v4", 64), 64).all_to_all


def test_a_gather_over_leaves_shares_them_too():
    """What one leaf holds must enter the other; else 450 + 50 GB/s enter each chip."""
    rate = group_rate(clos(4, 16, 8.0), 32)
    assert rate.all_gather == pytest.approx(31 / 16 * 100e9)
    assert group_rate(clos(4, 16, 1.0), 32).all_gather == pytest.approx(500e9)


@pytest.mark.parametrize("n", [9, 16, 24])
def test_another_rail_is_reached_by_way_of_a_chip_on_it(n):
    """Two links inside a board and two of cards; formula, machine and paths say the same."""
    board = switch(8, up=450e9, latency=0.5e-6)
    G = hierarchy(board, 3, out=50e9, latency=2.5e-6, join="rails")
    rate = group_rate(G, n)
    assert (rate.latency_hops, rate.latency) == (4, pytest.approx(6e-6))
    assert FabricGroups(blemished(G)).rate(n).latency == pytest.approx(6e-6)
    figures = group_rate(replace(machine("hgx-h200"), join="rails"), n)
    assert (figures.latency_hops, figures.latency) == (4, pytest.approx(6e-6))


def test_one_card_down_slows_the_group_it_is_in():
    """Two boards on rails, one card gone: 350 GB/s for 64 pairs each way."""
    G = hierarchy(switch(8, up=450e9), 2, out=50e9, join="rails")
    G.remove_edges_from([((0, 3), ("rail", 3)), (("rail", 3), (0, 3))])
    assert group_rate(G, 16).all_to_all / 15 == pytest.approx(5.46875e9)
    assert group_rate(G, 8).all_to_all == pytest.approx(450e9)


def test_one_slow_link_slows_a_torus():
    """4x4x4 with one link at half rate: 1.6 % less; groups of other boxes are as fast as ever."""
    G = torus((4, 4, 4), link=45e9)
    for arc in (((0, 0, 0), (0, 0, 1)), ((0, 0, 1), (0, 0, 0))):
        G.edges[arc]["bandwidth"] = 22.5e9
    G.graph["orbits"] = False
    assert group_rate(G, 64).all_to_all / 63 == pytest.approx(1.38428e9, rel=1e-5)
    assert group_rate(G, 8).send == 22.5e9


def test_a_lost_chip_leaves_whole_boxes_to_groups():
    """Seven boxes of eight are left of eight, and 63 chips together."""
    G = torus((4, 4, 4), link=45e9)
    G.remove_node((0, 0, 0))
    G.graph["orbits"] = False
    groups = FabricGroups(G)
    assert len(groups.groups(8)) == 7
    assert len(groups.groups(63)[0]) == 63
    # Idle chips beside the boxes relay for them.
    whole = group_rate(torus((4, 4, 4), link=45e9), 8)
    assert groups.rate(8).all_to_all >= whole.all_to_all
    with pytest.raises(TopologyError, match="a group of 64 exceeds its 63 accelerators"):
        groups.rate(64)


def test_boards_of_unequal_size_are_filled_as_far_as_they_go():
    """A board has lost two chips: fourteen are six and eight."""
    G = hierarchy(switch(8, up=450e9), 2, out=50e9)
    G.remove_nodes_from([(0, 1), (0, 5)])
    (group,) = FabricGroups(G).groups(14)
    assert [chip[0] for chip in group] == [0] * 6 + [1] * 8
    assert group_rate(G, 14).all_to_all / 13 == pytest.approx(50e9 / 8)


def test_the_order_of_filling_may_be_given():
    """Chips left out of it stay idle."""
    G = hierarchy(switch(4, up=8.0e9), 2, out=1.0e9)
    some = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert group_rate(G, 4, order=some).all_to_all / 3 == pytest.approx(0.5e9)
    assert FabricGroups(G, some).size == 2


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ([(0,), (9,)], "order: (9,) is no accelerator of it"),
        ([("switch",)], "order: ('switch',) is no accelerator of it"),
        ([(0,), (0,)], "order: (0,) stands in it 2 times"),
        ([], "order: it names no accelerator"),
    ],
    ids=str,
)
def test_an_order_that_cannot_be_is_refused(order, said):
    """Unknown, doubled or no chips."""
    with pytest.raises(TopologyError) as caught:
        group_rate(switch(4, up=1e9), 2, order=order)
    assert said in str(caught.value)


def test_a_table_of_a_fabric_lists_every_size_without_an_answer():
    """Too large, and no count."""
    with pytest.raises(TopologyError) as caught:
        rate_table(switch(4, up=1e9), [2, 0, 5, True])
    assert len(caught.value.problems) == 3


def test_an_unsound_fabric_has_no_rates():
    """It is checked before anything is worked out."""
    G = switch(4, up=1e9)
    G.edges[(0,), ("switch",)]["bandwidth"] = 0.0
    with pytest.raises(TopologyError, match="bandwidth is 0"):
        group_rate(G, 2)


def test_a_fabric_that_has_changed_is_looked_at_anew():
    """Equal fabrics share what was found; a changed link does not."""
    G = switch(4, up=1e9)
    assert fabric_groups(G) is fabric_groups(switch(4, up=1e9))
    before = group_rate(G, 4).all_to_all
    for arc in G.edges.values():
        arc["bandwidth"] = 2e9
    assert group_rate(G, 4).all_to_all == pytest.approx(2 * before)


def test_a_frozen_fabric_is_looked_through_once(monkeypatch):
    """Who freezes it says that it stays as it is; its rates are those of its copy."""
    G = nx.freeze(hierarchy(switch(4, up=8e9), 3, out=1e9))
    first = fabric_groups(G)
    monkeypatch.setattr("topologies.groups.fabric_groups.sha256", None)
    assert fabric_groups(G) is first
    order = sorted(accelerators(G), reverse=True)
    assert fabric_groups(G, order) is fabric_groups(G, list(order)) is not first
    monkeypatch.undo()
    assert [first.rate(n) for n in (2, 4, 6)] == [group_rate(G.copy(), n) for n in (2, 4, 6)]


def test_chips_without_links_of_their_own_use_what_there_is():
    """A domain whose scale-up network is gone talks through its cards."""
    G = hierarchy(switch(4, up=8e9), 2, out=1e9)
    G.remove_node((0, "switch"))
    assert group_rate(G, 4).all_to_all == pytest.approx(1e9)
    assert group_rate(G, 1).all_to_all == 1e9


@st.composite
def fabrics(draw):
    """Boards on a Clos network of any ratio, and groups of whole boards."""
    chips, boards = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    leaf = chips * draw(st.integers(1, boards))
    G = hierarchy(
        switch(chips, up=draw(st.sampled_from([4e9, 9e9]))),
        boards,
        out=draw(st.sampled_from([1e9, 3e9])),
        join="clos",
        leaf=leaf,
        oversubscription=draw(st.sampled_from([1.0, 2.0, 3.0])),
        spines=draw(st.integers(1, 3)),
    )
    n = draw(st.integers(chips + 1, chips * boards))
    return G, FabricGroups(G).groups(n)


@settings(max_examples=25, deadline=None)
@given(fabrics())
def test_twins_drawn_as_one_change_no_rate(case):
    """Exchange and gather equal the programs of all chips, all groups at once."""
    G, groups = case
    ways = GroupPaths(G, groups)
    assert ways.exchange().rate == pytest.approx(
        concurrent_flow(G, all_to_all(*groups)).rate, rel=1e-6
    )
    assert ways.gather().rate == pytest.approx(joint_rate(G, groups).rate, rel=1e-6)


@st.composite
def layered(draw):
    """Boards below leaves, leaves and pods, or rails; perhaps one card at half its rate."""
    chips, boards = draw(st.integers(1, 4)), draw(st.integers(2, 7))
    how = draw(st.sampled_from(["leaves", "pods", "rails"]))
    ratio = draw(st.sampled_from([1.0, 2.0, 3.0]))
    given = {"join": "rails"} if how == "rails" else {"join": "clos"}
    if how != "rails":
        given["leaf"] = chips * draw(st.integers(1, 4))
    if how == "pods":
        given |= {"levels": 3, "pod": 2, "cores": draw(st.integers(1, 2))}
    wired = draw(st.sampled_from([4e9, 30e9]))
    G = hierarchy(
        mesh(chips, link=wired, latency=0.5e-6)
        if draw(st.booleans()) and chips > 1
        else switch(chips, up=wired, latency=0.5e-6),
        boards,
        out=draw(st.sampled_from([1e9, 3e9])),
        latency=1e-6,
        oversubscription=[ratio, 2.0] if how == "pods" else ratio,
        spines=draw(st.integers(1, 3)),
        **given,
    )
    if draw(st.booleans()):
        (card,) = (v for v in G.succ[0, 0] if G.edges[(0, 0), v]["tier"] != SCALE_UP)
        G.edges[(0, 0), card]["bandwidth"] /= 2
        G.graph["orbits"] = False
    return G, draw(st.integers(chips + 1, chips * boards))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(layered())
def test_counting_finds_what_the_engines_find(case):
    """Parts below leaves, pods and rails against flows and cuts, all groups at once."""
    G, n = case
    groups = FabricGroups(G)
    rate, found = groups.rate(n), group_rates(G, groups.groups(n))
    for column in COLUMNS[:2]:
        assert getattr(rate, column) == pytest.approx(getattr(found, column), rel=1e-6)
    assert rate.send == pytest.approx(min(found.send, groups.rate(groups.size).send))
    assert (rate.latency_hops, rate.domains) == (found.latency_hops, found.domains)
    assert rate.latency == pytest.approx(found.latency)


@pytest.mark.parametrize("boards", [2, 6])
def test_a_member_alone_on_a_narrow_rail_waits_for_its_uplink(boards):
    """What leads down to the rail is less than its card takes: 4 + 2 GB/s reach it, not 4 + 3."""
    G = hierarchy(
        switch(3, up=4e9, latency=0.5e-6), boards, out=3e9, latency=1e-6, join="rails",
        oversubscription=3.0, spines=1,
    )  # fmt: skip
    groups = FabricGroups(G)
    assert groups.rate(5).all_gather == pytest.approx(6e9)
    assert group_rates(G, groups.groups(5)).all_gather == pytest.approx(6e9)


def test_a_group_of_thousands_is_looked_at_from_some_of_its_chips(monkeypatch):
    """On a torus any chip sees the farthest; steps are looked at where they begin there."""
    G = torus((4, 4, 6), link=45e9, latency=1e-6)
    for chip in G:
        del G.nodes[chip]["coord"]
    whole = group_rates(G, [tuple(G)])
    monkeypatch.setattr(ways, "MAX_SEARCH_WORK", 10 * G.number_of_edges())
    assert group_rates(G, [tuple(G)]) == whole
    assert whole.latency_hops == 7


def test_a_card_slow_one_way_is_not_counted():
    """A rail that takes in less than it may give out: no division reaches the cut of 6.75 GB/s."""
    rails = {"join": "rails", "oversubscription": 1.0}
    G = hierarchy(switch(3, up=4e9), 4, out=3e9, **rails)
    G.edges[(0, 0), ("rail", 0)]["bandwidth"] /= 2
    G.graph["orbits"] = False
    groups = FabricGroups(G).groups(4)
    assert group_rate(G, 4).all_gather == pytest.approx(3 * joint_rate(G, groups).rate)
    assert group_rate(G, 4).all_gather == pytest.approx(6.625e9)


@pytest.mark.parametrize(
    "change",
    [
        lambda G: G.edges[("leaf", 0), ("spine", 0)].update(bandwidth=1e9),
        lambda G: G.edges[("leaf", 0), ("spine", 0)].update(latency=9e-6),
        lambda G: G.remove_edge(("leaf", 0), ("spine", 1)),
        lambda G: G.nodes[0, 0].update(forward=True),
        lambda G: link(G, ("leaf", 0), ("leaf", 1), bandwidth=1e9, latency=1e-6),
    ],
)
def test_levels_that_are_not_alike_are_not_counted(change):
    """A slow, long or missing uplink, a chip that relays, a link between leaves."""
    G = clos(4, 16, 2.0)
    domains = [[(d, i) for i in range(8)] for d in range(4)]
    assert switch_tree(G, domains) is not None
    change(G)
    assert switch_tree(G, domains) is None


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_where_it_is_too_large_to_solve_a_gather_is_on_the_safe_side(n, monkeypatch):
    """Beyond the limit links are shared evenly: no faster than solved together, and said so."""
    G = torus((4, 4), link=45e9)
    for arc in (((0, 0), (0, 1)), ((0, 1), (0, 0))):
        G.edges[arc]["bandwidth"] = 5e9
    G.graph["orbits"] = False
    groups = FabricGroups(G).groups(n)
    exact = group_rates(G, groups)
    monkeypatch.setattr(joint, "MAX_PROGRAM_SIZE", 0)
    safe = group_rates(G, groups)
    assert not exact.shared_evenly
    assert safe.shared_evenly
    assert exact.all_to_all <= safe.all_gather * (1 + 1e-9)
    assert safe.all_gather <= exact.all_gather * (1 + 1e-9)
    assert safe == replace(exact, all_gather=safe.all_gather, shared_evenly=True)


def test_a_large_network_without_symmetry_is_held_to_the_cables_of_a_domain():
    """256 of 420 chips: 20 of a domain send to 236 others over its 20 cables between domains.

    The program is too large to be solved; the rounds of routings that are tried say no more than
    918 GB/s.
    """
    rate = fabric_groups(dragonfly(1, 20, 1, up=900e9, local=45e9, out=10e9)).rate(256)
    assert rate.all_to_all == pytest.approx(20 * 10e9 / (20 * 236) * 255)
    assert rate.all_to_all <= rate.all_gather


def test_a_large_torus_with_a_slow_link_says_what_is_shared_evenly():
    """128 chips times 768 arcs are beyond the limit, unless a cut shows the rate to be exact."""
    G = torus((4, 4, 8), link=45e9)
    G.edges[(0, 0, 0), (0, 0, 1)]["bandwidth"] = 22.5e9
    G.graph["orbits"] = False
    assert len(G) * G.number_of_edges() > joint.MAX_PROGRAM_SIZE
    assert group_rate(G, 8).shared_evenly
    assert not group_rate(G, 128).shared_evenly


@settings(max_examples=25, deadline=None)
@given(fabrics())
def test_groups_together_are_no_faster_than_alone(case):
    """And on a network that does not block as fast."""
    G, groups = case
    joint = GroupPaths(G, groups).exchange().rate
    assert all(joint <= GroupPaths(G, [group]).exchange().rate * (1 + 1e-9) for group in groups)
    rate = group_rates(G, groups)
    assert rate.all_to_all <= rate.all_gather  # an exchange of shares is a way to gather
