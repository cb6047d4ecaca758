"""A named engine's memory in the search: the room of `planner fit`, its low end, its share."""

from __future__ import annotations

import pytest

import planner
from planner.catalogue.chips import chip
from planner.engines import export
from planner.engines.fit_question import FitOptions, fit
from planner.memory.engine_table import GIB
from planner.problems.serving.step.memory_terms import memory_rules, seen_chip

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
    """SGLang's share is of less than what is visible; engines nobody read enough take none."""
    pool, profiled = (
        seen_chip(chip("h100"), memory_rules(x, chip("h100"))) for x in ("sglang", "vllm")
    )
    assert profiled.memory / GIB == pytest.approx(79.19)
    assert pool.memory / GIB == pytest.approx(79.19 - 0.51 - 2.0)
    assert memory_rules("trtllm", chip("h100")) is None
    assert memory_rules("none", chip("h100")) is None


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
