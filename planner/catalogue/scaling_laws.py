"""Published scaling laws: coefficients with standard errors, ranges, sources and dates.

A law is data. The equations that its `form` names stand in `formulas`; the coefficients bear the
names of symbols there, so that the two can be put together as they are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from planner.catalogue.figures import entry
from planner.text.errors import CatalogueError
from planner.text.tables import table

# {range of a law: its dimension}; n is in active parameters, `epochs` in passes over the data.
RANGES: Mapping[str, str] = {
    "n": "params",
    "d": "tokens",
    "sparsity": "number",
    "arithmetic": "work",
    "epochs": "number",
}


@dataclass(frozen=True)
class Coefficient:
    """One fitted number; `error` is its standard error, `low` and `high` a published interval.

    `value` is in natural units (parameters, tokens, FLOP); `published` is what the source prints,
    its logarithm where `ln` is true, or in a unit that is `scale` natural ones.
    """

    value: float
    published: float
    ln: bool = False
    scale: float = 1.0
    error: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Covariance:
    """Covariance of the coefficients of a law.

    Attributes:
        of: Coordinates: a coefficient, or `ln` and a coefficient.
        spread: Standard deviation of each.
        correlation: Of each with each.
        source: Where it comes from.
    """

    of: tuple[str, ...]
    spread: tuple[float, ...]
    correlation: tuple[tuple[float, ...], ...]
    source: str


@dataclass(frozen=True)
class Law:
    """A fitted law.

    Attributes:
        form: A key of the table `form` beside the laws, which names the equations that it fills.
        coefficients: {name: number with its standard error}; logarithms have been undone.
        scope: What it was fitted on.
        verified: `yes`, `secondary` (a transcribed copy was read), or `no`.
        range: {key of `RANGES`: (lowest, highest) that it was fitted on}, where the source says.
        settings: {name: value} of choices that the law has beside size and tokens, such as
            granularity.
        covariance: Of the coefficients, where it is known.
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
    range: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    covariance: Covariance | None = None

    @property
    def values(self) -> dict[str, float]:
        """{name: value} of coefficients and settings, for the equations of the form."""
        return {name: each.value for name, each in self.coefficients.items()} | dict(self.settings)


def law_names(form: str | None = None) -> tuple[str, ...]:
    """Names of all laws, or of those of one form."""
    return tuple(name for name, each in _laws().items() if form in (None, each.form))


def law(name: str) -> Law:
    """A law by name; raises CatalogueError with the nearest name."""
    return entry("law", name, _laws())


def parse_law(name: str, row: Mapping[str, Any]) -> Law:
    """The law of an entry shaped as those of the catalogue, already checked."""
    covariance = row.get("covariance")
    typed = {
        "name": name,
        "coefficients": {x: _coefficient(each) for x, each in row["coefficients"].items()},
        "range": {x: (float(a), float(b)) for x, (a, b) in row.get("range", {}).items()},
        "settings": {x: float(each) for x, each in row.get("settings", {}).items()},
        "covariance": None if covariance is None else _covariance(covariance),
    }
    return Law(**{**row, **typed})


@cache
def _laws() -> dict[str, Law]:
    rows = table("planner.catalogue", "laws.toml")
    laws = {}
    for name, row in rows["law"].items():
        if row.get("form") not in rows["form"]:
            unknown = CatalogueError.unknown("form", str(row.get("form")), rows["form"])
            raise CatalogueError(f"laws.toml: law.{name}.form: {unknown}")
        try:
            laws[name] = parse_law(name, row)
        except KeyError as error:
            raise CatalogueError(f"laws.toml: law.{name}: lacks the key {error}") from None
        except (TypeError, ValueError) as error:
            raise CatalogueError(f"laws.toml: law.{name}: {error}") from None
    return laws


def _coefficient(row: Mapping[str, Any]) -> Coefficient:
    ln, scale = row.get("ln", False), row.get("scale", 1.0)
    published = float(row["value"])
    value = (math.exp(published) if ln else published) * scale
    interval = (row.get("error"), row.get("low"), row.get("high"))
    return Coefficient(value, published, ln, scale, *interval)


def _covariance(row: Mapping[str, Any]) -> Covariance:
    return Covariance(
        of=tuple(row["of"]),
        spread=tuple(map(float, row["spread"])),
        correlation=tuple(tuple(map(float, each)) for each in row["correlation"]),
        source=row["source"],
    )
