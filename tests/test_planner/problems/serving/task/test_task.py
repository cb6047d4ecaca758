"""What a task limits, minimises and multiplies in, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.architecture.counts import ModelSizes
from planner.problems.serving.task.task import Task, TaskPair
from planner.text.errors import CatalogueError, InputError
from tests.cases.serving import MODELS, question
from tests.loops import for_all

VALUES = {
    "latency": np.array([4.0]), "requests": np.array([8.0]), "usd_per_request": np.array([3.0]),
    "joule_per_request": np.array([5.0]),
}  # fmt: skip


def asked(**changes: Any) -> Task:
    """One small question with some fields changed."""
    return replace(question(MODELS["dense"]), **changes)


def test_a_task_limits_memory_and_what_its_mode_can_break() -> None:
    """Whole requests need time for prompts; prompts of a given batch share a pass."""
    memory = {"need": asked().chip.memory}
    assert asked().limits == {**memory, "mixed": 1.0}
    assert asked(mode="decode").limits == memory
    assert asked(mode="decode", batches=(4,)).limits == memory
    assert asked(mode="prefill").limits == memory
    assert asked(mode="prefill", batches=(4,)).limits == {**memory, "together": 1.0}


def test_a_load_leaves_slots_and_readers_free() -> None:
    """A share of the slots as headroom, and a hundredth of the time of those that read prompts."""
    limits = asked(mode="decode", arrivals=2.0, headroom=0.25).limits
    assert (limits["load"], limits["readers"]) == (0.75, 0.99)
    assert asked(arrivals=2.0, busiest=0.5).limits["readers"] == 0.5


def test_promises_and_the_power_of_a_site_are_limits_by_the_names_of_a_step() -> None:
    """A whole request is the latency, and room for caches is how often they crowd."""
    promises = {"ttft": 1.0, "tpot": 0.1, "e2e": 9.0, "cache_fits": 0.01, "ttft_p99": 2.0}
    limits = asked(mode="decode", promises=promises, site_power=7e3).limits
    del limits["need"]
    assert limits == {
        "ttft": 1.0, "tpot": 0.1, "latency": 9.0, "crowded": 0.01, "ttft_p99": 2.0,
        "site_watts": 7e3,
    }  # fmt: skip


def test_a_promise_is_eased_or_left_out_alone() -> None:
    """The others stay, whichever it is."""
    task = asked(promises={"ttft": 1.0, "tpot": 0.1})
    assert task.promising(0.2).promises == {"ttft": 1.0, "tpot": 0.2}
    assert task.promising(None).promises == {"ttft": 1.0}
    assert task.promising(None, "ttft").promises == {"tpot": 0.1}
    assert task.promising(5.0, "e2e").promises == {"ttft": 1.0, "tpot": 0.1, "e2e": 5.0}


@pytest.mark.parametrize(
    ("objective", "score"), [("cost", 3), ("latency", 4), ("throughput", 1 / 8), ("energy", 5)]
)
def test_what_is_minimised_is_the_objective(objective: str, score: float) -> None:
    """Dollars, seconds, or joules of a request, or seconds from one to the next."""
    assert asked(objective=objective).score(VALUES) == score
    if objective == "energy":
        with pytest.raises(CatalogueError, match=r"no power figure for h200; give power: in the"):
            asked(objective=objective, power=None).score(VALUES)
    else:
        assert asked(objective=objective, power=None).score(VALUES) == score


@pytest.mark.parametrize(
    ("arrivals", "load", "loaded"), [(None, "none", False), (2.0, "given", True),
                                     (math.inf, "most", False)],
)  # fmt: skip
def test_a_load_is_none_or_given_or_the_most(
    arrivals: float | None, load: str, loaded: bool
) -> None:
    """As many as can be served are no load that decides how many chips are paid."""
    assert (asked(arrivals=arrivals).load, asked(arrivals=arrivals).loaded) == (load, loaded)


def test_a_batch_is_shared_by_all_replicas_of_one_pool() -> None:
    """By those of one of two pools for the least latency alone; readers share none."""
    assert asked(batches=(4,)).batch_of_all
    assert asked(batches=(4,), mode="decode", pooled=True, objective="latency").batch_of_all
    assert not asked(batches=(4,), mode="decode", pooled=True).batch_of_all
    assert not asked(batches=(4,), mode="prefill").batch_of_all
    assert not asked().batch_of_all


def test_the_lecture_and_the_bound_choose_on_the_roofline() -> None:
    """The calibrated estimate of real figures does not."""
    assert not asked().uses_bound
    assert asked(lecture=True).uses_bound
    assert asked(estimate="bound").uses_bound


@pytest.mark.parametrize("drafts", [0, 1, 5])
def test_positions_of_a_step_are_drafts_and_one(drafts: int) -> None:
    """Whole numbers, whatever positions were computed with."""
    assert asked(positions_per_step=1.0 + drafts).drafts == drafts


# A chip that multiplies fp8 twice and int8 three times as fast as bf16, and no fp4.
PEAKS = {"bf16": 100.0, "fp8": 200.0, "int8": 300.0}


def multiplying(sizes: ModelSizes, **peaks: float) -> Task:
    """A question on a chip of these peaks."""
    task = asked(sizes=sizes)
    return replace(task, chip=replace(task.chip, flops=peaks))


@for_all(
    ("weights", "activations", "estimate", "bound"),
    [
        ("bf16", "bf16", 100, 100),
        ("fp16", "bf16", 100, 100),
        ("fp32", "bf16", 100, 100),
        ("fp8", "fp8", 200, 200),
        ("fp8", "bf16", 100, 200),
        ("bf16", "fp8", 100, 100),
        ("nvfp4", "fp8", 200, 200),
        ("mxfp4", "fp8", 200, 200),
        ("fp4", "fp8", 200, 200),
        ("fp4", "bf16", 100, 200),
        # Weights that are only stored in whole numbers are multiplied as what they meet.
        ("int8", "bf16", 100, 100),
        ("int4", "bf16", 100, 100),
        ("int8", "fp32", 100, 100),
        ("int8", "fp16", 100, 100),
        ("int8", "int8", 300, 300),
        # Of two as wide it is that of the weights.
        ("int8", "fp8", 300, 300),
        ("fp8", "int8", 200, 200),
        ("int4", "int8", 300, 300),
        ("int4", "int4", None, 300),
        ("nvfp4", "nvfp4", None, 200),
    ],
)
def test_weights_are_multiplied_as_the_wider_of_two_and_bounded_by_the_faster(
    weights: str, activations: str, estimate: float | None, bound: float
) -> None:
    """The estimate multiplies in the wider dtype; the bound in the narrowest the chip has."""
    task = multiplying(replace(MODELS["dense"], activation_dtype=activations), **PEAKS)
    assert task.peak(weights, bound=True) == bound
    if estimate is None:
        with pytest.raises(InputError, match=r"has no (nvfp4|int4) arithmetic, which .* need"):
            task.peak(weights, bound=False)
    else:
        assert task.peak(weights, bound=False) == estimate


def test_a_chip_of_one_dtype_multiplies_all_bounds_in_it() -> None:
    """Narrower ones are widened until they are bf16."""
    sizes = replace(MODELS["dense"], activation_dtype="int8")
    task = multiplying(sizes, bf16=100.0)
    for weights in ("fp4", "fp8", "int4", "int8", "bf16", "fp32"):
        assert task.peak(weights, bound=True) == 100


def test_attention_is_bf16_and_bounded_by_the_dtype_of_the_cache() -> None:
    """Which the bound multiplies as it is stored."""
    task = multiplying(replace(MODELS["dense"], kv_dtype="fp8"), **PEAKS)
    assert (task.attention_peak(bound=True), task.attention_peak(bound=False)) == (200, 100)


def test_a_machine_of_the_catalogue_is_its_own_network() -> None:
    """Slices of a torus tile it, nodes of a switch do not; a fabric of a file stands for itself."""
    task = asked()
    assert task.network is task.machine
    assert not task.tiled
    torus = replace(task.machine, kind="torus", dims=(2, 2, 2))
    assert replace(task, machine=torus).tiled
    fabric: Any = object()
    assert replace(task, fabric=fabric).network is fabric


def pair(**changes: Any) -> TaskPair:
    """Two pools whose prompts have 100 tokens of cache; 20 byte/s of each chip, and 3 s a message.

    A prompt is 100 * 10 + 7 bytes of one cache without an end and a state.
    """
    (cache,) = MODELS["dense"].caches
    sizes = replace(MODELS["dense"], caches=(replace(cache, bytes_per_token=10.0),),
                    state_bytes_per_sequence=7.0)  # fmt: skip
    read, decode = (asked(sizes=sizes, mode=mode, input_tokens=100.0, pooled=True)
                    for mode in ("prefill", "decode"))  # fmt: skip
    return TaskPair(read, decode, rate=20.0, latency=3.0, together=False, **changes)


def test_a_prompt_travels_from_as_many_chips_as_reach_as_many() -> None:
    """The fewer of senders and receivers send it at once, after the time of a message."""
    assert pair().prompt_bytes == 1007
    assert pair().transfer(2.0, 4.0) == pytest.approx(3 + 1007 / 40)
    assert pair().transfer(4.0, 2.0) == pytest.approx(3 + 1007 / 40)
    several = pair().transfer(np.array([1.0, 4.0]), np.array([4.0, 4.0]))
    assert several == pytest.approx([3 + 1007 / 20, 3 + 1007 / 80])


def test_two_pools_have_a_load_where_a_demand_is_given() -> None:
    """The pool that reads comes first."""
    assert (pair().load, pair(demand=2.0).load) == ("none", "given")
    assert [task.mode for task in pair().tasks] == ["prefill", "decode"]
