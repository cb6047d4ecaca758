"""What a framework of reinforcement learning adds: fits, rows left out, too few rows."""

import numpy as np
import pytest

from planner.measurements.readers.file_kinds import table
from planner.problems import rl
from planner.scenario.loading import load
from planner.text.errors import InputError
from tests.cases.rl_questions import question
from tests.paths import shared
from tests.test_planner.measurements.test_rl_steps import written
from tools.fit.rl_fit import RlRow, fitted, rl_scores


def test_few_steps_are_refused(tmp_path):
    """Rows that cannot be planned count for none."""
    rows = ({"s": ""}, {"chip": "Abacus"}, {"policy": "in-between"})
    with pytest.raises(InputError, match="fewer than 6 steps"):
        rl_scores(table(written(tmp_path, *rows), {}))


def test_a_fit_finds_the_numbers_that_made_the_rows():
    """Steps made with known numbers, each the best of its splits, give those numbers again."""
    truth, draws = (1.7, 0.9, 40.0), np.random.default_rng(3)
    rows = []
    for place in range(24):
        off = place % 2
        setting = load(question(policy="off") if off else question())
        combined = rl.step_function(setting)
        pools = draws.uniform(20, 200, (5 if off else 1, 3)) * (1, 1, 0.01)
        seconds = float(combined(pools, truth).min())
        rows.append(RlRow(str(place), place, {}, seconds, pools, combined))
    assert fitted(rows) == pytest.approx(truth, rel=0.03)


@pytest.mark.campaign
def test_published_steps_are_within_a_third_on_rows_left_out():
    """NeMo RL's 27 steps: mean errors with a model, a version, a chip left out; no worse later."""
    scores = rl_scores(table(shared("rl_runs.csv"), {}))
    assert len(scores.rows) == 27
    assert max(errors.mean for errors in scores.left_out) < 0.25
