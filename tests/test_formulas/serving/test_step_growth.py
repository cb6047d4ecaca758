"""Results 8 and 12: what pipelines divide, and how a step's time grows with the batch."""

import math

import numpy as np
import pytest

from formulas.registry import find
from tests.loops import for_all

BATCHES = np.arange(1, 1025, dtype=float)


def of(name, **case):
    """The value of an equation of the catalogue."""
    return find(name).numpy()(**case)


def never_falls(times):
    return bool(np.all(np.diff(times) >= -1e-12 * times[:-1]))


def cost_never_rises(times):
    costs = times / BATCHES
    return bool(np.all(np.diff(costs) <= 1e-12 * costs[:-1]))


# -- result 8 --------------------------------------------------------------------------------------

MODEL = {"N_total": 8e11, "b_w": 1.0, "B_micro": 2400.0, "L_ctx": 2e5, "b_kv": 5000 / 3}
RACK = {"n_domain": 72.0}


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
def test_a_full_pipeline_divides_weights_but_not_caches(stages):
    """Result 8: with as many microbatches as stages, only the weight term shrinks."""
    found = of("pipeline_memory", **MODEL, **RACK, n_stages=stages)
    assert found == pytest.approx(8e11 / 72 / stages + 8e11 / 72)
    whole = of("pipeline_memory_in_flight", **MODEL, **RACK, n_stages=stages, n_flight=stages)
    assert whole == pytest.approx(found)


def test_fewer_microbatches_save_memory_and_leave_stages_idle():
    """Result 8 fails below P in flight: caches shrink, and so does throughput."""
    case = MODEL | RACK | {"n_stages": 4.0, "n_flight": 1.0}
    found = of("pipeline_memory_in_flight", **case)
    assert found == pytest.approx((8e11 + 8e11) / 72 / 4)
    assert of("busy_stages", n_flight=1.0, n_stages=4.0) == 0.25


def test_more_microbatches_cost_memory_and_gain_nothing():
    """Result 8 fails above P in flight, as slow hops demand: caches grow, stages are full."""
    case = MODEL | RACK | {"n_stages": 4.0}
    full, more = (of("pipeline_memory_in_flight", **case, n_flight=n) for n in (4.0, 6.0))
    assert more - full == pytest.approx(0.5 * 8e11 / 72)
    assert of("busy_stages", n_flight=6.0, n_stages=4.0) == 1


# -- result 12: what keeps the two properties ------------------------------------------------------

PARTS = {
    "weights and caches": 10 + 0.05 * BATCHES,
    "coverage": 10 * (1 - (1 - 8 / 256) ** BATCHES),
    "experts in unlike demand": 10 * 8 * BATCHES / (248 + 8 * BATCHES),
    "collective": 1 + 0.01 * BATCHES + 0.2 * np.sqrt(BATCHES),
    "imbalance": 0.05 * BATCHES * (1 + 2 / np.sqrt(BATCHES)),
    "prefill share": 0.02 * BATCHES,
    "constant": np.full_like(BATCHES, 7.0),
    "efficiency": 0.05 * BATCHES / (BATCHES / (BATCHES + 50)),
}


@for_all("part", PARTS)
def test_parts_of_a_step_have_both_properties(part):
    """Result 12: each never falls and never grows faster than the batch."""
    assert never_falls(PARTS[part])
    assert cost_never_rises(PARTS[part])


@pytest.mark.parametrize("name", ["sum", "maximum", "minimum", "scaled"])
def test_combinations_keep_both_properties(name):
    """Result 12: a time that combines such times is at most lam-fold at lam times the batch."""
    combine = {
        "sum": np.add,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "scaled": lambda one, _: 3 * one,
    }[name]
    claim = find(f"growth_of_{name}")
    assert claim.check()
    for one in PARTS.values():
        for two in PARTS.values():
            found = combine(one, two)
            assert never_falls(found)
            assert cost_never_rises(found)


def slope(times, at):
    """Elasticity between neighbours of a batch."""
    low, high = times(at * 0.9999), times(at * 1.0001)
    return math.log(high / low) / math.log(1.0001 / 0.9999)


