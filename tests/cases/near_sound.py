"""Scenarios that are nearly sound: those that are stored, with a value or two changed."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from ruamel.yaml import YAML

from planner.scenario.kinds import PROBLEMS, starter
from planner.scenario.loading import json_schema
from tests.paths import EXAMPLES

# In place of any value: what nobody knows, other kinds of value, ends of ranges.
ODD: tuple[Any, ...] = (
    *("gpt-5", "hgx-h100", "none.csv", "1 s", "1 ms", "$2/hour", "auto", "50%", "8 GB", None),
    *(0, 1, 3, 7, 64, 300_000, 10**9, 0.5, 1.5, "3 requests/s", "1e24 FLOP", [1, 3], {}, "max"),
)
# In place of a value anywhere in the schema: names of other things, choices, other shapes.
NAMES: tuple[Any, ...] = (
    *("tpu-v5e", "gb200-nvl72", "llama-3.1-8b", "deepseek-v3", "mamba2-2.7b", "/etc/hostname"),
    *("columns.csv", "bf16", "int4", "mxfp4", "vllm", "none", "cost", "energy", "decode", "mtp"),
    *("250%", "0%", "99.9%", "7B", "2 T tokens", "1 year", "catalogue", "besiroglu-2024", "x"),
    *([], [1, 1], {"x": 1}, [{}], {"like": "hgx-h100"}, {"from": 1, "to": 9}, {"mean": 3, "cv": 2}),
    *(["hgx-h100", "tpu-v5e"], True, False, 1e300, -1, 2, 10),
)
# What may be added, and where.
ADDED: dict[str, tuple[tuple[str, Any], ...]] = {
    "serving": (
        ("current", {"tp": 3, "batch": 64}), ("current", {"tp": 8, "batch": 64}),
        ("current", {"ep": 4, "tp": 4}), ("current", {"overlap": "two-batch", "batch": 8}),
        ("buy", {"prices": "catalogue"}), ("buy", {"prices": "catalogue", "hosts": ["nobody"]}),
        ("choose", {"tp": 7}), ("choose", {"pp": 1000}), ("choose", {"mode": "disaggregated"}),
        ("choose", {"redundant_experts": 8}), ("limits", {"power": "1 W"}),
        ("engine", "vllm"), ("engine", "none"), ("speculation", {"method": "eagle-9"}),
        ("promises", {"ttft_p95": "1 s"}), ("objective", "latency"),
    ),
    "training": (
        ("current", {"tp": 3, "pp": 5}), ("current", {"tp": 8, "pp": 4}),
        ("choose", {"tp": 7}), ("chips", 3), ("choose", {"pp": 1000}),
        ("reliability", {"mtbf": "1 hour/chip", "save": "1 min", "restart": "10 min"}),
    ),
    "prices": (
        ("sheet", "anthropic/claude-sonnet-4.5"), ("sheet", "GLM-4.5"), ("on", "2019-01-01"),
        ("given", {"model": "deepseek-v3"}), ("given", {"model": "qwen3-32b", "n_active": "1B"}),
        ("chips", "cs3"), ("chips", ["h100", "tpu-v5e"]),
    ),
    "cache": (
        ("reuse", {"trace": "none.csv"}), ("reuse", {"trace": "columns.csv"}),
        ("model", "mamba2-2.7b"), ("weights", "fp4"), ("tiers", [{"name": "x"}]),
    ),
    "budget": (
        ("law", "none"), ("law", "sardana-2024"), ("extrapolate", False),
        ("choose", {"n_active": "1e15"}), ("choose", {"sparsity": 64}),
    ),
    "lifecycle": (("family", {"like": "qwen3-32b"}), ("choose", {"sparsity": 64}), ("law", "x")),
    "rl": (("rollout", {"tp": 3}), ("chips", 2), ("unit", 3), ("split", 7)),
    "schedule": (("capacity", 0), ("arrivals", "1e9 requests/s")),
    "fleet": (("hours", "month"), ("hours", 3)),
}  # fmt: skip


@cache
def stored() -> tuple[dict[str, Any], ...]:
    """The starter of every kind, and all examples."""
    yaml = YAML(typ="safe", pure=True)
    texts = [starter(kind) for kind in PROBLEMS]
    texts += [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.yaml"))]
    return tuple(yaml.load(text) for text in texts)


def near_sound(seed: int, kinds: tuple[str, ...] = PROBLEMS) -> dict[str, Any]:
    """A stored scenario of some kind with one or two values changed, added or left out."""
    rng = random.Random(f"near:{seed}")
    kind = rng.choice(kinds)
    data = copy.deepcopy(rng.choice([each for each in stored() if each["problem"] == kind]))
    for _ in range(rng.choice((1, 1, 2))):
        if rng.random() < 0.5:
            key, value = rng.choice(ADDED[kind])
            data[key] = copy.deepcopy(value)
            continue
        places = list(_places(data))
        holder, key = rng.choice(places)
        if rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(rng.choice(ODD))
    return data


@cache
def schema_places(kind: str) -> tuple[tuple[str, ...], ...]:
    """Every place of a kind in the published schema, five keys deep."""
    schema: Any = json_schema()
    whole = next(
        each for each in schema["$defs"].values()
        if each.get("properties", {}).get("problem", {}).get("const") == kind
    )  # fmt: skip

    def below(shape: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        while "$ref" in shape:
            shape = schema["$defs"][shape["$ref"].rpartition("/")[2]]
        for word in ("oneOf", "anyOf", "allOf"):
            for each in shape.get(word, ()):
                yield from below(each, above)
        for key, inner in shape.get("properties", {}).items():
            yield (*above, key)
            if len(above) < 4:
                yield from below(inner, (*above, key))

    return tuple(sorted({x for x in below(whole, ()) if x[0] not in ("problem", "units")}))


def spoilt_somewhere(seed: int, kinds: tuple[str, ...] = PROBLEMS) -> dict[str, Any]:
    """A stored scenario of some kind with an odd value at one or two places of the schema."""
    rng = random.Random(f"schema:{seed}")
    kind = rng.choice(kinds)
    data = copy.deepcopy(rng.choice([each for each in stored() if each["problem"] == kind]))
    for _ in range(rng.choice((1, 1, 2))):
        *above, last = rng.choice(schema_places(kind))
        holder: Any = data
        for key in above:
            if not isinstance(holder.get(key), dict):
                named = key in ("model", "system") and isinstance(holder.get(key), str)
                holder[key] = {"like": holder[key]} if named else {}
            holder = holder[key]
        holder[last] = copy.deepcopy(rng.choice((*ODD, *NAMES)))
    return data


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Every key and index below a mapping or a list, but the kind."""
    items = list(enumerate(holder)) if isinstance(holder, list) else list(holder.items())
    for key, value in items:
        if key != "problem":
            yield holder, key
        if isinstance(value, dict | list):
            yield from _places(value)
