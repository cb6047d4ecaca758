"""Times of collectives: the fastest algorithm, its band, its bound, and what the estimate is on."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from planner.catalogue.collective_curves import collectives
from planner.network.collective_times import collective_time, hop_time, timed
from planner.network.group import group_of
from planner.text.errors import InputError
from topologies import graph, machine

HGX = machine("hgx-h100")
SIZES = np.array([1e4, 1e6, 1e8, 1e10])


def test_the_fastest_algorithm_answers_at_each_size():
    """All-reduces of eight H100: a fused kernel is faster for few bytes, the switch for many."""
    group = group_of(HGX, 8)
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
    group = replace(group_of(HGX, 2), all_gather=curve.rate)
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
    group, (low, high) = group_of(HGX, 16), collectives().bands["any"]
    for network in ("infiniband", "efa"):
        times = collective_time(group, "all-reduce", SIZES, network=network)
        assert times.high == pytest.approx(times.seconds * high)
        bound = SIZES * 2 * 15 / 16 / group.all_gather
        assert times.bound == pytest.approx(bound)
        assert times.low == pytest.approx(np.maximum(times.seconds * low, bound))
        assert set(times.reason) == {f"physics with what {network} was measured to add"}


def test_a_single_chip_talks_to_nobody():
    """No time, no band; an operation that does not exist is refused all the same."""
    times = collective_time(group_of(HGX, 1), "all-reduce", SIZES)
    for seconds in (times.seconds, times.low, times.high, times.bound):
        assert seconds.tolist() == [0, 0, 0, 0]
    assert set(times.algorithm) == {"none"}
    assert collective_time(group_of(HGX, 1), "all-reduce", 0.0).seconds == 0


@pytest.mark.parametrize("size", [-1.0, [1.0, float("nan")], float("inf")])
def test_a_message_has_a_size(size):
    """Finite, and not negative."""
    with pytest.raises(ValueError, match="finite and not negative"):
        collective_time(group_of(HGX, 8), "all-reduce", size)
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
    rows = timed(network, "all-gather", [4, 16], [1e6, 1e8])
    assert [(row["chips"], row["domains"], row["bytes"]) for row in rows] == [
        (4, 1, 1e6), (4, 1, 1e8), (16, 2, 1e6), (16, 2, 1e8)
    ]  # fmt: skip
    for row in rows:
        times = collective_time(group_of(HGX, row["chips"]), "all-gather", row["bytes"])
        for name in ("seconds", "low", "high", "bound"):
            assert row[name] == float(getattr(times, name))
        assert (row["operation"], row["algorithm"]) == ("all-gather", str(times.algorithm))
        assert row["reason"] == str(times.reason)
    fabric = SimpleNamespace(machine=None, fabric=graph("hgx-h100", 8))
    (row,) = timed(fabric, "all-gather", [8], [1e6])
    assert row["seconds"] == pytest.approx(
        float(collective_time(group_of(HGX, 8), "all-gather", 1e6).seconds)
    )
    with pytest.raises(InputError, match="9 "):
        timed(fabric, "all-gather", [9], [1e6])
