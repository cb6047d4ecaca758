"""Sizes of a fleet: the smallest that keeps its promises, against every number by itself."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import planner
from planner.protocol.promise import SURE_CHANCE
from planner.text.errors import InputError
from tests.sizes import first, seldom

USERS: dict[str, Any] = {
    "problem": "serving", "model": "gpt-oss-120b", "system": "hgx-h100", "chips": 32,
    "workload": {"input_tokens": 3000, "output_tokens": 800, "concurrency": 200},
    "promises": {"ttft": "3 s", "tpot": "33.3 ms"},
}  # fmt: skip
MODELS = ("gpt-oss-120b", "qwen3-235b-a22b", "llama-3.3-70b", "llama-3.1-8b", "qwen3-32b")
SYSTEMS = ("hgx-h100", "hgx-h200", "mi300x-8", "gb200-nvl72")


def random_load(seed: int) -> dict[str, Any]:
    """A question with a closed loop or arrivals, promises that some numbers of chips keep."""
    draw = random.Random(seed)
    system, unit = draw.choice(SYSTEMS), draw.choice([None, None, 1, 2])
    load: dict[str, Any] = {
        "input_tokens": draw.choice([200, 1000, 3000, 9000]),
        "output_tokens": draw.choice([100, 400, 1200]),
    }
    if draw.random() < 0.6:
        load["concurrency"] = round(np.exp(draw.uniform(0, 6.5)))
    else:
        load["demand"] = f"{np.exp(draw.uniform(-1, 4)):.4g} requests/s"
    promises: dict[str, Any] = {
        "tpot": f"{draw.choice([12, 20, 33, 60])} ms", "ttft": f"{draw.choice([0.5, 1, 3])} s"
    }  # fmt: skip
    if draw.random() < 0.4:
        promises["chance"] = draw.choice([0.01, 0.6, 0.8, 0.9])
    asked = {
        "problem": "serving", "model": draw.choice(MODELS), "system": system,
        "chips": draw.choice([4, 8, 16, 24, 32]) if unit is None else draw.randint(2, 12),
        "workload": load, "promises": promises,
    }  # fmt: skip
    return asked if unit is None else asked | {"rent": {"unit": unit}}


def by_hand(asked: dict[str, Any], unit: int) -> int | None:
    """The first number of chips that has a plan, each asked by itself."""
    # Where no whole unit is among the chips, the next above is paid.
    paid = asked["chips"] // unit * unit or unit
    paid += unit * (asked["chips"] % unit > 0)
    for chips in range(unit, paid + 1, unit):
        try:
            if planner.solve(asked | {"chips": chips}).feasible:
                return chips
        except InputError:
            continue
    return None


@pytest.mark.parametrize("seed", [*first(6, range(20)), *seldom(range(20, 300))])
def test_the_smallest_fleet_is_that_of_every_number_tried(seed):
    """Of random loads; of arrivals too, whose bill is that of the fewest chips."""
    asked = random_load(seed)
    try:
        plan = planner.solve(asked)
    except InputError:
        return
    if not plan.feasible:
        return
    size = plan.answer.sizes[0]
    unit = asked.get("rent", {}).get("unit") or plan.question.unit
    assert (size.reason, size.unit) == ("fewest", unit)
    assert size.chips == by_hand(asked, unit)
    again = planner.solve(asked, [f"{path}={value}" for path, value in size.sets.items()])
    assert again.point.usd_per_hour == pytest.approx(size.usd_per_hour, rel=1e-9)
    assert again.cost == pytest.approx(size.usd_per_mtok, rel=1e-9)


def test_a_machine_that_does_is_named_beside_four_that_are_given():
    """gpt-oss-120b for 200 users: eight chips are sure, four just so and half as dear."""
    plan = planner.solve(USERS)
    whole, parts = plan.answer.sizes
    assert (whole.chips, whole.machines, whole.unit, whole.word) == (8, 1, 8, "sure")
    assert whole.usd_per_hour == pytest.approx(31.92)
    assert whole.usd_per_mtok == pytest.approx(0.136, abs=5e-4)
    assert (parts.chips, parts.unit, parts.word) == (4, 1, "sure")
    assert parts.usd_per_hour == pytest.approx(15.96)
    assert parts.chance == pytest.approx(0.907, abs=5e-3)
    alone = planner.solve(USERS, ["chips=2", "rent.unit=1", "promises.chance=1%"])
    tpot = {each.promise: each for each in alone.answer.promises}["tpot"]
    assert tpot.word == "unlikely"
    assert tpot.chance == pytest.approx(0.497, abs=6e-3)
    assert planner.solve(USERS, ["chips=2", "rent.unit=1"]).status == "infeasible"


def test_what_one_machine_fewer_lacks_is_told():
    """qwen3-235b takes three machines: on two no plan keeps the time per token.

    No engine runs them so: its overlap takes no ep 24 of 128 experts, and four are left.
    """
    asked = USERS | {"model": "qwen3-235b-a22b", "engine": "none"}
    size = planner.solve(asked).answer.sizes[0]
    assert (size.chips, size.machines) == (24, 3)
    assert size.usd_per_mtok == pytest.approx(0.960, abs=5e-4)
    assert planner.solve(asked, ["engine=any"]).answer.sizes[0].machines == 4
    fewer = planner.solve(asked, ["chips=16"])
    assert [each.promise for each in size.lacks] == [each.promise for each in fewer.infeasible]
    assert [each.promise for each in size.lacks] == ["tpot"]


def test_the_fleet_that_is_sure_keeps_promises_in_nine_of_ten_cases():
    """It is sought beyond the chips that were given, and one machine less is not sure."""
    asked = USERS | {"model": "llama-3.3-70b", "chips": 16, "promises": {"tpot": "40 ms"}}
    plan = planner.solve(asked)
    sizes = {size.reason: size for size in plan.answer.sizes}
    assert sizes["fewest"].word == "likely"
    assert sizes["sure"].chance >= SURE_CHANCE
    assert sizes["sure"].sets["promises.chance"] == "90%"
    fewer = asked | {"chips": sizes["sure"].chips - 8}
    assert planner.solve(fewer, ["promises.chance=90%"]).status == "infeasible"


@pytest.mark.parametrize("seed", [*first(3, range(7)), *seldom(range(7, 12))])
def test_without_a_load_it_is_the_fewest_chips_of_the_least_price(seed):
    """Within a thousandth of the least of all numbers, each asked by itself."""
    draw = random.Random(seed)
    asked = USERS | {
        "model": draw.choice(MODELS), "chips": 8 * draw.randint(2, 5),
        "workload": {"input_tokens": 2000, "output_tokens": 500},
    }  # fmt: skip
    (size, *_) = planner.solve(asked).answer.sizes
    costs = {k: planner.solve(asked | {"chips": k}).cost for k in range(8, asked["chips"] + 1, 8)}
    least = min(cost for cost in costs.values() if cost)
    assert size.reason == "least price"
    assert size.chips == min(k for k, cost in costs.items() if cost and cost <= 1.001 * least)
    assert size.usd_per_mtok == pytest.approx(costs[size.chips], rel=1e-9)
    assert bool(size.lacks) == (costs.get(size.chips - 8, least) is None)  # dearer, not broken


def test_where_neither_a_load_nor_a_price_decides_there_is_no_size():
    """The fastest plan is no cheapest one."""
    free = {"input_tokens": 2000, "output_tokens": 500}
    plan = planner.solve(USERS | {"workload": free, "objective": "latency"})
    assert plan.answer.sizes == ()


def test_the_smallest_fleet_for_one_of_several_given_batches():
    """Whichever of the batches fewer chips keep the promises with."""
    batches = {"choose": {"mode": "aggregated", "batch": [200, 64]}}
    asked = {**USERS, "model": "llama-3.3-70b", **batches,
             "workload": {"input_tokens": 2000, "output_tokens": 500}}  # fmt: skip
    found = planner.solve(asked).answer.sizes[0]
    assert found.chips == by_hand(asked, 8)
    assert found.chips < by_hand(asked | {"choose": {"mode": "aggregated", "batch": 200}}, 8)
