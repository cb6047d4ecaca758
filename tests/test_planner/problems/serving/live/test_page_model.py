"""The page's search, run in Node, chooses what `planner solve` chooses on the changed scenario."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import planner
from planner.problems.serving.live.page_model import PageModel
from planner.problems.serving.live.scenario_values import following
from planner.problems.serving.point import layout_text
from planner.problems.serving.step.occupancy import overflow_probability
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve
from planner.scenario import load
from tests.cases.live_page import DENSE, in_node, live, scenario
from tests.sizes import first, seldom

KEYS = {
    "input": "workload.input_tokens", "output": "workload.output_tokens",
    "cached": "workload.cached_input", "tpot": "promises.tpot", "ttft": "promises.ttft",
    "demand": "workload.demand", "ttft_p95": "promises.ttft_p95", "ttft_p99": "promises.ttft_p99",
    "bandwidth": "system.memory_bandwidth", "memory": "system.memory", "price": "price",
    "batch": "choose.batch",
}  # fmt: skip
HYBRID = "nemotron-3-nano-30b-a3b"
LOADED = {
    "dense under a load": scenario(
        "llama-3.1-70b", chips=[*range(8, 129, 8)], promises={"ttft": "1 s", "tpot": "40 ms"},
        workload={"input_tokens": 2000, "output_tokens": 500, "demand": "20 requests/s"},
    ),
    "experts under a load": scenario(
        "deepseek-v3", system="hgx-h200", chips=[8, 16, 32, 64, 128, 256],
        promises={"ttft_p95": "3 s", "tpot": "60 ms"},
        workload={"input_tokens": {"mean": 3000, "cv": 1.0}, "output_tokens": 600,
                  "demand": "8000 tokens/s", "spare_replicas": 1},
    ),
    "limits of a launch under a load": scenario(
        "llama-3.1-8b", chips=[*range(1, 9)], promises={"ttft_p95": "1 s", "tpot": "20 ms"},
        engine={"name": "vllm", "max_num_seqs": 24, "max_num_batched_tokens": 4096},
        workload={"input_tokens": 2000, "output_tokens": 500, "demand": "8 requests/s"},
    ),
    "windows under a load": scenario(
        "gpt-oss-120b", system="hgx-h200", chips=[*range(1, 65)],
        promises={"ttft_p99": "2 s", "tpot": "20 ms"},
        workload={"input_tokens": {"mean": 2000, "cv": 0.5}, "output_tokens": 500,
                  "demand": "40 requests/s", "headroom": 0.1},
    ),
    "hybrid under a load": scenario(
        HYBRID, chips=[4, 8, 16, 32, 64],
        workload={"input_tokens": 2000, "output_tokens": 500, "demand": "30 requests/s"},
    ),
    "prompts under a load": scenario(
        "qwen3-30b-a3b", choose={"mode": "prefill"}, promises={"ttft_p95": "1 s"},
        workload={"input_tokens": 2000, "output_tokens": 1, "demand": "30 requests/s"},
    ),
    "two pools under a load": scenario(
        "llama-3.1-70b", chips=[*range(8, 129, 8)], choose={},
        promises={"ttft_p95": "1 s", "tpot": "30 ms"},
        workload={"input_tokens": 2000, "output_tokens": 500, "demand": "20 requests/s"},
    ),
    "experts in two pools under a load": scenario(
        "gpt-oss-120b", system="hgx-h200", chips=[*range(4, 65, 4)], choose={},
        promises={"ttft": "800 ms", "tpot": "15 ms"},
        workload={"input_tokens": {"mean": 3000, "cv": 0.8}, "output_tokens": 600,
                  "demand": "12000 tokens/s", "spare_replicas": 1, "headroom": 0.05},
    ),
}  # fmt: skip
CASES = {
    "dense": DENSE,
    "two pools": {k: v for k, v in DENSE.items() if k != "choose"},
    "experts": scenario("deepseek-v3", system="hgx-h200", chips=16),
    "windows": scenario("gpt-oss-120b", system="hgx-h200", chips=4),
    "windows in two pools of a given batch": scenario(
        "gpt-oss-120b",
        system="hgx-h200",
        chips=[4, 8],
        choose={"batch": [96, 400], "mode": "disaggregated"},
    ),
    "prompts that come slowly for a batch of two pools": scenario(
        "llama-3.1-70b",
        chips=12,
        choose={
            "batch": [60, 150],
            "mode": "disaggregated",
            "prefill": {"replicas": [1, 2, 3]},
            "decode": {"replicas": [1, 2, 3]},
        },
        workload={"input_tokens": 3000, "output_tokens": 100},
        promises={},
    ),
    "prompts only": {
        **scenario("qwen3-30b-a3b", system="hgx-h100", choose={"mode": "prefill"}),
        "promises": {"ttft": "1 s"},
    },
    "hybrid": scenario(HYBRID, system="hgx-h100", chips=4),
    "on the roofline": {**{k: v for k, v in DENSE.items() if k != "choose"}, "estimate": "bound"},
    "drafts in two pools": scenario(
        "llama-3.3-70b",
        choose={},
        speculation={"drafts": 2, "method": "eagle-3"},
        workload={"input_tokens": 1000, "output_tokens": 500},
        promises={"ttft": "2 s", "tpot": "15 ms"},
    ),
    "a list of chips": scenario("llama-3.1-70b", chips=[8, 16, 24, 40]),
    "sure of two pools": scenario("llama-3.1-70b", chips=16, choose={},
                                  promises={"ttft": "1 s", "tpot": "30 ms", "chance": 0.9}),
    "whole requests": scenario("llama-3.1-70b", promises={"e2e": "15 s"}),
    "drafts": scenario("llama-3.3-70b", speculation={"drafts": 2, "method": "eagle-3"},
                       promises={"ttft": "2 s", "tpot": "15 ms"}),
    "most throughput": scenario("gpt-oss-120b", chips=[8, 16], objective="throughput", choose={}),
    "users in a closed loop": scenario(
        "gpt-oss-120b", chips=8, choose={}, promises={"ttft_p95": "3 s", "tpot": "33 ms"},
        workload={"input_tokens": 3000, "output_tokens": 800, "concurrency": 200}),
    "users whose lengths differ": scenario(
        "qwen3-235b-a22b", chips=16, choose={}, promises={"ttft": "3 s", "tpot": "60 ms"},
        workload={"input_tokens": {"mean": 2000, "cv": 0.8}, "output_tokens": 500,
                  "concurrency": 64}),
    "given batches": scenario("llama-3.1-70b", chips=[8, 16, 32],
                              choose={"mode": "aggregated", "batch": [64, 200]}),
    "a model never measured": scenario("qwen3-30b-a3b", choose={},
                                       promises={"ttft": "1 s", "tpot": "10 ms"}),
    "two systems": {k: v for k, v in scenario(
        "gpt-oss-120b", system=["hgx-h100", "gb200-nvl72"], chips=[8, 16, 24], choose={},
        promises={"ttft": "1 s", "tpot": "20 ms"}).items() if k != "price"},
    "windows in a pool by token": scenario(
        "gpt-oss-120b", system="hgx-h200", chips=4, engine={"name": "sglang", "max_num_seqs": 96},
        choose={}, promises={"ttft": "2 s", "tpot": "30 ms"}),
    **LOADED,
}  # fmt: skip


def states(question: dict[str, Any], count: int, seed: int) -> list[dict[str, float]]:
    """Changes of a few sliders at once."""
    rng = np.random.default_rng(seed)
    _plan, page = live(question)
    sliders = {s.name: s for s in page.sliders if s.name in KEYS}
    made = []
    for _ in range(count):
        names = rng.choice(sorted(sliders), size=int(rng.integers(1, 4)), replace=False)
        state = {}
        for name in map(str, names):
            slider = sliders[name]
            if slider.unit == "1":
                state[name] = round(float(rng.uniform(0.05, 0.9)), 3)
                continue
            value = float(slider.value or slider.high / 10) * float(np.exp(rng.uniform(-1.0, 1.0)))
            value = min(max(value, slider.low), slider.high)
            state[name] = float(round(value)) if slider.whole else float(f"{value:.6g}")
        made.append(state)
    return made


def compare(question: dict[str, Any], changes: list[dict[str, float]]) -> int:
    """How many changed scenarios have a plan; every one is chosen, and judged, alike."""
    _, page = live(question)
    assert not page.refused, page.refused
    feasible = 0
    sliders = {slider.name: slider for slider in page.sliders}
    for state, chosen in zip(changes, in_node(page, changes), strict=True):
        sets = []
        for name, value in state.items():
            (path,) = sliders[name].sets or (KEYS[name],)
            sets.append(f"{path}={value!r} {sliders[name].written}".strip())
        plan = planner.solve(question, sets)
        assert chosen["feasible"] == plan.feasible, (state, plan)
        if plan.point is None:
            missed = [(x.promise, x.short_by) for x in plan.infeasible]
            assert missed, state
            continue
        feasible += 1
        words = ", ".join(chosen["layouts"])
        assert words == layout_text(plan.point), (state, words)
        assert chosen["batch"] == plan.batch, state
        for name, value in chosen["outputs"].items():
            expected = getattr(plan.point, name)
            if expected is not None:
                assert value == pytest.approx(expected, rel=1e-9), (state, name)
        judged = plan.answer.promises
        assert [(x["promise"], x["word"]) for x in chosen["promises"]] == [
            (x.promise, x.word) for x in judged
        ], state
        for mine, theirs in zip(chosen["promises"], judged, strict=True):
            numbers = [mine[name] or 0.0 for name in ("value", "limit", "chance")]
            expected = [theirs.value, theirs.limit, theirs.chance or 0.0]
            assert numbers == pytest.approx(expected, rel=1e-9), state
        assert chosen["outside"] == [str(each) for each in plan.outside], state
    return feasible


def test_the_page_chooses_what_solve_chooses() -> None:
    """Layout, batch and every number, as solved and on changed scenarios, in one pool and two."""
    changes = [{}, {"input": 3000.0, "tpot": 0.03}, {"cached": 0.5, "bandwidth": 6e12}]
    assert compare(CASES["two pools"], changes) == 3
    assert compare(CASES["on the roofline"], changes[:2]) == 2
    slowly = CASES["prompts that come slowly for a batch of two pools"]
    assert compare(slowly, [{}, {"input": 8000.0}]) == 1


def test_the_page_chooses_what_solve_chooses_under_a_load() -> None:
    """The batch that gathers, the fewest chips, waits and room for caches."""
    changes = [{"demand": 35.0}, {"ttft": 0.5, "output": 900.0}]
    assert compare(LOADED["dense under a load"], changes) == 2


@pytest.mark.slow
def test_the_page_chooses_two_pools_under_a_load() -> None:
    """Both of experts; smaller changes of theirs are among the many."""
    assert compare(LOADED["experts in two pools under a load"], [{"demand": 6000.0}]) == 1


def test_how_often_caches_find_no_room_is_what_the_planner_computes() -> None:
    """Tails of the negative binomial and of the Poisson, as SciPy has them."""
    rng = np.random.default_rng(0)
    mean = np.exp(rng.uniform(-5, 8, 400))
    spread = 1 + np.where(rng.random(400) < 0.2, 0.0, np.exp(rng.uniform(-6, 4, 400)))
    room = np.floor(mean * np.exp(rng.uniform(-1, 2, 400)))
    _, page = live(LOADED["dense under a load"])
    points = [{"a": a, "b": b, "c": c} for a, b, c in zip(mean, spread, room, strict=True)]
    made = in_node(page, points, "STATES.map((x) => Crowding.exceeding(x.a, x.b, x.c))")
    np.testing.assert_allclose(
        np.array(made), overflow_probability(mean, spread, room), rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize(
    ("name", "count"),
    [*first(0, [(name, 16) for name in [*CASES][::6]]), *seldom(product(CASES, (16, 34)))],
)
def test_many_changes_are_chosen_alike(name: str, count: int) -> None:
    """Over dense, sparse, windowed and hybrid models, one pool and two."""
    question = CASES[name]
    assert compare(question, states(question, count, seed=len(name))) >= 0.4 * count


def test_kernels_give_what_the_step_gives_at_many_points() -> None:
    """Every output of the kernel at random layouts and batches, to twelve digits."""
    _, page = live(CASES["experts"])
    task = resolve(load(CASES["experts"])).tasks[0]
    rng = np.random.default_rng(3)
    rows = rng.integers(0, page.data["pools"][0]["rows"], 1000)
    batch = np.floor(np.exp(rng.uniform(0, 9, rows.size)))
    code = (
        "STATES.map((p) => { const b = MODEL.bind(0, {}), n = b.pool.names.functions.batch;"
        " const r = b.at('batch', p.row, p.batch, 1); return n.map((name, k) => r[k]); })"
    )
    points = [{"row": int(i), "batch": float(b)} for i, b in zip(rows, batch, strict=True)]
    made = np.array(in_node(page, points, code), dtype=float)
    step = Step(task, _layouts(task), bound=False).take(rows)
    kernel = step.model.lowered("page_outputs")
    values = step.values(batch)
    expected = kernel(**{name: values[name] for name in kernel.names})
    for k, name in enumerate(page.data["kernels"][0]["functions"]["batch"].split()):
        np.testing.assert_allclose(
            made[:, k], np.broadcast_to(expected[name], rows.shape), rtol=1e-12, atol=1e-25,
            err_msg=name,
        )  # fmt: skip


def _layouts(task: Any) -> Any:
    from planner.problems.serving.search.admitted_layouts import admissible_layouts

    return admissible_layouts(task)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload": {"input_tokens": 2000, "output_tokens": 500, "demand": "max"}},
         "let a fleet serve"),
        ({"workload": {"input_tokens": 2000, "output_tokens": 500, "demand": "max"}, "choose": {}},
         "let two pools serve"),
        ({"workload": {"input_tokens": 2000, "output_tokens": 500, "concurrency": 4000},
          "choose": {}, "promises": {}}, "memory holds some wait"),
        ({"estimate": "bound",
          "workload": {"input_tokens": 2000, "output_tokens": 500, "demand": "3 requests/s"}},
         "no queue"),
    ],
)  # fmt: skip
def test_what_the_page_cannot_search_has_no_slider_and_says_so(
    changes: dict[str, Any], words: str
) -> None:
    """All that can be served, requests that wait, a load on the roofline are searched otherwise."""
    _, page = live({**DENSE, **changes})
    assert words in page.refused
    assert not page.sliders
    assert not page.script


def test_an_infeasible_state_names_the_promise_that_falls_short() -> None:
    """No layout reads the weights in so short a time."""
    _, page = live(DENSE)
    chosen = in_node(page, [{"tpot": 0.009, "bandwidth": 1e12}])[0]
    assert not chosen["feasible"]
    assert chosen["missed"][0]["name"] == "tpot"
    assert chosen["missed"][0]["factor"] > 1


def test_longer_prompts_let_in_layouts_that_cut_contexts() -> None:
    """Rows that only long prompts are cut for travel along until a slider lets them in."""
    question = scenario("llama-3.1-70b", workload={"input_tokens": 20000, "output_tokens": 500},
                        promises={"tpot": "60 ms"}, engine="none")  # fmt: skip
    plan = planner.solve(question)
    model = PageModel(load(question), resolve(load(question)), plan)
    rows = model.page().data["pools"][0]
    assert rows["rows"] > len(_layouts(model.every[0]))
    assert compare(question, [{"input": 70000.0}]) == 1


@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_the_mean_context_is_the_equation(spread: float) -> None:
    """What Python computes of lengths before any kernel is loaded is the registered equation."""
    lengths = {
        "input_tokens": {"mean": 900, "cv": 0.5},
        "output_tokens": {"mean": 300, "cv": spread},
    }
    question = load({**DENSE, "workload": lengths})
    task = resolve(question).tasks[0]
    follow = following(task, question)
    values = {"L_in": 900.0, "L_out": 300.0, "v_out": spread, "one_seq": 1.0, "one_token": 1.0}
    made = follow(**{name: values[name] for name in follow.names})
    assert made["L_ctx"] == pytest.approx(task.context, rel=1e-15)
    assert made["L_dec"] == 299.0


@pytest.mark.parametrize("name", ["dense", "two pools"])
def test_rows_left_out_by_a_bound_change_nothing(name: str) -> None:
    """A search that knows where the last one ended chooses what one without a past chooses."""
    _, page = live(CASES[name])
    code = "STATES.map((s) => [MODEL.choose(s), pageModel(DATA, KERNELS).choose(s)])"
    for warm, cold in in_node(page, states(CASES[name], 40, seed=1), code):
        assert warm == cold
