"""Counts, shares, dollars and ranges as a budget or a lifecycle tells them."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap

from planner.problems.budget.presentation import money
from planner.text.quantities import show
from planner.text.words import LABEL, WIDTH

__all__ = ["count", "filled", "listed", "more", "percent", "ranged", "signed"]

SPAN = 46  # column at which ranges begin


def ranged(label: str, text: str, ends: list[float] | None, form: Callable[[float], str]) -> str:
    """A label, its value, and from a fixed column on the ends of an interval."""
    line = f"{label:<{LABEL}}{text}"
    if not ends:
        return line
    low, high = (form(each) for each in ends)
    return f"{line:<{SPAN}}{low} to {high}"


def listed(label: str, text: str) -> list[str]:
    """A label and a text beside it, wrapped."""
    first = f"  {label:<14} "
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * 17)


def filled(text: str) -> list[str]:
    """A text, wrapped, its further lines indented."""
    return wrap(text, WIDTH, subsequent_indent="  ")


def count(value: float) -> str:
    """Parameters or tokens: `18.3B`, `200T`."""
    return show(value, "params").removesuffix(" params").replace(" ", "")


def percent(value: float) -> str:
    """A share in percent, two digits."""
    return f"{100 * value:.2g} %"


def more(value: float) -> str:
    """By how much something is more, signed."""
    shown = 100 * value
    return f"{shown:+.0f} %" if abs(shown) >= 9.95 else f"{shown:+.2g} %"


def signed(usd: float) -> str:
    """Dollars with a sign."""
    return f"{'-' if usd < 0 else '+'}{money(abs(usd))}"
