"""Listed tiers on our curve of price against speed: what each costs us, and in which layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.problems.serving.deployment.frontier import Frontier, MarkedTier
from planner.problems.serving.point import ServingPoint, layout_text
from planner.scenario.keys.price_keys import PriceTier, relative

MILLION = 1e6
ALIKE = 1e-9  # relative difference of speeds that are one


def with_tiers(frontier: Frontier, tiers: Sequence[PriceTier]) -> Frontier:
    """The frontier with every listed tier marked, as multiples of our normal mode.

    A tier with a speed lies at the cheapest plan that is as fast; one with a price alone, such as
    a batch tier, at the fastest plan that is as cheap.
    """
    answer = frontier.answer
    if not tiers or not answer.points:
        return frontier
    plans = [point.plan for point in answer.points]
    normal = plans[answer.marks["normal"]]
    marked = tuple(_marked(tier, plans, normal) for tier in tiers)
    return replace(frontier, answer=replace(answer, tiers=marked))


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
