"""Counts of dense decoders, listed figures and comparisons that re-checks of several kinds need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import planner
from tests.paths import ROOT

Document = dict[str, Any]
CLOSE = 1e-6  # relative: two ways of writing down one sum or product
DAY = 86400.0
YEAR = 365.25 * DAY
HOUR = 3600.0


def close(first: float, second: float, relative: float = CLOSE, absolute: float = 1e-12) -> bool:
    """Whether two numbers are one but for rounding."""
    return abs(first - second) <= max(relative * max(abs(first), abs(second)), absolute)


def differs(
    what: str,
    printed: float | None,
    by_hand: float,
    relative: float = CLOSE,
    absolute: float = 1e-12,
) -> Iterator[str]:
    """A fault where a number of the answer is not the one worked out by hand."""
    if printed is None or not close(printed, by_hand, relative, absolute):
        yield f"{what}: {printed} in the answer, {by_hand:.9g} by hand"


@cache
def config(model: str) -> Mapping[str, Any]:
    """The Hugging Face configuration of a model of the catalogue."""
    file = ROOT / "planner" / "catalogue" / "models" / f"{model}.json"
    raw = json.loads(file.read_text(encoding="utf-8"))
    return raw.get("config", raw)  # type: ignore[no-any-return]


@cache
def figure(chip: str, name: str) -> float:
    """A listed figure of a chip in base units."""
    rows = planner.catalog("chips", chip)["figures"]
    return float(next(row["base"] for row in rows if row["name"] == name))


def head_width(model: Mapping[str, Any]) -> int:
    """Numbers of one attention head."""
    return int(model.get("head_dim") or model["hidden_size"] // model["num_attention_heads"])


def layer_parameters(model: Mapping[str, Any]) -> float:
    """Weights of the matrices of one dense layer of the Llama family."""
    wide, heads = model["hidden_size"], model["num_attention_heads"]
    groups = model.get("num_key_value_heads") or heads
    attention = wide * head_width(model) * (2 * heads + 2 * groups)
    return float(attention + 3 * wide * model["intermediate_size"])


def norm_parameters(model: Mapping[str, Any]) -> float:
    """Scales of two norms a layer and of the last one."""
    return float(model["hidden_size"] * (2 * model["num_hidden_layers"] + 1))


def table_parameters(model: Mapping[str, Any]) -> float:
    """One table of tokens."""
    return float(model["hidden_size"] * model["vocab_size"])
