"""Chance that a plan keeps each of its promises, from the error bands of its times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.search.promise_limits import BAND_TIMES, time_bands
from planner.problems.serving.task.plan_limits import LIMITS
from planner.protocol.promise import PromiseChance, chance_word, sum_chance
from planner.text.tolerances import REL_TOL

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate

PROMISE_TIMES = ("ttft", "ttft_p95", "ttft_p99", "tpot", "e2e")


def promise_chances(candidate: Candidate) -> tuple[PromiseChance, ...]:
    """Every promised time of a plan with its chance, in one order."""
    tasks = (candidate.pools[0].task, candidate.task)
    limits = {name: limit for task in tasks for name, limit in task.promises.items()}
    times, bands, chances = _times(candidate), _bands(candidate), []
    for name, limit in ((name, limits[name]) for name in PROMISE_TIMES if name in limits):
        names = ("ttft", "rest") if name == "e2e" else (LIMITS[name].step,)
        value = sum(times[part] for part in names)
        parts = [(times[part], *bands[part]) for part in names if bands]
        chance = sum_chance(limit, parts) if parts else None
        word = chance_word(chance, within=value <= limit * (1 + REL_TOL))
        chances.append(PromiseChance(name, value, limit, chance, word))
    return tuple(chances)


def min_chance(candidate: Candidate) -> float | None:
    """Minimum chance over all promises; None if no chance is known."""
    chances = [each.chance for each in promise_chances(candidate) if each.chance is not None]
    return min(chances, default=None)


def _times(candidate: Candidate) -> dict[str, float]:
    first, last = candidate.pools[0], candidate.last
    late = {name: first.chosen_by[name] + candidate.transfer for name in BAND_TIMES
            if name != "tpot" and name in first.chosen_by}  # fmt: skip
    tpot = last.chosen_by["tpot"] if last.decodes else 0.0
    return {**late, "tpot": tpot, "rest": tpot * (candidate.task.output_tokens - 1)}


def _bands(candidate: Candidate) -> dict[str, tuple[float, float]]:
    """Ends of the bands of the times, as ratios: first tokens are of the pool that reads."""
    if candidate.task.uses_bound:
        return {}

    def ends(number: int, time: str) -> tuple[float, float]:
        pool = candidate.pools[number]
        low, high = time_bands(pool.step, np.array([pool.batch]))[time]
        return float(low[0]), float(high[0])

    later = ends(-1, "tpot")
    return {**dict.fromkeys(BAND_TIMES, ends(0, "ttft")), "tpot": later, "rest": later}
