"""Listed tiers on our curve of price against speed: what each costs us, and in which layout."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.problems.serving.point import ServingPoint, layout_text
from planner.scenario.keys.buy_keys import PriceTier, relative

MILLION = 1e6
ALIKE = 1e-9  # relative difference of speeds that are one


@dataclass(frozen=True)
class MarkedTier:
    """A listed tier beside our plan of its speed, or of its price, as multiples of normal.

    `place` is that of the plan among the points; none where no plan is so fast, or so cheap.
    """

    name: str
    price: float
    speed: float | None
    place: int | None
    our_price: float | None
    our_speed: float | None
    verdict: str


def marked_tiers(
    tiers: Sequence[PriceTier] | None, plans: Sequence[ServingPoint], normal: ServingPoint
) -> tuple[MarkedTier, ...] | None:
    """Every listed tier beside our plan that would serve it, plans being the fastest first.

    A tier with a speed lies at the cheapest plan that is as fast; one with a price alone, such as
    a batch tier, at the fastest plan that is as cheap.
    """
    return None if tiers is None else tuple(_marked(tier, plans, normal) for tier in tiers)


def _marked(tier: PriceTier, plans: Sequence[ServingPoint], normal: ServingPoint) -> MarkedTier:
    """One tier beside the plan that would serve it; plans are the fastest first."""
    price = relative(tier.price, normal.usd_per_mtok / MILLION)
    speeds = [(normal.tpot or 0.0) / (plan.tpot or 1.0) for plan in plans]
    prices = [plan.usd_per_mtok / normal.usd_per_mtok for plan in plans]
    if tier.speed is not None:
        able = [i for i, speed in enumerate(speeds) if speed >= tier.speed * (1 - ALIKE)][-1:]
        missing = "faster than any plan"
    else:
        able = [i for i, each in enumerate(prices) if each <= price * (1 + ALIKE)][:1]
        missing = "cheaper than any plan"
    if not able:
        return MarkedTier(tier.name, price, tier.speed, None, None, None, missing)
    (place,) = able
    fits = price >= prices[place] * (1 - ALIKE)
    verdict = "pays for itself" if fits else "priced below our cost of that speed"
    return MarkedTier(
        tier.name, price, tier.speed, place, prices[place], speeds[place],
        f"{verdict}; {layout_text(plans[place])}, batch {plans[place].batch:,}",
    )  # fmt: skip
