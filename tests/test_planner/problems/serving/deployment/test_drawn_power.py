"""Power of a plan's chips and its range, worked out by hand from a few numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.catalogue.chips import ChipPower, chip, chip_power
from planner.catalogue.profile import Band
from planner.problems.serving.deployment.drawn_power import (
    chip_cost,
    cost_in_use,
    power_bands,
    power_source,
)
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from tests.cases.serving import columns, dense, question


def draw(**changes: Any) -> ChipPower:
    """The power of an H200 with other figures."""
    law = chip_power(chip("h200"))
    assert law is not None
    return replace(law, **changes)


def task(**changes: Any) -> Task:
    """A question of chips that draw 200 W at least, 1.5 times that with the site."""
    base = {"draw": draw(measured=True), "power": 300.0, "site": 1.5, "electricity": 6e-6}
    return question(dense(2), **{**base, **changes})


def test_power_comes_from_the_less_sure_of_two_kinds_of_chips():
    """Unknown, given, the least, what such chips share, rows of the chip: in this order."""
    measured, shared = task(), task(draw=draw(measured=False))
    given, unknown = task(draw=None), task(draw=None, power=None)
    bound = task(estimate="bound")
    for tasks, expected in [
        ([measured], "measured"), ([measured, measured], "measured"),
        ([measured, shared], "shared"), ([shared, measured], "shared"), ([given], "given"),
        ([given, measured], "given"), ([measured, given], "given"), ([bound, bound], "least"),
        ([unknown], None), ([measured, unknown], None), ([unknown, given], None),
    ]:  # fmt: skip
        assert power_source(tasks) == expected


def plan(watts: float | None = 400.0, joules: float | None = 2.0, grams: float | None = 5.0) -> Any:
    """What a plan draws."""
    return SimpleNamespace(watts_per_chip=watts, joule_per_token=joules, grams_per_mtok=grams)


def test_ranges_of_energy_add_the_squares_of_those_of_time_and_power():
    """In logarithms; of two kinds of chips the wider range, and no chip draws beyond its rating."""
    time = Band(0.8, 1.5)
    narrow, wide = draw(low=0.99, high=1.01), draw(low=0.9, high=1.25, rated=320.0)
    ends = [
        math.exp(-math.hypot(math.log(0.8), math.log(0.9))),
        math.exp(math.hypot(math.log(1.5), math.log(1.25))),
    ]
    for tasks in ([task(draw=wide), task(draw=narrow)], [task(draw=narrow), task(draw=wide)]):
        bands = power_bands(tasks, plan(), time)
        assert bands["joule_per_token"] == pytest.approx([2 * end for end in ends])
        assert bands["grams_per_mtok"] == pytest.approx([5 * end for end in ends])
        # 1.5 * 320 W are rated, below 400 W * 1.25.
        assert bands["watts_per_chip"] == pytest.approx((360.0, 480.0))
    above = power_bands([task(draw=wide)], plan(watts=490.0), time)
    assert above["watts_per_chip"] == pytest.approx((441.0, 490.0))
    free = power_bands([task(draw=replace(wide, rated=900.0))], plan(grams=None), time)
    assert free["watts_per_chip"] == pytest.approx((360.0, 500.0))
    assert "grams_per_mtok" not in free


def test_power_that_is_given_has_no_range_and_unknown_power_no_energy():
    """Energy of given power is off as chip time is."""
    bands = power_bands([task(draw=None)], plan(), Band(0.8, 1.5))
    assert bands == {
        "joule_per_token": pytest.approx((1.6, 3.0)), "grams_per_mtok": pytest.approx((4.0, 7.5))
    }  # fmt: skip
    assert power_bands([task()], plan(watts=None), Band(0.8, 1.5)) == {}
    assert power_bands([task()], plan(joules=None), Band(0.8, 1.5)) == {}


def test_a_chip_costs_its_rent_and_what_it_draws_beyond_the_least():
    """Joule where energy is to be small; the price where power is not billed by what is drawn."""
    asked = task(price=1e-3)
    assert chip_cost(replace(asked, objective="energy"), 444.0) == 444.0
    # 6e-6 USD/s pay 300 W; 450 W take half as much again.
    assert chip_cost(asked, 450.0) == pytest.approx(1e-3 + 3e-6)
    assert chip_cost(asked, 150.0) == pytest.approx(1e-3 - 3e-6)
    for other in (
        replace(asked, draw=None), replace(asked, estimate="bound"), replace(asked, power=None),
    ):  # fmt: skip
        assert chip_cost(other, 450.0) == 1e-3


def test_a_chip_in_use_draws_what_idle_ones_of_its_pool_do_not():
    """Mean watts over all chips, of which 3 of 4 work: the idle power of the fourth apart."""
    rows = [(1, 1, 1, 1, 1, 1, 4, 4, 1), (1, 3, 1, 1, 1, 1, 1, 4, 1)]
    watts = np.array([400.0, 500.0])
    for changes, at_work in [
        ({"objective": "energy", "electricity": 0.0}, lambda mean: mean),
        ({"objective": "energy"}, lambda mean: mean),
        ({}, lambda mean: 1e-3 - 6e-6 + 6e-6 / 300.0 * mean),
        ({"electricity": 0.0}, lambda mean: 1e-3 + 0 * mean),
    ]:
        asked = task(price=1e-3, mode="decode", **changes)
        step = Step(asked, columns(rows[::-1]), bound=False)
        idle = 1.5 * asked.draw.idle
        expected = at_work(np.array([400.0, idle + (500.0 - idle) / 0.75]))
        cost = cost_in_use(step, np.array([1, 0]), watts)
        np.testing.assert_allclose(np.broadcast_to(cost, (2,)), expected)
    given = Step(task(draw=None, objective="energy"), columns(rows), bound=False)
    np.testing.assert_array_equal(cost_in_use(given, np.array([0, 1]), watts), watts)
