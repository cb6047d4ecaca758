"""Chips of every phase of a life, and the plan that serves, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.problems.budget.presentation import money
from planner.text.wording import percent
from planner.text.words import LABEL, duration, formats, laid_out, row, size

__all__ = ["hardware"]


def hardware(document: Mapping[str, Any]) -> str:
    """Chips of every phase, and the plan that serves."""
    plan, lines = document["plan"], []
    for name, label in (("pretrain", "train on"), ("rl", "RL on")):
        each = plan["chips"].get(name)
        if each is None:
            continue
        told = f"{each['chip']} at {each['mfu']:.0%} of its peak"
        if each["count"]:
            told = f"{each['count']:,} {told}, for {each['days']:.3g} days"
        lines.append(row(label, told))
    serving, unit = plan["serving"], plan["chips"]["inference"]
    lines.append(row("serve as", laid_out(serving)))
    chip = unit["chip"] or "chips of two kinds"
    told = f"{unit['chips_per_unit']} {chip}, {formats(serving)}, {serving['batch']} in flight"
    lines.append(row("a unit is", told))
    rate = f"{unit['tokens_per_s_per_unit']:,.0f} tokens/s, input and output together"
    if unit["units"]:
        rate += f"; {unit['units']:,} units of {unit['count']:,} chips in all carry the first rate"
    lines.append(row("it carries", rate))
    price, band = plan["usd_per_mtok"], document["serving_band"]
    told = f"${price:.3g}/Mtok"
    ends = band and band["usd_per_mtok"]
    told = f"{told:<17}" + (f"${ends[0]:.3g} to ${ends[1]:.3g}/Mtok" if ends else "")
    least = document["bound"]["usd_per_mtok"]
    lines.append(f"{'price':<{LABEL}}{told:<42} bound ${least:.3g}/Mtok")
    times = [f"{k.upper()} {duration(serving[k])}" for k in ("tpot", "ttft") if serving[k]]
    lines.append(row("times", ", ".join(times)))
    slope = f"a model one percent larger costs {plan['slope_of_price']:.2f} % more per token"
    lines.append(row("by size", slope))
    kept = plan["checkpoints"]
    told = (
        f"{kept['count']} of {size(kept['bytes'])} for {kept['seconds'] / 86400:.3g} days are "
        f"{money(kept['usd'])}, {percent(kept['share'])} of the cost: left out"
    )
    lines.append(row("checkpoints", told))
    return "\n".join(lines)
