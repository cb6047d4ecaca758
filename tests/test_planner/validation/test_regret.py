"""`planner validate --regret`: shares of choices against those worked out by hand."""

from __future__ import annotations

import pytest

from planner.text.errors import InputError
from planner.validation.regret import RULES, ChoiceRule, LayoutRun, decisions
from tests.cases.validation import RUN_HEAD, run_row, written
from tests.loops import for_all
from tests.paths import shared

BEST, FEWEST, MOST, ROOF = RULES
SURER = ChoiceRule("surer", chance=0.7)


def layout(chips, *speeds):
    """A run by (TPOT, tokens/s per chip) measured, expected, roofline; its band half to twice."""
    band = speeds[1][0] / 2, speeds[1][0] * 2
    return LayoutRun(
        "known models", (), "vllm", f"tp {chips}", chips, *zip(*speeds, strict=True), band
    )


QUICK = layout(1, (0.004, 10.0), (0.007, 12.0), (0.001, 1.0))
SMALL = layout(1, (0.016, 50.0), (0.015, 60.0), (0.002, 90.0))
MIDDLE = layout(2, (0.018, 100.0), (0.018, 80.0), (0.002, 80.0))
LARGE = layout(4, (0.010, 25.0), (0.008, 20.0), (0.002, 30.0))
LATE = layout(8, (0.030, 400.0), (0.025, 300.0), (0.004, 200.0))


@for_all(
    ("rule", "limit", "share"),
    [
        (BEST, 0.020, 1.0),  # the middle one is expected to be the best that keeps it, and is
        (FEWEST, 0.020, 0.5),  # of one chip the small one: 50 of 100
        (MOST, 0.020, 0.25),  # the large one: 25 of 100
        (ROOF, 0.020, 0.0),  # the late one by its roofline: 30 ms
        (SURER, 0.020, 0.5),  # the band's: small 70.3 %, middle 57.7 %
        (BEST, 0.025, 0.0),  # the late one, a fifth beyond the limit
        (BEST, 0.015, 1.0),  # the small one, 7 % beyond it, is faster than the best within
        (BEST, 0.005, 1.0),  # none is expected to keep it: the least TPOT expected, which does
    ],
)
def test_shares_are_those_worked_out_by_hand(rule, limit, share):
    """The best choice is worth 1, others their part of it, one that breaks the limit nothing."""
    assert rule.share((QUICK, SMALL, MIDDLE, LARGE, LATE), limit) == share


def test_a_table_is_scored_by_the_limits_that_its_runs_keep(tmp_path):
    """Of two layouts at 8 and 12 ms: limits of 10 and 15 ms, beyond which all are kept."""
    rows = run_row(tpot=12.0, tp=4), run_row(tpot=8.0, tp=8), run_row(model="Qwen/Qwen3-32B")
    scores = decisions(written(tmp_path / "runs.csv", RUN_HEAD, *rows), chance=0.7)
    counted = {(x.of, x.runs, x.in_fit, x.groups, x.n) for x in scores}
    assert counted == {("one engine, known models", 2, 0, 1, 2)}
    assert [x.rule for x in scores][:2] == [BEST.name, "limit kept in 70 of 100 cases"]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([run_row(), run_row(concurrency=32)], "no decision in 2 runs .* two layouts"),
        ([], "holds a header and no row"),
    ],
)
def test_what_holds_no_decision_is_refused(tmp_path, rows, told):
    """One layout alone, or no row: told with what to mend."""
    with pytest.raises(InputError, match=told):
        decisions(written(tmp_path / "runs.csv", RUN_HEAD, *rows))


def test_choices_on_rows_of_the_fit_beat_the_fewest_chips():
    """A known file: shares lie in 0 to 1, and its choices are no worse than the plain rule's."""
    scores = decisions(shared("serving_runs_2.csv"))
    assert all(0 <= share <= 1 for x in scores for share in (x.mean, x.median, x.broken))
    best, fewest = scores[:2]
    assert (best.of, best.groups, best.n) == ("one engine, known models", 31, 81)
    assert (best.rule, fewest.rule) == (BEST.name, FEWEST.name)
    assert best.mean >= fewest.mean
