"""`planner diff`: what changed, and parts that sum to the whole, of every kind."""

from __future__ import annotations

import json
import random
from itertools import permutations

import pytest

import planner
from planner.cli import main
from planner.comparison.price_difference import difference, in_order, shapley
from planner.protocol.problem import search
from planner.scenario import kinds, load
from planner.text.errors import InputError
from planner.text.quantities import MONTH_HOURS
from tests.loops import for_all
from tests.paths import EXAMPLES

TOY = {"problem": "toy", "promise": "40 ms"}


@pytest.fixture
def _toy(monkeypatch):
    """The toy kind has the face too."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")


def printed(capsys, *words: str) -> tuple[int, str, str]:
    """Exit status, standard output and error of a command."""
    with pytest.raises(SystemExit) as end:
        main([*words])
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out, out.err


def whole_is_sum(document) -> None:
    """The parts of a split difference sum to it, in both numbers."""
    for part, whole in (("cost", "difference"), ("usd_per_month", "usd_per_month")):
        if document[whole] is not None:
            parts = sum(row[part] for row in document["changes"])
            assert parts == pytest.approx(document[whole], rel=1e-9, abs=1e-9)


@pytest.mark.usefixtures("_toy")
def test_parts_are_the_mean_over_orders_of_searches_made_by_hand():
    """Rent, weights and promise of the toy, every order of them searched one by one."""
    after = {"rent": "$5/hour", "weights": "70 GB", "promise": "90 ms"}
    sums = dict.fromkeys(after, 0.0)
    orders = list(permutations(after))
    for order in orders:
        scenario = dict(TOY)
        price = search(load(scenario)).outputs["price"]
        for key in order:
            scenario[key] = after[key]
            new = search(load(scenario)).outputs["price"]
            sums[key] += (new - price) / len(orders)
            price = new
    document = difference(TOY, {**TOY, **after}).document
    assert document["method"] == "shapley"
    assert document["orders"] == len(orders)
    for row in document["changes"]:
        assert row["cost"] == pytest.approx(sums[row["keys"][0]], rel=1e-9, abs=1e-12)
    whole_is_sum(document)


@pytest.mark.usefixtures("_toy")
def test_units_do_not_count_as_changes_and_values_are_in_base_units():
    """40 ms is 0.04; a key that is written out as its default has not changed."""
    assert not difference(TOY, {**TOY, "promise": "0.04 s", "weights": "141 GB"}).changes
    (row,) = difference(TOY, {**TOY, "promise": "60 ms"}).changes
    assert (row.before, row.after, row.units) == ((0.04,), (0.06,), ("s",))


@pytest.mark.usefixtures("_toy")
def test_a_side_without_plan_says_what_falls_short(capsys, tmp_path):
    """Exit status 1, no split, the keys all the same."""
    files = [tmp_path / name for name in ("a.yaml", "b.yaml")]
    files[0].write_text("problem: toy\npromise: 40 ms\n", "utf-8")
    files[1].write_text("problem: toy\npromise: 1 ms\n", "utf-8")
    status, text, _ = printed(capsys, "diff", *map(str, files))
    assert status == 1
    assert "misses promise by a factor of" in text
    document = json.loads(printed(capsys, "diff", *map(str, files), "--json")[1])
    assert document["difference"] is None
    assert [row["keys"] for row in document["changes"]] == [["promise"]]


def test_budgets_are_compared_in_their_own_objective():
    """Two budgets: the cost of the whole, with no month of it."""
    file = EXAMPLES / "budget-70b-quality.yaml"
    before = planner.solve(file)
    document = difference(
        file, {**before.scenario, "inference": {"tokens": 1e14}, "data": {"unique": 20e12}}
    ).document
    assert document["of"] == "cost.total.usd"
    assert document["before"]["value"] == pytest.approx(before.cost, rel=1e-9)
    assert document["usd_per_month"] is None
    assert len(document["changes"]) == 2
    whole_is_sum(document)


def test_more_than_ten_changes_go_in_file_order(tmp_path):
    """A lecture's scenario with nearly everything changed; said, and summed all the same."""
    before = planner.load(EXAMPLES / "lecture.yaml")
    plain = planner.solve(before).scenario
    changed = json.loads(json.dumps(plain))
    changed["system"] |= {"memory": 290e9, "memory_bandwidth": 2.1e13, "chips_per_domain": 144}
    changed["system"]["flops"] = {"bf16": 6.1e15, "fp8": 6.2e15}
    changed["price"] *= 1.1
    changed["workload"] |= {"routing_skew": 1.1, "input_tokens": 900.0}
    changed["model"] |= {"total_params": 8.1e11, "active_params": 1.01e11}
    changed["model"]["bytes_per_weight"] = 1.01
    changed["workload"]["output_tokens"] *= 1.5
    changed["promises"]["tpot"] = 1.0
    file = tmp_path / "b.json"
    file.write_text(json.dumps(changed), "utf-8")
    result = difference(before, file)
    assert result.method == "file order"
    assert len(result.changes) > 10
    assert "file order" in str(result)
    whole_is_sum(result.document)


