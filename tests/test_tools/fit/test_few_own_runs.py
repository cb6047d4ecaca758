"""One to five runs of one's own: how far they bring a model that no fit saw, and what they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.own_fit import common_width, own_fit, predict_times, seen_by_rows
from planner.calibration.own_profile import inconsistent_repeats
from planner.calibration.sample import Sample, own_rows, own_sample
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.profile import Adjustment, Profile, profile
from planner.measurements.readers import read, runs, steadies
from tests.cases.calibration import known, made_up, settings, table
from tests.paths import shared
from tools.fit.published_sample import published_sample
from tools.fit.serving_fit import RUNS, fit_of

COUNTS, DRAWS, LEAST, KEPT_BACK, SEED = (1, 2, 3, 5), 6, 8, 5, 20261123


def _profile(sample: Sample) -> Profile:
    """What ships, fitted on some of its rows."""
    fit = fit_of(RUNS)(sample)
    effects = zip(fit.effects, fit.factors, strict=True)
    return replace(
        profile("engines-2026"),
        values=fit.values,
        adjustments=tuple(
            Adjustment(e.of, e.scope, factor, (factor, factor), e.monthly) for e, factor in effects
        ),
        models=tuple({place.model for place in sample.places}),
    )


def _cells(sample: Sample) -> Iterator[tuple[str, Sample, Profile]]:
    """Runs of a model on a chip under an engine, its version and format, by a fit without it."""
    for model in np.unique(sample.column("model")):
        mine = sample.column("model") == model
        start, unseen = _profile(sample.take(~mine)), sample.take(mine & ~sample.column("pooled"))
        keys = np.array([f"{r.group} {r.precision} {r.version}" for r in unseen.rows])
        for key in np.unique(keys):
            cell = unseen.take(keys == key)
            if len({row.id for row in cell.rows}) >= LEAST:
                yield key, cell, seen_by_rows(start, cell.places)


def _errors(count: int, cell: Sample, base: Profile, order: np.ndarray) -> np.ndarray:
    """Errors of times per token of runs that no draw takes, after a fit of the first `count`."""
    ids = cell.column("id")
    unseen = cell.take(~np.isin(ids, order[:KEPT_BACK]) & ~cell.prompts)
    if count:
        seen = own_fit(cell.take(np.isin(ids, order[:count])), base, {})
        times = predict_times(unseen, seen.profile)
    else:
        times = predict_times(unseen, base)
    return np.abs(times / unseen.seconds - 1)


@pytest.mark.slow
def test_one_run_of_an_unseen_model_takes_a_fifth_off_its_error():
    """By the mean of rows and by cells; each further run takes more."""
    rows = (*runs(shared("serving_runs.csv")).rows, *steadies(shared("serving_steady.csv")).rows)
    sample = published_sample(rows, "runs", RUNS.as_of)
    draw = np.random.default_rng(SEED)
    errors: dict[int, list[np.ndarray]] = {count: [] for count in (0, *COUNTS)}
    for _, cell, base in _cells(sample):
        names = np.unique(cell.column("id"))
        orders = [draw.permutation(names) for _ in range(DRAWS)]
        for count, parts in errors.items():
            parts.append(np.concatenate([_errors(count, cell, base, order) for order in orders]))
    every = {count: np.concatenate(parts) for count, parts in errors.items()}
    by_cell = {count: np.array([np.median(p) for p in parts]) for count, parts in errors.items()}
    print(f"\n{len(errors[0])} cells, {len(every[0]):,} predictions")
    for count, each in every.items():
        print(
            f"{count} own runs: median {np.median(each):.1%}, mean {each.mean():.1%}, mean of "
            f"cells {by_cell[count].mean():.1%}"
        )
    assert every[1].mean() < 0.8 * every[0].mean()
    assert by_cell[1].mean() < 0.8 * by_cell[0].mean()
    assert np.median(every[1]) < 0.9 * np.median(every[0])
    for fewer, more in ((1, 2), (2, 3), (3, 5)):
        assert every[more].mean() < every[fewer].mean()


def _sample(path) -> Sample:
    return own_sample(own_rows({path.name: read(path)}), known().as_of)


def test_one_run_moves_a_new_model_part_of_its_way(tmp_path):
    """All times are twice those expected; what is left after one run is less, after five least."""
    wide = {"new_model": profile("engines-2026").all_bands["new_model"]}
    base = replace(known(), models=("another",), all_bands={**known().all_bands, **wide})
    off = []
    lines = settings(tp=(4,), lengths=((1024, 256),), requests=(1, 4, 16, 48, 96, 128))
    sample = _sample(made_up(tmp_path / "own.csv", lines, {}, scatter=0.0))
    twice = replace(sample, seconds=2 * sample.seconds)
    start = seen_by_rows(base, sample.places)
    ids = twice.column("id")
    for count in (0, 1, 3, 5):
        seen = twice.take(np.isin(ids, np.unique(ids)[:count]))
        times = predict_times(twice, own_fit(seen, start, {}).profile if count else start)
        off.append(np.median(np.log(twice.seconds / times)))
    assert np.log(2) == pytest.approx(off[0], rel=0.05)
    assert off[0] * 0.9 > off[1] > off[2] > off[3] > 0


def test_what_is_new_is_moved_together_and_what_is_known_is_not():
    """By as much as the bands of what is new are wider."""
    shipped = profile("engines-2026")
    place = RunContext(model=shipped.models[0], chip=shipped.chips[0])
    assert common_width(shipped, [place]) == 0
    model, chip = (common_width(shipped, [replace(place, **{k: "x"})]) for k in ("model", "chip"))
    assert 0.1 < min(model, chip) <= max(model, chip) < 0.4


def test_runs_that_contradict_each_other_are_told_with_their_ratio(tmp_path):
    """Two values of one configuration; what repeats scatter is not worth a word."""
    line = settings(tp=(4,))[0]
    path = tmp_path / "own.csv"
    table(path, [(*line, "900", "31"), (*line, "905", "62"), (*line, "910", "32")])
    (sentence,) = inconsistent_repeats(own_rows({path.name: read(path)}).usable)
    assert "own.csv:2 and own.csv:3 contradict each other" in sentence
    assert "tpot differs by a factor of 2" in sentence
