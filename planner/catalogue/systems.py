"""Systems: a chip, the machine that joins such chips, and fields that a user may change.

Links are per chip and one way [byte/s]. The networks themselves are in the package topologies,
under the same names; this module only says which.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from planner.catalogue.chips import MATH, Chip, chip, chip_names
from planner.catalogue.figures import SourcedValue, entry, sourced_value
from planner.text.errors import CatalogueError, did_you_mean
from planner.text.tables import table

DIMENSION = {"chips_per_domain": "number", "scale_up": "bandwidth", "scale_out": "bandwidth"}
CHIP_KEYS = ("memory", "memory_bandwidth", "sram", "power")
OWN_KEYS = ("chips_per_domain", "scale_up", "scale_out")
CARDS = 8  # maximum chips per host: HGX boards, and servers with PCIe cards
REQUIRED_CHIP_KEYS = ("memory", "memory_bandwidth", "flops")


@dataclass(frozen=True)
class System:
    """A kind of machine in base units.

    `topology` is the machine's name in the package topologies, None for an inline system and for
    cards that meet in their host;
    `chips_per_domain` the chips one fast network joins, None when all of them are; `scale_up` and
    `scale_out` bandwidth per chip, one way [byte/s] or None. `varied` lists what differs from the
    catalogue (`memory_bandwidth`, `flops.fp8`, ...); `price` is set only by the user
    [USD/(chip*s)]; `file` is a topology file of the user's, in place of the catalogue's network;
    `measured` a file of `planner measure`: what such a chip was seen to sustain. `figures` holds
    the system's own numbers with their sources.
    """

    name: str
    chip: Chip
    topology: str | None = None
    chips_per_domain: int | None = None
    scale_up: float | None = None
    scale_out: float | None = None
    price: float | None = None
    varied: tuple[str, ...] = ()
    file: Path | None = None
    measured: Path | None = None
    figures: Mapping[str, SourcedValue] = field(default_factory=dict, hash=False, repr=False)

    @property
    def machine(self) -> int:
        """Chips of one machine, which is rented whole: of cards and described chips one.

        Where domains of the fast network and machines do not divide each other, a domain.
        """
        if self.topology is None:
            return 1
        size = machine_chips(self.chip.name)
        domain = self.chips_per_domain or size
        return size if domain % size == 0 or size % domain == 0 else domain

    def counted(self, chips: Sequence[int]) -> str:
        """Number of chips with the product's name, as text: `2,048 H800 (256 nodes)`."""
        fewest, most = min(chips), max(chips)
        nodes, rest = divmod(most, self.machine)
        whole = f" ({nodes:,} node{'s' * (nodes != 1)})" if self.machine > 1 and not rest else ""
        count = f"{fewest:,}–{most:,}" if fewest < most else f"{most:,}"
        product = "chips as described" if self.name == "inline" else self.chip.product
        changed = " with your changes" * bool(self.varied)
        return f"{count} {product}{whole * (fewest == most)}{changed}"

    def source_of_peak(self, dtype: str) -> tuple[str, str]:
        """Source and date of the chip's dense peak in `dtype`; "given" for a user's own figure."""
        unit = MATH[dtype]
        figure = None if f"flops.{unit}" in self.varied else self.chip.figures.get(unit)
        return (figure.source, figure.as_of) if figure else ("given", "")


@cache
def machine_chips(chip: str) -> int:
    """Chips under one operating system."""
    counts = table("planner.catalogue", "hosts.toml")["chips_per_host"]
    return next((int(count) for count, chips in counts.items() if chip in chips), CARDS)


def system_names() -> tuple[str, ...]:
    """The names of all systems in catalogue order, those of their chips after them."""
    return tuple(_catalogue())


def system(name: str) -> System:
    """The system of this name; raises CatalogueError with the nearest name."""
    return entry("system", name, _catalogue())


def parse_system(description: Mapping[str, Any]) -> System:
    """A system varied in place, or described in full.

    Keys, all in base units: `like` (a catalogue name), `memory`, `memory_bandwidth`, `sram`,
    `power`, `flops` (by dtype), `scale_up`, `scale_out`, `chips_per_domain`, `price`. Absent and
    None mean unchanged. Without `like`, memory, memory_bandwidth and flops must be there. Raises
    CatalogueError.
    """
    values = {key: value for key, value in description.items() if value is not None}
    keys = ("like", "price", "flops", *CHIP_KEYS, *OWN_KEYS)
    for key in values:
        if key not in keys:
            raise CatalogueError(f"unknown key {key!r}{did_you_mean(key, keys)}")
    flops = {}
    for dtype, peak in values.get("flops", {}).items():
        if dtype not in MATH:
            raise CatalogueError(f"no arithmetic is known for {dtype!r}{did_you_mean(dtype, MATH)}")
        flops[MATH[dtype]] = float(peak)
    changes = {key: values[key] for key in CHIP_KEYS if key in values}
    figures = {key: values[key] for key in OWN_KEYS if key in values}
    if "like" not in values:
        missing = [key for key in REQUIRED_CHIP_KEYS if not values.get(key)]
        if missing:
            raise CatalogueError(f"an inline system needs {', '.join(missing)}, or like: NAME")
        inline = Chip(
            "inline", "described in the scenario", flops=MappingProxyType(flops), **changes
        )
        return System("inline", inline, price=values.get("price"), **figures)
    base = system(values["like"])
    if "memory" in changes:
        changes["memory_reported"] = None  # it was reported for another capacity
    varied_chip = replace(
        base.chip, flops=MappingProxyType({**base.chip.flops, **flops}), **changes
    )
    varied = tuple(
        [key for key in (*CHIP_KEYS, *OWN_KEYS) if key in values]
        + [f"flops.{dtype}" for dtype in flops]
    )
    return replace(base, chip=varied_chip, price=values.get("price"), varied=varied, **figures)


@cache
def _catalogue() -> Mapping[str, System]:
    rows = table("planner.catalogue", "systems.toml")
    systems = {name: _system(name, row) for name, row in rows.items()}
    machines = {each.chip.name: each for each in reversed(systems.values())}
    return systems | {
        name: machines.get(name) or _cards(chip(name))
        for name in chip_names()
        if name not in systems
    }


def _cards(of: Chip) -> System:
    figures = {"scale_up": of.figures["pcie"]} if of.pcie else {}
    most = CARDS if of.pcie else None
    return System(of.name, of, None, most, of.pcie, figures=MappingProxyType(figures))


def _system(name: str, row: Mapping[str, Any]) -> System:
    figures = {
        key: sourced_value(
            row[key] | ({"unit": ""} if dimension == "number" else {}), row, dimension
        )
        for key, dimension in DIMENSION.items()
        if key in row
    }
    out = figures.get("scale_out")
    per_domain, up = int(figures["chips_per_domain"].base), figures["scale_up"].base
    links = (up, out.base if out else None)
    made = System(name, chip(row["chip"]), row["topology"], per_domain, *links)
    return replace(made, figures=MappingProxyType(figures))
