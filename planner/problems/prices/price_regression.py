"""Sizes by powers of listed prices, fitted on models with public weights; errors left one out."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.text.tables import table

FILE = "price_regression.toml"
P_REF = 1e-6  # USD/token; reference price, where a fitted size equals `reference`


@dataclass(frozen=True)
class PriceLaw:
    """`of` as a product of powers of `by`; `reference` is its value where each of them is 1.

    `factor` holds 80 % of the architectures left out, `guess` does where the mean is guessed [-];
    `range` are the least and the most of what it was fitted on, by name.
    """

    of: str
    by: tuple[str, ...]
    reference: float
    powers: tuple[float, ...]
    factor: float
    guess: float
    range: Mapping[str, tuple[float, float]]


LAWS = {
    "n_active": ("p_in",),
    "n_total": ("p_in", "p_out"),
    "p_out": ("n_active", "n_total"),
    "kv_bytes_per_token": ("p_in", "p_out"),
}


def laws() -> Mapping[str, PriceLaw]:
    """Shipped price laws, by the quantity that they predict."""
    return {
        name: PriceLaw(
            name, LAWS[name], row["reference"], tuple(row["powers"]), row["factor"], row["guess"],
            {x: (low, high) for x, (low, high) in row["range"].items()},
        )
        for name, row in _shipped()["law"].items()
    }  # fmt: skip


def shipped_note() -> tuple[str, str]:
    """Source of the data behind the shipped laws, and the date of its prices."""
    return _shipped()["source"], _shipped()["as_of"]


@cache
def _shipped() -> dict[str, Any]:
    return table("planner.problems.prices", FILE)
