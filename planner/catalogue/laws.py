"""Published scaling laws: coefficients with standard errors, sources and dates.

A law is data. The equations that its `form` names stand in `formulas`; where a coefficient bears
the name of a symbol there, the two can be put together as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.catalogue.figures import table
from planner.errors import CatalogueError

__all__ = ["FORMS", "Coefficient", "Law", "default_law", "law", "law_names"]

FILE = "laws.toml"

# {form: equations of `formulas` that its coefficients fill}; empty where none is needed yet.
FORMS: Mapping[str, tuple[str, ...]] = {
    "chinchilla": ("chinchilla_loss", "optimal_tokens", "optimal_parameters", "overtraining"),
    "repetition": ("chinchilla_loss", "optimal_tokens", "repetition_worth", "excess_worth"),
    "sigmoid": ("rl_reward", "rl_arithmetic_needed"),
    "allocation": (),
    "kaplan": (),
    "clark": ("saturated_experts", "effective_parameters"),
    "krajewski": (),
    "abnar": (),
    "minicpm": (),
}


@dataclass(frozen=True)
class Coefficient:
    """One fitted number; `error` is its standard error, `low` and `high` a published interval."""

    value: float
    published: float
    ln: bool = False
    error: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Law:
    """A fitted law.

    Attributes
    ----------
    form
        A key of `FORMS`.
    coefficients
        {name: number with its standard error}; logarithms have been undone.
    scope
        What it was fitted on.
    verified
        `yes`, `secondary` (a transcribed copy was read), or `no`.
    """

    name: str
    title: str
    form: str
    coefficients: Mapping[str, Coefficient]
    scope: str
    source: str
    link: str
    as_of: str
    verified: str
    note: str = ""

    @property
    def values(self) -> dict[str, float]:
        """{name: value}, to be given to the equations of the form."""
        return {name: each.value for name, each in self.coefficients.items()}


def law_names(form: str | None = None) -> tuple[str, ...]:
    """Names of all laws, or of those of one form."""
    return tuple(name for name, each in _laws().items() if form in (None, each.form))


def law(name: str) -> Law:
    """A law by name.

    Raises
    ------
    CatalogueError
        If there is none, with the nearest name.
    """
    if name not in _laws():
        raise CatalogueError.unknown("law", name, law_names())
    return _laws()[name]


def default_law() -> Law:
    """The law used where none is named."""
    return law(table(FILE)["default"])


@cache
def _laws() -> dict[str, Law]:
    found = {}
    for name, row in table(FILE)["law"].items():
        coefficients = {x: _coefficient(entry) for x, entry in row["coefficients"].items()}
        found[name] = Law(name=name, **row | {"coefficients": coefficients})
    return found


def _coefficient(entry: Mapping[str, Any]) -> Coefficient:
    ln = entry.get("ln", False)
    value = math.exp(entry["value"]) if ln else float(entry["value"])
    return Coefficient(
        value=value,
        published=float(entry["value"]),
        ln=ln,
        error=entry.get("error"),
        low=entry.get("low"),
        high=entry.get("high"),
    )
