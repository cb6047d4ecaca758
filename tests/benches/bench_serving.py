"""Timings of the serving core; run by `pytest tests/benches/bench_serving.py -m benchmark`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planner
from formulas.numerics.evaluate import kernel
from planner.architecture import sizes
from planner.catalogue import models
from planner.catalogue.systems import system
from planner.problems.serving.bounds.lower_bound import elastic, relaxation
from planner.problems.serving.deployment.questions import questions_of, ranked
from planner.problems.serving.search.batch import search
from planner.problems.serving.step.equations import BOUND, ESTIMATE
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import Task
from planner.scenario import load
from tests.cases.serving import question, searched
from tests.paths import EXAMPLES

pytestmark = pytest.mark.benchmark

POINTS = 1_000_000
EXAMPLE = EXAMPLES / "serve-deepseek-v3-h200.yaml"
OUTPUTS = {
    "estimate": (ESTIMATE["aggregated"], ("T_ttft", "T_tpot", "M_need", "C_mix")),
    "bound": (BOUND, ("T_ttft_bound", "T_tpot_bound", "M_need", "T_slot_bound")),
}


def deepseek(chips: tuple[int, ...], **changes: Any) -> Task:
    """DeepSeek-V3 on H200 nodes, 4000 tokens in and 1000 out."""
    model = sizes(models.load("deepseek-v3"))
    task = question(model, chips=chips, input_tokens=4000.0, output_tokens=1000.0, **changes)
    chip = system("hgx-h200").chip
    return replace(
        task, chip=chip, context=4500.0, chunk=8192.0, promises={"ttft": 2.0, "tpot": 0.05}
    )


def solve(task: Task) -> float:
    """Search, certificate and elasticities."""
    step = searched(task)
    found = search(step)
    bound = relaxation(step, found, float(found.score[0]))
    elastic(step.take(found.rows[:1]), float(found.batch[0]))
    return 1 - bound.value / float(found.score[0])


@pytest.mark.parametrize("chips", [(32,), (100,), (100_000,), tuple(range(8, 65))])
def test_search_and_certificate(benchmark: Any, chips: tuple[int, ...]) -> None:
    """Warm; fleets are counts, so 100,000 chips cost what 100 cost."""
    task = deepseek(chips)
    benchmark.extra_info["gap"] = benchmark(lambda: solve(task))
    assert 0 <= benchmark.extra_info["gap"] < 1


@pytest.mark.parametrize("chips", [(32,), (100,), (100_000,), tuple(range(8, 65))])
def test_search_alone(benchmark: Any, chips: tuple[int, ...]) -> None:
    """Every layout and batch, without certificate."""
    task = deepseek(chips)
    assert benchmark(lambda: search(searched(task))).rows.size


def scenario(mode: str | None, chips: Any, demand: str | None) -> dict[str, Any]:
    """The same question as a scenario, of one pool, of two, or of whichever is better."""
    lengths: dict[str, Any] = {"input_tokens": 4000, "output_tokens": 1000}
    return {
        "problem": "serving", "model": "deepseek-v3", "system": "hgx-h200", "chips": chips,
        "price": "$3.50/hour", "promises": {"ttft": "2 s", "tpot": "50 ms"},
        "workload": lengths if demand is None else {**lengths, "demand": demand},
        "choose": {"mode": mode} if mode else {},
    }  # fmt: skip


@pytest.mark.parametrize("chips", [32, 100, 100_000], ids=str)
@pytest.mark.parametrize("demand", [None, "max"])
@pytest.mark.parametrize("mode", ["aggregated", "disaggregated"])
def test_questions_of_one_pool_and_two(
    benchmark: Any, mode: str, demand: str | None, chips: int
) -> None:
    """A scenario's questions searched, layouts and batches of one pool, and pairs of two."""
    asked = resolve(load(scenario(mode, chips, demand)))
    found = benchmark.pedantic(lambda: questions_of(asked), rounds=3, warmup_rounds=1)
    benchmark.extra_info["points_evaluated"] = sum(each.decided.evaluated for each in found)
    assert ranked(found)


