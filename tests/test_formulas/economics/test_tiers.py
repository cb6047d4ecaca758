"""Where caches live, what a price cliff says, sparse reads (results 4 and 5, C38 to C48)."""

import csv
import math

import numpy as np
import pytest
import sympy as sp

from formulas.economics.recompute_or_keep import (
    keep_activations,
    keep_cache,
    keep_or_compute,
    keep_or_compute_drain,
)
from formulas.economics.tiers import (
    best_drain_time,
    break_even_hold,
    break_even_hold_in_tier,
    byte_price_by_drain_time,
    drain_rule,
    drain_rule_exponent,
    drain_rule_prices,
    fetch_cost,
    fetch_over_remake,
    hit_chance_needed,
    hold_cost,
    remake_cost,
    store_cost,
    tier_drain_time,
    tier_edge,
)
from formulas.roofline.kvcache import (
    cache_bytes_by_weights,
    cache_bytes_from_cliff,
    cache_bytes_from_kink,
    cliff_surcharge,
    grouped_cache_bytes,
    kv_time_per_sequence,
    kv_time_shared,
    longest_context,
    readable_context,
    readable_over_stored,
    shared_by_all,
    surcharge_context,
)
from formulas.roofline.roofline import compute_time, memory_time, step_time
from formulas.roofline.sparse_attention import (
    block_reads,
    block_reads_least,
    block_size,
    packed_reads,
    packed_slope,
    top_reads,
    top_share,
    top_slope,
    wide_context,
)
from tests.paths import FACTS

# The lecture's machine: 20 TB/s, 300 multiply-accumulates per byte, 288 GB; 1667 byte per token.
BOARD = {
    "F": 600 * 20e12, "W": 20e12, "M": 288e9, "b_w": 1, "c_fwd": 2, "m_pos": 1, "N_active": 1e11,
    "N_total": 8e11, "b_kv": 1e11 / 300 / 2e5, "D_step": 1e-3, "e_pf": 1, "a_kv": 0, "L_in": 1000,
}  # fmt: skip


def of(item, case, **more):
    """The value of an equation at a case that may hold more than it needs."""
    run = item.numpy()
    return run(**{name: (case | more)[name] for name in run.kernel.names})


# -- result 4: one number for the edge of the tier and the cliff ---------------------------------


def test_the_edge_of_hbm_is_the_drain_time_times_the_cliff():
    """Result 4: 14.4 ms times 200 000 tokens are 2880 s."""
    assert of(break_even_hold, BOARD) == pytest.approx(14.4e-3 * 200_000)
    assert of(keep_cache, BOARD) == pytest.approx(2880)


def test_attention_and_efficiency_lengthen_the_hold():
    """Result 4: by 1 + a·I/(2·N_active) in multiply-accumulates, over the prefill efficiency."""
    case = BOARD | {"a_kv": 278_528, "L_in": 50_000, "e_pf": 0.5}  # MLA: 139 264 MAC
    factor = (1 + 139_264 * 50_000 / (2 * 1e11)) / 0.5
    assert of(break_even_hold, case) == pytest.approx(2880 * factor)


def test_the_identity_fails_where_a_hit_pays_retrieval():
    """Result 4, counter-example: what reading back costs shortens the hold, to nothing at last."""
    case = BOARD | {"M_tier": 288e9, "W_tier": 20e12, "p_tier": 1e-3}
    remake = of(remake_cost, case | {"n_chips": 1, "p_chip": 1e-3})
    for busy, change in ((0, 0.0), (1e-3, 14.4e-3), (1.0, 14.4)):
        case |= {"p_read": busy}
        fetch = of(fetch_cost, case)
        hold = of(break_even_hold_in_tier, case, C_remake=remake, C_fetch=fetch)
        assert hold == pytest.approx(2880 - change)
    case |= {"p_read": 1e4}
    assert of(break_even_hold_in_tier, case, C_remake=remake, C_fetch=of(fetch_cost, case)) < 0


def test_a_hit_must_be_likely_enough():
    """Holding pays from the chance at which the bill with and without it are the same."""
    case = {"C_store": 2.0, "C_fetch": 1.0, "C_remake": 9.0}
    chance = of(hit_chance_needed, case)
    assert chance == 0.25
    assert 2.0 + chance * 1.0 == chance * 9.0
    assert of(fetch_over_remake, case) == pytest.approx(1 / 3)