@pytest.mark.slow
def test_a_load_is_billed_by_the_month_and_a_saved_answer_is_a_side(tmp_path):
    """The bill of a month at the demand is that of the hours; answers compare as scenarios do."""
    file = EXAMPLES / "carry-a-load.yaml"
    plan = planner.solve(file, ["workload.demand=30 requests/s", "price=$4/hour"])
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps(plan.document), "utf-8")
    document = difference(file, saved).document
    assert not document["warnings"]
    assert document["after"]["value"] == pytest.approx(plan.cost, rel=1e-9)
    month = plan.chosen["usd_per_hour"] * MONTH_HOURS
    assert document["after"]["usd_per_month"] == pytest.approx(month, rel=1e-9)
    tokens = 30 * (3000 + 600) * 3600 * MONTH_HOURS
    assert month == pytest.approx(plan.cost * tokens / 1e6, rel=1e-9)
    whole_is_sum(document)
    stale = json.loads(saved.read_text("utf-8"))
    stale["plan"]["usd_per_mtok"] *= 1.5
    saved.write_text(json.dumps(stale), "utf-8")
    assert "this version answers" in difference(file, saved).warnings[0]


def test_two_kinds_are_not_compared(capsys):
    """A budget and a serving plan answer different questions."""
    with pytest.raises(InputError, match="different questions"):
        difference(EXAMPLES / "budget-70b-quality.yaml", EXAMPLES / "lecture.yaml")
    status, _, err = printed(capsys, "diff", str(EXAMPLES / "lecture.yaml"), "none.yaml")
    assert status == 2
    assert "no such file" in err


def over_orders(count: int, values: dict[int, list[float] | None]) -> tuple[list[float], int]:
    """The mean of what each change adds over all orders of which every step has a value."""
    sums, orders = [0.0] * count, 0
    for order in permutations(range(count)):
        have, steps = 0, []
        for change in order:
            first, second = values[have], values[have | 1 << change]
            if first is None or second is None:
                break
            steps.append((change, second[0] - first[0]))
            have |= 1 << change
        else:
            orders += 1
            for change, step in steps:
                sums[change] += step
    return [each / orders for each in sums] if orders else [], orders


@for_all("seed", range(30))
def test_the_mean_is_that_over_every_order(seed):
    """Random games of up to five changes, some sets of which have no value."""
    rng = random.Random(seed)
    count = rng.randint(1, 5)
    holes = rng.choice([0.0, 0.2, 0.4])
    values: dict[int, list[float] | None] = {
        one: None if rng.random() < holes else [rng.uniform(-5, 5), rng.uniform(0, 1e6)]
        for one in range(1 << count)
    }
    values[0], values[(1 << count) - 1] = [1.0, 2.0], [rng.uniform(0, 9), 7.0]
    expected, orders = over_orders(count, values)
    split = shapley(count, values)
    if not orders:
        assert split is None
        return
    assert split is not None
    assert split.orders == orders
    assert [part[0] for part in split.parts] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for number in range(2):
        whole = values[(1 << count) - 1][number] - values[0][number]  # type: ignore[index]
        assert sum(part[number] for part in split.parts) == pytest.approx(whole, rel=1e-9, abs=1e-9)


def test_changes_that_multiply_share_alike():
    """A price times a rate: both doubled, three more, one and a half each."""
    split = shapley(2, {0: [1.0], 1: [2.0], 2: [2.0], 3: [4.0]})
    assert split is not None
    assert split.parts == ((1.5,), (1.5,))


def test_in_order_takes_together_what_has_no_value_alone():
    """The second change leaves no plan until the third is made."""
    values = {0: [1.0], 1: [3.0], 3: None, 7: [4.0]}
    split = in_order(3, values.__getitem__)
    assert split.groups == ((0,), (1, 2))
    assert split.parts == ((2.0,), (1.0,))
