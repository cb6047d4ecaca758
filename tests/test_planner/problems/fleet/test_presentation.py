"""Fleets drawn and exported: what is drawn are the plan's own numbers."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from ruamel.yaml import YAML

import planner
from planner.engines import export
from planner.engines.kubernetes import schedule
from planner.problems.fleet.plan import FleetPlan
from planner.protocol.problem import ReplicaHours, problem_of
from planner.report.pictures.section_bars import MOST_LINES, StackedHours
from planner.text.errors import Infeasible, InputError

PRICES = {"on_demand": "$4/hour", "reserved": {"price": "$2.5/hour", "term": "1 day"}}


def small_fleet(models: int, hours: int = 24) -> dict:
    """Models on two pools, one with spot machines; two machines are owned."""
    rows = {
        f"m{i}": {
            "demand": {
                "mean": f"{4.0 + 3 * i} requests/s",
                "peak_to_mean": 1.8,
                "peak_hour": 5 * i,
            },
            "columns": [
                {"pool": "a", "chips": 4, "rate": "2 requests/s"},
                {"pool": "b", "chips": 16, "rate": "7 requests/s", "name": "two machines"},
            ],
        }
        for i in range(models)
    }
    spot = {"price": "$1.5/hour", "machines": 2, "lost": 0.05}
    pools = {"a": {"size": 8, **PRICES, "spot": spot}, "b": {"size": 8, **PRICES}}
    return {"problem": "fleet", "hours": hours, "models": rows, "pools": pools,
            "have": {"b": 2}, "spare": {"replicas": 1}, "start": {"time": 0.0}}  # fmt: skip


def hour_of(cron: str, hours: int) -> int:
    """The hour of a cron expression, of the day or of the week from Monday."""
    minute, hour, day, month, weekday = cron.split()
    assert (minute, day, month) == ("0", "*", "*")
    assert (weekday == "*") == (hours == 24)
    return int(hour) if weekday == "*" else int(hour) + 24 * ((int(weekday) - 1) % 7)


def scheduled(text: str, hours: int) -> dict[tuple[str, str], np.ndarray]:
    """Replicas by (model, column) and hour, as the triggers of all its scaled objects say."""
    rows: dict[tuple[str, str], np.ndarray] = {}
    names = set()
    for found in YAML(typ="safe").load_all(text):
        spec, facts = found["spec"], found["metadata"]["annotations"]
        names.add(found["metadata"]["name"])
        counts = np.full(hours, spec["minReplicaCount"])
        for trigger in spec["triggers"]:
            each = trigger["metadata"]
            assert each["timezone"] == "Etc/UTC"
            start, end = hour_of(each["start"], hours), hour_of(each["end"], hours)
            assert start != end
            for t in range(start, end if end > start else end + hours):
                counts[t % hours] = max(counts[t % hours], int(each["desiredReplicas"]))
        assert spec["maxReplicaCount"] == counts.max()
        key = facts["model"], facts["column"]
        rows[key] = rows.get(key, 0) + counts
    assert len(names) == len(list(YAML(typ="safe").load_all(text)))
    return rows


@pytest.fixture(scope="module")
def plan() -> FleetPlan:
    """Two models over a day."""
    return planner.solve(small_fleet(2))


def test_the_layers_of_the_picture_are_the_machines_of_the_plan(plan):
    """Owned, reserved, on demand, spot in every hour, and the demand as it was asked."""
    picture, point = problem_of(plan.problem).picture(plan), plan.answer.plan
    drawn = picture.layers
    assert set(drawn["b"]["owned"]) == {2}
    assert set(drawn["a"]["reserved"]) == {point.reserved["a"]}
    assert any(drawn["a"]["spot"])
    paid = sum(sum(row) for kind in drawn.values() for row in kind.values())
    counts = [*point.on_demand.values(), *point.spot.values()]
    assert paid == 24 * (sum(point.reserved.values()) + 2) + sum(map(sum, counts))
    assert max(picture.demand["m0"]) == pytest.approx(4 * 1.8)
    first = picture.draw("svg")
    assert first == picture.draw("svg")
    assert ET.fromstring(first).tag.endswith("svg")


def test_the_sections_of_a_page_hold_the_whole_answer(plan):
    """Bills of models add up to the plan's; every comparison and every price has its line."""
    head, *others = problem_of(plan.problem).sections(plan)
    assert "2 models on 2 kinds of machine" in head.title
    bills = next(each for each in others if each.adds_up)
    assert sum(value for _, value in bills.parts) == pytest.approx(plan.cost)
    labels = [line.label for each in others for line in each.lines]
    assert {row.restriction for row in plan.answer.beside} | set(plan.answer.prices.request) <= {
        *labels
    }