# -- result 5: tiers -----------------------------------------------------------------------------


def test_the_drain_time_rule():
    """C43: holding costs what reading back costs at the drain time, if both are paid alike."""
    case = {"b_kv": 2000, "M_tier": 7.68e12, "W_tier": 14e9, "p_tier": 1e-6, "p_read": 1e-6}
    hold = of(tier_drain_time, case)
    assert of(drain_rule, case) == hold
    assert of(store_cost, case, t_hold=hold) == pytest.approx(of(fetch_cost, case))


def test_the_drain_time_rule_fails_with_two_prices():
    """C43, counter-example: a read that keeps the chip busy too moves the hold with its price."""
    case = {"b_kv": 2000, "M_tier": 7.68e12, "W_tier": 14e9, "p_tier": 1e-6, "p_read": 5e-5}
    hold = of(drain_rule_prices, case)
    assert hold == pytest.approx(50 * of(tier_drain_time, case))
    assert of(store_cost, case, t_hold=hold) == pytest.approx(of(fetch_cost, case))


def test_between_two_tiers_the_edge_is_where_they_cost_the_same():
    """Result 5: shorter holds belong to the faster tier, longer ones to the slower."""
    fast, slow = {"q_byte": 5.0, "tau_tier": 2.0}, {"q_byte": 1.0, "tau_tier": 60.0}
    edge = of(tier_edge, {"q_1": 5.0, "tau_1": 2.0, "q_2": 1.0, "tau_2": 60.0})
    assert edge == 12.5
    for hold, cheaper in ((edge * 0.9, fast), (edge * 1.1, slow)):
        costs = [of(hold_cost, tier, t_hold=hold) for tier in (fast, slow)]
        assert costs.index(min(costs)) == [fast, slow].index(cheaper)


def test_a_tier_can_be_useless():
    """Result 5, counter-example: slower and no cheaper to read, it is better at no hold time."""
    edge = of(tier_edge, {"q_1": 5.0, "tau_1": 60.0, "q_2": 1.0, "tau_2": 2.0})
    assert edge < 0


@pytest.mark.parametrize("fall", [0.25, 0.5, 0.8])
def test_along_a_continuum_of_tiers(fall):
    """Result 5: the cheapest drain time is t·n/(1-n), by search; the hold time iff n = 1/2."""
    case = {"one_price": 1.0, "one_second": 1.0, "n_fall": fall, "t_hold": 300.0}
    drain = np.geomspace(1, 1e5, 200_001)
    price = of(byte_price_by_drain_time, case, tau_tier=drain)
    best = drain[np.argmin(of(hold_cost, case, q_byte=price, tau_tier=drain))]
    assert of(best_drain_time, case) == pytest.approx(best, rel=1e-3)
    assert bool(best == pytest.approx(300, rel=1e-3)) is (fall == of(drain_rule_exponent, {}))


def test_where_prices_fall_faster_than_drain_times_rise_there_is_no_best_tier():
    """Result 5, counter-example: n of one and more: the slower the cheaper, without end."""
    for fall in (1.0, 1.5):
        case = {"one_price": 1.0, "one_second": 1.0, "n_fall": fall, "t_hold": 300.0}
        drain = np.geomspace(1, 1e9, 1001)
        price = of(byte_price_by_drain_time, case, tau_tier=drain)
        assert (np.diff(of(hold_cost, case, q_byte=price, tau_tier=drain)) < 0).all()


def test_drain_times_of_real_tiers():
    """C45: DDR fits the lecture; flash takes minutes to hours, a disk more than a day."""
    file = FACTS / "storage_tiers.csv"
    with file.open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["drain_seconds"]]
    for row in rows:
        case = {
            "M_tier": 1e9 * float(row["capacity_gb"]),
            "W_tier": 1e9 * float(row["read_gbytes_per_s"]),
        }
        assert of(tier_drain_time, case) == pytest.approx(float(row["drain_seconds"]), rel=5e-3)
    by = {
        tier: [float(r["drain_seconds"]) for r in rows if r["tier"] == tier]
        for tier in ("HBM", "DDR5", "NVMe flash", "HDD")
    }
    assert 0.013 <= min(by["HBM"]) <= max(by["HBM"]) <= 0.036
    assert 1 <= min(by["DDR5"]) <= max(by["DDR5"]) <= 14
    assert min(by["NVMe flash"]) > 4 * 60
    assert min(by["HDD"]) > 24 * 3600


