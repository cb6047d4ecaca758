"""Chips: dense peaks per dtype, memory, bandwidth, on-chip memory, power, each with its source.

Peaks count 2 FLOP per multiply-add, without sparsity. `memory` is what the vendor lists, which
drivers report a little larger (`memory_reported`, where known). What chips of one maker reach
beside another's, for profiles that were fitted on none of theirs, is in `makers.toml`; what they
draw while they serve is in `chip_power.toml`, where chips without measured rows take what the
measured ones share, scaled to their rated power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any

from planner.catalogue.figures import SourcedValue, entry, sourced_value
from planner.text.errors import CatalogueError
from planner.text.tables import table
from planner.text.tolerances import QUANTILE_90

FILES = ("chips_nvidia.toml", "chips_workstation.toml", "chips_others.toml")
DIMENSION = {
    "memory": "size",
    "memory_reported": "size",
    "memory_bandwidth": "bandwidth",
    "pcie": "bandwidth",
    "sram": "size",
    "power": "power",
}
PEAKS = ("bf16", "fp8", "int8", "fp4")
# the arithmetic unit a dtype is multiplied on
MATH = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "int8": "int8"} | dict.fromkeys(
    ("fp4", "nvfp4", "mxfp4"), "fp4"
)


@dataclass(frozen=True)
class Chip:
    """One accelerator package in base units.

    `flops` dense peak by arithmetic unit [flop/s]; `memory` listed capacity [byte];
    `memory_reported` what the driver reports [byte] or None; `memory_bandwidth` [byte/s];
    `pcie` one way into the host, of cards [byte/s] or None; `sram` last on-chip level [byte] or
    None; `power` [W] or None. `figures` holds every number with its source, under the same names
    (peaks under their dtype). `architecture` is the vendor's name of the generation, empty where
    none is listed.
    """

    name: str
    title: str
    flops: Mapping[str, float] = field(hash=False)
    memory: float
    memory_bandwidth: float
    memory_reported: float | None = None
    pcie: float | None = None
    sram: float | None = None
    power: float | None = None
    note: str = ""
    figures: Mapping[str, SourcedValue] = field(default_factory=dict, hash=False, repr=False)
    architecture: str = ""

    @property
    def maker(self) -> str:
        """Name of the maker, the first word of the title."""
        return self.title.split(" ", maxsplit=1)[0]

    @property
    def product(self) -> str:
        """Product name: the title without its maker, its socket and its sizes."""
        name = self.title.removeprefix(self.maker).split(",")[0].split(" (")[0]
        return name.removesuffix(" SXM").strip()

    def peak(self, dtype: str) -> float:
        """Dense FLOP/s of a matrix product in `dtype` [flop/s].

        fp16 runs at the bf16 rate, nvfp4 and mxfp4 at the fp4 rate. Raises CatalogueError when
        the chip has no such arithmetic (int4 weights are multiplied in another dtype).
        """
        unit = MATH.get(dtype)
        if unit is None or unit not in self.flops:
            raise CatalogueError(
                f"the chip {self.name} has no {dtype} arithmetic (it has {', '.join(self.flops)})"
            )
        return self.flops[unit]

    @property
    def usable(self) -> Chip:
        """Copy with the memory that the driver reports; engines fill a share of it."""
        return replace(self, memory=self.memory_reported or self.memory)

    def computes(self, dtype: str) -> bool:
        """True if the chip multiplies matrices in this dtype."""
        return MATH.get(dtype) in self.flops


def chip_names() -> tuple[str, ...]:
    """The names of all chips, in catalogue order."""
    return tuple(_catalogue())


def chip(name: str) -> Chip:
    """The chip of this name; raises CatalogueError with the nearest name."""
    return entry("chip", name, _catalogue())


@cache
def _catalogue() -> Mapping[str, Chip]:
    return {name: _chip(name, row) for name, row in table("planner.catalogue", *FILES).items()}


def _chip(name: str, row: Mapping[str, Any]) -> Chip:
    figures = {
        key: sourced_value(row[key], row, DIMENSION.get(key, "compute"))
        for key in (*PEAKS, *DIMENSION)
        if key in row
    }
    base = {key: item.base for key, item in figures.items()}
    return Chip(
        name=name,
        title=row["title"],
        flops=MappingProxyType({key: base[key] for key in PEAKS if key in base}),
        note=row.get("note", ""),
        architecture=row.get("architecture", ""),
        figures=MappingProxyType(figures),
        **{key: base[key] for key in DIMENSION if key in base},
    )


@dataclass(frozen=True)
class MakerFactor:
    """Speed of a maker's chips relative to their peaks, if another maker's coefficients are used.

    `factor` is the geometric mean of published ratios [1], `spread` the standard deviation of their
    logarithms [1]; 1 and 0 where nothing is lent, or nobody published one.
    """

    factor: float = 1.0
    spread: float = 0.0

    def wider(self, low: float, high: float) -> tuple[float, float]:
        """The ends of a band of measured over predicted, with the spread in them [1]."""
        added = QUANTILE_90 * self.spread
        below, above = (math.hypot(min(math.log(end), 0.0), added) for end in (low, 1 / high))
        return min(low, math.exp(-below)), max(high, math.exp(above))


def maker_factor(maker: str, chips: Sequence[str]) -> MakerFactor:
    """Speed factor of a maker's chips against those a profile was fitted on, by their names."""
    return _factor(maker, _makers(tuple(chips)))


