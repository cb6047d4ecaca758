"""A profile fitted to rows of a known one: what was changed is found, the rest stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.calibration.cross_validation import LeftOut, own_bands
from planner.calibration.own_fit import leave_one_out, own_fit, predict_times, seen_by_rows
from planner.calibration.sample import Sample, own_rows, own_sample
from planner.catalogue.profile import COEFFICIENTS
from planner.measurements.readers import read
from tests.cases.calibration import known, made_up, settings

CHANGED = {"e_w": 0.8, "t_layer": 1.5}


def _sample(path: Path) -> Sample:
    return own_sample(own_rows({path.name: read(path)}), known().as_of)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Forty-eight runs of a dense model with two coefficients changed."""
    return _sample(made_up(tmp_path_factory.mktemp("own") / "own.csv", settings(), CHANGED))


@pytest.fixture(scope="module")
def base(sample):
    """The known profile as these rows see it."""
    return seen_by_rows(known(), sample.places)


@pytest.fixture(scope="module")
def fit(sample, base):
    """The fit of all rows."""
    return own_fit(sample, base, {})


@pytest.mark.slow
def test_what_was_changed_is_found(base, fit):
    """Both coefficients come back within an eighth, and the true values within the intervals."""
    found = {each.name: each for each in fit.coefficients}
    for name, factor in CHANGED.items():
        true = base.values[name] * factor
        assert found[name].value == pytest.approx(true, rel=0.125)
        assert found[name].low * 0.95 <= true <= found[name].high * 1.05
        assert found[name].state in ("moved", "joint")


def test_what_takes_no_time_stays_as_it_was(base, fit):
    """A dense model says nothing of experts, of exchanges and of stages."""
    for each in fit.coefficients:
        if each.name in ("t_moe", "t_ep", "t_pf_moe", "e_pf_x", "e_a2a", "t_a2a", "t_hop"):
            assert each.state == "idle"
            assert each.value == pytest.approx(base.values[each.name], rel=1e-6)


def test_the_fit_predicts_the_rows(sample, fit):
    """What is left is the scatter of 2 % that the rows were given."""
    error = np.log(predict_times(sample, fit.profile) / sample.seconds)
    assert np.median(np.abs(error)) < 0.03


def test_rows_of_the_profile_itself_move_nothing(tmp_path):
    """Rows that the known profile explains leave every coefficient in its interval."""
    sample = _sample(made_up(tmp_path / "same.csv", settings(tp=(2, 8)), {}, scatter=0.0))
    fit = own_fit(sample, seen_by_rows(known(), sample.places), {})
    for each in fit.coefficients:
        assert each.value == pytest.approx(each.before, rel=0.02)
        assert each.state != "moved"


def test_few_rows_tell_less_than_many(tmp_path, base, fit):
    """Three runs move what was changed toward the truth, with wider intervals than many leave."""
    lines = settings(tp=(4,), lengths=((1024, 256),), requests=(1, 4, 16))
    few = _sample(made_up(tmp_path / "few.csv", lines, CHANGED))
    some = {each.name: each for each in own_fit(few, base, {}).coefficients}
    many = {each.name: each for each in fit.coefficients}
    for name, factor in CHANGED.items():
        assert (some[name].value > some[name].before) == (factor > 1)
        assert some[name].high / some[name].low > many[name].high / many[name].low


def test_every_coefficient_is_accounted_for(fit):
    """Each is named once, with a state, a share of the time and an interval that holds it."""
    assert tuple(each.name for each in fit.coefficients) == COEFFICIENTS
    for each in fit.coefficients:
        assert each.low <= each.value <= each.high
        assert 0 <= each.share <= 1
    assert set(fit.profile.unidentified) == {
        each.name for each in fit.coefficients if each.state in ("joint", "inseparable", "idle")
    }


def test_a_measured_limit_holds_and_the_rest_gives_way(sample, base):
    """No efficiency is above the limit; the rows are then explained by less overhead."""
    free = {each.name: each for each in own_fit(sample, base, {}).coefficients}
    most = 0.9 * free["e_w"].value
    found = {each.name: each for each in own_fit(sample, base, {"e_w": most}).coefficients}
    assert found["e_w"].value == pytest.approx(most, rel=2e-3)
    assert found["e_w"].state == "limited"
    assert found["t_layer"].value < free["t_layer"].value


@pytest.mark.slow
def test_an_engine_of_its_own_gets_a_factor(tmp_path):
    """Of two engines in one table, the slower is told apart in the profile, by its name."""
    lines = settings(("vllm", "sglang"), tp=(2, 8), requests=(1, 4, 16))
    path = made_up(tmp_path / "two.csv", lines, {}, of_engine={"sglang": 1.3})
    sample = _sample(path)
    base = seen_by_rows(known(), sample.places)
    found = own_fit(sample, base, {}).profile
    more = found.adjustments[len(base.adjustments) :]
    factor = {each.scope.get("engine"): each.factor for each in more}
    assert found.engine == "any"
    assert factor["sglang"] > factor.get("vllm", 1.0)
    error = np.log(predict_times(sample, found) / sample.seconds)
    assert np.median(np.abs(error)) < np.median(
        np.abs(np.log(predict_times(sample, base) / sample.seconds))
    )


def test_bands_hold_their_share_of_rows_to_come(sample, base):
    """Bands from half the runs hold 80 % of the other half's values, over six draws of both."""
    exact = predict_times(sample, own_fit(sample, base, {}).profile)
    runs, held = sorted({row.id for row in sample.rows}), []
    for seed in range(6):
        draw = np.random.default_rng(seed)
        rows = replace(sample, seconds=exact * np.exp(0.1 * draw.standard_normal(len(exact))))
        half = set(draw.permutation(runs)[: len(runs) // 2].tolist())
        mask = np.array([row.id in half for row in sample.rows])
        seen, unseen = rows.take(mask), rows.take(~mask)
        bands = own_bands(leave_one_out(seen, base, {})[0])
        ratio = unseen.seconds / predict_times(unseen, own_fit(seen, base, {}).profile)
        low = np.where(unseen.prompts, bands["ttft"].low, bands["tpot"].low)
        high = np.where(unseen.prompts, bands["ttft"].high, bands["tpot"].high)
        held += ((low <= ratio) & (ratio <= high)).tolist()
    assert 0.74 <= np.mean(held) <= 0.90


def test_each_row_is_predicted_by_a_fit_that_saw_nothing_like_it(sample, base):
    """Rows of one configuration share a fold; another value of one moves no estimate of its own."""
    left, what = leave_one_out(sample, base, {})
    assert what == "configuration"
    for key in set(sample.configurations):
        assert len(set(left.fold[sample.configurations == key])) == 1
    fold = left.fold == left.fold[0]
    fit = own_fit(sample.take(~fold), base, {})
    assert left.estimate[fold] == pytest.approx(predict_times(sample.take(fold), fit.profile))


@pytest.mark.parametrize("n", [10, 11, 19, 40, 99])
def test_a_band_has_the_ranks_that_hold_four_in_five(n, sample):
    """Ranks of order statistics whose distance is at least 0.8 of n + 1 and hardly more."""
    rows = sample.take(np.flatnonzero(~sample.prompts)[np.arange(n) % 48])
    ratio = np.arange(1.0, n + 1)
    band = own_bands(LeftOut(rows, np.zeros(len(ratio)), rows.seconds / ratio))["tpot"]
    assert 0.8 - 1e-9 <= (band.high - band.low) / (n + 1) <= 0.8 + 2 / (n + 1)
