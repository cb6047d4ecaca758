"""As a library: what the interface shows runs, and says what it is said to say."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import pytest

import planner
from planner.problems.serving.point import layout_text
from tests.paths import ROOT

EXAMPLE = ROOT / "examples" / "serve-deepseek-v3-h200.yaml"
SMALL = {
    "problem": "serving",
    "model": "llama-3.1-8b",
    "system": "hgx-h100",
    "chips": 2,
    "price": "$2.50/hour",
    "workload": {"input_tokens": 500, "output_tokens": 100},
    "promises": {"ttft": "2 s", "tpot": "50 ms"},
}


@pytest.fixture(scope="module")
def plan() -> planner.Plan:
    """The plan of a small question."""
    return planner.solve(SMALL)


def test_a_file_a_mapping_and_a_scenario_are_answered_alike(tmp_path, plan):
    """The source does not matter."""
    file = tmp_path / "s.json"
    file.write_text(json.dumps(SMALL), encoding="utf-8")
    scenario = planner.load(SMALL)
    assert isinstance(scenario, planner.Scenario)
    for source in (file, str(file), scenario):
        assert planner.solve(source).document["plan"] == plan.document["plan"]


def test_the_example_of_the_interface_is_answered():
    """By a path relative to the repository."""
    found = planner.solve(str(EXAMPLE))
    assert found.feasible
    assert found.document["plan"]["chips"] == 32


def test_a_plan_says_what_it_costs_and_how_it_is_laid_out(plan):
    """cost, layout, batch, why: attributes, not digging in a document."""
    assert plan.cost == plan.document["plan"]["usd_per_mtok"]
    assert plan.layout == plan.document["plan"]["layout"]
    assert plan.batch == plan.document["plan"]["batch"]
    assert "Closed form" in plan.why()
    assert plan.bound.usd_per_mtok <= plan.cost


def test_a_plan_shows_itself(plan):
    """A line for the prompt, the answer when printed, HTML in a notebook."""
    assert repr(plan).startswith("<Plan serving: ")
    assert "\n" not in repr(plan)
    assert f"${plan.cost:.4g}/Mtok" in repr(plan)
    assert layout_text(plan.point) in repr(plan)
    assert "memory per chip" in plan.text("more")
    html = plan._repr_html_()
    assert html.startswith("<")
    assert "memory per chip" in html


def test_a_plan_of_any_kind_has_its_quantities_as_attributes():
    """By their names in the JSON; a name that is none says which there are, and a copy works."""
    plan = copy.copy(planner.solve(ROOT / "examples/schedule-departing-train.yaml"))
    assert plan.mean == plan.document["plan"]["mean"] == pickle.loads(pickle.dumps(plan)).mean
    with pytest.raises(AttributeError, match="this schedule plan has no meen; did you mean 'mean'"):
        plan.meen  # noqa: B018
    with pytest.raises(AttributeError, match=r"this schedule plan has no xyzzy \(it has .*mean"):
        plan.xyzzy  # noqa: B018


def test_a_name_misspelt_is_told_the_quantity_that_is_meant(plan):
    """Of what every plan has, and of what this kind alone does."""
    for wrong, right in (("tpott", "tpot"), ("statsu", "status"), ("usd_per_mtk", "usd_per_mtok")):
        with pytest.raises(AttributeError, match=f"has no {wrong}; did you mean '{right}'"):
            getattr(plan, wrong)


def test_a_plan_of_a_kind_is_asked_for_by_its_type():
    """Another kind is refused before anything is solved."""
    file = ROOT / "examples/schedule-departing-train.yaml"
    assert type(planner.solve(file, kind=planner.SchedulePlan)) is planner.SchedulePlan
    words = "problem: schedule is answered by a SchedulePlan, not by a ServingPlan"
    with pytest.raises(planner.InputError, match=words):
        planner.solve(file, kind=planner.ServingPlan)


@pytest.mark.slow
def test_the_snippet_of_the_readme_is_typed(tmp_path):
    """A strict mypy passes it, knows what `tpot` is, and that a plan of serving has no `tpott`."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    file = tmp_path / "snippet.py"
    file.write_text(f"{code}\nreveal_type(plan.tpot)\nplan.tpott\n", "utf-8")
    words = ["--config-file", str(ROOT / "pyproject.toml"), "--strict", "--follow-imports=silent"]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *words, str(file)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    notes = [line.partition("snippet.py:")[2] for line in run.stdout.splitlines()]
    line = code.count("\n") + 2
    assert notes[:2] == [
        f'{line}: note: Revealed type is "float | None"',
        f'{line + 1}: error: "ServingPlan" has no attribute "tpott"; maybe "tpot"?  [attr-defined]',
    ]
    assert "Found 1 error in 1 file" in run.stdout


