"""The most that any routing carries: known numbers, a program without reductions, and laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.flow import GB, KNOWN, changed, fabrics, pair_rate, pods
from tests.loops import for_all
from topologies import TopologyError, mesh, switch, torus, twisted_torus
from topologies.fabric.fabric import accelerators, fabric, link
from topologies.rates import flow as engine
from topologies.rates.flow import all_to_all_rate, concurrent_flow, narrowest_cut
from topologies.rates.flow_network import demand, network
from topologies.rates.flow_program import ReducedProgram, by_program
from topologies.rates.orbits import orbits
from topologies.rates.traffic import all_to_all, pairs


def everyone(chips):
    return {(a, b): 1.0 for a in chips for b in chips if a != b}


@for_all("name", KNOWN)
def test_fabrics_with_a_formula_reach_it(name):
    """Switches, planes, meshes, rails, trees and tori, odd, mixed and twisted."""
    build, rate = KNOWN[name]
    assert all_to_all_rate(build()).rate / GB == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(("dims", "gain"), [((4, 4, 8), 1.7454545), ((4, 8, 8), 1.3913043)])
def test_a_twist_is_worth_what_it_is_known_to_be(dims, gain):
    """The twisted slices of TPU v4 against plain ones of the same sides."""
    plain, twisted = torus(dims, link=45 * GB), twisted_torus(dims, link=45 * GB)
    assert all_to_all_rate(twisted).rate / all_to_all_rate(plain).rate == pytest.approx(
        gain, rel=1e-6
    )


def test_one_slow_link_slows_a_whole_cube():
    """4x4x4 with one link at half rate: 1.38428 of 1.40625 GB/s."""
    G = changed(torus((4, 4, 4), link=45 * GB), ((0, 0, 0), (0, 0, 1)), factor=0.5)
    assert all_to_all_rate(G).rate / GB == pytest.approx(1.38428, rel=1e-5)


def test_one_card_less_is_one_eighth_less():
    """Two HGX-8 with seven rails: 350/64 GB/s."""
    G = changed(pods(8, 2, 450, 50, "rails"), ((0, 3), ("rail", 3)), factor=0)
    found = all_to_all_rate(G)
    assert found.rate / GB == pytest.approx(350 / 64, rel=1e-9)
    assert found.binding[0].members == 7


@pytest.mark.parametrize("dims", [(4, 4), (6, 3), (2, 2, 4)])
@pytest.mark.parametrize("mixed", [0, 2_000])
def test_what_is_too_large_for_the_program_is_bounded_from_above(dims, mixed, monkeypatch):
    """A torus with a slow link, by a few rounds of routings, or by cuts alone."""
    G = changed(torus(dims, link=45 * GB), *list(torus(dims, link=1.0).edges)[:1], factor=0.3)
    exact = all_to_all_rate(G)
    monkeypatch.setattr(engine, "SOLVED", 0)
    monkeypatch.setattr(engine, "PRICING_WORK_LIMIT", mixed * G.number_of_edges())
    monkeypatch.setattr(engine, "MAX_ROUTED_PATHS", 0)
    bound = all_to_all_rate(G)
    assert bound.rate >= exact.rate * (1 - 1e-9)
    assert bound.rate <= 2 * exact.rate
    assert exact.exact
    assert bound.exact is ("rounds" in bound.engine and "bound" not in bound.engine)


@for_all("name", KNOWN)
def test_cuts_alone_never_lie_below_the_rate(name, monkeypatch):
    """Of every fabric whose rate is known; paths that reach a cut are exact and say so."""
    build, rate = KNOWN[name]
    G = build()
    traffic = all_to_all(accelerators(G))
    assert narrowest_cut(G, traffic).rate >= rate * GB * (1 - 1e-6)
    monkeypatch.setattr(engine, "PRICING_WORK_LIMIT", 0)
    flow = all_to_all_rate(G)
    assert flow.rate >= rate * GB * (1 - 1e-6)
    assert not flow.exact or flow.rate == pytest.approx(rate * GB, rel=1e-6)


def test_part_of_a_mesh_may_relay_or_not():
    """Two of eight MI300X: 64 GB/s by their link, 448 if the other six pass on."""
    G = mesh(8, link=64 * GB)
    assert all_to_all_rate(G, [(0,), (1,)]).rate / GB == pytest.approx(64)
    for node in G:
        G.nodes[node]["forward"] = True
    assert all_to_all_rate(G, [(0,), (1,)]).rate / GB == pytest.approx(448)


def test_groups_at_once_share_what_they_cross():
    """EP16 on 16 nodes of 8: whole nodes 93.75 GB/s a chip, one chip of each node 50."""
    G = pods(8, 16, 450, 50, "rails")
    whole = [[(r, i) for r in (2 * k, 2 * k + 1) for i in range(8)] for k in range(8)]
    spread = [[(r, i) for r in range(16)] for i in range(8)]
    for groups, rate in ((whole, 93.75), (spread, 50.0)):
        found = concurrent_flow(G, all_to_all(*groups))
        assert found.rate * 15 / GB == pytest.approx(rate, rel=1e-6)


def test_one_group_alone_is_not_slower():
    """Judged alone a group may use the links of the others."""
    G = torus((4, 4), link=GB)
    rows = [[(i, j) for j in range(4)] for i in range(4)]
    together = concurrent_flow(G, all_to_all(*rows)).rate
    assert concurrent_flow(G, all_to_all(rows[0])).rate >= together * (1 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(fabrics(), st.data())
def test_any_traffic_has_the_rate_of_a_program_for_each_pair(G, data):
    """Groups, pairs and sums of both, with one commodity for each ordered pair."""
    chips = accelerators(G)
    ends = st.tuples(st.sampled_from(chips), st.sampled_from(chips))
    some = st.dictionaries(ends.filter(lambda e: e[0] != e[1]), st.sampled_from([1.0, 2.0]))
    sent, half = data.draw(some), len(chips) // 2
    groups = data.draw(
        st.sampled_from([[chips], [chips[:half], chips[half:]], [chips[: half + 1]]])
    )
    groups = [group for group in groups if group]
    traffic = all_to_all(*groups, weight=2.0) + pairs(sent)
    wanted = {pair: 2.0 for group in groups for pair in everyone(group)}
    for pair, weight in sent.items():
        wanted[pair] = wanted.get(pair, 0.0) + weight
    if wanted:
        found = concurrent_flow(G, traffic)
        assert found.rate == pytest.approx(pair_rate(G, wanted), rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(fabrics(), st.booleans())
def test_every_reduction_leaves_the_rate(G, columns):
    """Folded program, whole program and mixed routings: one number."""
    net = network(G)
    what = demand(net, all_to_all(accelerators(G)))
    program = ReducedProgram(net, what, orbits(net, what), "any")
    folded, whole = by_program(program), by_program(program, fold=False)
    assert folded.theta == pytest.approx(whole.theta, rel=1e-7)
    mixed = engine.column_generation(program)
    assert mixed is not None
    assert mixed.theta == pytest.approx(whole.theta, rel=1e-7)
    for found in (folded, whole, mixed):
        assert found.elasticity.sum() == pytest.approx(1, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(fabrics(), st.floats(1e-3, 1e3))
def test_rates_are_linear_in_all_bandwidths_together(G, factor):
    """Every link times a number, every rate times the number."""
    H = G.copy()
    for _, _, data in H.edges(data=True):
        data["bandwidth"] *= factor
    assert all_to_all_rate(H).rate == pytest.approx(factor * all_to_all_rate(G).rate, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(fabrics(), st.data())
def test_no_rate_falls_when_a_link_is_added(G, data):
    """Another way can be left unused."""
    chips = accelerators(G)
    ends = st.tuples(st.sampled_from(chips), st.sampled_from(chips))
    u, v = data.draw(ends.filter(lambda e: e[0] != e[1]))
    before = all_to_all_rate(G).rate
    if G.has_edge(u, v):
        G.edges[u, v]["bandwidth"] += 3 * GB
    else:
        link(G, u, v, bandwidth=3 * GB, one_way=True)
    assert all_to_all_rate(G).rate >= before * (1 - 1e-7)


@settings(max_examples=25, deadline=None)
@given(fabrics(), st.data())
def test_elasticities_lie_between_the_slopes_on_both_sides(G, data):
    """A little more of one set of arcs gives at most its share, a little less takes at least it."""
    found = all_to_all_rate(G)
    assert sum(cause.elasticity for cause in found.binding) == pytest.approx(1, abs=1e-6)
    cause = data.draw(st.sampled_from(found.binding))
    slopes = []
    for step in (1e-4, -1e-4):
        H = G.copy()
        for u, v in cause.arcs:
            H.edges[u, v]["bandwidth"] *= 1 + step
        slopes.append((all_to_all_rate(H).rate / found.rate - 1) / step)
    more, less = slopes
    assert more - 1e-3 <= cause.elasticity <= less + 1e-3


@settings(max_examples=25, deadline=None)
@given(fabrics())
def test_shortest_paths_carry_no_more(G):
    """What goes one way may go any way."""
    shortest = all_to_all_rate(G, routing="shortest_ecmp")
    assert shortest.rate <= all_to_all_rate(G).rate * (1 + 1e-7)


def test_other_routing_is_refused():
    """An unknown word is answered with the known ones."""
    with pytest.raises(TopologyError, match="did you mean 'shortest_ecmp'"):
        all_to_all_rate(switch(2, up=GB), routing="shortest_ecmps")


def unsound(G, traffic):
    with pytest.raises(TopologyError) as caught:
        concurrent_flow(G, traffic() if callable(traffic) else traffic)
    return caught.value.problems


def test_every_mistake_in_the_traffic_is_named():
    """Unknown, repeated, shared and wrong members, bad weights, in one error."""
    G = switch(4, up=GB)
    said = unsound(
        G,
        all_to_all([(0,), (0,), (9,)], [(0,), ("switch",)], [], weight=0)
        + pairs({((1,), (1,)): 1.0, ((2,), (7,)): math.nan}),
    )
    for part in (
        "exchange 0: weight is 0",
        "(0,) is a member 2 times",
        "the fabric has no node (9,)",
        "(0,) is in group 0 and in group 1",
        "is of kind 'switch'",
        "group 2: no members",
        "sends nothing to itself",
        "the fabric has no node (7,)",
        "weight is nan",
    ):
        assert any(part in problem for problem in said), part


@pytest.mark.parametrize(
    "traffic", [lambda: all_to_all("ab"), lambda: all_to_all([[0]]), lambda: pairs({0: 1.0})]
)
def test_what_names_no_nodes_is_refused(traffic):
    """Texts, lists and single numbers where nodes or pairs were expected."""
    with pytest.raises(TopologyError, match=r"expected|cannot be"):
        traffic()


def test_one_member_has_no_rate():
    """Neither 0 nor infinity: an error that says why."""
    assert "nothing is sent" in unsound(switch(4, up=GB), all_to_all([(0,)]))[0]


def test_no_way_is_an_error_not_a_rate_of_zero():
    """Rails without relaying: chips of other ranks cannot be reached."""
    G = pods(8, 2, 450, 50, "rails")
    for chip in accelerators(G):
        G.nodes[chip]["forward"] = False
    said = unsound(G, all_to_all(accelerators(G)))
    assert "no permitted path from (0, 0) to (1, 1)" in said[0]


@pytest.mark.parametrize("rate", [0, -1.0, math.nan, math.inf, True, "45 GB/s", None])
def test_an_unsound_bandwidth_is_no_rate(rate):
    """The faults of the fabric are listed before anything is solved."""
    G = switch(3, up=GB)
    G.edges[(0,), ("switch",)]["bandwidth"] = rate
    assert any("bandwidth" in problem for problem in unsound(G, all_to_all([(0,), (1,)])))


def test_a_solver_without_an_optimum_is_an_error(monkeypatch):
    """Its status is reported; no number takes its place."""
    from topologies.rates import flow_program as solver

    class Stopped:
        status, message = 4, "numerical difficulties"

    monkeypatch.setattr(solver, "linprog", lambda *_, **__: Stopped)
    with pytest.raises(TopologyError, match="status 4: numerical difficulties"):
        all_to_all_rate(mesh(3, link=GB))


def test_rounds_that_run_out_give_way_to_the_program(monkeypatch):
    """The answer is the same, and the engine says which it was."""
    from topologies.rates import flow as columns

    G = torus((4, 6), link=GB)
    quick = all_to_all_rate(G)
    monkeypatch.setattr(columns, "ROUNDS", 1)
    slow = all_to_all_rate(G)
    assert slow.rate == pytest.approx(quick.rate, rel=1e-9)
    assert quick.engine.startswith("routings")
    assert slow.engine.startswith("linear program")


def test_a_chain_needs_as_many_steps_as_it_is_long():
    """200 chips in an open line: the middle link carries 100 times 100 pairs."""
    G = fabric("line")
    for i in range(200):
        G.add_node(i, kind="accelerator", forward=True, domain=0)
    for i in range(199):
        link(G, i, i + 1, bandwidth=GB)
    assert all_to_all_rate(G).rate / GB == pytest.approx(1e-4, rel=1e-6)
