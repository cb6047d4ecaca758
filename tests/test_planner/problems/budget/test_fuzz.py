"""Budgets with values that nobody meant: an answer, a refusal in a sentence, never a fault."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

import planner
from planner.report.files import dumps

PHASES = {
    "pretrain": {"system": "hgx-h100", "mfu": 0.4},
    "rl": {"system": "hgx-h100", "mfu": 0.2},
    "inference": {"system": "hgx-h200", "mfu": 0.2},
}
CURVE = {"rate": 1e6, "lifetime": "1 year", "growth": 0.1, "discount": 0.2, "obsolescence": 0.1}
REWARD = {"needed": 0.5, "start": 0.2, "middle": 1e21, "steepness": 1.5}
SOUND: tuple[dict[str, Any], ...] = (
    {"law": "besiroglu-2024", "quality": {"like": {"n_active": 13e9}}, "phases": PHASES,
     "inference": {"tokens": 2e12}, "rl": {"tokens": 1e10, "k": 3}, "data": {"unique": 5e12},
     "choose": {"sparsity": [1, 8]}, "objective": "cost", "draws": 3},
    {"law": "muennighoff-2023", "cost": "1e23 FLOP", "inference": CURVE, "data": {"unique": 1e11},
     "draws": 0},
    {"law": "abnar-2025", "quality": {"loss": 2.1}, "choose": {"sparsity": [1, 4, 32]},
     "rl": {"loss": {"coefficient": 5, "exponent": 0.2}}, "draws": 0},
    {"law": "kaplan-2020", "quality": {"loss": 2.1}, "draws": 0,
     "choose": {"n_active": [1e9, 5e9], "pretrain": [1e10, 1e11]}},
    {"law": "besiroglu-2024 + clark-2022-s-base", "quality": {"loss": 2.3},
     "rl": {"reward": REWARD}, "draws": 3},
)  # fmt: skip
JUNK = (
    None, 0, -1, 1, 1e-30, 1e30, 1e38, 0.5, float("nan"), float("inf"), "", "abc", "1e12",
    "5 GB", "$5M", "1e24 FLOP", "13B", [], {}, [1], {"a": 1}, True, "forever", 1e15, "100%",
    "krajewski-2024", "llama-3-2024", "clark-2022-s-base", "muennighoff-2023", 1.83, 2.5, 19.9,
)  # fmt: skip
TRIES = 60


def paths(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*above, key))


def spoilt(rng: random.Random) -> dict[str, Any]:
    """A sound scenario with one to three values scaled, replaced or gone."""
    tree = copy.deepcopy(rng.choice(SOUND))
    for _ in range(rng.choice((1, 1, 2, 3))):
        *above, last = rng.choice(list(paths(tree)))
        holder: Any = tree
        for key in above:
            holder = holder[key]
        old, turn = holder[last], rng.random()
        if turn < 0.15 and isinstance(holder, dict):
            del holder[last]
        elif turn < 0.5 and isinstance(old, int | float):
            holder[last] = old * 10 ** rng.uniform(-8, 8)
        else:
            holder[last] = copy.deepcopy(rng.choice(JUNK))
    return {"problem": "budget", **tree}


@pytest.mark.parametrize("seed", range(4))
def test_a_spoilt_budget_is_answered_or_refused(seed):
    """Text within 80 columns and finite JSON, or an InputError; the ways to solve it agree."""
    rng = random.Random(seed)
    for _ in range(TRIES):
        source = spoilt(rng)
        try:
            plan = planner.solve(source)
        except planner.InputError:
            continue
        dumps(plan.document)
        text = f"{plan}\n{plan.why()}\n{plan!r}"
        assert max(map(len, text.splitlines())) <= 140
        assert max(map(len, str(plan).splitlines())) <= 80
