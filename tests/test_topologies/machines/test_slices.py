"""Slices of pods by size and shape, machines as networks, and what about them is uncertain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cases import network_forms
from tests.loops import for_all
from topologies import Machine, TopologyError, graph, group_rate, machine, names, slowdown
from topologies.fabric.fabric import accelerators
from topologies.rates.cut import all_gather_rate
from topologies.rates.flow import all_to_all_rate

# docs.cloud.google.com/tpu/docs/v5p: shapes, and whether they may be twisted.
V5P = {
    (2, 2, 1): False,
    (2, 2, 2): False,
    (2, 4, 4): False,
    (4, 4, 4): False,
    (4, 4, 8): True,
    (4, 8, 8): True,
    (8, 8, 8): False,
    (8, 8, 16): True,
    (8, 16, 16): True,
    (16, 16, 16): False,
    (16, 16, 24): False,
}


@for_all("shape", V5P, ids=str)
def test_v5p_has_the_slices_of_its_page(shape):
    """Each shape by its sides and by its chips; twisted where the page says so."""
    chips = shape[0] * shape[1] * shape[2]
    assert machine("tpu-v5p", shape=shape).dims == shape
    assert machine("tpu-v5p", chips).dims in (shape, tuple(sorted(shape)))
    if V5P[shape]:
        assert machine("tpu-v5p", chips, twisted=True).twisted
    else:
        with pytest.raises(TopologyError, match="cannot be twisted; slices of sides k and 2k"):
            machine("tpu-v5p", shape=shape, twisted=True)


@pytest.mark.parametrize("name", ["tpu-v5e", "tpu-v6e"])
def test_flat_pods_have_their_eight_slices(name):
    """1x1 to 16x16, and nothing between them."""
    shapes = [(1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16)]
    for shape in shapes:
        assert machine(name, shape[0] * shape[1]).dims == shape
    offered = {a * b for a, b in shapes}
    for chips in set(range(1, 257)) - offered:
        with pytest.raises(TopologyError, match="none fits into 16x16 as it is offered; "):
            machine(name, chips)


@for_all(
    ("ask", "said"),
    [
        (lambda: machine("tpu-v5e", 18), "no slice of 18 chips"),
        (lambda: machine("tpu-v5e", 18), "; 16 (4x4) or 32 (4x8) chips do"),
        (lambda: machine("tpu-v5e", shape=(3, 6)), "no slice of shape 3x6; near it there are 4x4"),
        (lambda: machine("tpu-v5p", shape=(4, 4)), "3 sides were expected, such as 4x4x4"),
        (lambda: machine("tpu-v5p", shape="4x4x4"), "3 sides were expected"),
        (lambda: machine("tpu-v5p", shape=(4, 4, 0)), "3 sides were expected"),
        (lambda: machine("tpu-v5p", 64, shape=(4, 4, 8)), "4x4x8 holds 128 chips, not 64"),
        (lambda: machine("tpu-v5p", shape=(16, 20, 28)), "near it there are 16x16x24"),
        (lambda: machine("tpu-v4", shape=(4, 4, 6)), "no slice of shape 4x4x6"),
        (lambda: machine("tpu-v5e", 32, twisted=True), "its slices are not twisted"),
        (lambda: machine("trainium2", shape=(1, 4, 4)), "no slice of shape 1x4x4"),
        (lambda: machine("trainium2", 32), "16 (4x4x1) or 64 (4x4x4) chips do"),
        (lambda: machine("hgx-h200", shape=(8,)), "a switch has no slices"),
        (lambda: graph("hgx-h200", 0), "chips is 0"),
        (lambda: graph("hgx-h200", 32, join="tree"), "join is 'tree'"),
        (lambda: graph("hgx-h200", 32, join="clos"), "leaf is not given"),
    ],
)
def test_a_slice_that_does_not_exist_says_which_do(ask, said):
    """The question, then the answers that there are."""
    with pytest.raises(TopologyError) as caught:
        ask()
    assert said in str(caught.value)


def test_a_shape_may_be_turned_where_all_links_are_alike():
    """8x4x4 is 4x4x8 on its side."""
    assert machine("tpu-v4", shape=(8, 4, 4)).dims == (8, 4, 4)


@pytest.mark.parametrize(("shape", "gain"), [((4, 4, 8), 1.7454545), ((4, 8, 8), 1.3913043)])
def test_a_twisted_slice_exchanges_more(shape, gain):
    """By the gains of the linear program, in the formula and in the fabric."""
    plain, twisted = (machine("tpu-v4", shape=shape, twisted=t) for t in (False, True))
    n = plain.chips_per_domain
    rates = [group_rate(m, n).all_to_all for m in (plain, twisted)]
    assert rates[1] / rates[0] == pytest.approx(gain, rel=1e-6)
    assert all_to_all_rate(graph(twisted)).rate * (n - 1) == pytest.approx(rates[1], rel=1e-6)


@pytest.mark.parametrize(
    ("name", "chips", "join", "others"),
    [
        ("gb200-nvl72", 144, "rails", {}),
        ("hgx-h200", 32, "rails", {}),
        ("hgx-b200", 32, "rails", {}),
        ("hgx-h100", 32, "rails", {"oversubscription": 4, "relay": "none"}),
    ],
)
def test_domains_on_rails_reach_their_formula(name, chips, join, others):
    """A rail for each rank, a card for each chip."""
    what = machine(name)
    G = graph(name, chips, join=join, **others)
    size = what.chips_per_domain
    assert sum(node[0] == "rail" for node in G) == size
    shares = network_forms.rails(
        chips // size,
        size,
        up=what.scale_up,
        out=what.scale_out,
        relay="relay" not in others,
        oversubscription=others.get("oversubscription"),
    )
    assert all_to_all_rate(G).rate == pytest.approx(shares.all_to_all, rel=1e-6)
    assert all_gather_rate(G).rate == pytest.approx(shares.all_gather, rel=1e-6)


def test_racks_below_an_oversubscribed_clos_reach_its_formula():
    """Eight HGX boards, two to a leaf, 2:1."""
    what = machine("hgx-h200")
    G = graph(what, 64, join="clos", leaf=16, oversubscription=2, spines=4)
    given = {"leaf": 16, "oversubscription": (2,), "chips": 8}
    shares = network_forms.clos(64, out=what.scale_out, up=what.scale_up, **given)
    assert all_to_all_rate(G).rate == pytest.approx(shares.all_to_all, rel=1e-6)
    # The same, when it is the machine that says so.
    so = replace(what, join="clos", leaf=16, oversubscription=2.0)
    again = graph(so, 64, spines=4)
    assert list(again.edges(data=True)) == list(G.edges(data=True))


@for_all("name", [n for n in names() if machine(n).scale_out is not None])
def test_every_machine_with_cards_can_be_several(name):
    """Twice a domain, on a spine, on rails and below leaves; or twice a slice."""
    what = machine(name, 16) if machine(name).kind == "torus" else machine(name)
    size = what.chips_per_domain
    for how in ({}, {"join": "rails"}, {"join": "clos", "leaf": size}):
        G = graph(what, 2 * size, **how)
        chips = accelerators(G)
        assert len(chips) == 2 * size
        assert len({G.nodes[chip]["domain"] for chip in chips}) == 2
        assert slowdown(G, chips[0]) > 1


def test_packages_and_dies_are_both_counted():
    """What is named after dies has half, or a quarter, as many chips."""
    rubin, ultra = machine("vera-rubin-nvl144"), machine("rubin-ultra-nvl576")
    assert (rubin.name, rubin.chips_per_domain, rubin.dies_per_chip) == ("vera-rubin-nvl72", 72, 2)
    assert (ultra.chips_per_domain, ultra.dies_per_chip) == (144, 4)
    assert machine("kyber-nvl144") == ultra
    assert {"vera-rubin-nvl144", "rubin-ultra-nvl576"}.isdisjoint(names())


def test_what_is_uncertain_is_said():
    """In the machine, line by line, and in the source of its fabric."""
    ultra = machine("rubin-ultra-nvl576")
    assert ultra.certainty == "unverified"
    assert "not verified" in ultra.doubts[0]
    assert any(said.startswith("scale_up: from memory, unverified") for said in ultra.doubts)
    assert "not verified" in graph(ultra).graph["source"]
    assert "before its release" in machine("vera-rubin-nvl72").doubts[0]
    assert machine("hgx-h100").doubts == ()
    assert machine("mi300x-8").doubts[0].startswith("scale_out: assumption")


@for_all("name", names())
def test_links_are_what_their_rate_says(name):
    """The links of a chip, as they are stated one by one, add up to its rate."""
    what = machine(name)
    stated = {figure.name: figure.value for figure in what.figures}.get("links")
    if stated is not None:
        assert what.links == pytest.approx(stated)


@for_all(
    ("others", "said"),
    [
        ({"join": "ring"}, "join is 'ring'"),
        ({"certainty": "sure"}, "certainty is 'sure'"),
        ({"oversubscription": 0.5, "join": "rails"}, "a number of at least 1 was expected"),
        ({"oversubscription": 4.0}, "a spine never blocks"),
        ({"leaf": 8}, "goes with join clos and only with it"),
        ({"join": "clos"}, "goes with join clos and only with it"),
        ({"dies_per_chip": 0}, "dies_per_chip is 0"),
        ({"twisted": True}, "twisted goes with a torus of sides k and 2k, not with switch"),
    ],
)
def test_figures_of_networks_are_checked_with_the_others(others, said):
    """A machine of one's own says what does not fit."""
    with pytest.raises(TopologyError) as caught:
        Machine.from_figures("mine", 8, 450e9, 50e9, **others)
    assert said in str(caught.value)