def test_a_picture_of_many_models_names_the_largest_and_sums_the_others():
    """No demand is left out."""
    demand = {f"m{i}": [float(i), 2.0 * i] for i in range(1, 21)}
    lines = StackedHours("", "", demand, "", {}).lines()
    assert next(iter(lines)) == "m20"
    assert len(lines) == MOST_LINES + 1
    assert sum(row[1] for row in lines.values()) == sum(row[1] for row in demand.values())


def test_replicas_read_back_from_the_schedule_are_those_of_the_plan(plan):
    """Every model, column and hour; no engine starts them."""
    text = export(plan, "kubernetes").files["kubernetes.yaml"]
    read = scheduled(text, 24)
    for model, columns in plan.answer.plan.replicas.items():
        for column, row in columns.items():
            assert read.pop((model, column)).tolist() == list(row)
    assert not read
    with pytest.raises(InputError, match="--engine kubernetes"):
        export(plan, "vllm")


@pytest.mark.parametrize("hours", [24, 168])
def test_any_row_of_hours_is_read_back(hours):
    """Runs over midnight and over the end of the week, the same all day, names that clash."""
    draw = np.random.default_rng(0)
    rows = [np.repeat(draw.integers(0, 3, hours // 4), 4) for _ in range(5)]
    rows += [np.full(hours, 4), np.arange(hours) == hours - 1]
    kinds = [ReplicaHours("A b", {"model": "m", "column": str(i)}, 1, tuple(map(int, row)))
             for i, row in enumerate(rows)]  # fmt: skip
    read = scheduled(schedule(kinds), hours)
    for i, row in enumerate(rows):
        assert read["m", str(i)].tolist() == row.astype(int).tolist()


def test_replicas_of_several_machines_are_groups_of_pods():
    """Each is scaled by the resource that its pods belong to."""
    rows = [ReplicaHours(f"m{n}", {}, n, (1,) * 24) for n in (1, 2)]
    found = YAML(typ="safe").load_all(schedule(rows))
    targets = [each["spec"]["scaleTargetRef"]["kind"] for each in found]
    assert targets == ["Deployment", "LeaderWorkerSet"]


def test_a_schedule_of_some_hours_is_refused():
    """Cron triggers repeat by day or week."""
    with pytest.raises(Infeasible, match="hours: 24"):
        schedule([ReplicaHours("m", {}, 1, (1, 2, 3))])


def test_sections_hold_the_bill_and_what_it_is_made_of() -> None:
    """The bills of models add up to the bill, contracts are those of the text."""
    plan = planner.solve(small_fleet(2))
    head, models, *rest = problem_of(plan.kind).sections(plan)
    (others,) = (each for each in rest if each.title.startswith("what one freedom less"))
    assert head.title.startswith("2 models on 2 kinds of machine over 24 hours")
    assert head.lines[0].words.startswith(f"${plan.cost:.3g}/hour")
    assert sum(value for _, value in models.parts) == pytest.approx(plan.cost, rel=1e-9)
    assert [x.label for x in others.lines] == [x.restriction for x in plan.answer.beside]
    assert all(x.words in str(plan) for x in head.lines if x.label in ("reserved", "spot"))
