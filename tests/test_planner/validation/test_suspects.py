"""Rows that cannot be what they say are listed with the likeliest explanation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.calibration.sample import row_digest
from planner.validation.estimates import read
from planner.validation.validation_document import (
    faster_than_bound,
    inferred_speculation,
    suspected_unit_errors,
)
from tests.cases.validation import RUN_HEAD, STEADY_HEAD, run_row, steady_row, written
from tools.fit.published_sample import digests_text


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    """A batch of Llama 3 8B in its own time, a thousand times faster and slower, and too fast."""
    path = tmp_path_factory.mktemp("steady") / "s.csv"
    values = (5.0, 0.005, 5000.0, 1.5)
    rows = [steady_row(str(i), "step_ms", value) for i, value in enumerate(values)]
    return read(written(path, STEADY_HEAD, *rows))[1]


@pytest.fixture(scope="module")
def drafted(tmp_path_factory):
    """Runs of DeepSeek-R1, whose checkpoint can speculate."""
    path = tmp_path_factory.mktemp("runs") / "r.csv"
    rows = [
        run_row(400, 20, model="deepseek-ai/DeepSeek-R1", tp=8, concurrency=n) for n in (1, 4, 16)
    ]
    return read(written(path, RUN_HEAD, *rows))[1]


def test_another_unit_is_suspected_by_a_thousand(steady):
    """In both directions; such a row is listed and not scored, the others are."""
    found = {entry.row: why for entry, why in suspected_unit_errors(steady)}
    assert set(found) == {1, 2}
    assert "seconds given as ms" in found[1]
    assert "ms given as seconds" in found[2]
    assert steady[0].scored
    assert not any(steady[row].scored for row in found)


def test_every_row_below_its_bound_is_listed(steady):
    """With the unit as the explanation where it is far off, else with a doubt."""
    found = {entry.row: why for entry, why in faster_than_bound(steady)}
    assert set(found) == {1, 3}
    assert "seconds given as ms" in found[1]
    assert found[3] == "suspect data or a fault of ours"


def test_a_group_is_taken_to_speculate_as_a_whole(drafted):
    """Where the median of its rows is a sixth faster than expected, not for a single row."""

    def timed(factors: tuple[float, float, float]) -> frozenset[str]:
        tokens = [entry for entry in drafted if entry.quantity == "tpot"]
        made = []
        for entry, factor in zip(tokens, factors, strict=True):
            seconds = factor * entry.prediction.estimate
            row = replace(entry.measurement, seconds=seconds)
            made.append(replace(entry, seconds=seconds, measurement=row))
        return inferred_speculation(made)

    assert timed((0.5, 1.0, 1.1)) == frozenset()
    assert len(timed((0.5, 0.6, 1.1))) == 1


def test_a_prompt_read_alone_is_bounded_alone(drafted):
    """However many requests were in flight: the first of them may have been read at once."""
    bounds = [entry.bound for entry in drafted if entry.quantity == "ttft"]
    assert bounds == pytest.approx([bounds[0]] * 3)


def test_a_row_is_known_again_by_its_digest(drafted):
    """The same row always has the same digest, and another value has another."""
    row = drafted[0].measurement
    assert row_digest(row) == row_digest(replace(row, id="9", source="elsewhere"))
    assert row_digest(row) != row_digest(replace(row, seconds=row.seconds * 1.001))
    assert digests_text([row, row]).split() == [row_digest(row)]
