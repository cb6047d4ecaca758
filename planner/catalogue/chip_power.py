"""What chips draw while they serve: coefficients fitted to measured power, or their prior.

Chips without measured rows take what the measured ones share, scaled to their rated power.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from planner.text.tables import table

if TYPE_CHECKING:
    from planner.catalogue.chips import Chip

KNOWN, NEW_MODEL, NEW_CHIP = "known", "new_model", "new_chip"


@dataclass(frozen=True)
class ChipPower:
    """Coefficients of the power of one chip, and how far measured power lies from them.

    Attributes
    ----------
    idle, peak, rated : What a chip at work draws before it reads or multiplies, what arithmetic at
        its peak would add, and what it is rated for. [J/s]
    least : The lower end of `idle`, below which nothing serves. [J/s]
    byte : Energy of a byte of memory. [J/byte]
    tile : Positions that a multiplication has at least. [token]
    soft : How sharply the rated power limits what is drawn. [1]
    low, high : Measured over predicted power, the range that holds `coverage` of rows left out.
    measured : Whether rows of this chip were fitted.
    source, as_of : Of the rows.
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
    """The power of a chip that serves a model; None where nobody says what it is rated for."""
    if chip.power is None:
        return None
    read = coefficients()
    row = read["chips"].get(chip.name, {})
    kind = NEW_CHIP if not row else KNOWN if model in read["models"] else NEW_MODEL
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
