"""Bands of times: quantiles over a standard deviation, and the widest of what holds."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from planner.catalogue.coefficient_spread import (
    KNOWN,
    NEW_CHIP,
    NEW_MODEL,
    CoefficientSpread,
    EffectFamily,
    triangle_from,
    triangle_text,
    variances,
)

QUANTILES = {
    KNOWN: {"tpot": (-1.5, 1.2, 0.1)},
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
        SPREAD.ends(KNOWN, "tpot", SIGMA)[0]
    )
    assert SPREAD.ends(kind, "energy", SIGMA) is None


def test_the_band_of_a_new_place_holds_every_band_that_applies():
    """Low is the least of the lows and high the greatest of the highs, only where a kind holds."""
    low, high = SPREAD.widest(KNOWN, {NEW_MODEL: np.array([True, False])}, "tpot", SIGMA)
    own, other = by_hand(KNOWN, 0.1), by_hand(NEW_MODEL, 0.1)
    assert (low[0], high[0]) == pytest.approx((min(own[0], other[0]), max(own[1], other[1])))
    assert (low[1], high[1]) == pytest.approx(by_hand(KNOWN, 0.4))
    both = {NEW_MODEL: np.True_, NEW_CHIP: np.True_}
    low, high = SPREAD.widest(KNOWN, both, "tpot", SIGMA)
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
    again = triangle_from(triangle_text(factor))
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
    assert spread.regime(place()) == KNOWN
    assert spread.regime(place(shape="8b")) == NEW_MODEL
    assert spread.regime(place(shape="8b", chip="b200")) == NEW_CHIP
    assert spread.regime(place(architecture="hybrid", chip="b200")) == "new_architecture"
    assert spread.regime(place(engine="sglang")) == "new_engine"
    assert spread.regime(place(engine="")) == KNOWN
