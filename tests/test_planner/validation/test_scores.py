"""Scores are what one computes by hand; baselines see no row of the group they are scored on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture import model_sizes
from planner.calibration.cross_validation import constant, folds, score
from planner.catalogue.chips import chip
from planner.catalogue.models import load
from planner.measurements.entry import Entry, Prediction
from planner.measurements.measurement import Measurement
from planner.validation.validation_document import (
    band_share,
    by_kind,
    curve_shape,
    group_scores,
    section,
)

TIMES = st.floats(1e-6, 1e3)


def entry(seconds: float, estimate: float, **more: object) -> Entry:
    """A measured step of so many seconds."""
    given_ = {"model": "m", "chip": "c", "engine": "e", "measured": seconds, "rate": False, **more}
    return Entry(
        0, 2, "value", "step", "", seconds=seconds, roofline=seconds / 2,
        prediction=Prediction(estimate / 4, estimate, 0.9 * estimate, 1.1 * estimate), **given_,
    )  # fmt: skip


def test_errors_are_relative_to_what_was_measured():
    """Four predictions, counted by hand."""
    found = score(np.array([1.0, 1.05, 1.15, 2.0]), np.ones(4))
    assert (found.n, found.within_10, found.within_20) == (4, 0.5, 0.75)
    assert found.median == pytest.approx(0.1)
    assert found.mean == pytest.approx(0.3)
    assert found.middle == pytest.approx(1.1)


@given(TIMES, TIMES, st.floats(1e-3, 1e6))
def test_a_rate_is_turned_round(seconds, time, value):
    """A time in a rate's own unit is the rate it would be: twice the time is half the rate."""
    as_rate = entry(seconds, time, measured=value, rate=True)
    as_time = entry(seconds, time, measured=value, rate=False)
    assert as_rate.in_unit(seconds) == pytest.approx(value)
    assert as_rate.in_unit(time) * time == pytest.approx(value * seconds)
    assert as_time.in_unit(time) * seconds == pytest.approx(value * time)


def test_a_rate_is_scored_as_a_rate():
    """A time half as long is a rate twice as high: an error of 100 %, not of 50 %."""
    found = section([entry(1.0, 0.5, measured=100.0, rate=True)])
    assert found.estimate.median == pytest.approx(1.0)
    assert section([entry(1.0, 0.5)]).estimate.median == pytest.approx(0.5)


def test_a_band_holds_what_lies_between_its_ends():
    """Ends included, whatever the unit."""
    assert band_share([entry(1.0, 1.0), entry(1.09, 1.0), entry(1.2, 1.0), entry(0.5, 1.0)]) == 0.5


def test_repeats_and_rows_without_a_prediction_do_not_count():
    """Only what was measured, predicted and is no repeat is scored."""
    bare = Entry(0, 2, "value", "step", "", "m", "c", "e", measured=1.0, seconds=1.0, reason="no")
    assert section([bare, entry(1.0, 1.0, repeat=True)]) is None
    assert section([bare, entry(1.0, 1.0)]).estimate.n == 1


def test_the_constant_is_taken_from_other_groups():
    """Each group is scaled by the median of all rows outside its fold, found by brute force."""
    draw = np.random.default_rng(3)
    groups = [f"g{i % 7}" for i in range(60)]
    roofs, seconds = draw.uniform(1, 2, 60), draw.uniform(2, 9, 60)
    found, fold = constant(roofs, seconds, folds(groups)), folds(groups)
    for i in range(60):
        others = [j for j in range(60) if fold[j] != fold[i]]
        assert groups[i] not in {groups[j] for j in others}
        expected = np.median([seconds[j] / roofs[j] for j in others])
        assert found[i] == pytest.approx(roofs[i] * expected)


