"""What other makers' chips reach where a profile was fitted on none of theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean, stdev

from planner.catalogue.chips import chip
from planner.text.tables import table

WAITED = "n_sched"
NINE_TENTHS = NormalDist().inv_cdf(0.9)


@dataclass(frozen=True)
class MakerFactor:
    """Speed of a maker's chips beside what their peaks say, where another's coefficients are lent.

    `factor` is the geometric mean of published ratios [1], `spread` the standard deviation of their
    logarithms [1]; 1 and 0 where nothing is lent, or nobody published one.
    """

    factor: float = 1.0
    spread: float = 0.0

    def times(self, coefficient: str) -> float:
        """The factor on the times of a coefficient, of which one is a number of steps [1]."""
        return 1.0 if coefficient == WAITED else 1 / self.factor

    def wider(self, low: float, high: float) -> tuple[float, float]:
        """The ends of a band of measured over predicted, with the spread in them [1]."""
        added = NINE_TENTHS * self.spread
        below, above = (math.hypot(min(math.log(end), 0.0), added) for end in (low, 1 / high))
        return min(low, math.exp(-below)), max(high, math.exp(above))


def maker_factor(maker: str, chips: Sequence[str]) -> MakerFactor:
    """How a maker's chips compare with those that a profile was fitted on, by their names."""
    return _factor(maker, _makers(tuple(chips)))


def lent_sentence(name: str, chips: Sequence[str]) -> str:
    """What an answer says of a chip that borrows another maker's efficiencies, else nothing.

    Parameters
    ----------
    chips : names of those that a profile was fitted on.
    """
    maker, makers = chip(name).maker, _makers(tuple(chips))
    if maker in makers or not makers:
        return ""
    lent, names = _factor(maker, makers), " and ".join(sorted(makers))
    if not lent.spread:
        return (
            f"; efficiencies are those of {names}, and what {maker}'s chips reach beside them is "
            "not told: neither is a rank between them"
        )
    return (
        f"; efficiencies are those of {names} times {lent.factor:.2f}, which {maker}'s chips "
        f"reached beside them in one published round (spread {lent.spread:.2f} of the logarithm): "
        "a rank within it is not told"
    )


@cache
def _makers(chips: tuple[str, ...]) -> frozenset[str]:
    return frozenset(chip(name).maker for name in chips)


@cache
def _factor(maker: str, fitted: frozenset[str]) -> MakerFactor:
    row = table("planner.catalogue", "makers.toml").get(maker)
    if row is None or maker in fitted or row["beside"] not in fitted:
        return MakerFactor()
    logs = [math.log(ratio) for ratio in row["ratios"]]
    return MakerFactor(math.exp(fmean(logs)), stdev(logs))