@pytest.mark.parametrize("batch", [1.0, 20.0, 500.0])
def test_elasticities_by_differences(batch):
    """Result 12: the closed forms are the slopes, and lie between zero and one."""
    found = {
        "growth_of_affine": ({"t_const": 3.0, "t_each": 0.1}, lambda b: 3 + 0.1 * b),
        "growth_of_coverage": ({"q_miss": 31 / 32, "one_seq": 1.0}, lambda b: 1 - (31 / 32) ** b),
        "growth_of_collective": (
            {"t_const": 3.0, "t_each": 0.1, "t_root": 0.5},
            lambda b: 3 + 0.1 * b + 0.5 * math.sqrt(b),
        ),
        "growth_of_imbalance": ({"c_imb": 2.0}, lambda b: b * (1 + 2 / math.sqrt(b))),
        "growth_with_efficiency": ({"eta_B": 0.3}, lambda b: b**0.7),
    }
    for name, (case, times) in found.items():
        run = find(name).numpy()
        values = case | {"B": batch}
        here = run(**{key: values[key] for key in run.kernel.names})
        assert here == pytest.approx(slope(times, batch), rel=1e-5)
        assert 0 <= here <= 1


def test_a_sum_grows_by_the_weighted_mean():
    """Result 12: between the elasticities of its parts."""
    case = {"t_const": 2.0, "t_tile": 5.0, "e_one": 0.2, "e_two": 0.9, "B": 30.0, "one_seq": 1.0}
    found = of("mixed_growth", **case)
    assert found == pytest.approx(slope(lambda b: 2 * b**0.2 + 5 * b**0.9, 30.0), rel=1e-5)
    assert 0.2 < found < 0.9


# -- result 12: what breaks them -------------------------------------------------------------------


def test_a_new_tile_nearly_doubles_the_time():
    """Tiles, graph buckets and dp groups: from 128 to 129 sequences cost per token jumps."""
    at = find("tiled_time").numpy("B")
    times = at(BATCHES, B_tile=128.0, t_tile=1.0)
    assert times[128] / times[127] == 2
    assert never_falls(times)
    assert not cost_never_rises(times)


def test_whole_prefix_groups_break_the_second_property():
    """Caches read once per group of sequences that share a prefix: a new group adds a step."""
    times = 20 * np.ceil(BATCHES / 64) + 0.01 * BATCHES
    assert never_falls(times)
    assert not cost_never_rises(times)


def test_a_switch_of_algorithm_breaks_either_property():
    """A threshold that is not where the two are equal: the time jumps down or up."""
    small, large = 0.05 * BATCHES, 20 + 0.01 * BATCHES
    late = np.where(BATCHES < 900, small, large)
    early = np.where(BATCHES < 200, small, large)
    assert not never_falls(late)
    assert not cost_never_rises(early)
    assert cost_never_rises(np.minimum(small, large))


def test_a_hit_rate_that_depends_on_free_memory_breaks_the_second_property():
    """A larger batch leaves less room for prefixes, so each of its requests computes more."""
    hits = np.clip(1 - BATCHES / 1024, 0, 1)
    times = 1 + 0.05 * BATCHES * (1 - hits)
    assert never_falls(times)
    assert not cost_never_rises(times)


@pytest.mark.parametrize(("eta", "keeps"), [(-0.2, False), (0.0, True), (1.0, True), (1.3, False)])
def test_an_efficiency_keeps_them_iff_it_neither_falls_nor_outgrows_the_batch(eta, keeps):
    """Result 12: e must not fall, e/B must not rise."""
    times = 0.05 * BATCHES / BATCHES**eta
    assert (never_falls(times) and cost_never_rises(times)) == keeps


def test_rounding_down_costs_less_the_larger_the_batch():
    """The largest whole batch is cheapest until floor(B)/B cannot beat the incumbent."""
    loss = find("rounding_loss").numpy("B_whole")
    edges = loss(np.array([1.999, 2.0, 2.999, 10.5, 100.9]), one_seq=1.0)
    assert edges == pytest.approx([1.999, 1.0, 2.999 / 2, 1.05, 1.009])
    assert np.all(edges <= 1 + 1 / np.floor([1.999, 2.0, 2.999, 10.5, 100.9]))


def test_the_search_over_breakpoints_finds_the_cheapest_batch():
    """With tiles, the cheapest batch is the largest that fits or a breakpoint below it."""

    def time(batch):
        return 3 + 0.01 * batch + 1.5 * np.ceil(batch / 128)

    for largest in range(1, 1024, 37):
        every = np.arange(1, largest + 1)
        cheapest = (time(every) / every).min()
        candidates = np.unique(np.r_[largest, 128 * np.arange(1, largest // 128 + 1)])
        candidates = candidates[candidates <= largest]
        assert (time(candidates) / candidates).min() == pytest.approx(cheapest)
