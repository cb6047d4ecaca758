"""Which values lie outside what a law was fitted on, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalogue.scaling_laws import RANGES
from planner.text.quantities import show

__all__ = ["outside"]

ROUNDING = 0.02  # a range printed with two digits reaches as far as they do
WORDS = {
    "n": "active parameters",
    "d": "training tokens",
    "sparsity": "total for each active parameter",
    "arithmetic": "of training",
    "epochs": "passes over the data",
}


def outside(
    name: str, limits: Mapping[str, tuple[float, float]], given: Mapping[str, float]
) -> list[str]:
    """One sentence for each value outside its limits; values without limits are not judged."""
    found = []
    for key, value in given.items():
        if key not in limits:
            continue
        low, high = limits[key]
        if value > high * (1 + ROUNDING):
            apart = f"{value / high:.3g} times the largest"
        elif value < low * (1 - ROUNDING):
            apart = f"{low / value:.3g} times less than the smallest"
        else:
            continue
        fitted = _shown(key, low) if low == high else f"{_shown(key, low)} to {_shown(key, high)}"
        found.append(f"{name} was fitted on {fitted} {WORDS[key]}; {_shown(key, value)} is {apart}")
    return found


def _shown(key: str, value: float) -> str:
    if RANGES[key] in ("number", "work"):
        return f"{value:.3g}{' FLOP' if RANGES[key] == 'work' else ''}"
    shown = show(value, RANGES[key])
    return shown.removesuffix(" params").removesuffix(" tokens")
