"""How far off the times and the price of pools may be: the bands of what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.profile import Band
from planner.problems.serving.step.drafting import with_accepted

if TYPE_CHECKING:
    from planner.catalogue.coefficient_spread import Holds
    from planner.problems.serving.deployment.pool import EvaluatedPool
    from planner.problems.serving.point import ServingPoint


def costs_of(pools: Sequence[EvaluatedPool], word: str) -> list[float]:
    """What each of several pools counts for when none waits for the other."""
    if len(pools) == 1:
        return [1.0]
    return [x.chosen_by[word] * (1.0 if word == "latency" else x.utilisation) for x in pools]


def rests_on(pools: Sequence[EvaluatedPool]) -> dict[str, Mapping[str, float]]:
    """Shares of both times and of the price by coefficient, by quantity.

    A pool is paid for the time that it takes: of tokens, or of prompts where it only reads them.
    """
    costs = costs_of(pools, "usd_per_request")
    parts = [pool.rests_on for pool in pools]
    paid = [x["tpot" if p.decodes else "ttft"] for x, p in zip(parts, pools, strict=True)]
    price = {
        name: float(np.average([part[name] for part in paid], weights=costs)) for name in paid[0]
    }
    return {"tpot": parts[-1]["tpot"], "ttft": parts[0]["ttft"], "usd_per_mtok": price}


def bands_of(pools: Sequence[EvaluatedPool], plan: ServingPoint, beyond: Holds) -> dict[str, Band]:
    """Measured over predicted, of both times and of the price, accepted drafts in it."""
    task, prices = pools[-1].task, (plan.usd_per_mtok_input, plan.usd_per_mtok_output)
    bands = {name: task.profile.band(name, x, beyond) for name, x in rests_on(pools).items()}
    if not task.drafts:
        return bands
    return {
        name: Band(*map(float, with_accepted(task, name, (band.low, band.high), prices)))
        for name, band in bands.items()
    }
