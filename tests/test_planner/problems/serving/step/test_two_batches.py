"""Two half-batches overlap: published deployments, limits, and when it is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planner
from planner.problems.serving.bounds.lower_bound import relaxation
from planner.problems.serving.search.batch import search
from planner.problems.serving.step.kernels import feed
from planner.problems.serving.step.step import Step
from planner.text.errors import InputError
from tests.cases.serving import MODELS, columns, question, searched

WIDE = (1, 1, 1, 4, 4, 1, 1, 4)  # four copies of attention, experts over all of them
MILLISECOND = 1e-3


def halved(layout: tuple[int, ...] = WIDE, **changes: Any) -> tuple[Step, Step]:
    """The same layout whole, and cut in halves."""
    task = question(MODELS["sparse"], mode="decode", **changes)
    one, two = (Step(task, columns([(*layout, n)]), bound=False) for n in (1, 2))
    return one, two


def parts(step: Step, batch: float) -> dict[str, float]:
    """Every symbol of a step at a batch."""
    values = step.values(np.array([batch]))
    found = feed(step.model.lowered("every_symbol"), values)
    return {name: float(np.ravel(value)[0]) for name, value in {**values, **found}.items()}


def deployed(**changes: Any) -> dict[str, Any]:
    """Decoding DeepSeek-V3 on nodes of eight, as published deployments did.

    72 ranks held 288 experts, copies counted, which are not counted here: so no engine is asked.
    """
    chips = changes.pop("chips")
    choose = {"mode": "decode", "tp": 1, "dp_attention": chips, "ep": chips, "replicas": 1,
              "weights": "fp8", "kv": "bf16", **changes.pop("choose")}  # fmt: skip
    return {"problem": "serving", "model": "deepseek-v3", "chips": chips, "price": "$2/hour",
            "engine": "none", "choose": choose, **changes}  # fmt: skip


@pytest.mark.parametrize(
    ("system", "chips", "batch", "context", "output", "published"),
    [
        # LMSYS, Deploying DeepSeek with PD disaggregation and large-scale expert parallelism on 96
        # H100 GPUs, 2025-05-05: 256 requests a GPU at 2,785 tokens/s each.
        ("hgx-h100", 72, 256, 2000, 100, 92.0),
        # DeepSeek-AI, profile data of inference, restated there: 128 requests a GPU at 2,325.
        ("hgx-h800", 128, 128, 4096, 100, 55.0),
    ],
)
def test_published_steps_hide_what_they_send(system, chips, batch, context, output, published):
    """Wide expert parallelism over network cards: the plain sum is 20 to 45 % too long."""
    step = {}
    for overlap in ("none", "two-batch"):
        plan = planner.solve(deployed(
            system=system, chips=chips, choose={"batch": batch * chips, "overlap": overlap},
            workload={"input_tokens": context - output // 2, "output_tokens": output},
        ))  # fmt: skip
        step[overlap] = plan.answer.plan.tpot / (published * MILLISECOND)
    assert step["none"] > 1.18
    assert abs(np.log(step["two-batch"])) < np.log(step["none"])
    assert 0.8 < step["two-batch"] < 1.2


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_shorter_is_hidden(share):
    """Nothing of it, half of it, all of it; a whole pass hides nothing whatever the share."""
    one, two = halved()
    whole, cut = (parts(step.under({"e_ovl": share}), 64.0) for step in (one, two))
    least, most = sorted((cut["T_work"], cut["T_sent"]))
    assert cut["T_dec"] == pytest.approx(most + (1 - share) * least + cut["T_hop"], rel=1e-12)
    assert cut["T_work"] + cut["T_exposed"] + cut["T_hop"] == pytest.approx(cut["T_dec"], rel=1e-12)
    assert whole["T_dec"] == pytest.approx(whole["T_work"] + whole["T_sent"] + whole["T_hop"])


def test_parts_of_a_context_answer_each_other_in_the_open():
    """However much is hidden of what experts exchange, the whole of this is paid on top."""
    _, two = halved((1, 1, 2, 4, 4, 1, 1, 8))
    cut = parts(two.under({"e_ovl": 1.0}), 64.0)
    assert cut["T_cp"] > 0.02 * cut["T_work"]
    rest = max(cut["T_work"], cut["T_a2a"] + cut["T_ar"]) + cut["T_hop"]
    assert cut["T_dec"] == pytest.approx(rest + cut["T_cp"], rel=1e-12)
    assert cut["T_work"] + cut["T_exposed"] + cut["T_hop"] == pytest.approx(cut["T_dec"], rel=1e-12)


def test_halves_read_and_wait_for_themselves():
    """Weights once more, every floor once more, the bytes sent and read of caches as before."""
    one, two = halved()
    whole, cut = (parts(step, 4096.0) for step in (one, two))
    assert 0.999 < cut["coverage"] / whole["coverage"] < 1  # nearly every expert anyway
    assert cut["T_w_dec"] / cut["V_w"] == pytest.approx(2 * whole["T_w_dec"] / whole["V_w"])
    assert cut["T_kv_dec"] == whole["T_kv_dec"]
    floors = whole["n_a2a"] * (whole["t_a2a"] + whole["a_x"] / whole["e_a2a"])
    assert whole["g_x"] == 0
    assert cut["T_a2a"] - whole["T_a2a"] == pytest.approx(floors)


def test_a_recorded_graph_hides_the_second_launch():
    """An engine that launches kernel by kernel pays every layer twice."""
    launches = {}
    for engine in ("vllm", "fastertransformer-2022"):
        whole, cut = (parts(step, 64.0) for step in halved(engine=engine))
        layers = whole["n_blocks"] * whole["t_layer"] + whole["n_moe"] * whole["t_moe"]
        launches[engine] = (cut["T_over"] - whole["T_over"]) / layers
    assert launches == pytest.approx({"vllm": 0.0, "fastertransformer-2022": 1.0}, abs=1e-9)


@pytest.mark.parametrize("mode", ["decode", "prefill"])
def test_the_more_is_hidden_the_faster(mode):
    """Step and prompt fall with the share, never below the roofline."""
    task = question(MODELS["sparse"], mode=mode, system="hgx-h100", domain=1)
    layouts = columns([(*WIDE, 2)] * 21)
    word, batch = ("tpot", "ttft")[mode == "prefill"], np.full(21, 256.0)
    shares = np.linspace(0, 1, 21)
    found = Step(task, layouts, bound=False).under({"e_ovl": shares})(batch)[word]
    assert (np.diff(found) < 0).all()
    assert (found > Step(task, layouts, bound=True)(batch)[word]).all()


def test_halves_are_taken_where_they_are_faster():
    """Across network cards a large batch is cut, and the plan is the better of both."""
    question_of = deployed(system="hgx-h100", chips=72, choose={"batch": 72 * 256},
                           workload={"input_tokens": 1950, "output_tokens": 100})  # fmt: skip
    free = planner.solve(question_of).answer
    prices = {}
    for word in ("none", "two-batch"):
        question_of["choose"]["overlap"] = word
        prices[word] = planner.solve(question_of).answer.plan.usd_per_mtok
    assert free.plan.layout.overlap == min(prices, key=prices.get) == "two-batch"
    assert free.plan.usd_per_mtok == pytest.approx(min(prices.values()), rel=1e-12)


def test_one_sequence_is_not_cut():
    """Ranks with one sequence each have nothing to overlap it with, whatever would be faster."""
    question_of = deployed(system="hgx-h100", chips=72, choose={"batch": 72},
                           workload={"input_tokens": 1950, "output_tokens": 100})  # fmt: skip
    assert planner.solve(question_of).answer.plan.layout.overlap == "none"
    question_of["choose"]["overlap"] = "two-batch"
    with pytest.raises(InputError, match="two sequences a rank"):
        planner.solve(question_of)


@pytest.mark.parametrize("halves", [(1,), (2,), (1, 2)])
def test_no_plan_of_halves_is_below_the_bound_over_layouts(halves):
    """Branch and bound knows that halves hide some of what they send."""
    task = question(MODELS["sparse"], chips=(8,), domain=2, limits_of={"halves": halves})
    step = searched(task)
    found = search(step)
    assert set(step.layouts.halves.tolist()) == set(halves)
    best = float(found.score[0])
    assert 0.5 * best < relaxation(step, found, best).value <= best * (1 + 1e-9)


@pytest.mark.parametrize(
    ("model", "choose"),
    [
        ("llama-3.1-8b", {"overlap": "two-batch"}),
        ("deepseek-v3", {"overlap": "two-batch", "dp_attention": 1}),
    ],
)
def test_nothing_to_hide_is_refused(model, choose):
    """What two batches overlap is an exchange of copies of attention with spread experts."""
    with pytest.raises(InputError, match="overlap takes dp_attention and ep above 1"):
        planner.solve({
            "problem": "serving", "model": model, "system": "hgx-h200", "chips": 8,
            "workload": {"input_tokens": 1000, "output_tokens": 100}, "choose": choose,
        })  # fmt: skip