def borrowed_efficiency_note(name: str, chips: Sequence[str]) -> str:
    """Note in an answer if a chip borrows another maker's efficiencies, else an empty string.

    Args:
        chips: names of those that a profile was fitted on.
    """
    makers = _makers(tuple(chips))
    maker = chip(name).maker if name in _catalogue() else ""  # a described chip has no known maker
    if not (maker and makers) or maker in makers:
        return ""
    lent, names = _factor(maker, makers), " and ".join(sorted(makers))
    if not lent.spread:
        return (
            f"; efficiencies are those of {names}, and what {maker}'s chips reach beside them is "
            "not given: neither is a ranking between them"
        )
    return (
        f"; efficiencies are those of {names} times {lent.factor:.2f}, which {maker}'s chips "
        f"reached beside them in one published round (spread {lent.spread:.2f} of the logarithm): "
        "a ranking within it is not given"
    )


@cache
def _makers(chips: tuple[str, ...]) -> frozenset[str]:
    return frozenset(chip(name).maker for name in chips if name in _catalogue())


@cache
def _factor(maker: str, fitted: frozenset[str]) -> MakerFactor:
    row = table("planner.catalogue", "makers.toml").get(maker)
    if row is None or maker in fitted or row["beside"] not in fitted:
        return MakerFactor()
    logs = [math.log(ratio) for ratio in row["ratios"]]
    return MakerFactor(math.exp(fmean(logs)), stdev(logs))


IN_SAMPLE, NEW_MODEL, NEW_CHIP = "known", "new_model", "new_chip"


@dataclass(frozen=True)
class ChipPower:
    """Power coefficients of one chip, and the error range of its predicted power.

    Attributes:
        idle, peak, rated: What a chip at work draws before it reads or multiplies, what arithmetic
            at its peak would add, and what it is rated for. [J/s]
        least: The lower end of `idle`, below which nothing serves. [J/s]
        byte: Energy of a byte of memory. [J/byte]
        tile: Positions that a multiplication has at least. [token]
        soft: How sharply the rated power limits what is drawn. [1]
        low, high: Measured over predicted power, the range that holds `coverage` of rows left out.
        measured: Whether rows of this chip were fitted.
        source, as_of: Of the rows.
    """

    idle: float
    least: float
    byte: float
    peak: float
    rated: float
    tile: float
    soft: float
    low: float
    high: float
    coverage: float
    measured: bool
    source: str
    as_of: str


def chip_power(chip: Chip, model: str = "") -> ChipPower | None:
    """Power coefficients of a chip that serves a model; None if its rated power is unknown."""
    if chip.power is None:
        return None
    read = coefficients()
    row = read["chips"].get(chip.name, {})
    kind = NEW_CHIP if not row else IN_SAMPLE if model in read["models"] else NEW_MODEL
    low, high = read["bands"][kind]
    shared = read["shared"]
    return ChipPower(
        idle=row.get("idle", shared["idle"] * chip.power),
        least=row.get("least", shared["least"] * chip.power),
        byte=row.get("byte", shared["byte"]),
        peak=row.get("peak", shared["peak"] * chip.power),
        rated=chip.power,
        tile=read["tile"],
        soft=read["soft"],
        low=low,
        high=high,
        coverage=read["coverage"],
        measured=bool(row),
        source=read["source"],
        as_of=read["as_of"],
    )


@cache
def coefficients() -> Mapping[str, Any]:
    """The file as it was written by the fit."""
    return table("planner.catalogue", "chip_power.toml")
