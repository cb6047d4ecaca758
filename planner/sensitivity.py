"""Elasticities of a plan: what one percent of each given quantity is worth."""

from __future__ import annotations

from planner.plan import Plan

__all__ = ["Elasticities", "sensitivity"]


class Elasticities(dict[str, float]):
    """{path in the scenario: d ln objective / d ln quantity}, largest first; prints as a table."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {value:+.3f}" for name, value in self.items())


def sensitivity(plan: Plan) -> Elasticities:
    """Elasticities of the objective at the chosen layout, its batch taken as a real number.

    They come from the multipliers of one geometric program (envelope theorem); a quantity without
    influence is absent. Switches to another layout are not seen by them.
    """
    ranked = sorted(plan.elasticities.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    return Elasticities(ranked)
