"""Times of collectives by algorithm, hops, and copies of tokens, against published figures."""

import math

import numpy as np
import pytest

from formulas.network.collective_algorithms import (
    all_reduce_overlapped,
    all_reduce_serial,
    in_network_all_reduce,
    one_shot_all_reduce,
    one_shot_limit,
    ring_all_gather,
    ring_all_reduce,
    tree_all_reduce,
    tree_limit,
    two_shot_all_reduce,
)
from formulas.network.collectives import (
    all_gather_steps,
    all_reduce_steps,
    all_reduce_traffic,
    collective_time,
    hand_over_time,
    in_network_gain,
    latency_floor_of_steps,
    tree_steps,
)
from formulas.network.expert_copies import (
    combine_time,
    copy_bytes,
    copy_saving,
    dispatch_time,
    distinct_nodes,
    distinct_nodes_equation,
    nodes_in_reach,
    remote_copies,
)
from tests.loops import for_all

LINK = {"alpha_0": 5e-6, "alpha_1": 1e-6, "r_link": 450e9}


def of(item, **case):
    """The value of an equation or derivation at a case that may hold more than it needs."""
    run = item.numpy()
    return run(**{name: case[name] for name in run.kernel.names})


# -- algorithms -------------------------------------------------------------------------------


def test_all_reduce_is_reduce_scatter_and_all_gather():
    """Two launches apart, a ring all-reduce is both of its halves in turn."""
    case = LINK | {"n_group": 8, "V_msg": 1e9}
    halves = 2 * of(ring_all_gather, **case) - LINK["alpha_0"]
    assert of(ring_all_reduce, **case) == pytest.approx(halves, rel=1e-12)


def test_an_algorithm_is_the_general_time_with_its_steps_and_traffic():
    """Floor of its steps plus bytes on the wire over the rate, no square-root term."""
    floor = of(latency_floor_of_steps, n_steps=of(all_reduce_steps, n_group=8), **LINK)
    general = of(
        collective_time, alpha_c=floor, gamma_c=0, e_net=1, r_link=450e9, V_msg=1e8,
        q_wire=of(all_reduce_traffic, n_group=8),
    )  # fmt: skip
    assert of(ring_all_reduce, n_group=8, V_msg=1e8, **LINK) == pytest.approx(general)


def test_steps_of_rings_and_trees():
    """n - 1 for half a ring, 2(n - 1) for all of it, 2 log2(n) for trees."""
    assert of(all_gather_steps, n_group=72) == 71
    assert of(all_reduce_steps, n_group=72) == 142
    assert of(tree_steps, n_group=64) == pytest.approx(12)


@pytest.mark.parametrize("n", [3, 4, 8, 72])
def test_one_shot_and_two_cross_at_the_limit(n):
    """Below it one shot is faster, above it two are."""
    limit = of(one_shot_limit, n_group=n, **LINK)
    for factor, one_wins in ((0.9, True), (1.1, False)):
        case = LINK | {"n_group": n, "V_msg": factor * limit}
        assert (of(one_shot_all_reduce, **case) < of(two_shot_all_reduce, **case)) == one_wins


@pytest.mark.parametrize("n", [4, 8, 72, 1024])
def test_trees_and_rings_cross_at_the_limit(n):
    """Trees send a little more in far fewer steps."""
    limit = of(tree_limit, n_group=n, **LINK)
    for factor, tree_wins in ((0.99, True), (1.01, False)):
        case = LINK | {"n_group": n, "V_msg": factor * limit}
        assert (of(tree_all_reduce, **case) < of(ring_all_reduce, **case)) == tree_wins


def test_a_switch_that_reduces_saves_nearly_half():
    """2(n - 1)/n: 1.75 times a ring on eight chips, less than twice on any number."""
    assert of(in_network_gain, n_group=8) == pytest.approx(1.75)
    assert of(in_network_gain, n_group=1e9) == pytest.approx(2)
    best = of(in_network_all_reduce, alpha_c=0, V_msg=8 * 2**30, r_link=900e9)
    assert best < 17.938e-3  # 8 GiB on 8 B200 with NVLS, nccl-tests


def test_two_levels_bracket_a_measured_all_reduce():
    """4 nodes of 8 B200 with 50 GB/s each, 4 GiB: 16.1 ms <= 22.05 measured <= 26.3 (Bekman).

    The nodes' own links carry what one node alone reached at 4 GiB: 740.64 GB/s.
    """
    case = {"g_node": 8, "m_group": 4, "V_msg": 2**32, "r_up": 740.64e9, "r_out": 50e9}
    low, high = of(all_reduce_overlapped, **case), of(all_reduce_serial, **case)
    assert low == pytest.approx(16.1e-3, abs=0.05e-3)
    assert high == pytest.approx(26.3e-3, abs=0.05e-3)
    assert low <= 22.05e-3 <= high


def test_general_time_is_fast_on_arrays():
    """One kernel takes sizes along one axis and groups along another."""
    run = collective_time.numpy()
    sizes, floors = np.logspace(3, 9, 7), np.array([[5e-6], [9e-6]])
    found = run(alpha_c=floors, gamma_c=1e-9, e_net=0.7, q_wire=1.75, r_link=450e9, V_msg=sizes)
    assert found.shape == (2, 7)
    assert (np.diff(found, axis=1) > 0).all()