@pytest.mark.parametrize("demand", [None, "max", "2 requests/s"])
def test_both_modes_answered(benchmark: Any, demand: str | None) -> None:
    """All of an answer on 32 chips: both modes searched, certificate and elasticities included."""
    asked = scenario(None, 32, demand)
    plan = benchmark.pedantic(lambda: planner.solve(asked), rounds=5, warmup_rounds=1)
    benchmark.extra_info["gap"] = plan.document["certificate"]["gap"]
    assert plan.status == "optimal"


def points(model: str) -> tuple[Any, dict[str, Any]]:
    """A compiled model and a million different points of layout and batch."""
    equations, outputs = OUTPUTS[model]
    compiled = kernel(equations, outputs)
    step = searched(deepseek((32,)))
    given = step.take(np.zeros(1, dtype=int)).values(np.ones(1))
    row = {name: float(np.ravel(given[name])[0]) for name in compiled.names}
    random = np.random.default_rng(0)
    row["ep"] = random.choice([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], POINTS)
    row["B"] = random.integers(1, 2000, POINTS).astype(float)
    for name in ("tp", "dp", "pp"):
        row[name] = random.integers(1, 9, POINTS).astype(float)
    return compiled, row


@pytest.mark.parametrize("model", ["estimate", "bound"])
def test_points(benchmark: Any, model: str) -> None:
    """TTFT, TPOT, memory and cost of a million points on one core."""
    compiled, row = points(model)
    result = benchmark(lambda: compiled(**row))
    benchmark.extra_info["million_points_per_s"] = POINTS / 1e6 / benchmark.stats["median"]
    assert all(np.isfinite(value).all() for value in result.values())


def test_points_by_hand(benchmark: Any) -> None:
    """The estimate's terms written in NumPy by hand, for comparison; same numbers."""
    compiled, row = points("estimate")
    expected = compiled(**row)
    found = benchmark(lambda: by_hand(**row))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)


def test_cold_command(benchmark: Any) -> None:
    """`planner solve` in a process of its own."""
    command = [sys.executable, "-m", "planner", "solve", str(EXAMPLE), "--json"]
    run = benchmark.pedantic(
        lambda: subprocess.run(command, check=True, capture_output=True), rounds=5
    )
    assert b'"status": "optimal"' in run.stdout


