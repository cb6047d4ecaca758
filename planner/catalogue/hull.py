"""Data hull of a profile's rows; outside it an estimate rests on unmeasured coefficients.

A hull is a box. Each dimension is a set of names or a range of numbers, a row of `hull.toml` that
also says which coefficients a row there would have measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.text.tables import table

if TYPE_CHECKING:
    from planner.catalogue.coefficient_spread import RunContext

HullValue = str | float
CHIP_SEPARATOR = " on "
SAME_RATE = {"fp16": "bf16"}  # of as many bytes, and of one rate where sums are kept in fp32
# 25 % outside a fitted range, a term changes by less than the scatter of comparable rows.
MAX_EXTRAPOLATION = 1.25


@dataclass(frozen=True)
class HullDimension:
    """Dimension of the hull that a question may leave, a row of `hull.toml`."""

    name: str
    title: str
    words: str
    coefficients: tuple[str, ...]
    unit: str = ""
    prompts: bool = False
    beside: tuple[str, ...] = ()
    regime: str = ""
    levels: tuple[str, ...] = ()
    adds: Mapping[str, float] = field(default_factory=dict, compare=False)

    def holds(self, coefficient: str) -> bool:
        """True if rows elsewhere do not measure a coefficient here."""
        return any(fnmatchcase(coefficient, pattern) for pattern in self.coefficients)

    def value(self, at: str | np.ndarray) -> HullValue:
        """Requested value at the first point: a name, also of a level, or a number."""
        if isinstance(at, str):
            return at
        number = float(np.ravel(at)[0])
        return self.levels[int(number)] if self.levels else number

    def asking(self, value: HullValue) -> str:
        """Requested value as text."""
        if not isinstance(value, str):
            return self.words.format(asked=f"{value:,.0f}")
        engine = "this engine" if CHIP_SEPARATOR in value else "any engine"
        part = "experts" if "experts" in value.split(CHIP_SEPARATOR, maxsplit=1)[0] else "weights"
        return self.words.format(engine=engine, part=part)


@cache
def dimensions() -> Mapping[str, HullDimension]:
    """Every dimension by name, those that are sets first."""
    lists = ("coefficients", "beside", "levels")
    return {
        name: HullDimension(name, **row | {key: tuple(row.get(key, ())) for key in lists})
        for name, row in table("planner.catalogue", "hull.toml").items()
    }


@cache
def added_deviation(quantity: str) -> Mapping[str, float]:
    """Standard deviation added by kinds of distance without a leave-out band, by kind."""
    rows = dimensions().values()
    return {x.regime: x.adds[quantity] for x in rows if quantity in x.adds}


@dataclass(frozen=True)
class Hull:
    """Names that were fitted and ranges of numbers, by dimension.

    `widths` are standard deviations of the logarithm of a coefficient before any row was fitted.
    """

    names: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[float, float]]
    widths: Mapping[str, float] = field(default_factory=dict)

    def outside(self, point: Mapping[str, str | np.ndarray]) -> dict[HullDimension, np.ndarray]:
        """Masks of the points outside, by dimension with any; absent dimensions are not checked.

        Args:
            point: {dimension: name, or numbers of n points}, as `hull_names` and a plan give them.
        """
        out = {name: ~np.asarray(self.covers(name, value)) for name, value in point.items()}
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

    def beyond(self, point: Mapping[str, str | np.ndarray]) -> dict[str, np.ndarray]:
        """Masks of the points outside the hull, by kind of distance.

        Args:
            point: {dimension: name, or numbers of n points, or one for all of them}.
        """
        kinds: dict[str, np.ndarray] = {}
        for name, value in point.items():
            if name in self.ranges or name in self.names:
                out = ~np.asarray(self.covers(name, value))
                kind = dimensions()[name].regime
                kinds[kind] = kinds.get(kind, np.False_) | out
        return kinds

    def covers(self, name: str, value: str | np.ndarray) -> bool | np.ndarray:
        """True where rows have the name, or reach a number within MAX_EXTRAPOLATION."""
        if isinstance(value, str):
            names = self.names.get(name, (value,))
            return any(one == value or one.startswith(value + CHIP_SEPARATOR) for one in names)
        if levels := dimensions()[name].levels:
            fitted = self.names.get(name, levels)
            return np.isin(value, [i for i, level in enumerate(levels) if level in fitted])
        if name not in self.ranges:
            return True
        low, high = self.ranges[name]
        return (low / MAX_EXTRAPOLATION <= value) & (value <= high * MAX_EXTRAPOLATION)

    def fitted(self, name: str) -> tuple[HullValue, ...]:
        """The names or the ends of the range of a dimension."""
        return self.ranges[name] if name in self.ranges else self.names[name]

    def of_engine(self, engine: str) -> Hull:
        """Copy of the hull with only `engine` counted as measured."""
        return replace(self, names={**self.names, "engine": (engine,)})

    def joined(self, more: Hull) -> Hull:
        """Hull that covers both hulls."""
        names = {
            name: tuple(sorted({*self.names.get(name, ()), *more.names.get(name, ())}))
            for name in (*self.names, *more.names)
        }
        ranges = {**self.ranges, **more.ranges}
        for name in self.ranges.keys() & more.ranges.keys():
            (low, high), (lower, higher) = self.ranges[name], more.ranges[name]
            ranges[name] = min(low, lower), max(high, higher)
        return Hull(names, ranges, {**more.widths, **self.widths})


def hull_names(place: RunContext) -> dict[str, str]:
    """The names of a place by dimension; of no engine in particular, those of any."""
    part = "experts" if place.experts else "weights"
    on = f"{CHIP_SEPARATOR}{place.engine}" if place.engine else ""
    math, cache = (SAME_RATE.get(each, each) for each in (place.math, place.cache))
    names = {
        "model": place.model,
        "chip": place.chip,
        "engine": place.engine,
        "version": f"{place.engine} {place.version}" if place.version else "",
        "engine_chip": f"{place.chip}{on}" if place.chip else "",
        "format": f"{math} {part}{on}" if math else "",
        "cache": cache,
        "attention": place.attention,
    }
    return {name: value for name, value in names.items() if value}


def parse_hull(raw: Mapping[str, Any]) -> Hull:
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
