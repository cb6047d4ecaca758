"""What a fit did not see has no say in what is predicted for it."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace

import numpy as np
import pytest

from planner.text.errors import InputError
from planner.validation.estimates import measurement_files, read
from planner.validation.validation_document import GROUP_KEYS
from tests.cases.validation import COLLECTIVE_HEAD, RUN_HEAD, run_row, written
from tests.paths import shared
from tests.sizes import first
from tools.fit.group_cross_validation import refitted, refitted_tables

MODELS = {"a/Llama-3.1-70B": 4, "a/Qwen3-32B": 2, "a/MiniMax-M2.5": 4}


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """Runs of three models whose times are a fifth above what the profile expects."""
    rows = [
        run_row(100, 10, model=model, tp=tp, concurrency=n, system=system)
        for model, tp in MODELS.items()
        for system in ("h200_sxm", "b200_sxm")
        for n in (1, 8, 64)
    ]
    path = written(tmp_path_factory.mktemp("runs") / "r.csv", RUN_HEAD, *rows)
    return [_timed(entry, 1.2) for entry in read(path)[1]]


def _timed(entry, factor):
    """The entry with so many times what is expected as its measurement."""
    seconds = factor * entry.prediction.estimate
    row = replace(entry.measurement, seconds=seconds)
    return replace(entry, seconds=seconds, measured=1e3 * seconds, measurement=row)


@pytest.mark.slow
@pytest.mark.parametrize("leave", first(1, ["models", "groups"]))
def test_a_row_has_no_say_in_its_own_prediction(entries, leave):
    """Times of one group, or one model, doubled: its predictions stay, and others move."""
    key = entries[0].group if leave == "groups" else entries[0].model
    inside = [(e.group if leave == "groups" else e.model) == key for e in entries]
    other = [_timed(e, 2.4) if own else e for e, own in zip(entries, inside, strict=True)]
    before, after = (
        np.array([e.prediction.estimate for e in refitted(some, leave)])
        for some in (entries, other)
    )
    assert after[inside] == pytest.approx(before[inside], rel=1e-9)
    assert not np.allclose(after, before, rtol=1e-6)


def test_refitted_rows_are_out_of_sample_and_say_so(entries):
    """Whatever the shipped profile saw."""
    found = refitted(entries, "models")
    assert {entry.seen for entry in found} == {False}
    assert {entry.profile for entry in found} == {"refitted, models left out"}
    assert all(e.prediction.low <= e.prediction.high for e in found)


def test_another_fit_can_be_left_out(entries):
    """It is given the rows it may see, and asked about those that it did not."""

    @dataclass
    class Sevens:
        """Knows the models that it saw, and says that all others take 7 s."""

        models: set[str]

        def times(self, asked):
            assert not self.models & {row.model for row in asked.rows}
            assert len(asked.columns.rest) == len(asked.rows)
            return np.full(len(asked.rows), 7.0)

    def fit(sample):
        assert len(sample.rows) == len(sample.seconds) == len(sample.columns.rest)
        return Sevens({row.model for row in sample.rows})

    assert {e.prediction.estimate for e in refitted(entries, "models", fit)} == {7.0}


def test_rows_of_several_tables_are_fitted_together(entries, tmp_path):
    """Of two tables of one model each, either is predicted from the other; none is by its own."""
    paths = []
    for name, tp in list(MODELS.items())[:2]:
        rows = [run_row(100, 10, model=name, tp=tp, concurrency=n) for n in (1, 8, 64)]
        paths.append(written(tmp_path / f"{tp}.csv", RUN_HEAD, *rows))
    both = refitted_tables(measurement_files(paths), "models").tables
    assert [len(made) for _, made in both] == [6, 6]
    assert {e.profile for _, made in both for e in made} == {"refitted, models left out"}
    with pytest.raises(InputError, match="two models or more"):
        refitted_tables(measurement_files(paths[:1]), "models")


def test_bands_of_rows_left_out_follow_from_what_their_times_rest_on(entries):
    """As those of a profile do: of two rows of one fold the ends differ, as shares do."""
    rows = [e for e in refitted(entries, "models") if e.quantity == "tpot"]
    wide = {(e.model, round(e.prediction.high / e.prediction.low, 6)) for e in rows}
    assert len(wide) > len({e.model for e in rows})
    assert {GROUP_KEYS["maker"](e) for e in rows} == {"NVIDIA"}


def test_one_model_alone_cannot_be_left_out(entries):
    """Nothing would be left to fit."""
    with pytest.raises(InputError, match="two models or more"):
        refitted([e for e in entries if e.model == entries[0].model], "models")


def test_curves_of_one_chip_cannot_be_left_out(tmp_path):
    """Neither can the only chip."""
    sweep = "one node,A100-SXM,8,1.0,all_gather,{n},{us},,,nccl-tests,s,measured"
    rows = [sweep.format(n=1024 << i, us=10 + i) for i in range(6)]
    path = written(tmp_path / "c.csv", COLLECTIVE_HEAD, *rows)
    with pytest.raises(InputError, match="two chips or more"):
        refitted(read(path)[1], "models")


def test_curves_left_out_err_as_their_profile_records():
    """The median error of library curves by fits without them is that in the shipped profile."""
    path = shared("collectives.csv")
    from planner.catalogue.collective_curves import collectives

    found = refitted(read(path)[1], "groups")
    with path.open(encoding="utf-8", newline="") as file:
        assert len(found) == len(list(csv.DictReader(file)))
    library = ("ring", "in-network", "pairwise")
    errors = [
        abs(e.prediction.estimate / e.seconds - 1)
        for e in found
        if e.profile.startswith("refitted") and e.engine in library
    ]
    stated = collectives().errors["unseen_curves"]
    assert len(errors) == pytest.approx(stated["rows"], rel=0.05)
    assert np.median(errors) == pytest.approx(stated["median"], abs=0.005)
