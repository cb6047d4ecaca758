"""Fleets drawn and exported: what is drawn are the plan's own numbers."""

import xml.etree.ElementTree as ET
from html import unescape

import numpy as np
import pytest
from ruamel.yaml import YAML

import planner
from planner.engines import export
from planner.engines.kubernetes import schedule
from planner.problems.fleet.plan import FleetPlan
from planner.protocol.problem import ReplicaHours, get_problem
from planner.report.pictures.section_bars import MAX_LINES, StackedHours
from planner.text.errors import Infeasible, InputError
from planner.text.wording import usd_text
from tests.sizes import first

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
    picture, point = get_problem(plan.problem).picture(plan), plan.answer.plan
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
    first, *others = get_problem(plan.problem).sections(plan)
    assert first.title.startswith("Fleet for 2 models (m0, m1) over 24 hours on a and b; 1 spare")
    assert first.lines[0].value == plan.cost
    bills = next(each for each in others if each.adds_up)
    assert sum(value for _, value in bills.parts) == pytest.approx(plan.cost)
    labels = {line.label for each in others for line in each.lines}
    assert {*plan.answer.prices.request} <= labels
    told = [cells[0] for each in others if "change" in each.heads for cells in each.cells]
    assert told == [row.restriction for row in plan.answer.beside]


def test_the_head_says_what_to_buy_and_what_the_rules_cost(plan):
    """Machines, bill, gap and spare as the answer has them, on the terminal and on a card."""
    point, rows = plan.answer.plan, dict(get_problem(plan.kind).head(plan).rows())
    bought, rented = rows["Buy"]
    reserved = ", ".join(f"{count} {name}" for name, count in point.reserved.items() if count)
    assert bought == f"2 b in hand; {reserved} reserved"
    assert f"spot: {min(point.spot['a'])}–{max(point.spot['a'])} a" in rented
    (spared,) = (x for x in plan.answer.beside if x.restriction == "without N+1")
    assert f"spare {usd_text(plan.cost - spared.usd_per_hour)}/hour (" in rows["Limit"][0]
    assert f"{100 * point.served:.3g}% of hours if every spot machine" in rows["Promises"][0]
    assert rows["Cheaper"][0].startswith("no: ")
    for text in (str(plan), plan._repr_html_()):
        assert all(
            words.split("; ")[0] in unescape(text) for words in (*rows["Buy"], *rows["Cost"])
        )


@pytest.mark.parametrize(
    ("hours", "axis"), first(2, [(24, "0h    6h"), (168, "Mon   Tue"), (720, "Mon Fri Tue")])
)
def test_a_line_of_hours_holds_every_hour(hours, axis):
    """The most of each sign is the most of its hours; marks stand over the hours they name."""
    plan = planner.solve(small_fleet(1, hours))
    table = get_problem(plan.kind).sections(plan)[1]
    assert table.heads[-1].startswith(axis)
    assert max(map(len, str(plan).splitlines())) <= 80
    (signs,) = (cells[-1] for cells in table.cells if cells[0] == "b firm")
    firm, step = plan.answer.plan.on_demand["b"], -(-hours // len(signs))
    most = [max(firm[t : t + step]) for t in range(0, hours, step)]
    assert [sign == "█" for sign in signs] == [each == max(most) for each in most]


def test_a_picture_of_many_models_names_the_largest_and_sums_the_others():
    """No demand is left out."""
    demand = {f"m{i}": [float(i), 2.0 * i] for i in range(1, 21)}
    lines = StackedHours("", "", demand, "", {}).lines()
    assert next(iter(lines)) == "m20"
    assert len(lines) == MAX_LINES + 1
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
