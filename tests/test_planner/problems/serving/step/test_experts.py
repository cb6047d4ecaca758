"""Copies of experts, skewed routing, and routing limited to groups of experts."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from formulas.network.expert_copies import distinct_nodes, nodes_in_reach
from planner.architecture import from_config, model_sizes
from planner.architecture.counts import ModelSizes
from planner.catalogue import models
from planner.problems.serving.advice.grounds import imbalance
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import search
from planner.problems.serving.step.binding import copies, copies_to_domains, expert_imbalance
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve
from planner.scenario import load
from planner.text.errors import InputError, ModelError
from tests.cases.serving import MODELS, columns, question, searched
from tests.loops import for_all

DEEPSEEK = model_sizes(models.load("deepseek-v3"))
KIMI = model_sizes(models.load("kimi-k2"))
RACK = {
    "problem": "serving", "model": "deepseek-v3", "system": "gb200-nvl72", "chips": 72,
    "workload": {"input_tokens": 4000, "output_tokens": 1000}, "promises": {"tpot": "50 ms"},
    "choose": {"mode": "aggregated", "dp_attention": 72, "ep": 72},
}  # fmt: skip


def ranks(model: ModelSizes, ep: int, **changes: Any) -> dict[str, float]:
    """Weights and tokens of the fullest of ep ranks over the mean."""
    found = expert_imbalance(question(model, **changes), columns([(1, 1, 1, ep, ep, 1, 1, ep)]))
    return {name: float(value[0]) for name, value in found.items()}


@pytest.mark.parametrize(
    ("ep", "redundant", "weights", "tokens"),
    [(72, 0, 4 * 72 / 256, 4 * 72 / 256), (72, 32, 4 * 72 / 256, 1.0), (32, 32, 9 / 8, 1.0),
     (8, 0, 1.0, 1.0), (320, 64, 1.25, 1.0)],
)  # fmt: skip
def test_serving_copies_even_out_the_ranks(
    ep: int, redundant: int, weights: float, tokens: float
) -> None:
    """256 experts on 72 ranks are four on the fullest; 32 copies make that four on each."""
    found = ranks(DEEPSEEK, ep, redundant=redundant)
    assert found["u_ep"] == pytest.approx(weights)
    assert found["x_ep"] == pytest.approx(tokens)


@given(
    ep=st.integers(1, 400), redundant=st.integers(0, 300), skew=st.floats(1.0, 50.0)
)  # fmt: skip
@settings(max_examples=100, deadline=None, derandomize=True)
def test_serving_fullest_rank_is_never_below_the_mean(ep: int, redundant: int, skew: float) -> None:
    """Of weights by the copies held, of tokens by the skew, which one rank's share bounds."""
    found = ranks(DEEPSEEK, ep, redundant=redundant, skew=skew)
    assert found["u_ep"] >= 1 + redundant / 256 - 1e-12
    assert found["x_ep"] >= found["f_skew"] >= 1
    assert found["f_skew"] <= ep


def test_serving_skew_slows_a_step_and_a_prompt() -> None:
    """Arithmetic of experts and the bytes of the fullest rank grow with it, the bound does not."""
    task = question(DEEPSEEK, chips=(16,))
    layout = columns([(1, 1, 1, 16, 16, 1, 1, 16)])
    for bound, times in ((False, ("tpot", "ttft", "slot")), (True, ())):
        even, skewed = (
            Step(replace(task, skew=skew), layout, bound=bound)(np.array([512.0]))
            for skew in (1.0, 1.5)
        )
        for name in times:
            assert float(skewed[name][0]) > float(even[name][0])
        assert bound is not bool(times)
        assert float(skewed["need"][0]) == float(even["need"][0])
    low, high = (
        float(Step(replace(task, skew=s), layout, bound=True)(np.array([512.0]))["slot"][0])
        for s in (1.0, 1.5)
    )
    assert low == high


def test_serving_one_rank_knows_no_skew() -> None:
    """Experts sharded over all chips are touched alike by all of them."""
    task = question(MODELS["sparse"], chips=(4,), limits_of={"ep": (1,)})
    plain, skewed = (search(searched(replace(task, skew=s))).score[0] for s in (1.0, 3.0))
    assert plain == skewed


def test_serving_more_copies_than_experts_need_more_ranks() -> None:
    """Ranks beyond the number of experts hold copies: ep may be E + r."""
    asked = {**RACK, "model": "gpt-oss-120b", "chips": 144, "promises": {}}
    chosen = {"mode": "decode", "ep": 144, "redundant_experts": 16}
    plan = planner.solve({**asked, "choose": chosen}).chosen
    assert (plan["layout"]["ep"], plan["redundant_experts"]) == (144, 16)
    with pytest.raises(InputError, match="no layout"):
        planner.solve({**asked, "choose": {**chosen, "redundant_experts": 8}})


def test_serving_copies_are_chosen_where_they_pay() -> None:
    """A list is a choice: 32 copies on 72 ranks cost nothing in memory and save arithmetic."""
    chosen = {**RACK["choose"], "redundant_experts": [0, 32]}
    plan = planner.solve({**RACK, "choose": chosen}).chosen
    assert plan["redundant_experts"] == 32
    fixed = planner.solve({**RACK, "choose": {**chosen, "redundant_experts": 0}}).chosen
    assert plan["usd_per_mtok"] < fixed["usd_per_mtok"]
    assert plan["memory_per_chip"]["weights"] == pytest.approx(fixed["memory_per_chip"]["weights"])


