"""The closed forms against a linear program and a maximum flow that know no formula."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from tests.loops import for_all
from topologies import Machine, graph, group_rate, hierarchy, machine, mesh, switch, torus
from topologies.fabric.fabric import ACCELERATOR, SCALE_OUT, SWITCH, accelerators, fabric, link
from topologies.fabric.soundness import check
from topologies.rates import closed_forms


def flow_rate(G):
    """Most traffic per ordered pair when every accelerator sends equally to every other.

    One commodity for each source; an arc that leaves another node which may not forward is no
    arc of that commodity. Rates are divided by the largest, as the solver likes them near 1.
    """
    chips, nodes, arcs = set(accelerators(G)), list(G), list(G.edges(data="bandwidth"))
    unit = max(rate for _, _, rate in arcs)
    flows = [
        (source, e)
        for source, (e, (u, _, _)) in product(chips, enumerate(arcs))
        if u == source or G.nodes[u]["forward"]
    ]
    row = {pair: i for i, pair in enumerate((s, v) for s in chips for v in nodes if v != s)}
    entries = []
    for j, (source, e) in enumerate(flows):
        u, v, _ = arcs[e]
        entries += [(row[source, v], j, 1.0)] if v != source else []
        entries += [(row[source, u], j, -1.0)] if u != source else []
    entries += [(i, len(flows), -1.0) for (_, v), i in row.items() if v in chips]
    use = [(e, j, 1.0) for j, (_, e) in enumerate(flows)]
    columns = len(flows) + 1

    def matrix(cells, rows):
        i, j, x = zip(*cells, strict=True)
        return coo_array((x, (i, j)), shape=(rows, columns)).tocsr()

    answer = linprog(
        np.r_[np.zeros(columns - 1), -1.0],
        A_ub=matrix(use, len(arcs)),
        b_ub=[rate / unit for _, _, rate in arcs],
        A_eq=matrix(entries, len(row)),
        b_eq=np.zeros(len(row)),
        method="highs",
    )
    assert answer.status == 0, answer.message
    return -answer.fun * unit


def cut_rate(G):
    """Fastest rate at which every accelerator can hear every other one at once.

    A source feeds x into each accelerator; x is lowered to what the least cut leaves for those
    outside the listener until no cut is short.
    """
    chips = accelerators(G)
    x = min(G.in_degree(chip, weight="bandwidth") for chip in chips) / (len(chips) - 1)
    D = nx.DiGraph()
    D.add_weighted_edges_from(G.edges(data="bandwidth"), weight="capacity")
    for target in chips:
        while True:
            for chip in chips:
                D.add_edge("source", chip, capacity=x)
            value, (side, _) = nx.minimum_cut(D, "source", target)
            if value >= x * len(chips) * (1 - 1e-9):
                break
            inside = [chip for chip in chips if chip in side]
            leaving = sum(c for u, v, c in D.edges(side - {"source"}, "capacity") if v not in side)
            x = leaving / len(inside)
    return x


def rails(nodes, chips, *, up, out):
    """Boards of relaying chips on a switch; one switch joins the chips of equal place."""
    G = fabric("rails")
    for i in range(chips):
        G.add_node(("rail", i), kind=SWITCH, forward=True)
    for r in range(nodes):
        G.add_node(("board", r), kind=SWITCH, forward=True)
        for i in range(chips):
            G.add_node((r, i), kind=ACCELERATOR, forward=True, domain=r)
            link(G, (r, i), ("board", r), bandwidth=up)
            link(G, (r, i), ("rail", i), bandwidth=out, tier=SCALE_OUT)
    return check(G)


BOXES = [
    ((2,), 1.0, True),
    ((5,), 1.0, True),
    ((6,), 1.0, False),
    ((4, 4), 1.0, True),
    ((3, 5), 1.0, True),
    ((2, 4), 1.0, False),
    ((3, 4), 1.0, False),
    ((4, 4), (2.0, 1.0), True),
    ((2, 6), (1.0, 5.0), (False, True)),
    ((4, 3), (100.0, 1.0), (True, False)),
    ((4, 4, 2), 1.0, True),
    ((2, 2, 2), 1.0, True),
    ((3, 3, 2), (1.0, 2.0, 3.0), True),
]


@for_all(("dims", "links", "wrap"), BOXES, ids=str)
def test_a_box_exchanges_and_gathers_what_flows_and_cuts_allow(dims, links, wrap):
    """Rings, tori and open grids, odd, even and of unequal rates."""
    G = torus(dims, link=links, wrap=wrap)
    each = (links,) * len(dims) if isinstance(links, float) else links
    rings = (wrap,) * len(dims) if isinstance(wrap, bool) else wrap
    shares = closed_forms.box(dims, each, rings)
    assert flow_rate(G) == pytest.approx(shares.all_to_all, rel=1e-6)
    assert cut_rate(G) == pytest.approx(shares.all_gather, rel=1e-6)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_switch_shares_a_chips_rate_among_its_peers(n):
    """theta = B/(n - 1), for either collective."""
    G, shares = switch(n, up=450e9), closed_forms.switch(n, 450e9)
    assert flow_rate(G) == pytest.approx(shares.all_to_all, rel=1e-6)
    assert cut_rate(G) == pytest.approx(shares.all_gather, rel=1e-6)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_a_mesh_gives_every_pair_its_own_link(n):
    """theta is the rate of one link: chips of a mesh do not relay."""
    G, shares = mesh(n, link=64e9), closed_forms.mesh(64e9)
    assert flow_rate(G) == pytest.approx(shares.all_to_all, rel=1e-6)
    assert cut_rate(G) == pytest.approx(shares.all_gather, rel=1e-6)


DOMAINS = [
    (Machine.from_figures("a", 4, 45.0, 5.0), 4),
    (Machine.from_figures("a", 4, 45.0, 5.0), 8),
    (Machine.from_figures("a", 4, 45.0, 5.0), 12),
    (Machine.from_figures("m", 4, 30.0, 4.0, kind="mesh"), 8),
    (Machine.from_figures("t", 4, 8.0, 0.5, kind="torus", dims=(2, 2)), 8),
    (Machine.from_figures("r", 5, 8.0, 0.5, kind="torus", dims=(5,)), 10),
]


@pytest.mark.parametrize(("what", "chips"), DOMAINS)
def test_domains_on_a_spine_exchange_what_their_cards_carry(what, chips):
    """With cards much slower than scale-up links the rails' formula is that of a spine too."""
    assert group_rate(what, chips).all_to_all / (chips - 1) == pytest.approx(
        flow_rate(graph(what, chips)), rel=1e-6
    )


