"""The words of a plan: layouts, formats, numbers, times and sizes as a person would say them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any

from planner.text.quantities import show

__all__ = [
    "LABEL",
    "WIDTH",
    "apart",
    "duration",
    "figure",
    "formats",
    "laid_out",
    "length",
    "named",
    "numbers",
    "row",
    "size",
    "unused",
    "wrapped",
]

NEAR = 1e-8
WIDTH = 78
LABEL = 14


def apart(gap: float) -> str:
    """How far a bound lies from an answer; what is less than rounding is not told in digits."""
    return f"{100 * gap:.1g} %" if gap >= NEAR else "less than 1e-6 %"


def unused(plan: Mapping[str, Any]) -> str:
    """Chips that are paid and not used, in brackets."""
    idle = plan["chips"] - plan["chips_used"]
    return f" ({idle} of them idle)" if idle else ""


def formats(plan: Mapping[str, Any]) -> str:
    """Formats of weights and cache."""
    return f"weights {plan['weights']}, KV cache {plan['kv']}"


def laid_out(plan: Mapping[str, Any]) -> str:
    """A layout in short words; of two pools both."""
    layout = plan["layout"]
    if layout is None:
        return f"prefill {laid_out(plan['prefill'])}, decode {laid_out(plan['decode'])}"
    words = [f"tp {layout['tp']}"]
    words += [
        f"{label} {layout[key]}"
        for key, label in (
            ("pp", "pp"),
            ("cp", "cp"),
            ("dp_attention", "dp attention"),
            ("ep", "ep"),
            ("tp_expert", "expert tp"),
        )
        if layout[key] > 1
    ]
    if plan.get("redundant_experts"):
        words.append(f"{plan['redundant_experts']} redundant experts")
    times = f"{layout['replicas']} x " if layout["replicas"] > 1 else ""
    return f"{times}({', '.join(words)})"


def named(value: Any, kind: str) -> str:
    """A model or system as it was named; a list by its names, a description by what it varies."""
    if isinstance(value, list):
        return " or ".join(named(each, kind) for each in value)
    if isinstance(value, Mapping):
        name = str(value["like"]) if value.get("like") else f"a described {kind}"
        told = ["varied"] if value.get("like") and value.keys() - {"like", "measured"} else []
        told += [f"as measured in {value['measured']}"] if value.get("measured") else []
        return f"{name} ({', '.join(told)})" if told else name
    return str(value)


def numbers(chips: Any) -> str:
    """Numbers of chips as they were asked for."""
    if isinstance(chips, Mapping):
        return f"{chips['from']} to {chips['to']}"
    return ", ".join(map(str, chips)) if isinstance(chips, list) else str(chips)


def length(value: Any) -> str:
    """A length in tokens; the mean of a distribution."""
    return f"{value['mean']:g} (mean)" if isinstance(value, Mapping) else f"{value:g}"


def row(label: str, text: str) -> str:
    """A label and its text, wrapped beside it."""
    return textwrap.fill(
        text, WIDTH, initial_indent=f"{label:<{LABEL}}", subsequent_indent=" " * LABEL
    )


def wrapped(text: str) -> list[str]:
    """A text as indented lines."""
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def duration(value: float) -> str:
    """A time with three digits in the unit that suits it."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.2g} s" if math.isfinite(value) else "never"


def size(value: float) -> str:
    """A size with its unit."""
    return show(value, "size")


def figure(value: float) -> str:
    """Three digits, and all that stand before the point."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