def by_hand(**v: Any) -> dict[str, np.ndarray]:  # noqa: PLR0915
    """TTFT, TPOT, memory and price, as one would write them in an afternoon."""
    B, tp, dp, pp = v["B"], v["tp"], v["dp"], v["pp"]
    F_a, F_f, F_r, F_h = v["F_attn"], v["F_ffn"], v["F_routed"], v["F_head"]
    spread, m = v["ep"] * v["xtp"], v["m_pos"]
    rank, stage, held = np.ceil(B / (pp * dp)), np.ceil(B / pp), np.ceil(B / dp)
    pace = np.maximum(1.0, v["f_stage"] * np.minimum(1.0, B / pp))
    covered = -np.expm1(stage * m * np.log1p(-v["k_experts"] / v["n_experts"]))
    read = v["S_fixed"] / tp + v["S_routed"] * covered * v["u_ep"] / spread
    cache = rank * ((v["b_kv"] * v["L_ctx"] + v["R_bnd"]) * v["f_heads"] + 2 * v["R_state"] / tp)
    dense = v["N_attn"] / F_a + v["N_ffn"] / F_f
    math = v["c_fwd"] * rank * m * (dense + v["N_head"] / F_h) / tp
    math += (
        v["c_fwd"]
        * m
        * v["N_exp"]
        * v["u_ep"]
        * (stage + v["c_imb"] * np.sqrt(stage))
        / (F_r * spread)
    )
    attention = rank * m * (v["a_kv"] * v["L_ctx"] + v["A_bnd"]) / (v["F_sdpa"] * tp)
    vector = v["h_act"] * v["b_act"]
    token = v["h_exp"] * (v["b_disp"] + v["b_comb"])
    reduced, sent = rank * m * vector, stage * m * v["k_copies"] * token / (tp * dp)
    reduce = (
        v["t_ar"] + (v["a_ar"] + reduced / v["w_ar"] + v["g_ar"] * np.sqrt(reduced)) / v["e_ar"]
    )
    exchange = v["t_a2a"] + (v["a_x"] + sent / v["w_x"] + v["g_x"] * np.sqrt(sent)) / v["e_a2a"]
    hop = v["t_hop_net"] + v["t_hop_sw"]
    blocks = v["n_blocks"] * v["t_layer"]
    layers = blocks + v["n_moe"] * v["t_moe"] + v["n_ep"] * v["t_ep"]
    step = pace * (
        (read / v["e_w"] + cache / v["e_kv"]) / v["W_chip"]
        + math / v["e_c"]
        + attention / v["e_at"]
        + v["n_ar"] * reduce
        + v["n_a2a"] * exchange
        + layers
    )
    step += v["n_hop"] * (hop + reduced / v["r_hop"])
    step += rank * v["t_seq"] + v["t_step"]

    new = v["L_in"] * (1 - v["x_hit"])
    pairs = new * v["L_in"] * v["x_hit"] + new**2 / 2
    chunks = np.ceil(new / v["c_chunk"])
    prompt = v["c_fwd"] * (new * dense + v["N_head"] / F_h) / v["e_pf"]
    prompt += v["c_fwd"] * new * v["N_exp"] * v["u_ep"] / (F_r * v["e_pf_x"])
    prompt += (v["a_pf"] * pairs + v["A_bnd_pf"] * new) / (v["F_sdpa"] * v["e_pf_a"])
    prompt /= tp
    prompt += (
        chunks * (v["S_fixed"] / tp + v["S_routed"] * v["u_ep"] / spread) / (v["W_chip"] * v["e_w"])
    )
    reduced, sent = new * vector, new * v["k_copies_pf"] * token / tp
    reduce = chunks * v["a_ar_pf"] + reduced / v["w_ar_pf"]
    reduce += v["g_ar_pf"] * np.sqrt(chunks * reduced)
    exchange = chunks * v["a_x_pf"] + sent / v["w_x_pf"] + v["g_x_pf"] * np.sqrt(chunks * sent)
    prompt += v["n_ar"] * (chunks * v["t_ar"] + reduce / v["e_ar_pf"])
    prompt += v["n_a2a"] * (chunks * v["t_a2a"] + exchange / v["e_a2a"])
    prompt += v["n_hop"] * (hop + new * vector / v["r_hop"])
    prompt += chunks * (blocks + v["n_moe"] * v["t_pf_moe"] + v["t_pf_chunk"])
    ttft = prompt * ((1 - 1 / chunks) * v["f_stage"] / pp + 1 / chunks)
    ttft += v["s_mixed"] * (chunks + v["n_sched"]) * step + new * v["t_tok"] + v["t_request"]
    busy = v["f_stage"] * prompt / (pp * dp) * v["x_pf"]
    slot = busy + v["L_dec"] * step / (v["g"] * B)
    tpot = (step + v["kappa"] * (B - v["x_own"]) * v["g"] / v["L_dec"] * busy) / v["g"]

    memory = v["f_stage"] * (v["M_fixed"] / tp + v["M_routed"] * v["u_ep"] / spread) / pp
    each = (v["b_store"] * v["L_ctx"] + v["R_bnd_mem"]) * v["f_heads"] + v["R_state"] / tp
    memory += v["f_stage"] * held * each / pp
    memory += (v["x_pf"] * v["c_chunk"] + rank * m) * v["h_wide"] * v["b_act"]
    memory += rank * m * v["vocab"] * v["b_logit"] / tp + v["M_reserve"]
    price = v["p_chip"] * v["n_chips"] * slot / (v["n_rep"] * v["r_fill"])
    return {
        "T_ttft": ttft, "T_tpot": tpot, "M_need": memory,
        "C_mix": price / (v["L_in"] + v["L_out"]),
    }  # fmt: skip
