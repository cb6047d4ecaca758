"""What a plan prints of itself can be given back as the layout in use, and is the same plan."""

from __future__ import annotations

import random
from typing import Any

import pytest

import planner
from planner.text.errors import InputError
from tests.cases.launches import question, shared
from tests.sizes import first, seldom

MODES = ("aggregated", "aggregated", "decode", "prefill", "disaggregated", "")
CHIPS: tuple[Any, ...] = (1, 2, 4, 8, 16, 24, [4, 8, 16], {"from": 1, "to": 8})
MODELS = (
    "llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b", "mixtral-8x7b", "qwen3-32b", "deepseek-v3",
    "llama-3.1-70b", "gpt-oss-120b",
)  # fmt: skip
POOLS = ("prefill", "decode")
PRINTED = (
    "mode", "chip", "batch", "batch_per_replica", "weights", "kv", "chunk", "redundant_experts",
)  # fmt: skip


def asked(seed: int) -> dict[str, Any]:
    """A random question of one mode or of both, with promises, loads, stages, parts of contexts."""
    rng = random.Random(f"current:{seed}")
    data = shared(seed) if rng.random() < 0.2 else question(seed)
    data["model"] = rng.choice(MODELS) if rng.random() < 0.7 else data["model"]
    data["chips"], mode = rng.choice(CHIPS), rng.choice(MODES)
    data["choose"].pop("mode")
    data["choose"] |= {"mode": mode} if mode else {}
    data["choose"] |= {"pp": 2} if rng.random() < 0.3 else {}
    if rng.random() < 0.4:
        data["promises"] = {"tpot": "60 ms"}
    if rng.random() < 0.3 and mode in ("aggregated", "prefill"):
        data["workload"]["demand"] = "0.5 requests/s"
    elif rng.random() < 0.2 and mode == "aggregated":
        data["workload"]["concurrency"] = 16
    if rng.random() < 0.2:
        data["estimate"] = "bound"
    if rng.random() < 0.2:
        data["system"] = ["hgx-h100", "hgx-h200"]
    return data


def as_current(chosen: dict[str, Any]) -> dict[str, Any]:
    """The layout in use as a plan prints it: layout by pool, batch, formats, chip, mode."""
    layouts = chosen["layout"] or {role: chosen[role]["layout"] for role in POOLS}
    left_out = () if chosen["layout"] else ("batch", "batch_per_replica", "chip")
    return layouts | {
        key: chosen[key]
        for key in PRINTED
        if chosen.get(key) is not None and key not in left_out
    }  # fmt: skip


def differing(left: Any, right: Any, path: str = "") -> list[str]:
    """Paths at which two documents differ, numbers by more than 1e-9."""
    if isinstance(left, dict):
        return [x for key in left for x in differing(left[key], right[key], f"{path}.{key}")]
    if isinstance(left, list | tuple) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        return [x for at, (a, b) in pairs for x in differing(a, b, f"{path}.{at}")]
    if isinstance(left, float) and right is not None:
        return [] if right == pytest.approx(left, rel=1e-9) else [path]
    return [] if left == right else [path]


@pytest.mark.parametrize("seed", [*first(12, range(32)), *seldom(range(32, 600))])
def test_a_plan_given_back_is_the_same_plan(seed):
    """Dense and routed, one pool and two: layout, memory, times, price; no promise is broken."""
    data = asked(seed)
    try:
        plan = planner.solve(data)
    except InputError:
        return
    if not plan.feasible:
        return
    chosen = dict(plan.chosen)
    again = planner.solve(data | {"current": as_current(chosen)})
    assert dict(again.chosen) == chosen
    mine = again.document["current"]
    assert differing(chosen, mine) == []
    assert mine["breaks"] == []


BASE = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h200", "chips": 8,
    "price": "$3/hour", "workload": {"input_tokens": 8000, "output_tokens": 500},
}  # fmt: skip
TWO = {"prefill": {"replicas": 4}, "decode": {"tp": 2, "replicas": 2}}


@pytest.mark.parametrize(
    ("model", "current", "words"),
    [
        ("llama-3.1-8b", {"ep": 8, "tp_expert": 1, "tp": 8, "batch": 8}, "current.ep: llama"),
        ("llama-3.1-8b", {"tp_expert": 2, "batch": 8}, "current.tp_expert: llama"),
        ("mixtral-8x7b", {"tp": 4, "ep": 1, "tp_expert": 1, "batch": 8}, "current.tp_expert: 1"),
        ("mixtral-8x7b", {"tp_expert": 2, "batch": 8}, "current.tp_expert: 2 does not divide"),
        ("mixtral-8x7b", {"tp": 8, "ep": 3, "batch": 8}, "current.ep: 3 does not divide"),
        ("mixtral-8x7b", {"tp": 8, "chip": "h100", "batch": 8}, "asked about: aggregated on h200"),
        ("mixtral-8x7b", {"tp": 8, "mode": "decode", "batch": 8}, "none of those asked about"),
        ("mixtral-8x7b", {"tp": 8, "batch": 8, "batch_per_replica": 4}, "hold fewer than the 8"),
        ("llama-3.1-8b", {"prefill": {"tp": 2}}, "those of both prefill and decode"),
        ("llama-3.1-8b", {**TWO, "tp": 2}, "give the layout of one pool, or those of both"),
        ("llama-3.1-8b", {**TWO, "decode": {"replicas": 5}}, "this layout needs 9 chips"),
        ("deepseek-v3", {**TWO, "decode": {"tp": 2}}, "do not hold the model"),
    ],
)  # fmt: skip
def test_a_layout_that_cannot_be_is_refused_at_its_place(model, current, words):
    """By check and by solve, in the same words; never a fault of ours."""
    from planner.protocol.solve import check

    data = BASE | {"model": model, "current": current}
    refusals = []
    for function in (check, planner.solve):
        with pytest.raises(InputError) as refusal:
            function(data)
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]
    assert words in refusals[0], refusals[0]


def test_two_pools_in_use_break_their_promises():
    """They say by how much they are too slow, where no plan is fast enough either."""
    data = BASE | {"promises": {"tpot": "100 us"}, "current": TWO}
    mine = planner.solve(data).document["current"]
    assert mine["mode"] == "disaggregated"
    assert mine["prefill"]["layout"]["replicas"] == 4
    assert mine["decode"]["layout"]["tp"] == 2
    (broken,) = mine["breaks"]
    assert broken["promise"] == "tpot"
    assert broken["short_by"] == pytest.approx(mine["tpot"] / 100e-6)


def test_of_several_sizes_the_layout_pays_for_the_least_that_holds_it():
    """Of one size asked about it pays for that."""
    current = {"tp": 2, "replicas": 2, "batch": 8}
    chips = [
        planner.solve(BASE | {"chips": size, "current": current}).document["current"]["chips"]
        for size in (8, [2, 4, 8], {"from": 1, "to": 8})
    ]
    assert chips == [8, 8, 8]  # of machines of eight
    single = BASE | {"chips": [2, 4, 8], "rent": {"unit": 1}, "current": current}
    assert planner.solve(single).document["current"]["chips"] == 4
