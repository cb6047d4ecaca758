"""Where an estimate is asked for, and what is different there from what all places share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.architecture.counts import Sizes
    from planner.catalogue.chips import Chip

__all__ = ["Adjustment", "Place", "months_between"]

LATENT, GROUPED = "latent", "grouped"


@dataclass(frozen=True)
class Place:
    """Where a coefficient is asked for; empty where it is not known or does not matter.

    `math` is the number format that the feed-forward part multiplies in, `cache` that of keys and
    values, `attention` latent or grouped, `months` how long before
    the profile's date the run was made, `pooled` whether prompts are read on other chips,
    `assumed` whether numbers of a measurement had to be worked out that its table does not give.
    """

    chip: str = ""
    architecture: str = ""
    engine: str = ""
    version: str = ""
    math: str = ""
    cache: str = ""
    attention: str = ""
    model: str = ""
    months: float = 0.0
    pooled: bool = False
    assumed: bool = False

    @classmethod
    def of(cls, sizes: Sizes, chip: Chip, **more: Any) -> Place:
        """The place of a model on a chip; `more` are the other attributes where known."""
        part = "routed" if sizes.n_experts else "dense_ffn"
        return cls(
            chip=chip.name,
            architecture=chip.architecture,
            math=sizes.weight_dtype[part],
            cache=sizes.kv_dtype,
            attention=LATENT if any(c.kind == LATENT for c in sizes.caches) else GROUPED,
            model=sizes.name,
            **more,
        )


@dataclass(frozen=True)
class Adjustment:
    """A factor on the times of some coefficients, an efficiency being divided by it.

    It holds where `scope` does, {attribute of a place: value}. `monthly` factors count once for
    each month before the profile's date. `interval` holds 80 % of refits.
    """

    of: tuple[str, ...]
    scope: Mapping[str, str]
    factor: float
    interval: tuple[float, float]
    monthly: bool = False

    def holds(self, place: Place) -> bool:
        """Whether the place lies in the scope."""
        return all(getattr(place, key) == value for key, value in self.scope.items())

    def times(self, place: Place) -> float:
        """The factor on times at a place in scope."""
        return self.factor**place.months if self.monthly else self.factor


def months_between(earlier: str, later: str) -> float:
    """Months from one date (YYYY-MM or YYYY-MM-DD) to a later one, 0 where it is not later."""
    year, month, *day = map(int, earlier.split("-"))
    to_year, to_month, *to_day = map(int, later.split("-"))
    found = 12 * (to_year - year) + to_month - month
    exact = found + ((to_day or [15])[0] - (day or [15])[0]) / 30.4
    return max(exact, 0.0) if math.isfinite(exact) else 0.0
