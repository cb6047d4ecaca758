"""What axes without runs of their own add to a band, anew from the runs of their like."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from planner.calibration.cross_validation import mean_by_group
from planner.calibration.sample import Sample
from planner.catalogue.hull import added_deviation
from planner.measurements.measurement import Measurement
from planner.measurements.readers import steadies
from tests.paths import shared
from tools.fit.published_sample import published_sample
from tools.fit.serving_fit import RUNS, STEADY, FitSpec, fit_of, rows_of_runs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def steady() -> Sample:
    rows = steadies(shared("serving_steady.csv")).rows
    return published_sample(rows, "steady", STEADY.as_of)


@pytest.fixture(scope="module")
def runs() -> Sample:
    tables = [shared(f"serving_{name}.csv") for name in ("runs", "runs_2", "runs_3", "more_runs")]
    rows = (*rows_of_runs(tables), *steadies(shared("serving_steady.csv")).rows)
    return published_sample(rows, "runs", RUNS.as_of)


def missed(spec: FitSpec, sample: Sample, has: Callable[[Measurement], bool]) -> dict[str, float]:
    """Root mean square over groups of ln (measured / predicted) by a fit without some rows."""
    out = np.array([has(row) for row in sample.rows])
    left = sample.take(out)
    error = np.log(left.seconds / fit_of(spec)(sample.take(~out)).times(left))
    groups = left.column("group")
    return {
        name: mean_by_group(error[rows] ** 2, groups[rows]) ** 0.5
        for name, rows in {"tpot": ~left.prompts, "ttft": left.prompts}.items()
        if rows.any()
    }


def test_stages_add_what_a_fit_without_them_misses(steady: Sample) -> None:
    off = missed(STEADY, steady, lambda row: (row.layout or {}).get("pp", 1) > 1)
    for time, width in off.items():
        assert added_deviation(time)["new_stages"] == pytest.approx(width, rel=0.01)
    assert added_deviation("usd_per_mtok")["new_stages"] == added_deviation("tpot")["new_stages"]


def test_half_batches_add_what_both_fits_without_them_miss(steady: Sample, runs: Sample) -> None:
    both = [missed(spec, sample, lambda row: row.halves > 1)
            for spec, sample in ((STEADY, steady), (RUNS, runs))]  # fmt: skip
    for time in ("tpot", "ttft"):
        width = np.mean([off[time] ** 2 for off in both]) ** 0.5
        assert added_deviation(time)["new_overlap"] == pytest.approx(width, rel=0.01)


def test_uneven_experts_add_what_a_fit_without_two_pools_that_may_have_them_misses(
    runs: Sample,
) -> None:
    def may(row: Measurement) -> bool:
        ways = (row.layout or {}).get("ep", 1)
        return row.pooled and row.sizes.n_experts > 0 and row.sizes.n_experts % ways > 0

    assert sum(map(may, runs.rows)) == 33
    assert added_deviation("tpot")["new_uneven"] == pytest.approx(
        missed(RUNS, runs, may)["tpot"], rel=0.01
    )
