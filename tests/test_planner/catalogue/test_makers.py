"""No ranking between makers on lent efficiencies."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner.catalogue.chips import (
    MakerFactor,
    borrowed_efficiency_note,
    chip,
    chip_names,
    maker_factor,
)
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.profile import COEFFICIENTS, profile
from planner.protocol.solve import solve

NVIDIA = ("h100", "h200", "b200")
MAKERS = {"NVIDIA", "AMD", "Google", "AWS", "Intel", "Apple", "Huawei"}


def test_every_chip_has_a_maker():
    """Titles begin with whose chips they are."""
    assert {chip(name).maker for name in chip_names()} == MAKERS


def test_the_factor_is_that_of_the_published_round():
    """Measured over peak ratio of two chips on two models: 0.60, 0.65, 0.74, 0.85."""
    lent = maker_factor("AMD", NVIDIA)
    assert lent.factor == pytest.approx(0.70, abs=0.005)
    assert lent.spread == pytest.approx(0.16, abs=0.011)


@pytest.mark.parametrize(("maker", "chips"), [("NVIDIA", NVIDIA), ("AMD", ("mi355x", *NVIDIA))])
def test_nothing_is_lent_to_a_maker_that_was_fitted(maker, chips):
    """Rows of their own chips say more than a round of a benchmark."""
    assert maker_factor(maker, chips) == MakerFactor()
    name = {"NVIDIA": "h100", "AMD": "mi300x"}[maker]
    assert borrowed_efficiency_note(name, chips) == ""


@pytest.mark.parametrize(("name", "words"), [("mi300x", "times 0.70"), ("ironwood", "not given")])
def test_what_is_lent_is_said(name, words):
    """With its number where one was published; that there is no rank where none was."""
    sentence = borrowed_efficiency_note(name, NVIDIA)
    assert words in sentence
    assert "rank" in sentence


def test_times_are_longer_and_bands_wider():
    """Every time by the same factor, the number of steps waited for by none."""
    none = {"adjustments": (), "coefficient_spread": None}  # which also knows who was fitted
    shipped = replace(profile("engines-2026"), chips=NVIDIA, **none)
    own, lent = (shipped.at(RunContext(maker=maker)) for maker in ("NVIDIA", "AMD"))
    factor = maker_factor("AMD", NVIDIA)
    assert lent.values["t_layer"] == pytest.approx(own.values["t_layer"] / factor.factor)
    assert lent.values["e_w"] == pytest.approx(own.values["e_w"] * factor.factor)
    assert lent.values["n_sched"] == own.values["n_sched"]
    assert set(lent.values) == set(COEFFICIENTS)
    for quantity, band in own.bands.items():
        assert lent.bands[quantity].low < band.low
        assert lent.bands[quantity].high > band.high


def test_a_band_that_is_widened_holds_both_spreads():
    """Of two spreads in quadrature; no end moves inward, and none at a spread of nothing."""
    assert MakerFactor().wider(0.8, 1.3) == pytest.approx((0.8, 1.3))
    low, high = MakerFactor(0.7, 0.16).wider(0.8, 1.3)
    assert math.log(low) == pytest.approx(-math.hypot(math.log(0.8), 1.2816 * 0.16), rel=1e-4)
    assert math.log(high) == pytest.approx(math.hypot(math.log(1.3), 1.2816 * 0.16), rel=1e-4)


def test_two_makers_are_ranked_as_published_or_not_at_all():
    """Llama-2-70B in fp8 on eight chips (MLPerf v5.1): MI300X 27,854 tokens/s, H200 35,317."""
    systems = ["mi300x-8", "hgx-h200"]
    plan = solve(
        {
            "problem": "serving", "model": "llama-2-70b", "system": systems, "chips": 8,
            "price": "$1/hour", "workload": {"input_tokens": 294, "output_tokens": 294},
            "choose": {"weights": "fp8"},
        }
    )  # fmt: skip
    amd, nvidia = plan.document["systems"]
    assert amd["behind"] > nvidia["behind"] or amd["unranked"] or nvidia["unranked"]
    unranked = amd["unranked"] or nvidia["unranked"]
    assert ("they are not ranked" in " ".join(str(plan).split())) == unranked