# -- keep or compute -----------------------------------------------------------------------------


def test_keeping_and_computing_cost_the_same_at_the_exchange():
    """The symmetry: bytes times time over memory, against arithmetic over rate."""
    case = BOARD | {"b_made": 3e9, "f_made": 7e15}
    hold = of(keep_or_compute, case)
    assert 3e9 / case["M"] * hold == pytest.approx(7e15 / case["F"])
    assert of(keep_or_compute_drain, case) == pytest.approx(hold)


def test_a_cache_is_kept_and_activations_are_not_by_one_balance():
    """A cached token pays for 48 minutes; a layer's activations for a fifth of a second."""
    layer = {"n_blocks": 80, "D_batch": 4096, "A_layer": 4096 * 34 * 8192}
    hold = of(keep_activations, BOARD | layer)
    case = BOARD | {"b_made": layer["A_layer"], "f_made": 2 * 1e11 / 80 * 4096}
    assert hold == pytest.approx(of(keep_or_compute, case))
    assert hold == pytest.approx(0.215, abs=1e-3)
    assert of(keep_cache, BOARD) > 1000 * hold


# -- the price cliff -----------------------------------------------------------------------------


def test_three_readings_of_the_cliff():
    """C38, C40: 1667 byte by either term alone at B0, 1000 with both at 2.5 B0, none at B0."""
    case = BOARD | {"L_ctx": 2e5}
    assert of(cache_bytes_from_cliff, case) == pytest.approx(1667, abs=0.5)
    assert of(cache_bytes_by_weights, case, B=2400) == pytest.approx(1667, abs=0.5)
    assert of(cache_bytes_from_kink, case, B=6000) == pytest.approx(1000)
    assert of(cache_bytes_from_kink, case, B=2400) == pytest.approx(0, abs=1e-9)
    assert of(cache_bytes_by_weights, case, B=6000) == pytest.approx(1667 / 2.5, abs=0.5)


def test_at_the_kink_of_both_terms_the_roofs_meet():
    """C40: put back into the step."""
    case = BOARD | {"L_ctx": 2e5, "B": 6000}
    case["b_kv"] = of(cache_bytes_from_kink, case)
    assert of(compute_time, case) == pytest.approx(of(memory_time, case))


def test_two_kilobytes_are_one_layer():
    """C39: 8 heads of width 128 in FP8 hold 2048 byte in one layer, 164 kB in eighty."""
    case = {"n_kv": 8, "d_head": 128, "b_el": 1}
    assert of(grouped_cache_bytes, case, n_layers=1) == 2048
    assert of(grouped_cache_bytes, case, n_layers=80) == 163_840


def test_what_a_surcharge_of_one_half_covers():
    """C41: 300 000 tokens far above the critical batch; the mean to a million is threefold."""
    case = BOARD | {"B": 1e12}
    assert of(surcharge_context, case, x_cliff=1.5) == pytest.approx(300_000, rel=1e-6)
    contexts = np.linspace(2e5, 1e6, 1001)
    assert of(cliff_surcharge, case, L_ctx=contexts).mean() == pytest.approx(3, rel=1e-6)
    case = BOARD | {"B": 6000}
    ratio = of(step_time, case, L_ctx=5e5) / of(compute_time, case)
    assert of(cliff_surcharge, case, L_ctx=5e5) == pytest.approx(ratio)


# -- context walls, sharing ----------------------------------------------------------------------


def test_capacity_binds_before_bandwidth():
    """C47: 72 chips, 2400 sequences: 2.7 million tokens fit; 20 ms read 6.9 million."""
    case = {"M": 72 * 192e9, "W": 72 * 8e12, "N_total": 1e12, "b_w": 1, "B": 2400, "b_kv": 2000}
    stored = of(longest_context, case)
    read = of(readable_context, case, T_kv_max=50e-3)
    assert stored == pytest.approx(2.67e6, rel=5e-3)
    assert of(readable_over_stored, case, T_kv_max=50e-3) == pytest.approx(read / stored)
    assert read > stored
    assert of(readable_context, case, T_kv_max=20e-3) < stored  # a step shorter than the drain


