"""Which effects of a fit are kept, and which form of a fit is chosen."""

from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.hierarchy import Effect, EffectFamily, Loss, fit_hierarchy
from planner.catalogue.profile import COEFFICIENTS
from planner.measurements.measurement import row_context
from planner.measurements.prediction import features
from tests.cases.engine_rows import TRUTH, WIDE, made_rows, predicted, sample
from tools.fit.fit_spread import SpreadHierarchy, with_pruned, worthwhile
from tools.fit.serving_fit import RUNS, choosing, fit_of, inner_scores, rivals


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


def test_effects_that_the_rows_do_not_need_are_dropped(columns, places):
    """Of two engines' factors the one that made the data stays, and it alone."""
    slower = {**TRUTH, "t_layer": 1.25 * TRUTH["t_layer"]}
    of_vllm = np.array([place.engine == "vllm" for place in places])
    seconds = np.where(of_vllm, predicted(columns, slower), predicted(columns, TRUTH))
    true, idle = (
        Effect(("t_layer",), {"engine": "vllm"}, 0.5),
        Effect(("e_w",), {"math": "fp8"}, 0.5),
    )
    found = fit_hierarchy(sample(columns, seconds, places), (true, idle), WIDE)
    assert worthwhile(sample(columns, seconds, places), found, WIDE, 1.0) == (true,)
    assert worthwhile(sample(columns, seconds, places), found, WIDE, 0.0) == (true, idle)


def test_a_dropped_effect_is_measured_all_the_same(columns, places):
    """It stays at none, no time moves, and no more than the rows leave open of it is unknown."""
    rows = sample(columns, predicted(columns, TRUTH), places)
    idle = Effect(("e_w",), {"engine": "vllm"}, 0.5)
    without, fit = fit_hierarchy(rows, (), WIDE), fit_hierarchy(rows, (idle,), WIDE)
    kept = with_pruned(rows, (idle,), without, WIDE, Loss())
    assert kept.adjusted.tolist() == [0.0]
    assert kept.times(rows) == pytest.approx(without.times(rows), rel=1e-12)
    assert kept.freedom[-1] == pytest.approx(fit.freedom[-1], rel=0.1)
    families = (EffectFamily(("engine",), ("e_w",), 0.5),)
    at = next(place for place in places if place.engine == "vllm")
    wide, told = (
        SpreadHierarchy.of(each, families).covariances([at])[at][0, 0] for each in (without, kept)
    )
    assert told < 0.01
    assert wide > 0.25


def test_a_choice_takes_the_families_that_predict_rows_left_out(rows, columns, places):
    """Engines that differ by a half, both of them on every chip, are told apart."""
    mixed = [
        replace(place, engine="vllm" if row.layout["tp"] in (1, 4) else "trtllm")
        for row, place in zip(rows, places, strict=True)
    ]
    differ = np.array([1.5 if place.engine == "vllm" else 1.0 for place in mixed])
    made = replace(sample(columns, predicted(columns, TRUTH) * differ, mixed), rows=tuple(rows))
    family = EffectFamily(("engine",), COEFFICIENTS, 0.3)
    specs = {"alike": replace(RUNS, families=()), "apart": replace(RUNS, families=(family,))}
    scores = inner_scores(made, specs)
    assert scores["apart"] < 0.5 * scores["alike"]
    assert choosing(specs)(made).values == fit_of(specs["apart"])(made).values


def test_rivals_change_what_they_say_and_nothing_else():
    """The first is the fit that ships; widths are scaled, families added or left out."""
    others = rivals(RUNS.name)
    assert next(iter(others.values())) == RUNS
    assert all(each.prior == RUNS.prior for each in others.values())
    assert len({(each.families, each.loss) for each in others.values()}) == len(others)


def test_what_no_row_tells_is_named_and_stays(columns, places):
    """No row has pipeline stages: the hand-off keeps its prior and is called unidentified."""
    made = fit_hierarchy(sample(columns, predicted(columns, TRUTH), places), (), RUNS.prior)
    found = SpreadHierarchy.of(made, ())
    assert "t_hop" in found.unidentified
    assert "e_w" not in found.unidentified
    assert found.values["t_hop"] == pytest.approx(RUNS.prior["t_hop"][0])
