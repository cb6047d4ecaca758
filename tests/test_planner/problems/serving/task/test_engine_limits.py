"""What an engine is told, max_num_seqs and its like, holds in plans, memory, launches and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planner
from planner.engines import export
from planner.engines.fit_question import FitOptions, fit
from planner.engines.imported import scenario_from_launch
from planner.memory.engine_room import EngineLimits, ReplicaLayout, engine_groups, model_memory
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.step.memory_terms import charged_engine
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve
from planner.scenario import load
from planner.text.errors import InputError
from tests.loops import for_all

ONE_CONTEXT = {"mode": "aggregated", "cp": 1, "dcp": 1}


def question(engine: Any = "vllm", chips: int = 1, **changes: Any) -> dict[str, Any]:
    """A small model on an H100, with an engine that is told something."""
    return {
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": chips,
        "workload": {"input_tokens": 2000, "output_tokens": 500}, "engine": engine,
        "promises": {"tpot": "50 ms"}, **changes,
    }  # fmt: skip


def told(name: str = "vllm", **limits: int) -> dict[str, Any]:
    """An engine as a record."""
    return {"name": name, **limits}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_no_copy_holds_more_sequences_than_it_is_told(engine: str) -> None:
    free = planner.solve(question(engine)).answer.plan
    capped = planner.solve(question(told(engine, max_num_seqs=64))).answer
    assert free.batch > 64 == capped.plan.batch
    full = [x.limit for x in capped.limits_used if x.binds]
    assert full == ["max_num_seqs"]
    given = planner.solve(question(engine, choose={"batch": [*range(1, 65)]})).answer.plan
    assert capped.plan.batch == given.batch
    assert capped.plan.usd_per_mtok == pytest.approx(given.usd_per_mtok, rel=1e-9)


def test_each_copy_of_attention_holds_as_many() -> None:
    asked = question(told(max_num_seqs=16), chips=8, model="deepseek-v3", system="hgx-h200",
                     choose={"mode": "aggregated", "dp_attention": 8})  # fmt: skip
    plan = planner.solve(asked).answer.plan
    assert plan.layout.dp_attention == 8
    assert plan.batch == 128


def test_the_plan_with_limits_lies_above_its_bound() -> None:
    answer = planner.solve(question(told(max_num_seqs=48), chips=8)).answer
    assert 0 <= answer.gap < 0.05


def test_memory_is_kept_for_as_many_as_the_engine_is_told() -> None:
    """A sampler holds the logits of all sequences: 512,000 bytes times 9.6 or 3.73 copies each."""
    few, many = (planner.solve(question(told(max_num_seqs=n))).answer.plan for n in (256, 4096))
    kept = [plan.memory_per_chip.activations for plan in (few, many)]
    copies = (kept[1] - kept[0]) / (4096 - 256) / (128_256 * 4)
    assert copies == pytest.approx(3.73, rel=0.2)  # of few a pass's peak is larger
    assert many.holds.tokens[0] < few.holds.tokens[0]


@pytest.mark.parametrize(
    "limits",
    [
        {"max_num_seqs": 700},
        {"max_num_batched_tokens": 16384},
        {"max_num_seqs": 64, "max_num_batched_tokens": 2048},
    ],
)
def test_fit_says_the_same_of_the_scenario(limits: dict[str, int]) -> None:
    held = planner.solve(question(told(**limits))).answer.plan.holds
    options = FitOptions(
        model="llama-3.1-8b", system="hgx-h100", engine="vllm", tp=1, context=2500,
        seats=limits.get("max_num_seqs", 256), tokens=limits.get("max_num_batched_tokens", 8192),
    )  # fmt: skip
    alone = fit(None, options)
    assert held.tokens[1] == pytest.approx(alone.tokens[1], rel=0.01)


@pytest.mark.parametrize("drafts", [{}, {"speculation": {"drafts": 2, "acceptance": 0.6}}])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_as_many_sequences_as_the_plan_has_take_its_memory(engine: str, drafts: dict) -> None:
    """Over stages they take turns, and a step is profiled once; drafts are positions of each."""
    stages = 1 if drafts and engine == "sglang" else 2  # where it drafts without a pipeline only
    choose = {"mode": "aggregated", "tp": 1, "pp": stages, "cp": 1, "chunk": 2048, "batch": 64}
    plans = [
        planner.solve(question(x, chips=stages, choose=choose, promises=None, **drafts)).answer.plan
        for x in (engine, told(engine, max_num_seqs=64))
    ]
    free, limited = (vars(x.memory_per_chip) for x in plans)
    assert limited == pytest.approx(free, rel=1e-9)


def test_a_step_takes_no_more_tokens_than_it_is_told() -> None:
    plan = planner.solve(question(told(max_num_batched_tokens=2048))).answer.plan
    assert plan.chunk + plan.batch <= 2048
    tight = planner.solve(question(told(max_num_batched_tokens=64))).answer
    assert tight.plan.chunk + tight.plan.batch <= 64
    both = planner.solve(question(told(max_num_seqs=64, max_num_batched_tokens=2048))).answer
    assert both.plan.chunk == 2048 - 64
    full = [x.limit for x in both.limits_used if x.binds]
    assert full == ["max_num_seqs", "max_num_batched_tokens"]


def test_requests_beyond_the_places_wait() -> None:
    lengths = {"input_tokens": 2000, "output_tokens": 500, "concurrency": 100}
    answer = planner.solve(question(told(max_num_seqs=64), workload=lengths)).answer
    assert answer.plan.loop.waiting == 36
    free = planner.solve(question(workload=lengths)).answer
    assert free.plan.loop.waiting == 0
    assert answer.plan.ttft > 10 * free.plan.ttft


def test_random_arrivals_find_as_many_places() -> None:
    lengths = {"input_tokens": 2000, "output_tokens": 500, "demand": "4 requests/s"}
    answer = planner.solve(question(told(max_num_seqs=40), workload=lengths)).answer
    assert answer.plan.demand.room_per_replica == 40
    missed = planner.solve(question(told(max_num_seqs=8), workload=lengths)).answer.infeasible
    assert missed


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("vllm", ["--max-num-seqs 100", "--max-num-batched-tokens 4096", "--max-model-len 9000"]),
        ("sglang", ["--max-running-requests 100", "--context-length 9000"]),
        ("trtllm", ["--max_batch_size 100", "--max_num_tokens 4096", "--max_seq_len 9000"]),
    ],
)
def test_a_launch_says_what_the_scenario_says(
    engine: str, options: list[str], tmp_path: Path
) -> None:
    limits = {"max_num_seqs": 100, "max_num_batched_tokens": 4096, "max_model_len": 9000}
    plan = planner.solve(question(told(engine, **limits)))
    script = export(plan, engine).text
    for option in options:
        assert option in script
    written = tmp_path / "serve.sh"
    written.write_text(script)
    back = scenario_from_launch([written], ["system=hgx-h100", "workload.input_tokens=2000",
                                         "workload.output_tokens=500"])  # fmt: skip
    assert back.data["max_model_len"] == 9000


@pytest.mark.parametrize(
    ("engine", "changes", "words"),
    [
        (told(max_num_seqs=64, max_num_batched_tokens=32), {}, "fewer than max_num_seqs 64"),
        (told(max_model_len=2048), {}, "requests of 2500 tokens are longer than the 2048"),
        (told(max_num_seqs=64), {"max_num_seqs": 32}, "max_num_seqs stands beside it"),
        (told(max_num_batched_tokens=4096), {"choose": {"chunk": 8192}}, "no step takes 8192"),
        (told(max_num_seqs=0), {}, "max_num_seqs"),
        (told(max_num_seq=8), {}, "unknown key 'max_num_seq'; did you mean 'max_num_seqs'"),
        ("any", {"assumptions": "lecture", "max_num_seqs": 8}, "the lecture knows no engine"),
    ],
)
def test_what_contradicts_itself_is_refused(
    engine: Any, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        planner.solve(question(engine, **changes))


def test_a_mistake_in_the_record_of_an_engine_is_shown_there(tmp_path: Any) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(
        "problem: serving\nmodel: llama-3.1-8b\nsystem: hgx-h100\nchips: 1\n"
        "workload: {input_tokens: 10, output_tokens: 10}\n"
        "engine: {name: vllm, max_num_seqs: 64, max_num_batched_tokens: 32}\n"
    )
    with pytest.raises(InputError) as caught:
        load(str(file))
    assert (caught.value.mistakes[0].line, caught.value.mistakes[0].column) == (6, 64)


BLOCKS = [
    ("llama-3.1-8b", "vllm"), ("gpt-oss-120b", "vllm"), ("gemma-3-27b", "vllm"),
    ("nemotron-3-nano-30b-a3b", "vllm"), ("qwen3.5-27b", "vllm"), ("glm-5.2", "vllm"),
    ("deepseek-v4-flash", "vllm"),
    ("gpt-oss-120b", "sglang"), ("gemma-3-27b", "sglang"), ("llama-4-scout", "sglang"),
    ("nemotron-3-nano-30b-a3b", "sglang"), ("gpt-oss-120b", "trtllm"), ("gemma-3-27b", "trtllm"),
]  # fmt: skip


@for_all(("model", "engine"), BLOCKS)
@for_all("lengths", [(4000, 1000), (100, 50), (700, 2000)])
def test_the_search_counts_the_blocks_of_the_engine(
    model: str, engine: str, lengths: tuple[int, int]
) -> None:
    """A sequence takes what an allocator of the engine's blocks takes, at every context it has."""
    first, answer = lengths
    task = resolve(load(question(engine, 8, model=model, system="hgx-h200", promises={},
                                 workload={"input_tokens": first, "output_tokens": answer},
                                 choose=ONE_CONTEXT))).tasks[0]  # fmt: skip
    layouts = admissible_layouts(task)
    step, charged = Step(task, layouts, bound=False), charged_engine(task, layouts)
    held = step(layouts.dp_attention * 1.0)["memory.kv"]
    contexts = np.arange(first, first + answer + 1)
    for row in np.flatnonzero(charged >= 0).tolist():
        rules = task.memory_rules[charged[row]][1]
        assert rules is not None
        tp, pp = int(layouts.tp[row]), int(layouts.pp[row])
        kept = model_memory(task.sizes, ReplicaLayout(tp, pp), rules)
        groups = engine_groups(kept, rules, EngineLimits(tp, pp))
        taken = np.mean([groups.of_request(int(x), 1) for x in contexts]) * groups.page
        assert held[row] == pytest.approx(taken, rel=0.05)


@pytest.mark.parametrize("engine", ["vllm", "none"])
@pytest.mark.parametrize("mode", ["aggregated", "decode"])
def test_a_step_of_the_limit_is_kept_memory_for(engine: str, mode: str) -> None:
    """Activations are those of as many tokens, whatever the batch: twice the tokens, twice them."""
    kept = []
    for tokens in (8192, 16384):
        asked = question(engine, choose={"mode": mode, "batch": 4}, max_num_batched_tokens=tokens,
                         max_num_seqs=16)  # fmt: skip
        plan = planner.solve({**asked, "promises": {}}).answer.plan
        kept.append(plan.memory_per_chip.activations)
    assert kept[1] == pytest.approx(2 * kept[0], rel=0.02)
