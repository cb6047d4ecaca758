"""Random questions whose plans are written as launches."""

from __future__ import annotations

import random
from typing import Any

from planner.catalogue import models
from planner.engines import ENGINES

PUBLISHED = tuple(name for name in models.model_names() if models.repository(name))
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-b200", "gb200-nvl72", "mi300x-8", "hgx-a100")


def question(seed: int) -> dict[str, Any]:
    """A random question of one published model, mostly of one pool."""
    rng = random.Random(seed)
    data: dict[str, Any] = {
        "problem": "serving", "model": rng.choice(PUBLISHED), "system": rng.choice(SYSTEMS),
        "chips": rng.choice((1, 2, 4, 8, 8, 16, 24)), "price": "$3/hour",
        "engine": rng.choice(("any", *ENGINES)),
        "memory_utilisation": rng.choice((0.8, 0.9, 0.95)),
        "workload": {"input_tokens": rng.choice((200, 2000, 8000)),
                     "output_tokens": rng.choice((50, 500))},
        "choose": {"mode": rng.choice(("aggregated", "aggregated", "disaggregated"))},
    }  # fmt: skip
    if rng.random() < 0.3:
        data["choose"]["kv"] = "fp8"
    if rng.random() < 0.2:
        data["speculation"] = {"drafts": 2, "acceptance": 0.6}
    return data


def shared(seed: int) -> dict[str, Any]:
    """The same question of long contexts, over which chips of tp that decode must be spread."""
    data, rng = question(seed), random.Random(-1 - seed)
    data["chips"] = rng.choice((8, 8, 16, 24, 64))
    data["workload"]["input_tokens"] = rng.choice((8000, 32_000, 120_000))
    data["choose"] = {**data["choose"], "dcp": rng.choice((2, 4, 8, 16))}
    return data
