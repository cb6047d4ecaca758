"""A named engine's memory in the search: the room of `planner fit`, its low end, its share."""

from __future__ import annotations

import numpy as np
import pytest

import planner
from planner.catalogue.chips import chip
from planner.engines import export
from planner.engines.fit_question import FitOptions, fit
from planner.memory.engine_table import GIB
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.memory_terms import memory_rules, memory_terms
from planner.problems.serving.task.resolve import resolve

ASKED = {
    "problem": "serving",
    "model": "llama-3.3-70b",
    "system": "hgx-h100",
    "chips": 8,
    "workload": {"input_tokens": 3000, "output_tokens": 600},
    "promises": {"tpot": "40 ms"},
    "choose": {"mode": "aggregated"},
}
MODELS = ("llama-3.3-70b", "qwen3-30b-a3b", "gpt-oss-120b", "gemma-2-27b", "llama-3.1-8b")


def solved(engine, *sets, **changes):
    return planner.solve({**ASKED, "engine": engine, **changes}, list(sets))


def room(plan):
    memory = plan["memory_per_chip"]
    return memory["kv"] + memory["state"] + memory["free"]


@pytest.mark.parametrize("model", MODELS)
def test_a_plan_has_the_room_that_fit_finds(model):
    """At the plan's batch and chunk, less the graphs that so few sequences do not capture."""
    plan = solved("vllm", model=model).chosen
    layout, batch = plan["layout"], plan["batch_per_replica"]
    seats = -(-batch // layout["dp_attention"])
    ways = {
        "tp": layout["tp"],
        "pp": layout["pp"],
        "dp": layout["dp_attention"],
        "ep": layout["ep"],
    }
    found = fit(None, FitOptions(model=model, system="hgx-h100", engine="vllm", **ways, seats=seats,
                                 tokens=plan["chunk"] + seats // layout["pp"]))  # fmt: skip
    assert -0.1 * GIB < found.room - room(plan) < 2.2 * GIB
    need = plan["memory_per_chip"]["kv"] + plan["memory_per_chip"]["state"]
    assert found.room > need


def test_no_engine_is_what_it_was():
    """Without an engine the driver's whole memory is shared, and no graph is held."""
    memory = solved("none").chosen["memory_per_chip"]
    h100 = chip("h100")
    assert memory["capacity"] == h100.memory_reported
    assert memory["reserved"] == pytest.approx(0.1 * h100.memory_reported)


def test_surely_charges_the_low_end():
    """A promise in 90 of 100 cases keeps 1 GiB back on several ranks, half of one alone."""
    for tp, margin in ((1, 0.5), (2, 1.0)):
        sets = ("model=llama-3.1-8b", f"choose.tp={tp}", "choose.dp_attention=1", "choose.pp=1",
                "promises.tpot=200 ms")  # fmt: skip
        likely, sure = (
            solved("vllm", *sets, f"promises.chance={x}").chosen["memory_per_chip"]["reserved"]
            for x in ("70%", "90%")
        )
        assert (sure - likely) / GIB == pytest.approx(margin)


def test_an_engine_never_makes_a_plan_cheaper():
    """What it takes is taken from the cache, where speeds are those of one profile."""
    for model in ("llama-3.3-70b", "gpt-oss-120b"):
        same = {"model": model, "profile": "engines-2026"}
        prices = [solved(x, **same).chosen["usd_per_mtok"] for x in ("none", "vllm")]
        assert prices[1] >= prices[0] * (1 - 1e-9)


def test_a_bound_stays_below_its_plan():
    """The relaxation takes the least terms of a group of layouts."""
    answer = solved("vllm", "objective=cost").document
    assert answer["gap"] is None or answer["gap"] >= -1e-9
    assert answer["status"] != "infeasible"


def test_the_share_is_exported_as_it_is_meant():
    """vLLM is told the scenario's share, whatever libraries and graphs take of it."""
    text = export(solved("vllm", "memory_utilisation=0.93"), "vllm").text
    assert "--gpu-memory-utilization 0.93 " in text


def test_a_pool_is_of_what_contexts_leave():
    """SGLang's share is of less than what is visible."""
    memory = solved("sglang").chosen["memory_per_chip"]
    assert memory["capacity"] / GIB == pytest.approx(79.19)
    left = 0.9 * (79.19 - 0.51 - 2.0)
    assert (memory["capacity"] - memory["reserved"]) / GIB == pytest.approx(left)
    assert memory_rules([], chip("h100")) == ()


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_share_of_the_free_is_of_what_the_peak_leaves(share):
    """TensorRT-LLM's cache is at most its share of that: 2.04 GiB lie outside PyTorch on a chip."""
    sets = ("model=llama-3.1-8b", "chips=1", f"memory_utilisation={share}", "promises.tpot=null")
    plan = solved("trtllm", *sets)
    memory = plan.chosen["memory_per_chip"]
    outside = (0.51 + 2.04) * GIB
    free = memory["capacity"] - memory["weights"] - memory["activations"] - outside
    sequence = memory["kv"] / plan.chosen["batch"]
    assert memory["kv"] <= share * free < memory["kv"] + 2 * sequence
    assert f"free_gpu_memory_fraction: {share}" in export(plan, "trtllm").text


def test_any_engine_is_charged_as_the_first_that_runs_the_layout():
    """A layout that vLLM runs takes what it takes there, one that SGLang alone runs what there."""
    task = resolve(planner.load({**ASKED, "engine": "any"})).tasks[0]
    alone = {x: resolve(planner.load({**ASKED, "engine": x})).tasks[0] for x in ("vllm", "sglang")}
    both = Layouts(*(np.array([x, x]) for x in (2, 1, 1, 1, 1, 1, 1, 2, 1)), np.array([0b11, 0b10]))
    terms = memory_terms(task, both)
    for row, name in enumerate(alone):
        expected = memory_terms(alone[name], both.take(np.array([row])))
        assert {x: value[row] for x, value in terms.items()} == {
            x: float(value[0]) for x, value in expected.items()
        }
    assert terms["M_hold"][0] != terms["M_hold"][1]


@pytest.mark.parametrize("model", ["llama-3.3-70b", "qwen3.5-122b-a10b", "gpt-oss-120b"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_plan_holds_what_fit_says_of_its_launch(model, engine, tmp_path):
    """Tokens, requests and the longest context of an answer are those of the exported script."""
    plan = solved(engine, model=model)
    script = tmp_path / "serve.sh"
    script.write_text(next(iter(export(plan, engine).files.values())), "utf-8")
    context = 3600
    found = fit(str(script), FitOptions(system="hgx-h100", context=context))
    holds = plan.chosen["holds"]
    assert holds["context"] == context
    assert holds["engine"].split()[0] == found.engine.split()[0]
    assert holds["requests"] == pytest.approx(found.requests, rel=0.01)
    assert holds["longest"] == pytest.approx(found.longest, rel=0.01)


def test_a_version_is_charged_as_it_was():
    """Before 0.20 graphs were no part of the share; a record is both keys."""
    new, old, flat = (
        solved(engine).chosen["memory_per_chip"]["reserved"] if isinstance(engine, str)
        else solved(**engine).chosen["memory_per_chip"]["reserved"]
        for engine in ("vllm", {"engine": {"name": "vllm", "version": "0.18"}},
                       {"engine": "vllm", "engine_version": "0.18"})
    )  # fmt: skip
    assert old == flat
    assert old < new


@pytest.mark.parametrize(
    ("engine", "version", "message"),
    [("vllm", "0.1", "vLLM has no version '0.1'"), ("any", "0.20", "engine_version: unknown"),
     ("vllm", 0.2, "engine_version: input should be a valid string")],
)  # fmt: skip
def test_a_version_that_is_none_is_told(engine, version, message):
    """With the key's name; 0.20 without quotes is a number, and another version."""
    with pytest.raises(planner.InputError, match=message):
        solved(engine, engine_version=version)


def test_copies_of_a_dense_model_hold_what_its_plan_has_left():
    """SGLang lays the feed-forward parts over all copies: room is the plan's, to a GiB a chip."""
    plan = solved("sglang", **{"model": "llama-3.1-70b", "chips": 4, "choose": {
        "mode": "aggregated", "tp": 1, "dp_attention": 4, "weights": "fp8"}}).chosen  # fmt: skip
    memory, holds = plan["memory_per_chip"], plan["holds"]
    left = (memory["kv"] + memory["state"] + memory["free"]) * 4
    token = memory["kv"] * 4 / (plan["batch_per_replica"] * 3300)
    tokens = sum(holds["tokens"]) / 2
    assert tokens == pytest.approx(left / token, rel=0.05)