def test_serving_uneven_experts_are_told() -> None:
    """With how many copies would make them even; nothing where they are."""

    def pool(ep: int, redundant: int = 0) -> SimpleNamespace:
        layout = SimpleNamespace(ep=ep)
        return SimpleNamespace(layout=layout, redundant_experts=redundant, phases={})

    (warning,) = imbalance(pool(72), 256)
    assert "choose.redundant_experts: 32" in warning
    assert not imbalance(pool(72, 32), 256)
    assert not imbalance(pool(8), 256)
    pools = SimpleNamespace(layout=None, phases={"prefill": pool(72), "decode": pool(48)})
    prefill, decode = imbalance(pools, 256)
    assert ("prefill" in prefill, "decode" in prefill) == (True, False)
    assert ("prefill" in decode, "decode" in decode) == (False, True)
    assert any("redundant_experts: 32" in w for w in planner.solve(RACK).warnings)


def test_serving_uneven_experts_go_to_every_chip() -> None:
    """All-gather and reduce-scatter of an engine; nothing that no engine needs, nor a bound."""

    def sent(ep: int, engine: str, *, bound: bool = False) -> np.ndarray:
        asked = {**RACK, "chips": ep, "engine": engine, "choose": {"mode": "decode", "ep": ep}}
        task = resolve(load(asked)).tasks[0]
        return np.asarray(
            Step(task, admissible_layouts(task), bound=bound).values(np.ones(1))["k_copies"]
        )

    assert (sent(24, "vllm") == 23).all()
    assert (sent(24, "none") < 8).all()
    assert (sent(24, "vllm", bound=True) < 8).all()
    assert (sent(32, "vllm") < 9).all()


def test_serving_copies_of_a_dense_model_are_refused() -> None:
    """There is nothing to copy; the line says so."""
    asked = {**RACK, "model": "llama-3.1-70b", "choose": {"redundant_experts": 8}}
    with pytest.raises(InputError, match="no routed experts; leave it 0"):
        planner.solve(asked)


def test_serving_groups_are_read() -> None:
    """DeepSeek-V3 picks 4 of 8 groups, Kimi K2 and GLM-5 have one, others none."""
    assert (DEEPSEEK.expert_groups, DEEPSEEK.expert_groups_active) == (8, 4)
    for name in ("kimi-k2", "glm-5", "gpt-oss-120b", "llama-3.1-70b"):
        model = model_sizes(models.load(name))
        assert (model.expert_groups, model.expert_groups_active) == (1, 1)


CONFIG = {
    "model_type": "glm4_moe", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 100,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 32,
    "first_k_dense_replace": 0, "n_group": 4, "topk_group": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({"topk_group": 5}, "more than the 4 groups"), ({"n_group": 3}, "does not divide the 16"),
     ({"n_group": 8, "topk_group": 1}, "too few groups")],
)  # fmt: skip
def test_serving_impossible_groups_are_refused(changes: dict[str, int], problem: str) -> None:
    """What no router can do is a mistake in the configuration."""
    assert model_sizes(from_config(CONFIG, "grouped")).expert_groups == 4
    with pytest.raises(ModelError, match=problem):
        from_config(CONFIG | changes, "grouped")


def drawn(domains: int, groups: int, chosen: int, rng: np.random.Generator) -> float:
    """Mean number of domains that 8 of 256 experts lie on, by drawing tokens."""
    each, met = 256 // groups, []
    for _ in range(4000):
        picked = rng.choice(groups, chosen, replace=False)
        open_to = (picked[:, None] * each + np.arange(each)).ravel()
        met.append(np.unique(rng.choice(open_to, 8, replace=False) * domains // 256).size)
    return float(np.mean(met))


@pytest.mark.parametrize("domains", [8, 16, 32])
def test_serving_domains_of_a_token_equal_drawn_ones(domains: int) -> None:
    """Where groups of experts fill whole domains, the expectation is exact."""
    found = float(copies_to_domains(DEEPSEEK, np.array([domains]))[0])
    assert found == pytest.approx(drawn(domains, 8, 4, np.random.default_rng(0)), rel=0.01)


@pytest.mark.parametrize("domains", [2, 4])
def test_serving_domains_of_several_groups_are_an_upper_bound(domains: int) -> None:
    """Groups that share a domain are met together more often than single experts."""
    found = float(copies_to_domains(DEEPSEEK, np.array([domains]))[0])
    assert found >= drawn(domains, 8, 4, np.random.default_rng(0)) * 0.99


@for_all("domains", [1, 2, 4, 8, 9, 16, 18, 40, 64])
def test_serving_groups_only_ever_save_copies(domains: int) -> None:
    """Never more than free routing, nor than the published limit of nodes; all alike without."""
    place = np.array([domains])
    limited = float(copies_to_domains(DEEPSEEK, place)[0])
    free = float(distinct_nodes.numpy()(n_experts=256, m_group=domains))
    assert limited <= free * (1 + 1e-12)
    if domains <= 8:
        reach = float(nodes_in_reach.numpy()(k_nodes=free, g_limit=4))
        assert limited <= reach * (1 + 1e-12)
    assert float(copies_to_domains(KIMI, place)[0]) == float(copies(KIMI, place)[0])


def test_serving_groups_shorten_a_prompt_over_several_nodes() -> None:
    """Fewer copies cross the network in prefill; decode and one domain stay as they are."""
    free = replace(DEEPSEEK, expert_groups=1, expert_groups_active=1)
    for ep, prompts in ((64, True), (8, False)):
        layout = columns([(1, 1, 1, ep, ep, 1, 1, ep)])
        limited, open_to_all = (
            Step(question(model, chips=(64,)), layout, bound=False)._values
            for model in (DEEPSEEK, free)
        )
        assert bool(limited["k_copies_pf"][0] < open_to_all["k_copies_pf"][0]) is prompts
        assert limited["k_copies"][0] == open_to_all["k_copies"][0]
    assert math.isclose(limited["k_copies_pf"][0], open_to_all["k_copies_pf"][0])
