"""Ranges known to the catalogues, drawn for `uncertain: {PATH: catalogue}`.

Prices of rent are spread over the listed ones, and the MFU of training over published runs. Of
anything else a catalogue has one figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.catalogue.chips import chip
from planner.catalogue.listed_prices import default_price
from planner.catalogue.training.training_runs import training_rates
from planner.text.errors import CatalogueError, FieldError

WITH_RANGES = "rents (price), the MFU of training (phases.pretrain.mfu) and a profile (profile.e_w)"


@dataclass(frozen=True)
class ListedRange:
    """A range: its `ends` contain the share `within` of a lognormal; `source` in words."""

    kind: str
    ends: tuple[float, float]
    source: str
    within: float = 1.0


def no_range(path: str, reason: str | None = None) -> FieldError:
    """Return the FieldError for a path without a range in any catalogue."""
    words = reason or f"the catalogue has ranges of {WITH_RANGES}; give a distribution"
    return FieldError((f"uncertain.{path}", words))


def mfu_range(dtype: str, path: str) -> ListedRange:
    """MFU from the least to the most that published training runs in a dtype reached."""
    runs = [rate for rate in training_rates() if rate.dtype == dtype]
    ends = sorted(rate.mfu(chip(rate.chip).peak(dtype)) for rate in runs)
    if len(ends) < 2:
        reason = f"fewer than two published runs in {dtype}; give a distribution"
        raise no_range(path, reason)
    source = f"{len(ends)} published training runs in {dtype}, dense and sparse"
    return ListedRange("log_uniform", (ends[0], ends[-1]), source)


def rent_range(systems: Sequence[object], path: str) -> ListedRange:
    """Listed rents of one system's chip; raises FieldError without a range or for several chips."""
    if len(systems) != 1:
        several = " of one system" if systems else ""
        reason = f"the catalogue has ranges of {WITH_RANGES}{several}; give a distribution"
        raise no_range(path, reason)
    if not hasattr(systems[0], "chip"):
        reason = "a network of one's own has no listed price; give a distribution"
        raise no_range(path, reason)
    name = systems[0].chip.name
    try:
        price = default_price(name)
    except CatalogueError as error:
        raise no_range(path, str(error)) from error
    if not price.low < price.high:
        raise no_range(path, f"only one price of {name} is listed; give a distribution")
    return ListedRange("log_uniform", (price.low, price.high), price.source)
