"""Fits recover what made the data: shared coefficients, and what an engine changes about them."""

from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.cross_validation import cross_validated_coverage, quantiles, score
from planner.calibration.hierarchy import Effect, EffectFamily, Loss, effects, fit_hierarchy
from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES
from planner.measurements.measurement import row_context
from planner.measurements.prediction import WAIT, Features, features, unknowns
from tests.cases.engine_rows import SEEN, TRUTH, WIDE, made_rows, predicted, sample
from tools.fit.serving_fit import RUNS


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Runs of three models on two chips under two engines, times to be replaced."""
    return made_rows(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def columns(rows):
    """Their columns."""
    return features(rows)


@pytest.fixture(scope="module")
def places(rows):
    """Where they stand."""
    return [row_context(row, RUNS.as_of) for row in rows]


@pytest.mark.slow
def test_a_fit_recovers_the_coefficients_that_made_the_data(columns, places):
    """On times made by our own model without noise, what the rows identify comes back."""
    found = fit_hierarchy(sample(columns, predicted(columns, TRUTH), places), (), WIDE).values
    assert [found[name] for name in SEEN] == pytest.approx([TRUTH[name] for name in SEEN], rel=0.02)


def test_what_one_engine_changes_is_recovered(columns, places):
    """Overheads of one engine a quarter longer: the factor comes back, the shared ones stay."""
    slower = {**TRUTH, "t_layer": 1.25 * TRUTH["t_layer"], "t_moe": 1.25 * TRUTH["t_moe"]}
    of_vllm = np.array([place.engine == "vllm" for place in places])
    seconds = np.where(of_vllm, predicted(columns, slower), predicted(columns, TRUTH))
    effect = Effect(("t_layer", "t_moe"), {"engine": "vllm"}, 3.0)
    found = fit_hierarchy(sample(columns, seconds, places), (effect,), WIDE)
    assert found.factors == pytest.approx([1.25], rel=0.02)
    assert found.values["t_layer"] == pytest.approx(TRUTH["t_layer"], rel=0.02)


def test_relative_errors_recover_the_same_coefficients(columns, places):
    """Without noise there is nothing to choose between the two ways of counting."""
    loss = Loss(0.06, relative=True)
    found = fit_hierarchy(
        sample(columns, predicted(columns, TRUTH), places), (), WIDE, loss=loss
    ).values
    assert [found[name] for name in SEEN] == pytest.approx([TRUTH[name] for name in SEEN], rel=0.02)


def test_relative_errors_of_skewed_rows_are_less_than_those_of_logarithms(columns, places):
    """Where a quarter of the rows are twice as fast, the mean relative error is what it says."""
    seconds = predicted(columns, TRUTH)
    seconds[::4] /= 2
    each = [
        fit_hierarchy(
            sample(columns, seconds, places), (), RUNS.prior, loss=Loss(0.06, relative=relative)
        ).values
        for relative in (True, False)
    ]
    relative, logarithmic = (score(predicted(columns, one), seconds).mean for one in each)
    assert relative < logarithmic


def test_a_fit_survives_noise_and_outliers(columns, places):
    """A twentieth of the rows ten times off and 5 % noise move the median prediction by 3 %."""
    seconds = predicted(columns, TRUTH)
    draw = np.random.default_rng(1)
    noisy = seconds * np.exp(0.05 * draw.standard_normal(len(seconds)))
    noisy[draw.random(len(seconds)) < 0.05] *= 10
    found = fit_hierarchy(sample(columns, noisy, places), (), RUNS.prior).values
    assert score(predicted(columns, found), seconds).median < 0.03


def test_unknowns_respect_their_limits(columns, places):
    """No efficiency above one and no negative overhead, whatever the data say."""
    found = fit_hierarchy(sample(columns, 0.2 * predicted(columns, TRUTH), places), (), WIDE).values
    assert all(0 < found[name] <= 1 for name in EFFICIENCIES)
    assert all(found[name] >= 0 for name in COEFFICIENTS)


def test_the_slopes_are_those_of_the_errors(columns, places):
    """Gauss-Newton's slopes equal central differences of the predicted times."""
    found = fit_hierarchy(sample(columns, predicted(columns, TRUTH), places), (), RUNS.prior)
    x = found.unknowns(places)
    name = COEFFICIENTS.index("n_sched")
    moved = x.copy()
    moved[:, name] *= 1.001
    slope = (columns.times(moved) - columns.times(x)) / (0.001 * x[:, name])
    assert slope == pytest.approx(columns.step_rest + (columns.step * x).sum(axis=1), rel=1e-6)


