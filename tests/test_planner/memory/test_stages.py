"""Stages of a pipeline, counted layer by layer: the fullest has the head, or a layer more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planner
from planner.architecture.counts import ModelSizes, model_sizes
from planner.catalogue import models
from planner.memory.engine_room import ReplicaLayout, fullest_weights, model_memory
from planner.memory.engine_table import engine_memory
from planner.problems.serving.step.kernels import feed
from planner.problems.serving.step.step import Step
from tests.cases.serving import columns, question
from tests.loops import for_all


def fullest(model: ModelSizes, pp: int, tp: int = 1, ways: int = 1, *, read: bool = False) -> float:
    """The weights of the fullest stage of one layout over the mean."""
    one = (np.array([n]) for n in (tp, pp, ways))
    return float(fullest_weights(model, *one, read=read)[0])


@for_all(
    ("name", "weights", "pp", "over_mean"),
    [("llama-3.1-8b", None, 4, 1.21), ("llama-3.1-70b", "fp8", 4, 1.09),
     ("llama-3.1-70b", "fp8", 8, 1.21), ("qwen3-32b", "fp8", 8, 1.33),
     ("qwen2.5-72b", None, 8, 1.12), ("gemma-3-27b", None, 4, 1.13),
     ("deepseek-v3", None, 4, 1.10), ("deepseek-v3", None, 16, 1.10), ("kimi-k2", None, 8, 1.06),
     ("llama-3.1-405b", None, 8, 1.01), ("qwen3-235b-a22b", None, 8, 1.02),
     ("gpt-oss-120b", None, 4, 1.05)],
)  # fmt: skip
def test_what_the_fullest_stage_reads(name, weights, pp, over_mean):
    """Of 60 % of a layer in Llama-8B's head to two and a half layers in Qwen3-32B's at fp8."""
    assert fullest(model_sizes(models.load(name), weights), pp, read=True) == pytest.approx(
        over_mean, abs=0.006
    )


def dealt(layers: int, pp: int) -> list[int]:
    """Layers of each stage, handed out one by one to the last stages but the very last."""
    counts = [layers // pp] * pp
    for back in range(layers % pp):
        counts[-2 - back] += 1
    return counts


@pytest.mark.parametrize("name", ["deepseek-v3", "gpt-oss-20b", "llama-4-maverick", "gemma-2-9b"])
def test_every_stage_counted_layer_by_layer(name):
    """Brute force over all stages of all pipelines, at three ways to cut them."""
    model = model_sizes(models.load(name))
    head = model.streamed_bytes["head"]
    for pp in range(2, model.n_layers + 1):
        for tp, ways in ((1, 1), (8, 8), (2, 64)):
            first, stages = 0, []
            for count in dealt(model.n_layers, pp):
                part = model.layer_bytes[first : first + count]
                stages.append(sum(a for a, _ in part) / tp + sum(b for _, b in part) / ways)
                first += count
            stages[0] += model.weight_bytes["embedding"] / tp
            stages[-1] += head / tp
            routed = model.weight_bytes["routed"]
            mean = ((model.total_weight_bytes - routed) / tp + routed / ways) / pp
            assert fullest(model, pp, tp, ways) == pytest.approx(max(stages) / mean, rel=1e-12)


def test_layers_are_all_of_a_model_but_its_ends():
    """Bytes by layer add up to those by class, without embedding, head and the last norm."""
    for name in ("deepseek-v3", "qwen3-30b-a3b", "gpt-oss-120b", "nemotron-3-nano-30b-a3b"):
        model = model_sizes(models.load(name))
        ends = model.weight_bytes["embedding"] + model.weight_bytes["head"]
        inside = sum(map(sum, model.layer_bytes))
        norm = model.total_weight_bytes - ends - inside
        assert 0 < norm < 1e-6 * inside + 8 * model.hidden


def test_a_pipeline_of_one_stage_and_a_model_of_bare_numbers():
    """Nothing is fuller than itself; layers nobody described are alike."""
    model = model_sizes(models.load("deepseek-v3"))
    assert fullest(model, 1) == fullest(model, 1, read=True) == 1.0
    assert fullest(replace(model, layer_bytes=()), 4) == 16 * 4 / 61


def test_a_plan_of_four_stages_holds_its_head():
    """Llama-8B on four H100: 8 layers and the head, 4.54 GB, where 4.02 were said.

    By hand: 8 x 436,224,000 byte of a layer and 128,256 x 4,096 x 2 of the head.
    """
    plan = planner.solve({
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 4,
        "price": "$2/hour", "workload": {"input_tokens": 2000, "output_tokens": 500},
        "choose": {"pp": 4, "tp": 1, "replicas": 1},
    }).answer.plan  # fmt: skip
    last = 8 * 436_224_000 + 128_256 * 4_096 * 2
    assert plan.memory_per_chip.weights == pytest.approx(last, rel=3e-3)  # as kernels lay them out
    model = model_sizes(models.load("llama-3.1-8b"))
    kept = model_memory(model, ReplicaLayout(pp=4), engine_memory("vllm", "0.19"))
    assert kept.weights == pytest.approx(last, rel=1e-6)


def test_the_last_stage_sets_the_pace():
    """Full of microbatches, a pipeline advances by one in the time of its slowest stage."""
    model = model_sizes(models.load("qwen3-32b"), "fp8")
    step = Step(question(model, mode="decode", chips=(8,)), columns([(1, 8, 1, 1, 1, 1, 1, 8)]),
                bound=False)  # fmt: skip
    values = step.values(np.array([64.0]))
    times = feed(step.model.lowered("every_symbol"), values)
    last = sum(map(sum, model.layer_bytes[-8:])) + model.streamed_bytes["head"]
    read = 8 * last / (values["W_chip"] * values["e_w"])
    assert times["T_w_dec"] == pytest.approx(read, rel=1e-5)
    alone = feed(step.model.lowered("every_symbol"), step.values(np.array([1.0])))
    whole = sum(model.streamed_bytes.values()) / (values["W_chip"] * values["e_w"])
    assert alone["T_w_dec"] == pytest.approx(whole, rel=1e-9)  # which others do not wait behind
