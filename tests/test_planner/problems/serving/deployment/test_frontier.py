"""The frontier of price against speed: exact at every point, shown in every form."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import planner
from planner.cli.app import main
from planner.problems.serving.deployment.frontier import FAST_PRICE, min_tpot, modes
from planner.problems.serving.deployment.questions import double_pools
from planner.problems.serving.frontier_text import frontier_rows, frontier_text
from planner.problems.serving.pairs.pool_pairs import search_pools
from planner.problems.serving.search.batch import fixed_batches
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import TaskPair
from planner.report.pictures.frontier_curve import draw_frontier
from planner.report.pictures.picture_files import frontier_csv
from planner.text.terminal import MARGIN
from planner.text.wording import COLUMNS
from tests.cases.serving import (
    MODELS,
    all_layouts,
    columns,
    one_pool,
    product,
    question,
    within_limits,
)
from tests.loops import for_all
from tests.paths import EXAMPLES

SMALL = {
    "problem": "serving", "units": "base",
    "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 2,
    "price": "$2/hour", "workload": {"input_tokens": 1000, "output_tokens": 200},
}  # fmt: skip
EDGE = 1 + 1e-9
CASES = product(
    model=tuple(sorted(MODELS)),
    estimate=("calibrated", "bound"),
    late=(None, 1.3),
    speculation=(1.0, 3.0),
)


def small(**changes):
    """The small scenario with some of its values replaced."""
    return {**SMALL, **changes}


@pytest.fixture(scope="module")
def answered():
    """The frontier of the small scenario."""
    return planner.pareto(SMALL)


def every_point(task, most):
    """(tpot, price of a request) of all layouts at all batches that keep the other promises."""
    found = []
    for row in all_layouts(task):
        step = Step(task, columns([row]), bound=task.uses_bound)
        batch = np.arange(1.0, most + 1)
        values = step(batch)
        kept = within_limits(task, values)
        shape = kept.shape
        tpot, price = (np.broadcast_to(values[n], shape)[kept] for n in ("tpot", "usd_per_request"))
        found.append(np.stack([tpot, price]))
    return np.concatenate(found, axis=1)


@for_all("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_every_point_is_the_best_of_all_layouts_and_batches(case):
    """At each promised speed: the least price of an exhaustive search, dominated by no plan."""
    task = question(
        MODELS[case["model"]],
        batch=9.0,
        chips=(4,),
        domain=4,
        estimate=case["estimate"],
        positions_per_step=case["speculation"],
        tokens_per_step=1 + 0.6 * (case["speculation"] - 1),
    )
    if case["late"] is not None:
        pool = one_pool(task)
        first = pool.step(np.ones(len(pool.step.layouts)))["ttft"].min()
        task = task.with_layout(promises={"ttft": case["late"] * float(first)})
    tpot, price = every_point(task, 200)
    pool = one_pool(task)
    assert min_tpot(pool) == pytest.approx(tpot.min(), rel=1e-12)
    paces = np.geomspace(tpot.min(), tpot[price.argmin()], 9) * EDGE
    for pace, point in zip(paces, pool.paced(paces), strict=True):
        assert point.score == pytest.approx(price[tpot <= pace].min(), rel=1e-8)
        own = point.candidate.outputs["tpot"]
        assert own <= pace
        assert not (price[tpot <= own * EDGE] < point.score * (1 - 1e-8)).any()


def test_given_batches_leave_the_choice_of_layouts():
    """Where the batch is given, each speed has the cheapest layout that reaches it."""
    task = question(MODELS["sparse"], batch=9.0, chips=(4,), domain=4, batches=(2, 8))
    pool = one_pool(task)
    rows, batch, fill = fixed_batches(pool.step)
    values = pool.step.take(rows)(batch, fill)
    kept = within_limits(task, values)
    tpot, price = values["tpot"][kept], values["usd_per_request"][kept]
    assert min_tpot(pool) == pytest.approx(tpot.min(), rel=1e-12)
    paces = np.geomspace(tpot.min(), tpot.max(), 6) * EDGE
    for pace, point in zip(paces, pool.paced(paces), strict=True):
        assert point.score == pytest.approx(price[tpot <= pace].min(), rel=1e-8)


def pools_of(promises, demand=None, **changes):
    """A small question of two pools."""
    common = {"chips": (6,), "domain": 4, "pooled": True, "batch": 6.0, **changes}
    waits = {} if demand is None else {"arrivals": math.inf}
    first = {k: v for k, v in promises.items() if k == "ttft"}
    second = {k: v for k, v in promises.items() if k != "ttft"}
    model = MODELS["sparse"]
    reads = question(model, mode="prefill", context=1000.0, promises=first, **common, **waits)
    writes = question(model, mode="decode", promises=second, **common)
    return TaskPair(reads, writes, 20e9, 1e-5, together=True, demand=demand)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("promises", "demand", "batches"),
    [({}, None, None), ({"ttft": 0.05}, None, None), ({"e2e": 0.3}, None, None),
     ({"tpot": 0.002, "e2e": 0.3}, None, None), ({}, 5.0, None), ({}, None, (12,)),
     ({"e2e": 0.3}, None, (12,))],
)  # fmt: skip
def test_promises_searched_at_once_find_what_each_finds_alone(promises, demand, batches):
    """Two pools at many speeds: the pairs that a search for each speed by itself finds."""
    pools = pools_of(promises, demand)
    pools = replace(pools, decode=pools.decode.with_layout(batches=batches))
    found = double_pools([pools])[0]
    reading, decoding = found.steps
    paces = np.geomspace(min_tpot(found), 3 * min_tpot(found), 4) * EDGE
    for pace, point in zip(paces, found.paced(paces), strict=True):
        promising = replace(pools, decode=pools.decode.promising(float(pace)))
        alone, _ = search_pools(promising, reading, decoding)
        assert point.score == pytest.approx(alone[0].score, rel=1e-9)
        assert point.candidate.last.chosen_by["tpot"] <= pace * EDGE
    if demand is None:
        assert found.paced(paces[:1] * (1 - 1e-6)) == [None]


def test_a_faster_plan_is_never_cheaper(answered):
    """Along the frontier speed falls and so does the price, strictly."""
    rows = answered.rows
    assert len(rows) > 10
    for faster, slower in pairwise(rows):
        assert faster["tokens_per_s_per_user"] > slower["tokens_per_s_per_user"]
        assert faster["usd_per_mtok"] > slower["usd_per_mtok"]


def test_the_cheapest_end_is_what_solve_answers(answered):
    """The last point is the plan of the same scenario at the least cost."""
    plan = planner.solve(SMALL)
    assert answered.rows[-1]["usd_per_mtok"] == pytest.approx(plan.cost, rel=1e-12)
    assert answered.document["points"][-1]["plan"] == plan.document["plan"]
    assert answered.document["points"][-1]["bound"] == plan.document["bound"]


def test_each_point_is_what_solve_answers_at_its_speed(answered):
    """A promise on TPOT equal to a point's own, kept by its estimate, gives that point's price."""
    for place in (0, 3, 9):
        row = answered.rows[place]
        plan = planner.solve(small(promises={"tpot": row["tpot"] * EDGE, "chance": 0.01}))
        assert plan.cost == pytest.approx(row["usd_per_mtok"], rel=1e-9)


@pytest.mark.slow
def test_promises_hold_along_the_frontier():
    """Every plan keeps TTFT and TPOT; a tighter TTFT never makes a speed cheaper."""
    tight = planner.pareto(small(promises={"ttft": "50 ms", "tpot": "20 ms"}))
    assert all(row["ttft"] <= 0.05 and row["tpot"] <= 0.02 for row in tight.rows)
    for row in tight.rows[::4]:
        promises = {"ttft": "80 ms", "tpot": row["tpot"] * EDGE, "chance": 0.01}
        loose = planner.solve(small(promises=promises))
        assert loose.cost <= row["usd_per_mtok"] * EDGE


@pytest.mark.slow
def test_a_given_load_is_carried_at_every_speed():
    """With demand each plan serves it; more speed needs more chips."""
    load = {"input_tokens": 1000, "output_tokens": 200, "demand": "10 requests/s"}
    found = planner.pareto(small(workload=load, chips=[1, 2, 4]), points=7)
    plans = [point["plan"] for point in found.document["points"]]
    assert all(plan["requests_per_s"] == pytest.approx(10) for plan in plans)
    chips = [plan["chips"] for plan in plans]
    assert chips == sorted(chips, reverse=True)
    assert found.document["ends"]["cheapest"] == {"binds": ["demand"]}


def test_given_replicas_of_a_load_reach_the_fastest_plan():
    """More chips carry the load with less in flight only where replicas may be more."""
    sets = ["choose.mode=aggregated", "workload.demand=1 requests/s", "chips={from: 1, to: 16}",
            "choose.replicas=1"]  # fmt: skip
    file = EXAMPLES / "serve-llama-70b-fast.yaml"
    fastest = planner.pareto(file, sets, points=8).plans[0]
    quickest = planner.solve(file, [*sets, "objective=latency"])
    assert fastest["tpot"] <= quickest.tpot * EDGE


def test_marks_are_the_fast_the_normal_and_the_slow_mode():
    """Slow is the cheapest; normal has the least price times time; fast costs six times normal."""
    pairs = ((1, 30.0), (2, 11.0), (3, 2.0), (5, 1.9))
    plans = [SimpleNamespace(tpot=time, usd_per_mtok=price) for time, price in pairs]
    assert modes(plans) == {"fast": 1, "normal": 2, "slow": 3}
    assert plans[1].usd_per_mtok <= FAST_PRICE * plans[2].usd_per_mtok
    assert modes(plans[:1]) == {"fast": 0, "normal": 0, "slow": 0}


def test_the_lecture_ends_at_its_critical_batch():
    """With caches of no size every batch below the critical one takes the same time: one plan."""
    found = planner.pareto(EXAMPLES / "lecture.yaml")
    assert [row["batch"] for row in found.rows] == [2400]
    assert found.document["ends"] == {
        "fastest": {"batch_per_replica": 2400, "step": pytest.approx(0.1 / 180),
                    "shares": {"memory": pytest.approx(1.0), "compute": pytest.approx(1.0)}},
        "cheapest": {"binds": []},
    }  # fmt: skip
    assert "one plan is the fastest and the cheapest" in str(found)


def test_the_reasons_of_both_ends(answered):
    """A step of the fastest plan adds up; one sequence more does not fit beside the cheapest."""
    ends = answered.document["ends"]
    assert sum(ends["fastest"]["shares"].values()) == pytest.approx(1)
    assert ends["fastest"]["step"] == pytest.approx(answered.rows[0]["tpot"])
    assert "memory" in ends["cheapest"]["binds"]
    tight = planner.pareto(small(promises={"tpot": "10 ms"}), points=3)
    assert "tpot" in tight.document["ends"]["cheapest"]["binds"]
    assert "promises.tpot=null" in str(tight)


@pytest.mark.parametrize("width", [120, 80, 60])
def test_the_table_fits_the_terminal(answered, width):
    """No line is wider than the terminal, and no column is lost."""
    token = COLUMNS.set(width - MARGIN)
    shown = frontier_text(answered.answer)
    COLUMNS.reset(token)
    assert max(map(len, shown.splitlines())) <= width
    assert all(
        head in shown for head in ("tok/s per user", "$/Mtok", "TPOT", "users", "TTFT", "layout")
    )
    for name in ("fast", "normal", "slow"):
        assert name in shown


def test_a_frontier_shows_itself(answered):
    """A readable repr, rows of plain values, HTML without a tag of the scenario's own."""
    assert repr(answered).startswith(f"<Pareto of {len(answered.rows)} plans: ")
    assert str(answered) == frontier_text(answered.answer)
    assert "&#x27;" not in answered._repr_html_() or "<script" not in answered._repr_html_()
    kinds = {type(value) for row in answered.rows for value in row.values()}
    assert kinds <= {str, int, float, type(None)}
    assert {row["mark"] for row in answered.rows} >= {"slow"}


