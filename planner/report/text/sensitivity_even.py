"""Break-even points in words: at which value one choice is as good as another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.report.text.sensitivity import valued
from planner.text.words import wrapped

__all__ = ["even_text"]


def even_text(found: Sequence[Mapping[str, Any]]) -> str:
    """All comparisons, one paragraph each."""
    return "\n\n".join("\n".join(_told(each)) for each in found)


def _told(each: Mapping[str, Any]) -> list[str]:
    first, rival, path = each["first"], each["rival"], each["over"]
    whose = f" of {rival}" if each["varied"] == "rival" else ""
    lines = [f"{rival} against {first}, by {each['of']}, over {path}{whose}"]
    for point in each["crossings"]:
        value = valued(point["value"], each["unit"])
        lines += wrapped(f"{value}: below it {point['better_below']}, above it "
                         f"{point['better_above']} is better")  # fmt: skip
        pair = [point[side][who] for side in ("below", "above") for who in ("first", "rival")]
        told = [_output(value) for value in pair]
        lines += wrapped(
            f"solved on both sides: {first} {told[0]}, {rival} {told[1]} just below it; "
            f"{told[2]} and {told[3]} just above [{each['unit_of']}]"
        )
    if not each["crossings"]:
        low, high = (valued(value, each["unit"]) for value in each["looked_at"])
        better = each["ends"][0]
        verdict = "neither keeps the promises" if better is None else f"{better} is better"
        lines += wrapped(f"{verdict} from {low} to {high}")
    return lines


def _output(value: float | None) -> str:
    return "keeps no promise" if value is None else f"{value:.6g}"