def test_a_hundred_million_tokens():
    """C47: 200 GB of cache per sequence at 2 kB, 10 ms per step on a chip of 20 TB/s."""
    assert 1e8 * 2000 == 200e9
    assert of(kv_time_per_sequence, {"L_ctx": 1e8, "b_kv": 2000, "W": 20e12}) == pytest.approx(0.01)


def test_caches_are_not_amortised():
    """C48: the time per sequence does not depend on the batch, unless a prefix is shared."""
    assert sp.Symbol("B", positive=True) not in kv_time_per_sequence.rhs.free_symbols
    case = {"L_ctx": 10_000, "L_share": 8000, "b_kv": 2000, "W": 1e12}
    alone = of(kv_time_per_sequence, case)
    for group, share in ((1, 1.0), (10, 0.28), (100, 0.208)):
        each = of(kv_time_shared, case, B=1000, n_share=group) / 1000
        assert each == pytest.approx(share * alone)
    assert of(shared_by_all, case) == pytest.approx(0.2 * alone)


def test_an_unfinished_group_reads_its_prefix_whole():
    """Result 12, C48: the step of a shared prefix rises in jumps, by one prefix per group."""
    case = {"L_ctx": 10_000, "L_share": 10_000, "b_kv": 2000, "W": 1e12, "n_share": 100}
    one, two = (of(kv_time_shared, case, B=batch) for batch in (100, 101))
    assert two == pytest.approx(2 * one)


# -- sparse attention ----------------------------------------------------------------------------


def test_two_level_selection_reads_the_root():
    """C46: at the best block size 2·sqrt(kL), by search; a hundred times the context, ten times."""
    case = {"L_ctx": 1e6, "k_block": 16}
    sizes = np.geomspace(1, 1e6, 100_001)
    best = sizes[np.argmin(of(block_reads, case, c_block=sizes))]
    assert of(block_size, case) == pytest.approx(best, rel=1e-3)
    least = of(block_reads_least, case)
    assert of(block_reads, case, c_block=best) == pytest.approx(least, rel=1e-6)
    assert of(block_reads_least, case, L_ctx=1e8) == pytest.approx(10 * least)


def test_the_root_fails_for_a_fixed_block():
    """C46, counter-example: blocks that do not grow leave the reads linear."""
    case = {"k_block": 16, "c_block": 64}
    reads = [of(block_reads, case, L_ctx=length) for length in (1e8, 1e9)]
    assert reads[1] / reads[0] == pytest.approx(10, rel=1e-2)


def test_an_index_of_every_token_is_linear():
    """C46: 132 byte of index and 656 of cache per layer: a fifth, not the root."""
    case = {"b_index": 132, "b_kv": 656, "k_top": 2048}
    assert of(top_slope, case) == pytest.approx(0.2, abs=2e-3)
    assert of(top_reads, case, L_ctx=131_072) == 132 * 131_072 + 656 * 2048
    assert of(top_share, case, L_ctx=131_072) == pytest.approx(0.217, abs=1e-3)
    assert of(top_share, case, L_ctx=2048) > 1  # a short context is dearer with an index


def test_packing_is_linear():
    """C46: four tokens to an entry, or 128, leave a quarter or a 128th of the slope."""
    case = {"L_ctx": 1e6, "L_window": 128}
    for pack in (4, 128):
        assert of(packed_reads, case, c_pack=pack) == pytest.approx(1e6 / pack + 128)
        assert of(packed_slope, {"c_pack": pack}) == 1 / pack


def test_the_context_that_two_level_selection_buys():
    """C46: the balance context squared over 4k: the roof moves from 2e5 to 6e8 tokens."""
    case = BOARD | {"k_block": 16}
    wide = of(wide_context, case)
    assert wide == pytest.approx(2e5**2 / 64)
    assert of(block_reads_least, case, L_ctx=wide) == pytest.approx(2e5)
    assert math.isclose(wide, 6.25e8)
