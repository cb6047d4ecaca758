"""Other makers belong into the fit: several tables, an effect of each coefficient by maker."""

from __future__ import annotations

import pytest

from planner.catalogue.chips import chip
from planner.catalogue.profile import COEFFICIENTS
from planner.measurements.measurement import row_context
from planner.measurements.prediction import features
from tests.paths import shared
from tools.fit.published_sample import MAKERS, weighed, weight_of
from tools.fit.serving_fit import RUNS, rows_of_runs

TABLES = ("serving_runs_2.csv", "serving_more_runs.csv")


@pytest.fixture(scope="module")
def rows():
    """Rows of both tables of runs."""
    return rows_of_runs([shared(name) for name in TABLES])


def test_ids_of_several_tables_are_of_one_row(rows):
    """The slots of a run pair by id: two tables must not share one."""
    pairs = [(row.id, row.quantity) for row in rows]
    assert len(set(pairs)) == len(pairs)
    assert sum(row.id.startswith("serving_more_runs:") for row in rows) == 2 * 435


def test_an_effect_by_maker_moves_one_coefficient(rows):
    """Kernels and links of a maker, each by itself: one factor for all of them made it worse."""
    by_maker = [family for family in RUNS.families if family.keys == ("maker",)]
    assert len(by_maker) > 10
    assert all(len(family.of) == 1 for family in by_maker)
    assert len({family.of for family in by_maker}) == len(by_maker)


def test_engines_are_apart_from_chips(rows):
    """AMD's plugins are engines of their own, with the chips that they ran on."""
    engines = {row.engine for row in rows if row.chip.name == "mi355x"}
    assert engines == {"atom-2026", "atom-vllm-2026", "atom-sglang-2026"}
    assert {row.engine for row in rows if row.chip.name == "mi300x"} == {"atom-2026", "sglang-2026"}


def test_rows_of_a_makers_own_boards_count_less(rows):
    """A share of what others count, for prompts and tokens alike."""
    amd = next(row for row in rows if row.chip.maker == "AMD" and row.quantity == "tpot")
    assert weight_of(amd) == pytest.approx(MAKERS["AMD"])
    own = next(row for row in rows if row.chip.maker == "NVIDIA" and row.quantity == "tpot")
    assert weight_of(own) == 1.0


def test_what_older_kernels_cost_is_not_learned_again():
    """Columns of int4 weights are as many times longer on B200 as its profile says, on H200 not."""
    rows = [r for r in rows_of_runs([shared("serving_runs_3.csv")]) if r.precision == "int4"]
    assert {row.chip.name for row in rows} == {"h100", "h200", "b200"}
    sample = weighed(rows, [row_context(row, RUNS.as_of) for row in rows])
    weights, launches = COEFFICIENTS.index("e_w"), COEFFICIENTS.index("t_layer")
    for row, column, plain in zip(rows, sample.columns.matrix, features(rows).matrix, strict=True):
        faster = row.chip.memory_bandwidth / chip("h200").memory_bandwidth
        expected = faster if row.chip.name == "b200" else 1
        assert plain[weights] > 0
        assert column[weights] == pytest.approx(expected * plain[weights])
        assert column[launches] == plain[launches]
