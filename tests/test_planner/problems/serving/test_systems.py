"""Networks of systems that a scenario describes or varies."""

import pytest

import planner
from planner.text.errors import InputError

SCENARIO = {
    "problem": "serving",
    "model": "llama-3.1-8b",
    "chips": 4,
    "price": "$2/hour",
    "workload": {"input_tokens": 1000, "output_tokens": 200},
}
INLINE = {"memory": "80 GB", "memory_bandwidth": "3 TB/s", "flops": {"bf16": "900 TFLOP/s"}}


def solved(system, **others):
    """The plan on this system."""
    return planner.solve({**SCENARIO, "system": system, **others})


def test_chips_that_talk_need_a_network():
    """No rate is made up for a described system of several chips."""
    with pytest.raises(InputError, match="scale_up"):
        solved(INLINE)


def test_one_chip_needs_none():
    """A chip alone has nobody to talk to."""
    assert solved(INLINE, chips=1).chosen["time_per_step"]["collectives"] == 0


def test_a_described_domain_is_all_chips_unless_said():
    """Without chips_per_domain the fast network joins all of them, as an explicit one would."""
    plain, stated = (
        {**INLINE, "scale_up": "450 GB/s"} | more for more in ({}, {"chips_per_domain": 4})
    )
    choose = {"tp": 4}
    assert solved(plain, choose=choose).chosen == solved(stated, choose=choose).chosen


def test_a_slower_network_makes_dearer_tokens():
    """The rate that is given is the rate that is used."""
    choose = {"tp": 4, "batch": 256}
    fast, slow = (
        solved({**INLINE, "scale_up": rate}, choose=choose).cost for rate in ("450 GB/s", "45 GB/s")
    )
    assert slow > fast


def test_a_torus_may_be_a_slice():
    """chips_per_domain of a torus is the slice of that many chips."""
    plan = solved({"like": "tpu-v5p", "chips_per_domain": 64}, chips=64)
    assert plan.feasible


def test_a_slice_that_does_not_exist_is_a_mistake():
    """No box of the torus holds that many chips: a sentence, not a failure of ours."""
    with pytest.raises(InputError, match="8959 chips"):
        solved({"like": "tpu-v5p", "chips_per_domain": 8959}, chips=64)


@pytest.mark.slow
def test_a_bound_without_on_chip_memory_says_so():
    """Where no figure is known the bound is not quite one, and the answer warns of it."""
    known = solved({**INLINE, "scale_up": "450 GB/s", "sram": "50 MB"})
    unknown = solved({**INLINE, "scale_up": "450 GB/s"})
    assert not any("on-chip memory" in warning for warning in known.warnings)
    assert any("on-chip memory" in warning for warning in unknown.warnings)
    assert unknown.document["provenance"]["warnings"] == list(unknown.warnings)


def test_electricity_is_paid_on_top_of_the_rent():
    """Power times PUE times its price, per chip; the plan says how much of the bill it is."""
    asked = {
        "problem": "serving", "model": "llama-3.1-8b", "chips": 8, "price": "$2/hour",
        "system": {"like": "hgx-h100", "power": "700 W"},
        "workload": {"input_tokens": 1000, "output_tokens": 200},
    }  # fmt: skip
    rent = planner.solve(asked).chosen
    owned = planner.solve({**asked, "power_price": "$0.10/kWh", "pue": 1.5}).chosen
    assert rent["power_usd_per_hour"] is None
    assert owned["power_usd_per_hour"] == pytest.approx(8 * 0.7 * 1.5 * 0.10)
    assert owned["usd_per_hour"] == pytest.approx(8 * 2 + owned["power_usd_per_hour"])
    assert owned["usd_per_mtok"] / rent["usd_per_mtok"] == pytest.approx(
        owned["usd_per_hour"] / rent["usd_per_hour"], rel=1e-6
    )


def test_a_replica_as_large_as_asked_for_is_planned():
    """Beyond the sizes tried unasked only where the question names them."""
    asked = {
        "problem": "serving", "model": "deepseek-v3", "chips": 1024, "price": "$2/hour",
        "system": "hgx-h200", "workload": {"input_tokens": 1000, "output_tokens": 200},
        "choose": {"mode": "decode", "tp": 4, "dp_attention": 64, "pp": 4},
        "engine": "none",  # vLLM has no caches sent into stages, SGLang no block of 72 columns
    }  # fmt: skip
    assert planner.solve(asked).chosen["chips_used"] == 1024