def test_folds_stay_where_groups_join():
    """Even folds; of 200 groups beside 5 new ones few change theirs, and a repeat draws others."""
    names = [f"group {i}" for i in range(200)]
    fold, more = folds(names), folds([*names, *(f"new {i}" for i in range(5))])[:200]
    assert np.bincount(fold).tolist() == [40] * 5
    assert (fold != more).sum() <= 5 * 4
    assert (fold == folds(names, repeat=1)).mean() < 0.4
    assert folds(names[::-1]).tolist() == fold[::-1].tolist()
    assert sorted(folds(["a", "b", "c"]).tolist()) == [0, 1, 2]


def test_a_single_group_is_scaled_by_itself():
    """There is no other to take the constant from."""
    assert constant(np.ones(3), np.array([1.0, 2.0, 9.0]), folds(["g"] * 3)).tolist() == [
        2.0,
        2.0,
        2.0,
    ]


def test_groupings_count_every_scored_row_once():
    """Rows of engines, chips or models add up to all of them, those with most rows first."""
    rows = [entry(1.0, 1.1, engine=name) for name in "abbccc"]
    found = group_scores(rows, "engine")
    assert [(row.name, row.score.n) for row in found] == [("c", 3), ("b", 2), ("a", 1)]


def test_groups_of_a_chip_count_once_each():
    """Nine rows inside their band and three outside: three rows in four, of two groups one."""
    rows = [entry(1.0, 1.1, engine="a") for _ in range(9)] + [entry(1.0, 9.0, engine="b")] * 3
    (found,) = group_scores(rows, "chip")
    assert (found.groups, found.band_holds, found.group_band_holds) == (2, 0.75, pytest.approx(0.5))
    assert found.group_log == pytest.approx((np.log(1.1) + np.log(9)) / 2)


def point(concurrency: float, seconds: float, estimate: float, prompt: float = 1000.0) -> Entry:
    """A measured point of a curve over the concurrency, prompts of so many tokens."""
    row = Measurement(
        "", "", "e", "m", model_sizes(load("llama-3.1-8b")), chip("h100"), None, 1, {"tp": 1},
        concurrency, prompt, 100.0, prompt, "tpot", seconds, "", looped=True,
    )  # fmt: skip
    return entry(seconds, estimate, measurement=row)


def test_a_curve_scaled_to_its_lowest_point_keeps_its_shape_alone():
    """A factor on all of a curve is no error; a factor that grows is; each curve has its own."""
    steps = ((1, 1.0), (4, 1.5), (16, 4.0))
    twice = [point(n, t, 2 * t) for n, t in steps]
    longer = [point(n, t, 0.3 * t, prompt=9.0) for n, t in steps]
    shape = curve_shape([*reversed(twice), *longer])
    assert (shape.curves, shape.estimate.n) == (2, 4)
    assert shape.estimate.mean == pytest.approx(0.0, abs=1e-12)
    assert section(twice).estimate.mean == pytest.approx(1.0)
    bent = [point(n, t, t * (2.2 if n > 4 else 2.0)) for n, t in steps]
    assert curve_shape(bent).estimate.mean == pytest.approx(0.1 / 2)
    assert curve_shape([point(8, 1.0, 1.0), point(8, 1.1, 1.0), entry(1.0, 1.0)]) is None


def test_every_group_counts_once_whatever_its_rows():
    """Ninety-nine rows of one model that are right do not hide another that is off by two."""
    right = [entry(1.0, 1.0) for _ in range(99)]
    groups = section([*right, entry(1.0, 2.0, model="n")]).groups
    assert groups.count == 2
    assert groups.estimate == pytest.approx(np.log(2.0) / 2)
    assert groups.roofline == pytest.approx(np.log(2.0))


def test_kinds_of_question_are_told_by_loads_and_by_what_is_timed():
    """A closed loop is aggregated; rows without a measurement of serving are of no kind."""
    looped = point(4, 1.0, 1.0)
    static = entry(1.0, 1.0, measurement=replace(looped.measurement, looped=False))
    kinds = by_kind([replace(looped, quantity="tpot"), static, entry(1.0, 1.0)])
    assert [(kind.kind, kind.quantity) for kind in kinds] == [
        ("aggregated", "tpot"),
        ("decode", "step"),
    ]
