"""The words of a budget: what was asked, and counts, FLOP and dollars as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from planner.text.quantities import show
from planner.text.words import WIDTH

__all__ = ["count", "digits", "filled", "flop", "listed", "loss", "money", "percent", "question",
           "ranged", "whole"]  # fmt: skip

SPAN = 45  # column at which ranges begin


def question(document: Mapping[str, Any]) -> str:
    """What was asked, in a sentence."""
    asked = document["scenario"]
    quality, served, rl = asked["quality"], document["demand"], asked["rl"]
    if quality is None:
        limit = asked["cost"]
        number, _, unit = str(limit).partition(" ")
        per = unit or ("USD" if asked["objective"] == "cost" else "FLOP")
        wanted = f"the best model that costs {float(number):g} {per}"
    elif quality["loss"] is not None:
        wanted = f"a loss of {quality['loss']:g}"
    else:
        like = quality["like"]
        size = like["model"] or f"{count(like['n_active'])} parameters"
        trained = f" on {count(like['tokens'])} tokens" if like["tokens"] else ""
        kind = "a model" if like["tokens"] else "a compute-optimal model"
        wanted = f"as good as {kind} of {size}{trained}"
    parts = [wanted]
    if served["tokens"] is None:
        parts.append(f"tokens served for ever, counted as {count(served['counted'])}")
    elif served["counted"] != served["tokens"]:
        total, counted = count(served["tokens"]), count(served["counted"])
        parts.append(f"{total} tokens served, counted as {counted}")
    else:
        parts.append(
            f"{count(served['tokens'])} tokens served" if served["tokens"] else "not served"
        )
    if rl["tokens"]:
        parts.append(f"{count(rl['tokens'])} tokens of RL")
    if rl["reward"]:
        parts.append(f"a reward of {rl['reward']['needed']:g} after RL")
    if asked["data"]["unique"]:
        parts.append(f"{count(asked['data']['unique'])} unique tokens")
    least = "cost in USD" if asked["objective"] == "cost" else "FLOP"
    aim = "best loss" if quality is None else f"least {least}"
    return "\n".join(filled(f"{', '.join(parts)}; {aim}"))


def ranged(label: str, text: str, ends: list[float] | None, form: Any) -> str:
    """A label, its text, and between which ends it lies."""
    line = f"{label:<14}{text}"
    if not ends:
        return line
    low, high = (form(each) for each in ends)
    if low == high:
        return line
    return f"{line:<{SPAN}} {low} to {high}"


def listed(label: str, text: str, width: int = 17) -> list[str]:
    """A text beside its label, wrapped."""
    first = f"  {label:<{width}} "
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))


def filled(text: str) -> list[str]:
    """A text as lines, those after the first indented."""
    return wrap(text, WIDTH, subsequent_indent="  ")


def money(value: float) -> str:
    """Dollars with three digits, or all before the point."""
    for scale, letter in ((1e9, "B"), (1e6, "M")):
        if value >= scale * 0.9995:
            return f"${value / scale:.4g}{letter}"
    return f"${value:,.0f}" if value >= 100 else f"${value:.3g}"


def flop(value: float) -> str:
    """An amount of arithmetic."""
    return f"{value:.3g} FLOP"


def count(value: float) -> str:
    """Parameters or tokens: 6.97B, 1.25T."""
    return show(value, "params").removesuffix(" params").replace(" ", "")


def digits(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}"


def loss(value: float) -> str:
    """A loss [nat]."""
    return f"{value:.3f}"


def whole(value: float) -> str:
    """A whole number, or three digits of a very large one."""
    return f"{value:,.0f}" if value < 1e9 else f"{value:.3g}"


def percent(value: float) -> str:
    """A share in percent, three digits."""
    return f"{100 * value:.3g} %"