def test_a_fit_is_the_same_to_the_last_digit(columns, places):
    """Nothing is drawn."""
    seconds = 1.1 * predicted(columns, TRUTH)
    one, two = (fit_hierarchy(sample(columns, seconds, places), (), RUNS.prior) for _ in range(2))
    assert one.values == two.values


def test_starting_elsewhere_ends_at_the_same_place(columns, places):
    """Where a fit begins moves nothing beyond its tolerance."""
    seconds = 1.1 * predicted(columns, TRUTH)
    one = fit_hierarchy(sample(columns, seconds, places), (), RUNS.prior)
    far = replace(one, shared=one.shared + 0.3)
    two = fit_hierarchy(sample(columns, seconds, places), (), RUNS.prior, start=far)
    assert columns.times(two.unknowns(places)) == pytest.approx(
        columns.times(one.unknowns(places)), rel=1e-3
    )


def test_an_efficiency_at_one_stops_no_descent(columns, places):
    """Rows faster than it allows: from either side of one the others end at the same place."""
    seconds = 0.6 * predicted(columns, TRUTH)
    quick = sample(columns, seconds, places)
    one = fit_hierarchy(quick, (), RUNS.prior, rounds=150)
    assert max(one.values[name] for name in ("e_w", "e_kv")) > 0.95
    for moved in (-0.5, 0.5):
        start = replace(one, shared=one.shared + moved)
        again = fit_hierarchy(quick, (), RUNS.prior, start=start, rounds=150)
        assert again.times(quick) == pytest.approx(one.times(quick), rel=0.01)


def test_effects_need_rows(places):
    """A value that few places have makes no effect, nor does one that is not known."""
    few = [*places, replace(places[0], engine="rare"), replace(places[0], engine="")]
    found = effects(few, [EffectFamily(("engine",), ("e_w",), 0.1)])
    assert [dict(each.scope) for each in found] == [{"engine": "trtllm"}, {"engine": "vllm"}]


def test_monthly_effects_count_by_months(places):
    """Twice as long ago counts twice; elsewhere not at all."""
    effect = Effect(("t_layer",), {"engine": "vllm"}, 0.1, monthly=True)
    place = replace(places[0], engine="vllm", months=2.0)
    assert effect.weight(place) == 2.0
    assert effect.weight(replace(place, engine="sglang")) == 0.0


def test_no_rows_are_refused(columns):
    """There is nothing to fit."""
    with pytest.raises(ValueError, match="no rows"):
        fit_hierarchy(sample(columns.take(np.zeros(0, dtype=int)), np.zeros(0), []), (), RUNS.prior)


def test_the_estimate_is_made_of_its_columns(rows, columns):
    """Columns found one coefficient at a time add up to the kernel with all of them on."""
    i = next(i for i, r in enumerate(rows) if r.quantity == "ttft" and r.batch == 32)
    x = unknowns(TRUTH)
    step = columns.step_rest[i] + columns.step[i] @ x
    by_hand = columns.rest[i] + columns.matrix[i] @ x + x[WAIT] * step
    assert predicted(features([rows[i]]), TRUTH)[0] == pytest.approx(by_hand)


def test_columns_of_some_rows_are_those_rows():
    """Taking rows keeps all parts together."""
    six, three = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    part = Features(six, three, 2 * six, 2 * three, three > 1).take(np.array([2, 0]))
    assert part.matrix.tolist() == [[4, 5], [0, 1]]
    assert part.step.tolist() == [[8, 10], [0, 2]]
    assert (part.rest.tolist(), part.step_rest.tolist()) == ([2, 0], [4, 0])
    assert part.halved.tolist() == [True, False]


def test_a_score_counts_what_lies_within():
    """Median, mean and shares of absolute relative errors."""
    found = score(np.array([1.0, 1.05, 1.15, 2.0]), np.ones(4))
    assert (found.n, found.within_10, found.within_20) == (4, 0.5, 0.75)
    assert found.mean == pytest.approx(0.3)


def test_bands_hold_four_fifths_of_rows_to_come():
    """Split conformal ranges of small samples hold 80 % or a little more on the average."""
    draw = np.random.default_rng(5)
    inside = []
    for _ in range(400):
        low, high = quantiles(np.exp(draw.standard_normal(30)))
        inside.append(low <= np.exp(draw.standard_normal()) <= high)
    assert 0.76 < np.mean(inside) < 0.88


def test_what_bands_hold_is_asked_of_rows_they_did_not_see():
    """Folds of one distribution hold about four fifths of each other."""
    draw = np.random.default_rng(6)
    assert cross_validated_coverage(
        np.exp(draw.standard_normal(500)), np.arange(500) % 5
    ) == pytest.approx(0.8, abs=0.03)
