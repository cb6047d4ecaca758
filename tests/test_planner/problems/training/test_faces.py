"""Every face works for a training question: text, JSON, reasons, slopes, sweeps, frontiers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import planner
from planner.cli import main
from planner.problems.training.problem import nondominated_points
from planner.scenario import load
from planner.scenario.kinds import starter
from planner.sensitivity.elasticities import elasticity_table
from tests.cases.training import SMALL, asked


@pytest.fixture
def file(tmp_path) -> str:
    """A small question as a file; JSON is YAML."""
    path = tmp_path / "training.yaml"
    path.write_text(json.dumps(asked(SMALL)), encoding="utf-8")
    return str(path)


def said(capsys, *words: str) -> str:
    """What a command prints."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    printed = capsys.readouterr()
    assert not end.value.code, printed.err
    return printed.out


def test_text_is_narrow_and_json_has_the_keys(capsys, file):
    """At most 80 columns; the keys of the plan as documented."""
    text = said(capsys, "solve", file, "--why")
    assert max(map(len, text.splitlines())) <= 80
    assert "mfu = " in text
    document = json.loads(said(capsys, "solve", file, "--json"))
    assert list(document)[:3] == ["schema", "problem", "status"]
    keys = (
        "layout step_time tokens_per_s tokens_per_s_per_chip mfu hfu bubble days usd usd_per_mtok "
        "energy goodput checkpoint_interval memory_per_chip time_per_step"
    )
    assert set(keys.split()) <= document["plan"].keys()
    parts = "band bound certificate alternatives binding"
    assert set(parts.split()) <= document.keys()
    schema = json.loads(said(capsys, "schema", "--answer", "training"))
    assert schema["$defs"]["TrainingPoint"]["properties"]["step_time"]["unit"] == "s"


def test_a_starter_is_answered(tmp_path, capsys):
    """`planner init training` writes a question that has an answer."""
    path = tmp_path / "mine.yaml"
    path.write_text(starter("training"), encoding="utf-8")
    said(capsys, "check", str(path))
    assert planner.solve(path).feasible


@pytest.mark.slow
def test_slopes_are_those_of_solving_again():
    """What one percent does, layout held, against solving again with nothing held."""
    reliability = {"mtbf": "500 hours/chip", "save": "60 s", "restart": "10 minutes"}
    table = elasticity_table(asked(SMALL, reliability=reliability), switches=False)
    rows = {row.path: row for row in table.rows}
    assert rows["price"].right == pytest.approx(1.0, abs=1e-6)
    for path in ("price", "reliability.mtbf", "reliability.save", "system.flops.bf16"):
        row = rows[path]
        (held,) = (each for each in row.beside if each.method == "slope")
        assert row.right == pytest.approx(held.right, abs=1e-3)


def test_a_sweep_has_a_row_for_every_number_of_chips(capsys, file, tmp_path):
    """Twice the chips take about half of the days, and never less money."""
    table = planner.sweep(asked(SMALL), over=["chips=8,16,32"])
    days = table["days"]
    assert list(days) == sorted(days, reverse=True)
    out = tmp_path / "rows.csv"
    said(capsys, "sweep", file, "--over", "price=$2/hour,$4/hour", "--out", str(out))
    assert len(Path(out).read_text(encoding="utf-8").splitlines()) == 3


def test_days_against_dollars(capsys, tmp_path):
    """The frontier falls, has the fastest and the cheapest plan, and keeps what a limit would."""
    question = asked(SMALL, chips=[8, 16, 32], power_price="$0.1/kWh")
    curve = planner.pareto(question)
    days = [row["days"] for row in curve.rows]
    usd = [row["usd"] for row in curve.rows]
    assert days == sorted(days)
    assert usd == sorted(usd, reverse=True)
    fastest = planner.solve(asked(question, objective="time")).answer.plan
    cheapest = planner.solve(asked(question, objective="cost")).answer.plan
    assert days[0] == pytest.approx(fastest.days)
    assert usd[-1] == pytest.approx(cheapest.usd)
    limited = planner.solve(asked(question, objective="cost", limits={"days": days[1]}))
    assert limited.answer.plan.usd == pytest.approx(usd[1])


def test_points_that_nothing_betters_by_exhaustion():
    """Of points at random, those that no other is as good as in both and better in one."""
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 30, (2, 200)).astype(float)
    kept_places = set(nondominated_points(x, y).tolist())
    best = {
        (x[i], y[i]) for i in range(200)
        if not any((x[j] <= x[i] and y[j] < y[i]) or (x[j] < x[i] and y[j] <= y[i])
                   for j in range(200))
    }  # fmt: skip
    assert {(x[i], y[i]) for i in kept_places} == best


def test_sets_of_the_command_line():
    """Paths below a system that was only named, and a list in place of a number."""
    question = load(asked(SMALL), ["system.memory=60 GB", "choose.zero=[0, 1]", "chips=16"])
    point = planner.solve(question).answer.plan
    assert point.memory_per_chip.total <= 60e9
    assert point.layout.zero in (0, 1)
    assert point.chips == 16
