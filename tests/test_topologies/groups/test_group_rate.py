"""Rates of groups: known numbers, and what must hold for any machine."""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
from dataclasses import astuple, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import topologies
from tests.loops import for_all
from topologies import (
    Machine,
    TopologyError,
    all_gather_rate,
    graph,
    group_rate,
    machine,
    names,
    rate_table,
)


def test_groups_of_a_mesh_have_the_links_between_their_members():
    """MI300X: 64, 192, 448 GB/s for 2, 4, 8 chips, which do not relay."""
    rates = [group_rate(machine("mi300x-8"), n) for n in (2, 4, 8)]
    assert [r.all_to_all for r in rates] == pytest.approx([64e9, 192e9, 448e9])
    assert [r.all_gather for r in rates] == pytest.approx([64e9, 192e9, 448e9])
    assert {r.send for r in rates} == {64e9}


def test_a_rack_gives_every_group_inside_it_the_whole_rate():
    """NVL72: 900 GB/s for 2 chips as for 72, one microsecond apart."""
    for n in (2, 64, 72):
        rate = group_rate(machine("gb200-nvl72"), n)
        assert (rate.all_to_all, rate.all_gather, rate.send) == pytest.approx((900e9,) * 3)
        assert (rate.latency_hops, rate.latency, rate.domains) == (2, pytest.approx(1e-6), 1)


def test_a_group_that_straddles_racks_is_slowed_to_its_cards():
    """One MoE layer, one rack: beyond it the all-to-all is nine times slower."""
    rack = machine("gb200-nvl72")
    inside, across = group_rate(rack, 72), group_rate(rack, 144)
    assert across.all_to_all == pytest.approx(143 / 72 * 50e9)
    assert inside.all_to_all / across.all_to_all > 9
    assert (across.send, across.domains, across.latency) == (50e9, 2, pytest.approx(5e-6))


def test_two_boards_exchange_six_and_a_quarter_per_pair():
    """2x HGX with 50 GB/s cards: 93.75 GB/s per chip; a gather comes in by links and card."""
    rate = group_rate(machine("hgx-h200"), 16)
    assert rate.all_to_all / 15 == pytest.approx(6.25e9)
    assert rate.all_gather == pytest.approx(500e9)


def test_a_group_fills_its_domains_evenly():
    """Nine chips are five and four: four cards take what five others send."""
    rate = group_rate(machine("hgx-h200"), 9)
    assert rate.domains == 2
    assert rate.all_to_all / 8 == pytest.approx(50e9 / 5)


def test_a_slice_of_its_own_is_faster_than_a_part_of_a_larger_one():
    """Its optics close the rings of 64 chips on v5p: twice the rate of an open cube."""
    own, part = group_rate(machine("tpu-v5p", 64), 64), group_rate(machine("tpu-v5p"), 64)
    assert own.box == part.box == (4, 4, 4)
    assert own.all_to_all == pytest.approx(2 * part.all_to_all)
    assert (own.latency_hops, part.latency_hops) == (6, 9)
    assert own.step_latency == pytest.approx(1e-6)


def test_a_group_takes_its_fastest_links():
    """Sixteen chips of Trainium2 stay inside an instance, with its 128 GB/s links."""
    rate = group_rate(machine("trainium2"), 16)
    assert (rate.box, rate.send) == ((4, 4, 1), 128e9)
    assert rate.all_gather == pytest.approx(512e9)


def test_a_group_that_is_no_box_takes_the_next_one():
    """Seventeen chips of a 16x16 pod: the box of eighteen, each pair at its rate."""
    pod = machine("tpu-v5e")
    odd, even = group_rate(pod, 17), group_rate(pod, 18)
    assert odd.box == even.box == (3, 6)
    assert odd.all_to_all / 16 == pytest.approx(even.all_to_all / 17)


def test_one_chip_has_its_own_rate_and_no_latency():
    """Never infinite: what it could send into the network."""
    rate = group_rate(machine("hgx-h200"), 1)
    assert (rate.all_to_all, rate.all_gather, rate.send) == (450e9,) * 3
    assert (rate.latency_hops, rate.latency, rate.domains) == (0, 0.0, 1)


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "group size is 0"),
        (-2, "group size is -2"),
        (2.0, "group size is 2.0"),
        (True, "group size is True"),
        ("8", "group size is '8'"),
        (257, "exceeds the domain of 256 chips and scale_out (byte/s per chip) is not known"),
    ],
)
def test_a_group_that_cannot_be_is_refused(n, said):
    """No size, no way out: an error that names what is missing."""
    with pytest.raises(TopologyError) as caught:
        group_rate(machine("tpu-v6e"), n)
    assert said in str(caught.value)


def test_a_table_holds_the_rates_of_its_sizes():
    """Columns in the order of the sizes, the same numbers as one by one."""
    sizes = [1, 2, 8, 16, 9]
    table = rate_table(machine("hgx-b200"), sizes)
    for i, n in enumerate(sizes):
        rate = group_rate(machine("hgx-b200"), n)
        for name in ("n", "all_to_all", "all_gather", "send", "latency", "domains"):
            assert getattr(table, name)[i] == getattr(rate, name)


