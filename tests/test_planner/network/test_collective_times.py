"""Times of collectives: the fastest algorithm, its band, its bound, and what the estimate is on."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from planner.catalogue.collective_curves import collectives
from planner.network.collective_times import collective_time, collective_time_table, hop_time
from planner.network.group import place_group
from planner.network.network_source import DescribedNetwork
from planner.network.network_source import network as described
from planner.text.errors import InputError
from tests.loops import for_all
from topologies import graph, machine
from topologies.fabric.fabric import fabric

HGX = machine("hgx-h100")
SIZES = np.array([1e4, 1e6, 1e8, 1e10])


def test_the_fastest_algorithm_answers_at_each_size():
    """All-reduces of eight H100: a fused kernel is faster for few bytes, the switch for many."""
    group = place_group(HGX, 8)
    best = collective_time(group, "all-reduce", SIZES)
    names = ("in-network", "fused")
    each = [collective_time(group, "all-reduce", SIZES, algorithm=name) for name in names]
    assert best.seconds.tolist() == np.minimum(*(times.seconds for times in each)).tolist()
    assert set(best.algorithm) == set(names)
    for place, name in enumerate(best.algorithm):
        whose = each[names.index(name)]
        for field in ("seconds", "low", "high", "bound", "reason"):
            assert getattr(best, field)[place] == getattr(whose, field)[place]
    ring = collective_time(group, "all-reduce", SIZES, algorithm="ring")
    assert set(ring.algorithm) == {"ring"}
    library = collective_time(group, "all-reduce", SIZES, algorithm="library")
    assert set(library.algorithm) == {"in-network"}


def test_the_bound_is_bytes_over_the_rate_and_bands_are_those_of_the_evidence():
    """Half of what is gathered passes each of two chips; beyond the curve the band is wider."""
    bands = collectives().bands
    (curve,) = (c for c in collectives().of("h100", "all-gather", "ring") if c.n == 2)
    assert curve.evidence == "measured"
    group = replace(place_group(HGX, 2), all_gather=curve.rate)
    sizes = np.array([curve.sizes[0], 1e6, curve.sizes[-1], 4e11])
    times = collective_time(group, "all-gather", sizes)
    assert times.bound == pytest.approx(sizes / 2 / curve.rate)
    kinds = ["measured"] * 3 + ["fitted"]
    lows, highs = ([bands[kind][end] for kind in kinds] for end in (0, 1))
    assert times.high == pytest.approx(times.seconds * highs)
    assert times.low == pytest.approx(np.maximum(times.seconds * lows, times.bound))
    assert (times.low > times.bound).all()
    assert times.reason.tolist() == ["measured on h100"] * 3 + [
        "beyond the sizes measured on h100"
    ]  # fmt: skip
    faster = collective_time(replace(group, all_gather=2 * curve.rate), "all-gather", SIZES)
    assert faster.high == pytest.approx(faster.seconds * bands["borrowed"][1])
    assert set(faster.reason) == {"borrowed from curves of h100 and its family"}
    other = replace(group, chip="any")
    assert collective_time(other, "all-gather", 1e6).reason == (
        "physics with what is usual: nothing like it was measured on this chip"
    )


def test_a_group_over_domains_stands_on_physics():
    """Its band is that of anything; the reason names the network between."""
    group, (low, high) = place_group(HGX, 16), collectives().bands["any"]
    for network in ("infiniband", "efa"):
        times = collective_time(group, "all-reduce", SIZES, network=network)
        assert times.high == pytest.approx(times.seconds * high)
        bound = SIZES * 2 * 15 / 16 / group.all_gather
        assert times.bound == pytest.approx(bound)
        assert times.low == pytest.approx(np.maximum(times.seconds * low, bound))
        assert set(times.reason) == {f"physics with what {network} was measured to add"}


def test_a_single_chip_talks_to_nobody():
    """No time, no band; an operation that does not exist is refused all the same."""
    times = collective_time(place_group(HGX, 1), "all-reduce", SIZES)
    for seconds in (times.seconds, times.low, times.high, times.bound):
        assert seconds.tolist() == [0, 0, 0, 0]
    assert set(times.algorithm) == {"none"}
    assert collective_time(place_group(HGX, 1), "all-reduce", 0.0).seconds == 0


@pytest.mark.parametrize("size", [-1.0, [1.0, float("nan")], float("inf")])
def test_a_message_has_a_size(size):
    """Finite, and not negative."""
    with pytest.raises(ValueError, match="finite and not negative"):
        collective_time(place_group(HGX, 8), "all-reduce", size)
    with pytest.raises(ValueError, match="finite and not negative"):
        hop_time(size, 1e9)


def test_a_hop_by_hand():
    """Latency, software, and bytes at the share of the rate that a network reaches."""
    usual = {"scale-up": (1e-5, 0.75), "infiniband": (2e-5, 0.92), "tcp": (1e-4, 1.0)}
    for network, (late, share) in usual.items():
        times = hop_time([0.0, 3e6], 5e9, network=network)
        assert times == pytest.approx([late, late + 3e6 / (5e9 * share)])
    assert hop_time(3e6, 5e9) == pytest.approx(1e-5 + 3e6 / 3.75e9)
    assert hop_time(3e6, 5e9, latency=0.0) == pytest.approx(3e6 / 3.75e9)
    own = hop_time(3e6, 5e9, latency=7e-5, software=1e-3)
    assert own == pytest.approx(7e-5 + 1e-3 + 3e6 / 3.75e9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"rate": 0.0}, "rate is"), ({"rate": float("inf")}, "rate is"), ({"rate": -1.0}, "rate is"),
     ({"latency": -1e-9}, "latency is"), ({"latency": float("inf")}, "latency is"),
     ({"software": -1e-9}, "software is"), ({"software": float("nan")}, "software is")],
)  # fmt: skip
def test_a_hop_of_impossible_figures_is_refused(changes, said):
    """With the one that is."""
    with pytest.raises(ValueError, match=said):
        hop_time(1e6, **{"rate": 1e9, **changes})


def test_rows_of_a_table():
    """Each size of group and of message, by the machine where it is one of the catalogue."""
    network = SimpleNamespace(machine=HGX, fabric=None)
    rows = collective_time_table(network, "all-gather", [4, 16], [1e6, 1e8])
    assert [(row["chips"], row["domains"], row["bytes"]) for row in rows] == [
        (4, 1, 1e6), (4, 1, 1e8), (16, 2, 1e6), (16, 2, 1e8)
    ]  # fmt: skip
    for row in rows:
        times = collective_time(place_group(HGX, row["chips"]), "all-gather", row["bytes"])
        for name in ("seconds", "low", "high", "bound"):
            assert row[name] == float(getattr(times, name))
        assert (row["operation"], row["algorithm"]) == ("all-gather", str(times.algorithm))
        assert row["reason"] == str(times.reason)
    fabric = SimpleNamespace(machine=None, fabric=graph("hgx-h100", 8))
    (row,) = collective_time_table(fabric, "all-gather", [8], [1e6])
    assert row["seconds"] == pytest.approx(
        float(collective_time(place_group(HGX, 8), "all-gather", 1e6).seconds)
    )
    with pytest.raises(InputError, match="9 "):
        collective_time_table(fabric, "all-gather", [9], [1e6])


def drawn(seed):
    """Machines of one socket or two with some of their cards, drawn at random."""
    rng = np.random.default_rng(seed)
    domains, chips = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    G = fabric(f"drawn {seed}")
    G.add_node("leaf", kind="switch", forward=True, domain=None)
    for d in range(domains):
        halves = [f"{d} socket {i}" for i in range(int(rng.integers(1, 3)))]
        for half in halves:
            G.add_node(half, kind="switch", forward=True, domain=d)
        for a, b in itertools.pairwise(halves):
            join(G, a, b, rng.choice([20e9, 50e9]), "scale_up")
        cards = {0} | {c for c in range(chips) if rng.random() < 0.5}
        for c in range(chips):
            G.add_node(chip := f"{d} chip {c}", kind="accelerator", forward=domains > 1, domain=d)
            join(G, chip, halves[c % len(halves)], rng.choice([100e9, 300e9]), "scale_up")
            if domains > 1 and c in cards:
                join(G, chip, "leaf", rng.choice([12.5e9, 25e9]), "scale_out")
    if domains == 1:
        G.remove_node("leaf")
    return G


def join(G, a, b, rate, tier):
    """A link both ways."""
    for u, v in ((a, b), (b, a)):
        G.add_edge(u, v, bandwidth=float(rate), latency=1e-6, tier=tier)


@for_all("seed", range(8))
@for_all("operation", ["all-reduce", "all-gather"])
def test_no_algorithm_is_faster_than_its_floor(seed, operation):
    """By every cut: what a ring, or any schedule, must send over it.

    Of V bytes a ring takes (n - 1)/n V over each cut, a gather what the near side begins with.
    """
    G = drawn(seed)
    chips = [node for node, kind in G.nodes(data="kind") if kind == "accelerator"]
    n, V, times = len(chips), 4e9, 2 if operation == "all-reduce" else 1
    floors = {"ring": 0.0, "two-level": 0.0}
    for k in range(1, n):
        for near in itertools.combinations(chips, k):
            leaves = leaving(G, near, [chip for chip in chips if chip not in near])
            floors["ring"] = max(floors["ring"], times * (n - 1) / n * V / leaves)
            floors["two-level"] = max(floors["two-level"], times * k / n * V / leaves)
    rows = collective_time_table(DescribedNetwork("drawn", G), operation, [n], [V])
    assert [row["algorithm"] for row in rows] == ["two-level", "ring"][2 - len(rows) :]
    for row in rows:
        floor = floors[row["algorithm"]]
        assert row["bound"] >= floor * (1 - 1e-9)
        assert row["low"] >= row["bound"]
        assert row["seconds"] >= row["bound"]
        if row["algorithm"] == "ring":
            assert row["bound"] == pytest.approx(floor)


def leaving(G, near, far):
    """The least that can leave some chips for the others, chips of either side relaying."""
    H = nx.DiGraph()
    for u, v, arc in G.edges(data=True):
        H.add_edge(u, v, capacity=arc["bandwidth"])
    for chip in near:
        H.add_edge("from", chip)
    for chip in far:
        H.add_edge(chip, "to")
    return nx.minimum_cut_value(H, "from", "to")


CASE_27 = """
machine: hgx-a100
chips: 16
join: rails
overrides:
""" + "".join(
    f"  - {{node: [{d}, {c}], tier: scale_out, remove: true}}\n"
    for d in (0, 1)
    for c in (1, 3, 5, 7)
)


def test_four_cards_for_eight_chips_hold_a_ring_up(tmp_path):
    """2 * 15/16 * 4 GB at 100 GB/s out of a machine are 75 ms; by levels half of it crosses."""
    (tmp_path / "four.yaml").write_text(CASE_27, encoding="utf-8")
    levels, ring = collective_time_table(
        described(str(tmp_path / "four.yaml")), "all-reduce", [16], [4e9]
    )
    assert (levels["algorithm"], ring["algorithm"]) == ("two-level", "ring")
    assert (levels["bound"], ring["bound"]) == (pytest.approx(0.040), pytest.approx(0.075))
    assert 7.5e9 / ring["seconds"] == pytest.approx(86e9, rel=0.05)  # measured in nccl#1048


def test_a_card_for_each_chip_halves_the_ring(tmp_path):
    """200 GB/s leave a machine: 37.5 ms; by levels the links inside bind, 2 * 7/8 * 4 GB / 300."""
    levels, ring = collective_time_table(described("hgx-a100", 16), "all-reduce", [16], [4e9])
    assert ring["bound"] == pytest.approx(0.0375)
    assert levels["bound"] == pytest.approx(2 * 7 / 8 * 4e9 / 300e9)


def test_leaves_that_two_machines_share_hold_a_ring_up():
    """Four to one above a leaf of two machines: 2 x 8 cards of 50 GB/s share 200 GB/s up."""
    of = described("hgx-h100", 64, join="clos", leaf=16, oversubscription=4)
    _, ring = collective_time_table(of, "all-gather", [64], [6.4e9])
    assert ring["bound"] == pytest.approx(63 / 64 * 6.4e9 / 200e9)
