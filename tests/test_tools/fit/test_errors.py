"""What the shipped profiles say of themselves is what the measurements say."""

import numpy as np
import pytest

from planner.calibration.cross_validation import folds, score
from planner.catalogue.profile import profile
from planner.measurements.prediction import predict
from planner.measurements.readers import runs, steadies
from tests.paths import SHARED, shared
from tests.sizes import sized
from tools.fit import serving_fit
from tools.fit.leave_outs import LEAVE_OUTS
from tools.fit.left_out_errors import leave_out
from tools.fit.published_sample import published_sample
from tools.fit.serving_fit import RUNS as ERA

TABLES = ["serving_runs.csv", "serving_runs_2.csv", "serving_runs_3.csv", "serving_more_runs.csv"]
STEADY, RUNS = SHARED / "serving_steady.csv", SHARED / "serving_runs.csv"


@pytest.fixture(scope="module")
def sample():
    """Rows of serving runs that may be fitted."""
    shared(RUNS.name)
    return published_sample(runs(RUNS).rows, "runs", ERA.as_of)


@pytest.mark.slow
def test_the_error_on_a_third_left_out_is_the_stated_one(sample):
    """A fit of two thirds of the configurations errs on the last third as the file says."""
    left = leave_out(sample, folds(sample.configurations, 3, repeat=7), serving_fit.fit_of(ERA))
    own = left.take(~sample.prompts & ~sample.column("pooled"))
    stated = profile("engines-2026").errors["tpot_median"]
    assert score(own.estimate, own.sample.seconds).median == pytest.approx(stated, abs=0.015)


@pytest.mark.slow
def test_rows_that_may_not_be_fitted_are_left_out_by_reason(sample):
    """Each is counted under what is wrong with it."""
    assert set(sample.left_out) == {
        "a repeat of another row",
        "faster than the bound",
        "marked unfinished",
        "prompts of a pool of their own: their queue is not published",
        "tokens are drafted",
        "workers or requests of the pools not published",
    }


@pytest.mark.parametrize(("row", "chips"), [("m01815", 128), ("m01820", 72)])
def test_wide_expert_parallelism_is_predicted_within_fifteen_percent(row, chips):
    """Steps of DeepSeek-V3 on 128 H800, which no fit saw, and 72 H100: two halves overlap."""
    shared(STEADY.name)
    one = next(each for each in steadies(STEADY).rows if each.id == row)
    assert one.chips == chips
    assert predict([one], "engines-2026")[0].estimate == pytest.approx(one.seconds, rel=0.15)


@pytest.mark.sized
def test_every_row_lies_in_order():
    """Bound below estimate, estimate inside its band, for every run that the table holds."""
    shared(RUNS.name)
    rows = [row for row in runs(RUNS).rows if row.quantity == "tpot" and not row.drafts]
    rows = rows[:: sized(160, 7)]
    found = predict(rows)
    assert len(found) == len(rows) > 250 * 7 / sized(180, 7)
    assert all(0 < each.low <= each.high for each in found)
    assert np.mean([each.bound <= each.estimate for each in found]) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("spec", [serving_fit.RUNS, serving_fit.STEADY], ids=lambda spec: spec.name)
def test_the_shipped_files_are_what_the_fit_writes(spec):
    """Fitting again gives every coefficient, and errors of what is left out of fits from scratch.

    Of static batches those of models too: their fit drops effects, and one that begins where all
    rows left it stays at effects that rows left out speak for.
    """
    tables = [shared(name) for name in TABLES]
    static = steadies(STEADY).rows
    rows = (*serving_fit.rows_of_runs(tables), *static) if spec is serving_fit.RUNS else static
    kind = "runs" if spec is serving_fit.RUNS else "steady"
    sample, shipped = published_sample(rows, kind, spec.as_of), profile(spec.name)
    again = serving_fit.fit_of(spec)(sample)
    assert again.values == pytest.approx(dict(shipped.values), rel=1e-3, abs=1e-8)
    for word in ("configurations",) if spec is serving_fit.RUNS else ("configurations", "models"):
        leave = next(leave for leave in LEAVE_OUTS if leave.word == word)
        left = leave.predictions(sample, serving_fit.fit_of(spec))
        own = left.take(~left.sample.prompts & ~left.sample.column("pooled"))
        stated = next(
            row for row in shipped.left_out if (row["word"], row["quantity"]) == (word, "tpot")
        )
        median, mean = stated["median"], stated["mean"]
        if word == "configurations":  # whose errors are means over draws; those of the first alone
            median, mean = (shipped.errors[f"tpot_{x}"] for x in ("median", "mean"))
            assert stated["median_low"] <= median <= stated["median_high"]
        scored = score(own.estimate, own.sample.seconds)
        assert scored.n == stated["rows"]
        assert [scored.median, scored.mean] == pytest.approx(
            [median, mean], rel=1e-2 if spec is serving_fit.RUNS else 1e-3
        )