# -- hops -------------------------------------------------------------------------------------

HIDDEN = {"h_act": 7168, "b_act": 2, "t_hop_sw": 0}
# Latency [us], rate [GB/s], and the time of 1, 32, 256, 2048, 8192 tokens [us].
HOPS = {
    "NVL72": (10, 675, (10, 11, 15, 54, 184)),
    "one 400G card": (20, 46, (20, 30, 100, 658, 2573)),
    "one 800G card": (20, 92, (20, 25, 60, 339, 1297)),
    "eight 400G cards": (25, 368, (25, 26, 35, 105, 344)),
    "TCP": (100, 10, (101, 146, 467, 3036, 11844)),
}


@for_all("name", HOPS)
@for_all("i", range(5))
def test_a_hop_is_latency_and_bytes(name, i):
    """Tens of us on RDMA at decode sizes; ms only for long chunks or TCP."""
    latency, rate, times = HOPS[name]
    tokens = (1, 32, 256, 2048, 8192)[i]
    found = of(hand_over_time, t_hop_net=latency * 1e-6, r_hop=rate * 1e9, n_hand=tokens, **HIDDEN)
    assert found * 1e6 == pytest.approx(times[i], rel=0.01, abs=0.55)


def test_software_adds_to_a_hop():
    """Network and software are two numbers: "a few ms" is the second."""
    case = {"t_hop_net": 20e-6, "r_hop": 45e9, "n_hand": 256, "h_act": 7168, "b_act": 2}
    gap = of(hand_over_time, t_hop_sw=2e-3, **case) - of(hand_over_time, t_hop_sw=0, **case)
    assert gap == pytest.approx(2e-3)


# -- copies of tokens -------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "distinct"), [(4, 3.61), (8, 5.29), (16, 6.52)])
def test_distinct_nodes_of_eight_experts_of_256(nodes, distinct):
    """m (1 - C(E - E/m, k)/C(E, k)), with binomials written out elsewhere."""
    found = of(distinct_nodes, n_experts=256, m_group=nodes)
    exact = nodes * (1 - math.comb(256 - 256 // nodes, 8) / math.comb(256, 8))
    assert found == pytest.approx(exact, rel=1e-12)
    assert found == pytest.approx(distinct, abs=0.005)


@pytest.mark.parametrize(("k", "experts", "nodes"), [(1, 8, 4), (2, 8, 2), (4, 128, 16), (8, 8, 4)])
def test_distinct_nodes_by_drawing(k, experts, nodes):
    """The mean over random routings agrees."""
    draw = np.random.default_rng(1)
    picks = draw.permuted(np.tile(np.arange(experts), (20000, 1)), axis=1)[:, :k]
    mean = np.mean([len(set(row)) for row in picks // (experts // nodes)])
    found = of(distinct_nodes_equation(k), n_experts=experts, m_group=nodes)
    assert found == pytest.approx(mean, rel=0.01)


def test_copies_that_leave_a_node():
    """8 nodes: 4.63 instead of 7.0; routing limited to 4 nodes caps them at 3.5."""
    distinct = of(distinct_nodes, n_experts=256, m_group=8)
    free = of(remote_copies, m_group=8, k_nodes=distinct, g_limit=8)
    assert free == pytest.approx(4.63, abs=0.005)
    assert of(remote_copies, m_group=8, k_nodes=distinct, g_limit=4) == pytest.approx(3.5)
    assert of(nodes_in_reach, k_nodes=distinct, g_limit=4) == 4
    assert of(copy_saving, k_nodes=distinct, k_experts=8) == pytest.approx(distinct / 8)


def test_one_node_receives_no_copy():
    """Nothing leaves a group of one node."""
    assert of(distinct_nodes, n_experts=256, m_group=1) == 1
    assert of(remote_copies, m_group=1, k_nodes=1, g_limit=4) == 0


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "8"])
def test_experts_of_a_token_are_counted(k):
    """A token visits a whole number of experts."""
    with pytest.raises(ValueError, match="whole number of experts"):
        distinct_nodes_equation(k)


FP8 = {"b_elem": 1, "b_scale": 4, "c_scale": 128, "h_exp": 7168}


def test_bytes_of_published_dispatch():
    """DeepEP, EP128, 128 tokens: 194 us at 39 GB/s and 360 us at 40 GB/s."""
    assert of(copy_bytes, **FP8) == 7168 + 224
    assert 128 * 8 * of(copy_bytes, **FP8) / 194e-6 / 1e9 == pytest.approx(39.0, abs=0.05)
    combine = 128 * 8 * 7168 * 2 / 360e-6
    assert combine / 1e9 == pytest.approx(40.8, abs=0.05)


def test_dispatch_and_combine_take_their_bytes_over_the_card():
    """Eight copies of 128 tokens: published 192 us and 369 us less a floor under 100 us."""
    case = {"n_hand": 128, "k_remote": 8 * 15 / 16, "r_out": 50e9, "e_net": 1, "alpha_c": 0}
    dispatch = of(dispatch_time, **case, **FP8)
    combine = of(combine_time, **case, h_exp=7168, b_comb=2)
    assert 0 < 192e-6 - dispatch < 100e-6
    assert 0 < 369e-6 - combine < 100e-6