def test_a_table_lists_every_size_without_an_answer():
    """Both of the two wrong sizes are named."""
    with pytest.raises(TopologyError) as caught:
        rate_table(machine("tpu-v6e"), [8, 0, 512])
    assert len(caught.value.problems) == 2


@for_all("name", [n for n in names() if machine(n).scale_out is not None])
def test_leaving_a_domain_adds_no_more_than_the_cards(name):
    """Exchanges and sends fall, or stay; a gather wins at most what the cards bring in."""
    what = machine(name)
    size = what.chips_per_domain
    whole = group_rate(what, size)
    for n in {size + 1, size + 2, 2 * size - 1, 2 * size, 3 * size + 1, 64 * size}:
        beyond = group_rate(what, n)
        assert beyond.all_to_all <= whole.all_to_all
        assert beyond.all_gather <= (whole.all_gather + what.scale_out) * (1 + 1e-12)
        assert beyond.send <= whole.send
        assert beyond.latency >= whole.latency


@pytest.mark.parametrize(
    ("name", "chips", "gathered"),
    [("hgx-h100", 16, 500e9), ("gb200-nvl72", 144, 950e9), ("mi300x-8", 16, 498e9)],
)
def test_a_gather_over_two_domains_is_the_cut(name, chips, gathered):
    """Cards and scale-up links together, by formula and by the cut of the fabric."""
    assert group_rate(machine(name), chips).all_gather == pytest.approx(gathered, rel=1e-9)
    cut = all_gather_rate(graph(name, chips)).rate * (chips - 1)
    assert cut == pytest.approx(gathered, rel=1e-6)


@st.composite
def machines(draw):
    """Any machine of any kind."""
    kind = draw(st.sampled_from(["switch", "mesh", "torus"]))
    rate = st.floats(1e8, 1e13)
    given = {"kind": kind, "chips_per_domain": draw(st.integers(1, 20))}
    if kind == "torus":
        dims = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
        weights = tuple(draw(st.integers(1, 4)) for _ in dims)
        given |= {"dims": dims, "chips_per_domain": math.prod(dims), "port_weights": weights}
        given |= {"ring": draw(st.integers(0, 4)), "ring_all": draw(st.booleans())}
    return Machine.from_figures("any", scale_up=draw(rate), scale_out=draw(rate), **given)


RATES = ("all_to_all", "all_gather", "send")


@settings(max_examples=80, deadline=None)
@given(machines(), st.integers(1, 300))
def test_rates_are_always_finite_and_above_zero(what, n):
    """Never 0, infinite or not a number; latency only for a group of one is 0."""
    rate = group_rate(what, n)
    assert all(0 < getattr(rate, name) < math.inf for name in RATES)
    assert (rate.latency > 0) == (n > 1)
    assert rate.domains == math.ceil(n / what.chips_per_domain)


@settings(max_examples=60, deadline=None)
@example(
    Machine.from_figures(
        "any",
        kind="torus",
        chips_per_domain=36,
        scale_up=1e8,
        scale_out=1e8,
        dims=(2, 3, 6),
        port_weights=(1, 2, 3),
        ring=0,
        ring_all=False,
    ),
    17,
    0.109375,
)  # two boxes exchange alike; the gathers differ
@given(machines(), st.integers(1, 100), st.floats(0.1, 10))
def test_rates_are_linear_in_all_bandwidths_together(what, n, factor):
    """Twice the links, twice the rates."""
    faster = replace(what, scale_up=what.scale_up * factor, scale_out=what.scale_out * factor)
    before, after = group_rate(what, n), group_rate(faster, n)
    for name in RATES:
        assert getattr(after, name) == pytest.approx(factor * getattr(before, name), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    machines(), st.integers(1, 100), st.floats(1, 10), st.sampled_from(["scale_up", "scale_out"])
)
def test_no_rate_falls_when_a_bandwidth_is_raised(what, n, factor, which):
    """More of either never harms."""
    faster = replace(what, **{which: getattr(what, which) * factor})
    before, after = group_rate(what, n), group_rate(faster, n)
    for name in RATES:
        assert getattr(after, name) >= getattr(before, name) * (1 - 1e-9)


def test_group_rates_are_values():
    """Equal questions have equal answers, whatever the machine is called in the figures."""
    assert astuple(group_rate(machine("hgx-h100"), 8)) == astuple(
        group_rate(machine("hgx-h200"), 8)
    )


@for_all("module", [m.name for m in pkgutil.walk_packages(topologies.__path__, "topologies.")])
def test_examples_in_docstrings_hold(module):
    """What the docstrings show is what happens."""
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert failed == 0


@pytest.mark.parametrize(
    ("what", "said"), [("hgx-h100", r"machine\('hgx-h100'\)"), (None, "DiGraph was expected")]
)
def test_what_is_neither_machine_nor_fabric_is_refused(what, said):
    """A name is not the machine; nothing is no fabric."""
    with pytest.raises(TopologyError, match=said):
        group_rate(what, 8)
