"""What the shipped profiles say of themselves is what the measurements say."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from planner.calibration import fit
from planner.calibration.adapters import read_runs, read_steady
from planner.calibration.features import features, predicted
from planner.calibration.profile import profile
from planner.calibration.sample import runs_sample
from planner.calibration.squares import score, solve
from planner.calibration.validation import folds

DATA = Path(__file__).parents[2] / "shared" / "data"
STEADY, RUNS = DATA / "serving_steady.csv", DATA / "serving_runs.csv"


@pytest.fixture(scope="module")
def sample():
    """Rows of serving runs that may be fitted."""
    if not RUNS.exists():
        pytest.skip("the measurements are not here")
    return runs_sample(read_runs(RUNS)[0])


def test_the_error_on_a_third_left_out_is_the_stated_one(sample):
    """A fit of two thirds of the groups errs on the last third within 2 points of the file."""
    fold = folds(sample.column("group"), seed=7, count=3)
    medians = []
    for k in range(3):
        seen, test = sample.take(fold != k), sample.take((fold == k) & sample.decodes)
        x = solve(seen.columns, seen.seconds, seen.weights)
        medians.append(score(test.columns.matrix @ x + test.columns.rest, test.seconds).median)
    stated = profile("engines-2026").errors["tpot_median"]
    assert np.mean(medians) == pytest.approx(stated, abs=0.02)


def test_rows_that_no_steady_decoding_explains_are_left_out_by_reason(sample):
    """Queueing, unfinished and speculated rows are counted; none is faster than the bound."""
    assert set(sample.left_out) == {
        "marked unfinished",
        "more requests sent than decoded: the prompts queue",
        "tokens seem to be speculated",
    }


@pytest.mark.parametrize(("row", "chips"), [("m01815", 128), ("m01820", 72)])
def test_wide_expert_parallelism_is_predicted_within_two_fifths(row, chips):
    """Steps of DeepSeek-V3 on 128 H800 and 72 H100, larger than any group that was fitted.

    Both ran two batches in turn, which hides part of the traffic: the sum lies above.
    """
    if not STEADY.exists():
        pytest.skip("the measurements are not here")
    one = next(each for each in read_steady(STEADY)[0] if each.id == row)
    assert one.chips == chips
    ratio = predicted(features([one]), profile("engines-2026").values)[0] / one.seconds
    assert 1 < ratio < 1.4


@pytest.mark.slow
def test_the_shipped_files_are_what_the_fit_writes(tmp_path):
    """Fitting again gives every coefficient and error of the files that ship."""
    if not RUNS.exists():
        pytest.skip("the measurements are not here")
    fit.main(["--steady", str(STEADY), "--runs", str(RUNS), "--out", str(tmp_path)])
    for path in tmp_path.glob("*.toml"):
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        shipped = profile(path.stem)
        assert raw["coefficients"] == pytest.approx(dict(shipped.values), rel=1e-3, abs=1e-8)
        assert raw["errors"] == pytest.approx(dict(shipped.errors), rel=1e-2)
