"""Listed rental prices, and the default price they give: the median of a chip's on-demand rows.

Memory and storage beyond HBM that can hold a cache: DRAM, CXL, flash, disk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from statistics import median

from planner.catalogue.figures import SourcedValue, entry, sourced_value
from planner.text.errors import CatalogueError
from planner.text.quantities import parse, show
from planner.text.tables import table

FILE = "prices.toml"
DEFAULT_PRICE_TIER = "on-demand"
CONTRACTS = ("on_demand", "reserved", "spot")


@dataclass(frozen=True)
class Rental:
    """One listed price [USD/(chip*s)]; `tier` is on-demand, reserved, spot or index."""

    chip: str
    provider: str
    tier: str
    value: float
    as_of: str
    verified: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class Price:
    """Price of a chip [USD/(chip*s)], the range of the listed prices, and their newest date.

    `count` is the number of rows behind the median; 0 when the user gave the price, in which
    case `as_of` is empty.
    """

    value: float
    low: float
    high: float
    count: int
    as_of: str
    source: str

    def warning(self, today: date) -> str | None:
        """A sentence when the newest row is older than a year on `today`, else None."""
        if not self.as_of:
            return None
        age = (today - date.fromisoformat(self.as_of)).days
        if age <= 365:
            return None
        return (
            f"the price {show(self.value, 'price')} per chip was read on {self.as_of}, "
            f"{age} days ago; give price: in the scenario"
        )


def rentals(chip: str | None = None) -> tuple[Rental, ...]:
    """The listed rows, of one chip or of all."""
    return tuple(row for row in _rows() if chip in (None, row.chip))


def default_price(chip: str) -> Price:
    """Median of the chip's listed on-demand rentals, with range and newest date.

    Spot, index and unverified rows do not count. Raises CatalogueError when nothing is left.
    """
    rows = [row for row in rentals(chip) if row.tier == DEFAULT_PRICE_TIER and row.verified != "no"]
    if not rows:
        raise CatalogueError(
            f'no verified on-demand price is known for the chip {chip}; give price: "$3.50/hour"'
        )
    return _price_of(rows, DEFAULT_PRICE_TIER)


def contract_rent(chip: str, contract: str = "on_demand", on: date | None = None) -> Price:
    """Median and range of a chip's listed rents under one kind of contract, read by a day.

    Unverified rows do not count. Raises CatalogueError for an unknown contract, or where none is
    listed, with the contracts that are.
    """
    if contract not in CONTRACTS:
        raise CatalogueError.unknown("contract", contract, CONTRACTS)
    day, tier = on.isoformat() if on else "9", contract.replace("_", "-")
    sound = [row for row in rentals(chip) if row.verified != "no" and row.as_of <= day]
    rows = [row for row in sound if row.tier == tier]
    if not rows:
        listed = sorted({row.tier for row in sound}) or ["none"]
        raise CatalogueError(
            f"no verified {tier} rent is listed for the chip {chip}"
            f"{f' by {on}' if on else ''} (listed: {', '.join(listed)}); give a range of your own"
        )
    return _price_of(rows, tier)


def _price_of(rows: Sequence[Rental], tier: str) -> Price:
    """Median, range and newest date of rows of one tier."""
    values = [row.value for row in rows]
    providers = ", ".join(sorted({row.provider for row in rows}))
    return Price(
        value=median(values),
        low=min(values),
        high=max(values),
        count=len(rows),
        as_of=max(row.as_of for row in rows),
        source=f"median of {len(rows)} listed {tier} rentals ({providers})",
    )


def given_price(value: float) -> Price:
    """The user's own price [USD/(chip*s)] in the same shape."""
    return Price(value, value, value, 0, "", "given")


def chip_rent(chip: str, *rents: float | None) -> Price:
    """Rent of a chip [USD/(chip*s)]: the first that is given, else the catalogue's.

    Raises CatalogueError when there is none.
    """
    value = next((each for each in rents if each is not None), None)
    return default_price(chip) if value is None else given_price(value)


@cache
def _rows() -> tuple[Rental, ...]:
    data = table("planner.catalogue", FILE)
    unit = data["unit"]
    return tuple(
        Rental(**row | {"value": parse(f"{row['value']} {unit}", "price")})
        for row in data["rental"]
    )


TIERS_FILE, TIER_PRICES = "tiers.toml", "tier_prices.toml"
TIERS = ("dram", "cxl", "flash", "disk")  # faster first
DIMENSIONS = {"capacity": "size", "read_rate": "bandwidth"}


@dataclass(frozen=True)
class Tier:
    """One device, or the host memory of one server.

    `figures` holds `capacity` [byte] and `read_rate` [byte/s], each with source and date.
    """

    name: str
    title: str
    kind: str
    figures: Mapping[str, SourcedValue]

    @property
    def capacity(self) -> float:
        """Bytes it holds."""
        return self.figures["capacity"].base

    @property
    def read_rate(self) -> float:
        """Read bandwidth of the tier [byte/s]."""
        return self.figures["read_rate"].base


def tier_names(kind: str | None = None) -> tuple[str, ...]:
    """Names of all tiers, or of those of one kind, faster kinds first."""
    return tuple(name for name, each in _tiers().items() if kind in (None, each.kind))


def tier(name: str) -> Tier:
    """A tier by name; raises CatalogueError with the nearest name."""
    return entry("tier", name, _tiers())


@cache
def tier_price(kind: str) -> SourcedValue | None:
    """Price of a byte in a kind of tier [USD/(byte*s)]; None if no listed price is known."""
    row = table("planner.catalogue", TIER_PRICES)["price"].get(kind)
    return None if row is None else sourced_value(row, row, "byte_price")


@cache
def _tiers() -> dict[str, Tier]:
    rows = table("planner.catalogue", TIERS_FILE)["tier"]
    tiers = {}
    for name, row in sorted(rows.items(), key=lambda item: TIERS.index(item[1]["kind"])):
        figures = {x: sourced_value(row[x], row, dimension) for x, dimension in DIMENSIONS.items()}
        tiers[name] = Tier(name, row["title"], row["kind"], figures)
    return tiers


def ranged_price(low: float, high: float) -> Price:
    """A range of the user's own, its middle for the rent [USD/(chip*s)]."""
    return Price((low + high) / 2, low, high, 0, "", "given")
