"""What the rows of a profile cover: beyond it an estimate rests on what no row there measured.

A hull is a box. Each dimension is a set of names or a range of numbers, a row of `hull.toml` that
also says which coefficients a row there would have measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.text.tables import table

if TYPE_CHECKING:
    from planner.catalogue.profile import Place

Value = str | float
ON = " on "
# Up to a quarter beyond the ends of a range a term changes by less than rows alike scatter.
REACH = 1.25


@dataclass(frozen=True)
class HullDimension:
    """One way in which a question may leave the rows, as `hull.toml` has it."""

    name: str
    title: str
    words: str
    coefficients: tuple[str, ...]
    unit: str = ""
    prompts: bool = False
    beside: tuple[str, ...] = ()
    regime: str = ""

    def holds(self, coefficient: str) -> bool:
        """Whether rows elsewhere tell nothing of a coefficient here."""
        return any(fnmatchcase(coefficient, pattern) for pattern in self.coefficients)

    def asking(self, value: Value) -> str:
        """What is asked for in words."""
        if not isinstance(value, str):
            return self.words.format(asked=f"{value:,.0f}")
        engine = "this engine" if ON in value else "any engine"
        part = "experts" if "experts" in value.split(ON, maxsplit=1)[0] else "weights"
        return self.words.format(engine=engine, part=part)


@cache
def dimensions() -> Mapping[str, HullDimension]:
    """Every dimension by name, those that are sets first."""
    lists = ("coefficients", "beside")
    return {
        name: HullDimension(name, **row | {key: tuple(row.get(key, ())) for key in lists})
        for name, row in table("planner.catalogue", "hull.toml").items()
    }


@dataclass(frozen=True)
class Hull:
    """Names that were fitted and ranges of numbers, by dimension.

    `widths` are standard deviations of the logarithm of a coefficient before any row was fitted.
    """

    names: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[float, float]]
    widths: Mapping[str, float] = field(default_factory=dict)

    def outside(self, point: Mapping[str, str | np.ndarray]) -> dict[HullDimension, np.ndarray]:
        """The dimensions in which points lie outside, and which; one not given is not asked.

        Parameters
        ----------
        point : {dimension: name, or numbers of n points}, as `names_at` and a plan give them.
        """
        out = {name: ~np.asarray(self._covers(name, value)) for name, value in point.items()}
        beside = {
            dimension: [out[name] for name in dimension.beside if name in out]
            for dimension in dimensions().values()
            if dimension.name in out
        }
        alone = {
            dimension: np.logical_and.reduce([out[dimension.name], *(~each for each in others)])
            for dimension, others in beside.items()
        }
        return {dimension: where for dimension, where in alone.items() if where.any()}

    def beyond(self, numbers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Where numbers of points lie beyond a range, by the kind of distance that this is.

        Parameters
        ----------
        numbers : {dimension: numbers of n points, or one for all of them}.
        """
        kinds: dict[str, np.ndarray] = {}
        for name, values in numbers.items():
            kind = dimensions()[name].regime
            if kind and name in self.ranges:
                kinds[kind] = kinds.get(kind, np.False_) | ~np.asarray(self._covers(name, values))
        return kinds

    def _covers(self, name: str, value: str | np.ndarray) -> bool | np.ndarray:
        if isinstance(value, str):
            names = self.names.get(name, (value,))
            return any(one == value or one.startswith(value + ON) for one in names)
        if name not in self.ranges:
            return True
        low, high = self.ranges[name]
        return (low / REACH <= value) & (value <= high * REACH)

    def fitted(self, name: str) -> tuple[Value, ...]:
        """The names or the ends of the range of a dimension."""
        return self.ranges[name] if name in self.ranges else self.names[name]

    def joined(self, more: Hull) -> Hull:
        """What either covers."""
        names = {
            name: tuple(sorted({*self.names.get(name, ()), *more.names.get(name, ())}))
            for name in (*self.names, *more.names)
        }
        ranges = {**self.ranges, **more.ranges}
        for name in self.ranges.keys() & more.ranges.keys():
            (low, high), (lower, higher) = self.ranges[name], more.ranges[name]
            ranges[name] = min(low, lower), max(high, higher)
        return Hull(names, ranges, {**more.widths, **self.widths})


def names_at(place: Place, *, experts: bool) -> dict[str, str]:
    """The names of a place by dimension; of no engine in particular, those of any.

    `experts` says whose number format it is.
    """
    part = "experts" if experts else "weights"
    on = f"{ON}{place.engine}" if place.engine else ""
    names = {
        "model": place.model,
        "chip": place.chip,
        "engine": place.engine,
        "version": f"{place.engine} {place.version}" if place.version else "",
        "engine_chip": f"{place.chip}{on}",
        "format": f"{place.math} {part}{on}",
        "attention": place.attention,
    }
    return {name: value for name, value in names.items() if value}


def hull_from(raw: Mapping[str, Any]) -> Hull:
    """A hull from the table of a profile's file; raises TypeError or ValueError if it is none."""
    names, ranges = {}, {}
    for name, value in raw.items():
        if name == "widths":
            continue
        if name not in dimensions() or not isinstance(value, list):
            raise ValueError(f"the hull has no {name}")
        if dimensions()[name].unit:
            low, high = map(float, value)
            ranges[name] = low, high
        else:
            names[name] = tuple(map(str, value))
    widths = {name: float(width) for name, width in dict(raw.get("widths", {})).items()}
    return Hull(names, ranges, widths)