@pytest.mark.parametrize(("up", "out"), [(45.0, 5.0), (8.0, 6.0), (3.0, 9.0)])
def test_rails_are_bound_by_cards_or_by_the_boards_that_feed_them(up, out):
    """theta = min(b/(n-g), B/((g-1)(1+(n-g)/g))), whichever of the two is slow."""
    inside = closed_forms.switch(3, up)
    shares = closed_forms.multi_domain_rates(
        6, least=3, most=3, out=out, smallest=inside, largest=inside
    )
    G = rails(2, 3, up=up, out=out)
    # The board's share can be relieved by sending on another's rail, so the form is a floor.
    assert shares.all_to_all <= flow_rate(G) * (1 + 1e-6)
    if out < up:
        assert shares.all_to_all == pytest.approx(flow_rate(G), rel=1e-6)
        assert shares.all_gather == pytest.approx(cut_rate(G), rel=1e-6)


def test_two_boards_of_eight_reach_the_published_numbers():
    """Two HGX boards with 50 GB/s cards: 6.25 GB/s per pair, gathering 33.3333 per member."""
    inside = closed_forms.switch(8, 450e9)
    shares = closed_forms.multi_domain_rates(
        16, least=8, most=8, out=50e9, smallest=inside, largest=inside
    )
    assert shares.all_to_all == pytest.approx(6.25e9)
    assert shares.all_gather == pytest.approx(100e9 / 3)


def test_four_boards_of_b200_are_bound_by_the_cut_around_a_board():
    """4x8 B200 with 50 GB/s each: 16.6667 GB/s per member, 516.7 GB/s of bus bandwidth."""
    inside = closed_forms.switch(8, 900e9)
    shares = closed_forms.multi_domain_rates(
        32, least=8, most=8, out=50e9, smallest=inside, largest=inside
    )
    assert shares.all_gather == pytest.approx(50e9 / 3)
    assert group_rate(machine("hgx-b200"), 32).all_gather == pytest.approx(31 * 50e9 / 3)


def test_gathering_over_two_boards_agrees_with_the_cut():
    """Two small boards: what enters one chip binds."""
    G = hierarchy(switch(4, up=45.0), 2, out=5.0)
    inside = closed_forms.switch(4, 45.0)
    shares = closed_forms.multi_domain_rates(
        8, least=4, most=4, out=5.0, smallest=inside, largest=inside
    )
    assert cut_rate(G) == pytest.approx(shares.all_gather, rel=1e-6)


def test_unequal_parts_never_promise_more_than_flows_allow():
    """Seven chips as four and three: the smaller part's cards are the narrow place."""
    G = hierarchy(switch(4, up=45.0), 2, out=5.0)
    G.remove_node((1, 3))
    part = {n: closed_forms.switch(n, 45.0) for n in (3, 4)}
    shares = closed_forms.multi_domain_rates(
        7, least=3, most=4, out=5.0, smallest=part[3], largest=part[4]
    )
    assert shares.all_to_all == pytest.approx(flow_rate(G), rel=1e-6)
    assert shares.all_gather == pytest.approx(cut_rate(G), rel=1e-6)


PUBLISHED = [
    ("switch", closed_forms.switch(8, 450e9).all_to_all, 64.2857e9),
    ("nvl72", closed_forms.switch(72, 900e9).all_to_all, 12.6761e9),
    ("4x4", closed_forms.box((4, 4), (64e9,) * 2, (True,) * 2).all_to_all, 8e9),
    ("4x4x4", closed_forms.box((4, 4, 4), (45e9,) * 3, (True,) * 3).all_to_all, 1.40625e9),
    ("4x4x4 gather", closed_forms.box((4,) * 3, (45e9,) * 3, (True,) * 3).all_gather, 4.285714e9),
    ("9216", closed_forms.box((16, 24, 24), (90e9,) * 3, (True,) * 3).all_to_all, 0.00325521e9),
]


@pytest.mark.parametrize(("value", "expected"), [row[1:] for row in PUBLISHED], ids=str)
def test_known_values_of_larger_fabrics_come_out(value, expected):
    """Values of linear programs too large to repeat here."""
    assert value == pytest.approx(expected, rel=4e-6)


def test_half_a_v5e_pod_sends_to_the_other_half_what_google_states():
    """16x16 with 50 GB/s a link: 1.6 TB/s of bisection bandwidth."""
    pod = machine("tpu-v5e")
    theta = group_rate(pod, 256).all_to_all / 255
    # 128 chips send to 128 others, in one direction.
    assert theta * 128 * 128 == pytest.approx(1.6e12)
    G = graph("tpu-v5e")
    crossing = [d["bandwidth"] for (x, _), (y, _), d in G.edges(data=True) if x < 8 <= y]
    assert sum(crossing) == pytest.approx(1.6e12)