def test_a_plan_cannot_be_changed(plan):
    """Neither its fields nor its layout."""
    with pytest.raises(AttributeError):
        plan.document = {}
    with pytest.raises(TypeError):
        plan.layout["tp"] = 3


def test_an_infeasible_plan_shows_what_falls_short():
    """No plan, no cost; which promise, and by how much."""
    found = planner.solve(SMALL, sets=["promises.tpot=1 us"])
    assert (found.status, found.cost, dict(found.layout)) == ("infeasible", None, {})
    assert "tpot" in repr(found)
    assert "times too slow" in str(found)
    assert found.infeasible[0].short_by > 1
    assert "TPOT" in found.why()


def test_sensitivity_is_a_mapping_that_prints_as_a_table(plan):
    """{quantity: elasticity}, largest first; the price per chip hour is proportional."""
    found = planner.sensitivity(plan)
    assert isinstance(found, Mapping)
    assert found["price"] == pytest.approx(1, abs=1e-3)
    sizes = [abs(value) for value in found.values()]
    assert sizes == sorted(sizes, reverse=True)
    lines = str(found).splitlines()
    assert len(lines) == len(found)
    assert lines[0].split()[0] == next(iter(found))


def test_sensitivity_stays_a_function(plan):
    """Though a module bears its name: asked twice, and after the module was imported."""
    import planner.sensitivity

    assert planner.sensitivity(plan) == planner.sensitivity(plan)
    assert planner.solve(SMALL).cost == plan.cost


def test_elasticities_are_slopes_of_the_solved_cost(plan):
    """Against solving again on either side; the batch is whole there, so only nearly."""
    step, units = 0.05, {"price": "USD/s", "system.memory_bandwidth": "B/s"}

    def cost(path: str, value: float) -> float:
        again = planner.solve(SMALL, sets=[f"{path}={value} {units[path]}"]).cost
        assert again is not None
        return again

    for path, base in (("price", 2.5 / 3600), ("system.memory_bandwidth", 3.35e12)):
        slope = (
            math.log(cost(path, base * (1 + step)) / cost(path, base * (1 - step)))
            / math.log((1 + step) / (1 - step))
        )  # fmt: skip
        assert planner.sensitivity(plan)[path] == pytest.approx(slope, abs=0.06), path


def test_mistakes_are_raised_together_with_their_places():
    """One error; each mistake with path and message."""
    with pytest.raises(planner.InputError) as caught:
        planner.solve(SMALL | {"chips": -1, "objectve": "cost"})
    paths = {mistake.path for mistake in caught.value.mistakes}
    assert paths == {"chips", "objectve"}
    assert "did you mean 'objective'?" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_equations_are_objects():
    """LaTeX, a check, and a card in a notebook."""
    from formulas import critical_batch, step_time

    assert critical_batch.check()
    assert "\\frac" in critical_batch.latex()
    assert step_time._repr_latex_().startswith("$")


def test_equations_are_vectorised():
    """f(B, L_ctx, **others) on arrays: the larger of two roofs, point by point."""
    from formulas import step_time

    f = step_time.numpy("B", "L_ctx")
    B, L_ctx = np.array([1.0, 64.0, 4096.0])[:, None], np.array([0.0, 8000.0])[None, :]
    given = {"N_active": 37e9, "N_total": 671e9, "c_fwd": 2, "m_pos": 1, "b_w": 1, "b_kv": 70e3,
             "F": 8e15, "W": 27e12}  # fmt: skip
    times = f(B, L_ctx, **given)
    compute = B * 37e9 * 2 / 8e15 + 0 * L_ctx
    memory = (671e9 + B * L_ctx * 70e3) / 27e12
    np.testing.assert_allclose(times, np.maximum(compute, memory))


def test_a_missing_symbol_is_named():
    """With its meaning; nothing is assumed."""
    from formulas import step_time

    f = step_time.numpy("B", "L_ctx")
    with pytest.raises((TypeError, ValueError), match=r"'W' .memory bandwidth"):
        f(64, 8000, N_active=37e9, N_total=671e9, c_fwd=2, m_pos=1, b_w=1, b_kv=70e3, F=8e15)


def test_a_torus_is_a_graph():
    """Every chip has two neighbours a dimension; links carry their rate and latency."""
    import networkx as nx

    import topologies

    G = topologies.torus((4, 4, 4), link=45e9, latency=1e-6)
    assert isinstance(G, nx.DiGraph)
    assert all(G.out_degree(chip) == 6 for chip in G)
    assert G.number_of_nodes() == 64


def test_libraries_are_typed():
    """Each package carries the marker that type checkers look for."""
    for package in ("planner", "formulas", "topologies"):
        assert (ROOT / package / "py.typed").is_file()


def test_a_plan_is_made_in_a_fresh_process_without_warnings():
    """As a script would, with every warning an error."""
    script = f"import planner; print(repr(planner.solve({SMALL!r})))"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("<Plan serving: ")
