"""What export writes and import reads is the plan again: layout, formats, memory, times, price."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.architecture.counts import model_sizes
from planner.catalogue import models
from planner.engines import ENGINES, export
from planner.engines.imported import ImportedScenario, scenario_from_launch
from planner.problems.serving.advice.current_layout import current_layout
from planner.problems.serving.task.resolve import resolve
from planner.text.errors import Infeasible, InputError
from tests.cases.launches import question
from tests.sizes import first, seldom

AXES = ("tp", "pp", "cp", "dcp", "dp_attention", "ep", "tp_expert", "overlap", "replicas")


def read_back(
    plan: planner.Plan, engine: str, asked: Mapping[str, Any], folder: Path
) -> ImportedScenario:
    """The scenario that the scripts of a plan are read as; what no launch says is said again.

    Of two pools the manifests, which say how many replicas each has.
    """
    scripts, two = [], not plan.chosen["layout"]
    written = export(plan, "kubernetes", engine) if two else export(plan, engine)
    for name, text in written.files.items():
        (folder / name).write_text(text, "utf-8")
        scripts += [folder / name] if name.endswith((".sh", "kubernetes.yaml")) else []
    keys = ("system", "price", "workload", "speculation")
    sets = [f"{key}={json.dumps(asked[key])}" for key in keys if key in asked]
    layout = plan.chosen["layout"]
    return scenario_from_launch(scripts, sets, layout and layout["replicas"])


def round_trips(seed: int, folder: Path) -> int:
    """How many engines a random plan was written for and read back from, each time the same."""
    asked, count = question(seed), 0
    try:
        plan = planner.solve(asked)
    except InputError:
        return 0
    charged = plan.chosen["engines"][:1] if plan.feasible and asked["engine"] == "any" else ENGINES
    for engine in ENGINES if plan.feasible else ():
        if asked["engine"] not in ("any", engine) or engine not in charged:
            continue  # another takes other memory
        try:
            data = read_back(plan, engine, asked, folder).data
        except Infeasible:
            continue
        is_the_plan(plan.chosen, data, asked)
        solves_to_the_plan(plan.chosen, data, asked)
        count += 1
    return count


def solves_to_the_plan(
    chosen: Mapping[str, Any], data: Mapping[str, Any], asked: Mapping[str, Any]
):
    """What was read has the same plan, memory and price, of the choices that were open before.

    Windows keep the tokens of a step, and a pool that decodes lets in a prompt: of a plan its chunk
    counts, of a launch the answers beside it too, which may leave room for fewer sequences.
    """
    again = {**data, "engine": asked["engine"], "chips": asked["chips"]}
    if chosen["layout"]:
        chunk = data["current"].get("chunk")
        again["choose"] = asked["choose"] | ({"chunk": chunk} if chunk else {})
    plan = planner.solve(again).chosen
    same = chosen["layout"] and not windows(asked["model"])
    for role in ("",) if chosen["layout"] else ("prefill", "decode"):
        before, after = (x[role] if role else x for x in (chosen, plan))
        assert after["layout"] == before["layout"]
        assert (after["weights"], after["kv"]) == (before["weights"], before["kv"])
        memory, capacity = after["memory_per_chip"], before["memory_per_chip"]["capacity"]
        margin = (1e-3 if same else 2e-2) * capacity
        assert memory == pytest.approx(before["memory_per_chip"], abs=margin)
    for key in ("batch", "usd_per_mtok"):
        assert plan[key] == pytest.approx(chosen[key], rel=1e-9 if same else 3e-2)


def windows(model: str) -> bool:
    """Whether some layers keep a window of the context alone."""
    return any(x.limit for x in model_sizes(models.load(model)).caches)


def is_the_plan(chosen: Mapping[str, Any], data: Mapping[str, Any], asked: Mapping[str, Any]):
    """Layouts, share and model are those of the plan; memory and times too, but for a batch."""
    assert data["model"] == asked["model"]
    if not chosen["layout"]:
        for role in ("prefill", "decode"):
            layout, again = chosen[role]["layout"], data["choose"][role]
            assert {x: again[x] for x in AXES if x in again and x != "replicas"} == {
                x: layout[x] for x in AXES if x in again and x != "replicas"
            }
        return
    assert data["memory_utilisation"] == asked["memory_utilisation"]
    assert data["max_num_seqs"] == -(
        -chosen["batch_per_replica"] // chosen["layout"]["dp_attention"]
    )
    scenario = planner.load(
        {**data, "engine": asked["engine"]}
    )  # what another engine adds is its own
    point = current_layout(scenario, resolve(scenario).tasks)
    layout = vars(point.layout)
    assert {x: layout[x] for x in AXES} == {x: chosen["layout"][x] for x in AXES}
    assert (point.kv, point.weights) == (chosen["kv"], chosen["weights"])
    assert point.chunk == chosen["chunk"] or "chunk" not in data["current"]
    ways = layout["dp_attention"] * layout["replicas"]
    assert 0 <= point.batch - chosen["batch"] < ways + layout["replicas"]
    memory, planned = vars(point.memory_per_chip), chosen["memory_per_chip"]
    assert memory["weights"] == pytest.approx(planned["weights"], rel=1e-9)
    share = chosen["batch"] / point.batch
    assert share * memory["kv"] <= planned["kv"] * (1 + 1e-6)
    assert planned["kv"] <= memory["kv"] * (1 + 1e-6)
    same = share == 1 and point.chunk == chosen["chunk"]
    assert point.tpot == pytest.approx(chosen["tpot"], rel=1e-9 if same else 0.02 + (1 - share))
    if same:
        margin = (2e-2 if windows(asked["model"]) else 1e-3) * planned["capacity"]
        assert memory == pytest.approx(planned, abs=margin)


@pytest.mark.parametrize("seed", [*first(8, range(24)), *seldom(range(24, 600))])
def test_a_plan_comes_back(seed, tmp_path):
    """Random plans on every engine that runs them."""
    round_trips(seed, tmp_path)