def test_rows_as_csv(answered):
    """The header names the columns, the numbers are those of the rows."""
    rows = list(csv.DictReader(io.StringIO(frontier_csv(answered))))
    assert [float(row["usd_per_mtok"]) for row in rows] == [
        row["usd_per_mtok"] for row in frontier_rows(answered.answer)
    ]


@pytest.mark.parametrize(("form", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])  # fmt: skip
def test_a_picture_is_the_same_every_time(answered, form, start):
    """Twice the same bytes, of the kind asked for, and no date in them."""
    pytest.importorskip("matplotlib")
    first = draw_frontier(answered.document, form)
    assert first == draw_frontier(answered.document, form)
    assert first.startswith(start)
    assert b"<dc:date>" not in first


def test_a_picture_of_one_point():
    """A frontier of a single plan, chosen on the bound, is drawn too."""
    pytest.importorskip("matplotlib")
    found = planner.pareto(EXAMPLES / "lecture.yaml")
    assert draw_frontier(found.document, "svg").startswith(b"<?xml")


def ran(arguments, capsys):
    """Exit status, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    shown = capsys.readouterr()
    return int(exit_.value.code or 0), shown.out, shown.err


@pytest.fixture
def scenario(tmp_path):
    """The small scenario in a file."""
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL), encoding="utf-8")
    return str(path)


def test_the_command_prints_a_table_or_one_document(scenario, capsys):
    """Text, or the JSON document of the library, and nothing beside it."""
    status, text, _ = ran(["pareto", scenario, "--quiet"], capsys)
    assert status == 0
    assert "tok/s per user" in text
    status, out, _ = ran(["pareto", scenario, "--json", "--points", "4"], capsys)
    document = json.loads(out)
    # A plainer plan stands for one that is up to 0.1 % cheaper.
    assert (status, document["status"]) == (0, "feasible")
    assert document["gap"] == pytest.approx(0.001 / 1.001)
    assert 1 <= len(document["points"]) <= 4
    assert set(document["points"][0]) == {"plan", "band", "outside", "bound", "estimate"}


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.txt", "a.svg"])
def test_the_ending_of_a_file_says_its_form(scenario, tmp_path, capsys, name):
    """`--out` writes the form that the name ends in."""
    if name.endswith("svg"):
        pytest.importorskip("matplotlib")
    status, _, _ = ran(["pareto", scenario, "--points", "3", "--out", str(tmp_path / name)], capsys)
    assert status == 0
    assert (tmp_path / name).stat().st_size > 100


def test_nothing_feasible_is_an_answer(scenario, tmp_path, capsys):
    """Exit status 1, the promises that fall short, a document without points, no picture."""
    pytest.importorskip("matplotlib")
    asked = ["pareto", scenario, "--set", "promises.tpot=1 ms"]
    status, out, _ = ran([*asked, "--json"], capsys)
    document = json.loads(out)
    assert (status, document["status"], document["points"]) == (1, "infeasible", [])
    assert document["infeasible"][0]["promise"] == "tpot"
    picture = tmp_path / "a.svg"
    status, text, said = ran([*asked, "--out", str(picture)], capsys)
    assert status == 1
    assert "times too slow" in text
    assert "not drawn" in said
    assert not picture.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "choose.mode=prefill"], "no speed of its own"),
        (["--points", "1"], "is not between 2 and 1000"),
        (["--out", "frontier.gif"], "ends in one of"),
        (["--out", "."], "ends in one of"),
        (["--set", "promises.tpott=1"], "did you mean"),
    ],
)
def test_what_cannot_be_drawn_is_a_mistake(scenario, capsys, arguments, told):
    """Exit status 2 and one message, before anything is computed."""
    status, _, said = ran(["pareto", scenario, *arguments], capsys)
    assert status == 2
    assert told in said


def test_a_missing_library_is_named(scenario, tmp_path, capsys, monkeypatch, answered):
    """Without Matplotlib the message says what brings it; everything else works."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, said = ran(["pareto", scenario, "--out", str(tmp_path / "a.png")], capsys)
    assert status == 2
    assert "pip install 'token-planner[plot]'" in said
    with pytest.raises(planner.PlannerError, match=r"token-planner\[plot\]"):
        draw_frontier(answered.document, "svg")
    assert ran(["pareto", scenario, "--points", "3", "--quiet"], capsys)[0] == 0


def test_the_example_prints_the_output_beside_it():
    """The lecture's menu: at s times the speed the price is (1 - w)/(1 - s w) times the normal."""
    script = EXAMPLES / "price-of-speed.py"
    run = subprocess.run([sys.executable, "-W", "error", str(script)], capture_output=True,
                         text=True, encoding="utf-8", check=False)  # fmt: skip
    assert run.stderr == ""
    assert run.stdout == script.with_suffix(".txt").read_text(encoding="utf-8")
    menu = [line.split() for line in run.stdout.splitlines()[-7:]]
    assert all(price == formula for _, price, formula in menu)
