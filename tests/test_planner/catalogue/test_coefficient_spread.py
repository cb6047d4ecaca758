"""Bands of times: quantiles over a standard deviation, and the widest of what holds."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from planner.catalogue.coefficient_spread import (
    IN_SAMPLE,
    NEW_CHIP,
    NEW_MODEL,
    CoefficientSpread,
    EffectFamily,
    decode_triangle,
    effect_multiplicity,
    variances,
)
from planner.catalogue.profile import COEFFICIENTS
from planner.problems.serving.profiled import LECTURE
from tools.fit.shipped_profile import triangle_text, values_of

QUANTILES = {
    IN_SAMPLE: {"tpot": (-1.5, 1.2, 0.1)},
    NEW_MODEL: {"tpot": (-1.0, 2.0, 0.2)},  # nearer below, farther above
    NEW_CHIP: {"tpot": (-3.0, 0.5, 0.0)},  # farther below, nearer above
}
SPREAD = CoefficientSpread((), np.eye(1), {}, QUANTILES)
SIGMA = np.array([0.1, 0.4])


def by_hand(kind: str, sigma: float) -> tuple[float, float]:
    """Ends of one band, with plain floats."""
    low, high, scatter = QUANTILES[kind]["tpot"]
    off = math.sqrt(sigma**2 + scatter**2)
    return math.exp(low * off), math.exp(high * off)


@pytest.mark.parametrize("kind", QUANTILES)
def test_ends_are_quantiles_of_both_spreads(kind):
    """What is unknown of coefficients and what known places scatter add as squares."""
    low, high = SPREAD.ends(kind, "tpot", SIGMA)
    for k, sigma in enumerate(SIGMA):
        assert (low[k], high[k]) == pytest.approx(by_hand(kind, sigma))
    assert SPREAD.ends("a kind without rows", "tpot", SIGMA)[0] == pytest.approx(
        SPREAD.ends(IN_SAMPLE, "tpot", SIGMA)[0]
    )
    assert SPREAD.ends(kind, "energy", SIGMA) is None


def test_the_band_of_a_new_place_holds_every_band_that_applies():
    """Low is the least of the lows and high the greatest of the highs, only where a kind holds."""
    low, high = SPREAD.widest(IN_SAMPLE, {NEW_MODEL: np.array([True, False])}, "tpot", SIGMA)
    own, other = by_hand(IN_SAMPLE, 0.1), by_hand(NEW_MODEL, 0.1)
    assert (low[0], high[0]) == pytest.approx((min(own[0], other[0]), max(own[1], other[1])))
    assert (low[1], high[1]) == pytest.approx(by_hand(IN_SAMPLE, 0.4))
    both = {NEW_MODEL: np.True_, NEW_CHIP: np.True_}
    low, high = SPREAD.widest(IN_SAMPLE, both, "tpot", SIGMA)
    every = [[by_hand(kind, sigma) for kind in QUANTILES] for sigma in SIGMA]
    assert low == pytest.approx([min(end[0] for end in ends) for ends in every])
    assert high == pytest.approx([max(end[1] for end in ends) for ends in every])
    assert every[1][2][0] == pytest.approx(low[1])  # of a new chip below, of a new model above
    assert every[1][1][1] == pytest.approx(high[1])


def test_a_variance_is_the_quadratic_form_of_shares():
    """Against the product of matrices, of full covariances and of shares that are zero."""
    draw = np.random.default_rng(4)
    factor = np.tril(draw.normal(size=(5, 5)))
    shares = draw.uniform(size=(5, 7)) * (draw.uniform(size=(5, 7)) > 0.3)
    shares[2] = 0.0
    wanted = np.diag(shares.T @ factor @ factor.T @ shares)
    assert variances(factor @ factor.T, shares) == pytest.approx(wanted)


def test_a_triangle_is_read_as_it_was_written():
    """To the eleven bits of half precision, the upper part empty."""
    factor = np.tril(np.random.default_rng(7).normal(size=(6, 6)))
    again = decode_triangle(triangle_text(factor))
    assert again == pytest.approx(factor, rel=2**-10)
    assert not np.triu(again, 1).any()


def place(**attributes):
    """A place of which only some attributes matter."""
    plain = {"architecture": "dense", "chip": "h100", "shape": "70b", "engine": "vllm",
             "version": "1", "assumed": False, "pooled": False, "months": 3.0}  # fmt: skip
    return SimpleNamespace(**{**plain, **attributes})


def test_what_no_row_measured_widens_by_its_family():
    """Where rows held the effect its covariance counts, elsewhere the width beforehand, by month.

    The coefficients "x" and "y" have the variances 0.04 and 0.09; an effect of chip h100 on both
    has 0.01 and goes with "x" by 0.5 * 0.2 * 0.1.
    """
    covariance = np.array([[0.04, 0.0, 0.01], [0.0, 0.09, 0.0], [0.01, 0.0, 0.01]])
    factor = np.linalg.cholesky(covariance)
    families = (
        EffectFamily(("chip",), ("x", "y"), 0.3),
        EffectFamily(("version",), ("y",), 0.05, monthly=True),
    )
    spread = CoefficientSpread(families, factor, {}, QUANTILES)
    effect = SimpleNamespace(of=("x", "y"), scope={"chip": "h100"}, monthly=False)
    at = spread.covariance(("x", "y"), [effect], place())
    wanted = [[0.04 + 2 * 0.01 + 0.01, 0.01 + 0.01], [0.02, 0.09 + 0.01 + (3 * 0.05) ** 2]]
    assert at == pytest.approx(np.array(wanted))
    elsewhere = spread.covariance(("x", "y"), [effect], place(chip="b200"))
    assert elsewhere == pytest.approx(np.array([[0.04 + 0.09, 0.09], [0.09, 0.18 + 0.0225]]))


def test_the_farthest_kind_that_is_new_is_told():
    """A new architecture before a new chip before a new model; an engine unnamed is not new."""
    held = {
        "new_architecture": ("dense",), "new_chip": ("h100",), "new_model": ("70b",),
        "new_engine": ("vllm",), "new_engine_on_chip": ("vllm h100",),
    }  # fmt: skip
    spread = CoefficientSpread((), np.eye(1), held, QUANTILES)
    assert spread.regime(place()) == IN_SAMPLE
    assert spread.regime(place(shape="8b")) == NEW_MODEL
    assert spread.regime(place(shape="8b", chip="b200")) == NEW_CHIP
    assert spread.regime(place(architecture="hybrid", chip="b200")) == "new_architecture"
    assert spread.regime(place(engine="sglang")) == "new_engine"
    assert spread.regime(place(engine="")) == IN_SAMPLE


def test_an_effect_by_the_month_counts_once_for_each():
    """Of effects those that hold here, each with its own row of the factor; a family once for all.

    Variances 0.04 and 0.09 of "x" and "y", 0.01 a month of the second effect, which is on "y".
    """
    factor = np.diag([0.2, 0.3, 5.0, 0.1])
    family = EffectFamily(("version",), ("y",), 0.7, monthly=True)
    spread = CoefficientSpread((family,), factor, {}, QUANTILES)
    effects = [effect(scope={"chip": "b200"}), effect(of=("y",), scope={"version": "1"})]
    assert effect_multiplicity(effects[1], place(months=4.0)) == 4.0
    assert effect_multiplicity(effects[1], place(version="2")) == 0.0
    assert effect_multiplicity(effect(monthly=False, scope={}), place(months=4.0)) == 1.0
    at = spread.covariance(("x", "y"), effects, place(months=4.0))
    assert at == pytest.approx(np.diag([0.04, 0.09 + 16 * 0.01]))
    new = spread.covariance(("x", "y"), effects, place(months=4.0, version="2"))
    assert new == pytest.approx(np.diag([0.04, 0.09 + 16 * 0.49]))


def effect(**changes):
    """One effect, by the month."""
    return SimpleNamespace(
        **{"of": ("x", "y"), "scope": {"chip": "h100"}, "monthly": True, **changes}
    )


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True),
        ({"scope": {"chip": "b200"}}, True),
        ({"scope": {"engine": "vllm"}}, False),
        ({"scope": {"chip": "b200", "engine": "vllm"}}, False),
        ({"of": ("x",)}, False),
        ({"monthly": False}, False),
    ],
)
def test_a_family_has_effects_of_the_same_attributes_and_coefficients(change, holds):
    """Whatever the value of its attributes."""
    family = EffectFamily(("chip",), ("x", "y"), 0.3, monthly=True)
    assert family.holds(effect(**change)) == holds


def test_the_table_of_a_file_is_read():
    """Families with and without months, the triangle, values and quantiles."""
    factor = np.array([[0.5, 0.0], [0.25, 1.0]])
    spread = CoefficientSpread.from_table({
        "families": [{"by": ["chip"], "of": ["x"], "width": 0.3},
                     {"by": ["engine"], "of": ["x", "y"], "width": 0.1, "monthly": True}],
        "factor": triangle_text(factor), "values": {NEW_CHIP: ["h100", "h200"]},
        "quantiles": {IN_SAMPLE: {"tpot": [-1.5, 1.2, 0.1]}},
    })  # fmt: skip
    assert spread.families == (
        EffectFamily(("chip",), ("x",), 0.3, monthly=False),
        EffectFamily(("engine",), ("x", "y"), 0.1, monthly=True),
    )
    assert (spread.factor == factor).all()
    assert spread.values == {NEW_CHIP: ("h100", "h200")}
    assert spread.quantiles == {IN_SAMPLE: {"tpot": (-1.5, 1.2, 0.1)}}


def test_a_text_that_is_no_triangle_is_refused():
    """Neither base 64 nor as many numbers as a triangle has; a zero is written without a sign."""
    for text in ("AAA!AAAA", triangle_text(np.eye(2))[:4] + "AA=="):
        with pytest.raises(ValueError, match=r"base64|shape mismatch|broadcast|incorrect"):
            decode_triangle(text)
    small = np.array([[1.0, 0.0], [-1e-9, 1.0]])
    assert triangle_text(small) == triangle_text(np.eye(2))


def test_values_of_places_are_those_that_all_attributes_are_given_of():
    """By kind of distance, once each and in order."""
    places = [place(chip="h200", version=""), place(), place(engine="", chip="b200"), place()]
    assert values_of(places) == {
        "new_architecture": ("dense",), "new_chip": ("b200", "h100", "h200"),
        "new_model": ("70b",), "new_engine": ("vllm",),
        "new_engine_on_chip": ("vllm h100", "vllm h200"), "new_version": ("vllm 1",),
    }  # fmt: skip
    assert values_of([place(engine="")]).keys() == {"new_architecture", "new_chip", "new_model"}


def test_pools_apart_and_numbers_worked_out_are_kinds_of_their_own():
    """The latter first, where the rows told how far either is off; else the distance counts."""
    both = {**QUANTILES, "assumed": {}, "pooled": {}}
    spread = CoefficientSpread((), np.eye(1), {NEW_CHIP: ("h100",)}, both)
    new = {"chip": "b200", "shape": "8b"}
    assert spread.regime(place(**new, assumed=True, pooled=True)) == "assumed"
    assert spread.regime(place(**new, pooled=True)) == "pooled"
    assert spread.regime(place(**new)) == NEW_CHIP
    assert spread.regime(place(shape="8b")) == IN_SAMPLE  # no row says which models it held
    plain = replace(spread, quantiles=QUANTILES)
    assert plain.regime(place(**new, assumed=True, pooled=True)) == NEW_CHIP


def test_runs_repeated_scatter_by_six_percent():
    """What is left of a time that rests on no coefficient, or on one that is known."""
    one = replace(LECTURE, covariance=np.zeros((len(COEFFICIENTS),) * 2))
    assert one.sigma({}) == pytest.approx(0.06)
    assert one.sigma({COEFFICIENTS[0]: 0.5}) == pytest.approx(0.06)
    off = np.zeros((len(COEFFICIENTS),) * 2)
    off[0, 0] = 0.16**2
    assert replace(one, covariance=off).sigma({COEFFICIENTS[0]: 0.5}) == pytest.approx(0.1)


def test_a_quantity_without_quantiles_has_no_band():
    """However many kinds of distance hold."""
    assert SPREAD.widest(IN_SAMPLE, {NEW_MODEL: np.True_}, "energy", SIGMA) is None
