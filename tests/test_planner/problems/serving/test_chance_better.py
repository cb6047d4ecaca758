"""How likely a runner-up is the cheaper plan: half where prices tie, less where they do not."""

import math
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import planner
from planner.catalogue.profile import profile
from planner.problems.serving.profiled import LECTURE, probability_cheaper

FIELDS = {
    "usd_per_mtok": 1.0, "mode": "aggregated", "chip": "h100", "weights": "fp8", "kv": "bf16",
    "phases": {},
}  # fmt: skip
PLAN = SimpleNamespace(**FIELDS)
PROFILE = replace(profile("engines-2026"), spread=MappingProxyType({"alike": 0.08, "other": 0.16}))


def test_a_tie_is_anyones():
    """Equal prices: one half."""
    assert probability_cheaper(PLAN, PLAN, PROFILE) == pytest.approx(0.5)


def test_the_chance_is_that_of_two_errors_drawn_apart():
    """Against a million draws of both prices."""
    draw = np.random.default_rng(3).standard_normal((2, 1_000_000))
    for price in (1.05, 1.2, 1.5):
        often = np.mean(np.log(price) + 0.08 * draw[0] < 0.08 * draw[1])
        found = probability_cheaper(
            PLAN, SimpleNamespace(**FIELDS | {"usd_per_mtok": price}), PROFILE
        )
        assert found == pytest.approx(often, abs=2e-3)


def test_a_plan_of_another_kind_shares_less_of_the_error():
    """The same distance leaves more doubt."""
    other = SimpleNamespace(**FIELDS | {"usd_per_mtok": 1.1})
    alike = probability_cheaper(PLAN, other, PROFILE)
    other.mode = "disaggregated"
    apart = probability_cheaper(PLAN, other, PROFILE)
    assert alike is not None
    assert apart is not None
    assert alike < apart < 0.5


def kind(plan):
    """Chips of a plan and the formats of its weights and caches."""
    return chips(plan), plan["weights"], plan["kv"]


@pytest.mark.parametrize("mode", ["aggregated", "disaggregated"])
def test_a_plan_on_another_chip_is_of_another_kind(mode):
    """A runner-up differs by the spread of runs alike only where every pool has the same chip.

    Without copies of attention, which bring many plans on H200 close together.
    """
    changes = ["system=[hgx-h100, hgx-h200]", f"choose.mode={mode}", "choose.dp_attention=1"]
    plan = planner.solve("examples/serve-llama-70b-fast.yaml", changes)
    chosen, spread = plan.chosen, profile("engines-2026").spread
    widths = set()
    for other in plan.document["alternatives"]:
        width = spread["alike" if kind(other) == kind(chosen) else "other"]
        ahead = math.log(other["usd_per_mtok"] / chosen["usd_per_mtok"])
        assert other["chance_better"] == pytest.approx(math.erfc(ahead / (2 * width)) / 2)
        widths.add(width)
    assert widths == set(spread.values())


def chips(plan):
    """The chips a plan runs on: of the one pool, or of both."""
    return [pool["chip"] for pool in (plan["prefill"], plan["decode"]) if pool] or [plan["chip"]]


def test_without_a_spread_nobody_knows():
    """The lecture errs nowhere."""
    assert probability_cheaper(PLAN, PLAN, LECTURE) is None


def test_alternatives_say_how_likely_they_are_better():
    """Falling with their price, at most one half, and told in the text where it is no small one."""
    plan = planner.solve(
        {
            "problem": "serving",
            "model": "llama-3.1-70b",
            "system": "hgx-h200",
            "chips": 8,
            "price": "$3/hour",
            "workload": {"input_tokens": 1000, "output_tokens": 500},
            "promises": {"tpot": "40 ms"},
            "choose": {"mode": "aggregated"},
        }
    )
    chances = [other["chance_better"] for other in plan.document["alternatives"]]
    assert chances == sorted(chances, reverse=True)
    assert all(0 <= chance <= 0.5 for chance in chances)
    assert ("cheaper in " in plan.text("more")) == any(chance >= 0.05 for chance in chances)


def test_throughput_has_the_band_of_the_price_turned_round():
    """Dearer by a factor means slower by it."""
    plan = planner.solve("examples/serve-llama-70b-fast.yaml")
    band, chosen = plan.document["band"], plan.chosen
    for i in (0, 1):
        dearer = band["usd_per_mtok"][i] / chosen["usd_per_mtok"]
        assert band["tokens_per_s"][1 - i] == pytest.approx(chosen["tokens_per_s"] / dearer)
