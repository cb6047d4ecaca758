"""What an export starts is what is placed, and what is placed is what is paid, on random plans."""

from __future__ import annotations

import random
from typing import Any

import pytest

import planner
from planner.catalogue.systems import system
from planner.engines.deployment import checkpoint, deployments
from planner.text.errors import InputError
from tests.sizes import first, seldom

MODELS = (
    "llama-3.1-8b", "llama-3.3-70b", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-120b", "mixtral-8x7b",
)  # fmt: skip
SYSTEMS = ("hgx-h200", "hgx-h100", "gb200-nvl72", "mi300x-8", "hgx-b200", "l40s", "h100-pcie")
RENT = 2.0  # USD per hour and chip


def drawn(number: int) -> dict[str, Any]:
    """A scenario: any model and system, a number of chips or a range, perhaps a load and units."""
    draw = random.Random(number)
    most = {"from": 1, "to": draw.randint(2, 40)}
    scenario: dict[str, Any] = {
        "problem": "serving", "model": draw.choice(MODELS), "system": draw.choice(SYSTEMS),
        "chips": draw.choice([draw.randint(1, 40), most]), "price": f"${RENT}/hour",
        "workload": {
            "input_tokens": draw.choice([500, 2000, 8000]),
            "output_tokens": draw.choice([100, 500]),
        },
    }  # fmt: skip
    if draw.random() < 0.5:
        scenario["choose"] = {"mode": draw.choice(["aggregated", "disaggregated"])}
    if draw.random() < 0.4:
        scenario["workload"]["demand"] = f"{draw.choice([1, 5, 20])} requests/s"
    if draw.random() < 0.3:
        scenario["rent"] = {"unit": draw.choice([2, 4, 8])}
    return scenario


def placed(part: dict[str, Any]) -> tuple[int, int, list[int]]:
    """Chips that a part of a placement rents and uses, and its nodes of each pool."""
    rented, used, nodes = 0, 0, [0] * len(part["nodes_per_replica"])
    for row in part["machines"]:
        full = sum(n * c for n, c in zip(row["nodes"], part["chips_per_node"], strict=True))
        assert row["machines"] > 0 <= row["idle"]
        assert full + row["idle"] == row["chips"] <= part["chips_per_machine"]
        rented, used = rented + row["machines"] * row["chips"], used + row["machines"] * full
        nodes = [n + row["machines"] * m for n, m in zip(nodes, row["nodes"], strict=True)]
    return rented, used, nodes


def one_geometry(number: int) -> bool:
    """Whether a question has a plan, of which export, placement and price are of one geometry.

    Machines hold whole replicas, all of them, on the chips that are paid; so does the export.
    """
    scenario = drawn(number)
    try:
        solved = planner.solve(scenario)
    except InputError:  # two pools on one chip, or a model too large for every layout
        return False
    plan = solved.chosen
    if not plan:
        return False
    parts = [placed(part) for part in plan["placement"]]
    assert sum(rented for rented, _, _ in parts) == plan["chips"]
    assert sum(used for _, used, _ in parts) == plan["chips_used"]
    assert plan["chips"] % scenario.get("rent", {"unit": 1})["unit"] == 0
    assert plan["usd_per_hour"] == pytest.approx(RENT * plan["chips"])
    every = [
        (nodes, per, chips)
        for part, (_, _, total) in zip(plan["placement"], parts, strict=True)
        for nodes, per, chips in zip(
            total, part["nodes_per_replica"], part["chips_per_node"], strict=True
        )
    ]
    pools = [plan] if plan["layout"] else [plan["prefill"], plan["decode"]]
    domain = system(scenario["system"]).chips_per_domain
    for pool, (nodes, per, chips) in zip(pools, every, strict=True):
        layout = pool["layout"]
        whole = layout["tp"] * layout["pp"] * layout["cp"] * layout["dp_attention"]
        assert (per * chips, nodes) == (whole, per * layout["replicas"])
        # Collectives were timed inside a domain: machines that are domains do not cut a stage.
        stage, machine = whole // layout["pp"], plan["placement"][0]["chips_per_machine"]
        assert machine < domain or chips % stage == 0 or (stage > domain and chips % domain == 0)
    started = deployments(solved.question, checkpoint(solved.question), plan)
    assert [(each.nodes, each.local) for each in started] == [row[1:] for row in every]
    return True


# In 188 two pools of 9 and 7 share two machines of 8.
@pytest.mark.parametrize("number", [*first(5, range(16)), 188, *seldom(range(16, 60))])
def test_export_placement_and_price_are_of_one_geometry(number):
    """Of random questions, most of which have a plan; the campaign asks thousands."""
    one_geometry(number)
