"""Columns that duals ask for: with them the relaxation is that of every layout of every search."""

from dataclasses import replace

import numpy as np
import pytest

from planner.problems.fleet.answer import answer
from planner.problems.fleet.cycles.column_pricing import priced_fleet
from planner.problems.fleet.fleet_task import FleetTask
from planner.problems.fleet.program import fleet_program
from planner.problems.fleet.replica_columns import larger_replicas
from planner.problems.fleet.resolve import resolve_fleet
from planner.programs.integer import solve_lp_relaxation
from planner.scenario import load


def large_model(spare: int) -> dict:
    """A model that is served for less on several machines than on one."""
    model = {
        "model": "deepseek-v3", "workload": {"input_tokens": 3000, "output_tokens": 800},
        "promises": {"ttft_p95": "3 s", "tpot": "50 ms"},
        "demand": ["20 requests/s", "45 requests/s", "70 requests/s"],
    }  # fmt: skip
    spot = {"price": "$1.2/hour", "machines": 4, "lost": 0.05}
    pool = {"system": "mi300x-8", "on_demand": "$2.69/hour", "reserved": "$1.99/hour", "spot": spot}
    return {"problem": "fleet", "units": "base",
            "hours": 3, "models": {"chat": model}, "pools": {"mi300x": pool},
            "spare": {"replicas": spare}}  # fmt: skip


def relaxed_bill(task: FleetTask) -> float:
    """What no plan is below [USD/hour]."""
    return solve_lp_relaxation(fleet_program(task).program.compiled()).value / task.hours


@pytest.fixture(scope="module")
def fleets():
    """The fleet before and after its columns are priced; without spare no rule is left out."""
    scenario = load(large_model(0))
    return scenario, resolve_fleet(scenario), priced_fleet(scenario)


def test_no_layout_of_any_search_lowers_the_relaxation(fleets):
    """Every layout at its best batch put in at once, dominated ones too, is worth nothing more."""
    scenario, before, after = fleets
    searches = [*before.made.searched, *larger_replicas(scenario, before.made)]
    columns = []
    for search in searches:
        pool, origin = search.pool, search.column
        values = pool.step.take(pool.searched.rows)(pool.searched.batch, pool.searched.fill)
        weights = values["memory.weights"] * origin.chips
        own = search.point.candidate.plan().memory_per_chip.weights * origin.chips
        for rate, size in zip(*np.broadcast_arrays(values["requests"], weights), strict=True):
            start = min(1.0, origin.start * size / own)
            columns.append(replace(origin, rate=float(rate), start=float(start)))
    assert after.pricing.layouts == len(columns)
    everything = replace(after.resolution.task, columns=(*after.resolution.task.columns, *columns))
    assert relaxed_bill(everything) == pytest.approx(relaxed_bill(after.resolution.task), rel=1e-5)


def test_replicas_on_several_machines_come_in_where_they_cost_less(fleets):
    """The bound falls by them, and the columns that are added are used."""
    _, before, after = fleets
    assert after.pricing.added > 0
    assert relaxed_bill(after.resolution.task) < 0.98 * relaxed_bill(before.task)
    more = after.resolution.task.columns[len(before.task.columns) :]
    assert len(more) == after.pricing.added
    assert any(column.chips > 8 for column in more)


def test_the_answer_says_what_was_priced():
    """With a spare; measured replicas are asked of no search, so nothing is priced of them."""
    plan = answer(load(large_model(1)))
    assert plan.answer.certificate.priced.layouts > 1000
    assert "duals ask for none of" in plan.text("more")
    measured = large_model(1)
    measured["models"]["chat"] |= {"columns": [{"pool": "mi300x", "chips": 8, "rate": 5.0}]}
    assert answer(load(measured)).answer.certificate.priced is None
