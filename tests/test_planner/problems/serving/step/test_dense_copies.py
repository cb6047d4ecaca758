"""Copies of attention of a dense model: an expert that every token takes, by another path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planner
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import Task
from planner.scenario import check_tree
from planner.scenario.tree import Tree
from planner.text.errors import InputError
from tests.paths import ROOT

ASKED = {
    "problem": "serving", "model": "qwen3-32b", "system": "hgx-h100", "chips": 16,
    "price": "$2/hour", "workload": {"input_tokens": 8000, "output_tokens": 1000},
    "choose": {"mode": "aggregated", "dcp": 1},
}  # fmt: skip


def task(**changes: Any) -> Task:
    """The first task of the question with changes."""
    return resolve(check_tree(Tree("scenario", {**ASKED, **changes}), ROOT)).tasks[0]


def one_expert(dense: Task) -> Task:
    """The same model, its feed-forward parts called one expert that every token takes."""

    def moved(of: dict[str, Any]) -> dict[str, Any]:
        return {**of, "dense_ffn": 0 * of["dense_ffn"], "routed": of["dense_ffn"]}

    s = dense.sizes
    sizes = replace(
        s, n_experts=1, n_experts_active=1, n_moe_layers=s.n_dense_ffn_layers,
        n_dense_ffn_layers=0, params=moved(s.params), active=moved(s.active),
        weight_bytes=moved(s.weight_bytes), streamed_bytes=moved(s.streamed_bytes),
    )  # fmt: skip
    return dense.with_layout(sizes=sizes)


@pytest.mark.parametrize(("tp", "dp"), [(1, 2), (2, 4), (8, 2)])
def test_copies_share_the_rest_as_they_would_share_one_expert(tp, dp):
    """Roofs, memory and every part of a step but the launches of experts, which are none."""
    dense, ways = task(engine="none"), {"tp": tp, "dp_attention": dp, "chips": tp * dp}
    sparse, cut = one_expert(dense), {"tp_expert": tp * dp, **ways}
    batch = np.array([64.0])
    for bound in (True, False):
        copied = Step(dense, Layouts.of(**ways), bound=bound)(batch)
        expert = Step(sparse, Layouts.of(**cut), bound=bound)(batch)
        names = ("need", *(("tpot", "ttft", "usd_per_token") if bound else ()))
        names += () if bound else ("part.weights", "part.kv", "part.collectives")
        for name in names:
            assert copied[name] == pytest.approx(expert[name], rel=1e-12), name


def test_a_copy_holds_its_own_attention_and_a_share_of_the_rest():
    """By hand: bytes of the weights on a chip, and of the cache, of two copies on two chips."""
    dense = task(engine="none")
    values = Step(dense, Layouts.of(dp_attention=2, chips=2), bound=True)(np.array([2.0]))
    stored = dense.sizes.weight_bytes
    shared = stored["dense_ffn"]
    assert values["memory.weights"] == pytest.approx(sum(stored.values()) - shared / 2)
    context = dense.sizes.stored_bytes(8000 + 1000 / 2)
    assert values["memory.kv"] == pytest.approx(context, rel=1e-3)


def test_a_bound_holds_over_copies_of_attention():
    """The least price on the roofline is that of copies where tp exceeds the KV heads."""
    best = planner.solve({**ASKED, "estimate": "bound"}).document["plan"]
    choose = {**ASKED["choose"], "dp_attention": 1}
    single = planner.solve({**ASKED, "estimate": "bound", "choose": choose}).document["plan"]
    assert best["layout"]["dp_attention"] > 1
    assert best["usd_per_mtok"] < single["usd_per_mtok"]
    calibrated = planner.solve(ASKED).document["plan"]["usd_per_mtok"]
    assert best["usd_per_mtok"] < calibrated


def test_copies_are_offered_where_an_engine_has_them():
    """SGLang copies attention of Llama and Qwen models, vLLM of none, a mesh of any."""
    assert admissible_layouts(task()).dp_attention.max() > 1
    assert admissible_layouts(task(engine="vllm")).dp_attention.max() == 1
    assert admissible_layouts(task(model="phi-4")).dp_attention.max() == 1
    assert admissible_layouts(task(model="phi-4", engine="none")).dp_attention.max() > 1
    with pytest.raises(InputError, match=r"choose\.dp_attention=1"):
        planner.check({**ASKED, "engine": "vllm", "choose": {"dp_attention": 2}})
