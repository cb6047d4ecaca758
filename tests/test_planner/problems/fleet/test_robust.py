"""What a benchmark run is worth: beside all of its outcomes, and where nothing depends on it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from planner.catalogue.coefficient_spread import NOISE
from planner.catalogue.profile import IN_SAMPLE, profile
from planner.problems.fleet.fleet_task import FleetColumn, FleetTask, PoolOffer
from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.robust import (
    Errors,
    forecast_errors,
    linear_use,
    margin_levels,
    robust,
    saved_by_run,
    valued_runs,
)
from planner.problems.fleet.search import solve_min_cost
from planner.scenario import load
from tests.cases.fleets import large_fleet

CHANCE, DEMAND, SPEED = 0.95, 0.1, 0.3
MARGIN = float(ndtri(CHANCE))


def two_kinds(price: float, machines: int = 1000) -> FleetTask:
    """One model, so many machines of demand in one hour, on a kind at $1 and one at a price."""
    pools = (PoolOffer("plain", 1, 1.0), PoolOffer("other", 1, price))
    columns = tuple(FleetColumn(0, k, f"{k}", 1, 1.0) for k in range(2))
    demand = np.array([[float(machines)]])
    return FleetTask(("chat",), pools, columns, demand, (0,), (None,))


def margin(speed: np.ndarray | float) -> np.ndarray:
    """Capacity over demand that keeps the chance."""
    return np.exp(MARGIN * np.hypot(DEMAND, speed))


def worth_of(task: FleetTask, errors: Errors, cell: int) -> float:
    """What a run saves at the chance [USD/hour]."""
    return saved_by_run(task, errors, margin_levels(task, errors, linear_use(task), CHANCE), cell)


def expected(price: float, cell: int, draws: int = 200_000) -> tuple[float, float]:
    """What a run saves of each machine of demand, by draws of its outcome; and how sure that is."""
    left = SPEED * NOISE / math.hypot(SPEED, NOISE)
    normal = np.random.default_rng(7).normal(size=draws)
    bills = [np.full(draws, 1.0), np.full(draws, price)]
    now = min(bill[0] for bill in bills) * margin(SPEED)
    for k in range(2):
        bills[k] *= margin(left if k == cell else SPEED)
    bills[cell] *= np.exp(-math.sqrt(SPEED**2 - left**2) * normal)
    saved = now - np.minimum(*bills)
    return float(saved.mean()), float(saved.std() / math.sqrt(draws))


@pytest.mark.parametrize("price", [1.05, 1.6])
@pytest.mark.parametrize("cell", [0, 1])
def test_a_run_is_worth_the_mean_of_its_outcomes(price: float, cell: int) -> None:
    """Of the kind in use and of the other, which a good outcome would bring in."""
    task = two_kinds(price)
    mean, error = expected(price, cell)
    saved = worth_of(task, forecast_errors(task, DEMAND, SPEED), cell) / 1000
    assert saved == pytest.approx(mean, abs=3 * error + 0.03 * mean)  # sixteen outcomes for all


def test_whole_plans_made_anew_cost_what_the_worth_says() -> None:
    """Every plan a whole one: the mean of those after forty outcomes, beside the one of today."""
    task = two_kinds(1.05, 400)
    errors = forecast_errors(task, DEMAND, SPEED)
    left = np.array([errors.left[0], SPEED])
    after = Errors(errors.demand, left, left)
    step = math.sqrt(SPEED**2 - left[0] ** 2)

    def bill(rates: list[float], spread: np.ndarray) -> float:
        columns = [
            replace(c, rate=rate / float(margin(s)))
            for c, rate, s in zip(task.columns, rates, spread, strict=True)
        ]
        return solve_min_cost(replace(task, columns=tuple(columns))).value

    outcomes = ndtri((np.arange(40) + 0.5) / 40)
    bills = [bill([math.exp(step * y), 1.0], after.speed) for y in outcomes]
    now = bill([1.0, 1.0], errors.speed)
    assert worth_of(task, errors, 0) == pytest.approx(now - np.mean(bills), rel=0.03)


def test_nothing_is_saved_where_nothing_depends_on_it() -> None:
    """A kind so dear that no outcome brings it in; a speed that is known."""
    task = two_kinds(9.0)
    errors = forecast_errors(task, DEMAND, SPEED)
    assert worth_of(task, errors, 1) == pytest.approx(0, abs=1e-6)
    assert [run.column for run in valued_runs(task, errors, CHANCE)] == [0]
    exact = forecast_errors(task, DEMAND, 0.0)
    assert not valued_runs(task, exact, CHANCE)


def test_the_less_is_known_the_more_a_run_is_worth() -> None:
    """Of fleets with several models, and never less than nothing."""
    task = large_fleet(2, 3, seed=1, pools=2)
    rows = []
    for speed in (0.05, 0.15, 0.35):
        errors = forecast_errors(task, DEMAND, speed)
        rows.append([worth_of(task, errors, cell) for cell in np.unique(task.cell_of)])
    worth = np.array(rows)
    assert worth.min() >= -1e-6
    assert (np.diff(worth, axis=0) >= 0).all()
    assert worth[-1].max() > worth[0].max() > 0


def test_a_run_saves_no_more_than_knowing_the_speed() -> None:
    """Runs of a robust plan, the best first, each below the bill."""
    task = two_kinds(1.6)
    sure = robust(task, forecast_errors(task, DEMAND, SPEED), CHANCE)
    worth = [run.usd_per_hour for run in sure.runs]
    assert worth == sorted(worth, reverse=True)
    assert 0 < worth[0] < sure.choice.value
    assert sure.runs[0].after < NOISE < sure.runs[0].before == SPEED
    assert 0.94 <= sure.share <= 0.96


def test_one_speed_is_drawn_of_a_model_in_all_regions_and_runs_name_their_commands() -> None:
    """Columns of serving questions: what a run leaves is by the profile that reads it."""
    scenario = load({
        "problem": "fleet",
        "models": {"chat": {
            "model": "qwen3-32b", "workload": {"input_tokens": 2000, "output_tokens": 300},
            "promises": {"ttft_p95": "3 s", "tpot": "60 ms"}, "demand": "9 requests/s",
            "profiles": {"h200": "vllm-2026"},
        }},
        "pools": {"h200": {"system": "hgx-h200", "on_demand": "$4/hour"}},
        "regions": {"us": {"demand": 0.5}, "eu": {"demand": 0.5}}, "hours": 1,
    })  # fmt: skip
    resolution = resolve_fleet(scenario)
    task, made = resolution.task, resolution.made
    assert made is not None
    assert set(task.model_of) == {0, 1}
    assert set(task.cell_of) == {0}
    first = made.made[0]
    assert first.point.candidate.task.profile.name == "vllm-2026"
    scatter = profile("vllm-2026").width(IN_SAMPLE, "usd_per_mtok")
    spread, left = first.column.spread, first.column.left
    assert spread is not None
    assert left is not None
    beyond = spread**2 - scatter**2
    hidden = 1 / (1 / beyond + 1 / scatter**2)  # of what all times share, after one run
    assert left == pytest.approx(math.sqrt(scatter**2 + hidden))
    load_test, read = first.benchmark(scenario)
    assert "--model Qwen/Qwen3-32B" in load_test
    assert f"n_chips={first.column.chips}" in load_test
    assert read.startswith("planner calibrate run.json")
    assert "--like vllm-2026" in read
