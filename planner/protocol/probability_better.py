"""How likely it is that another plan would turn out cheaper than the one chosen.

Two plans of one kind (model, chip, engine, both phases together or apart) share most of what the
estimate gets wrong; what is left to each differs by the profile's spread of runs alike. Plans of
different kinds differ by the spread of all runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planner.catalogue.profile import Profile


def chance_better(
    chosen: Mapping[str, Any], rival: Mapping[str, Any], profile: Profile
) -> float | None:
    """The probability that the other plan's price is the lower one; None where nobody knows.

    Parameters
    ----------
    chosen, rival : plans as they are printed.
    """
    if not profile.spread or not chosen["usd_per_mtok"] or not rival["usd_per_mtok"]:
        return None
    width = profile.spread["alike" if _alike(chosen, rival) else "other"] * math.sqrt(2)
    ahead = math.log(rival["usd_per_mtok"] / chosen["usd_per_mtok"])
    return 0.5 * math.erfc(ahead / (width * math.sqrt(2)))


def _alike(chosen: Mapping[str, Any], rival: Mapping[str, Any]) -> bool:
    same = all(chosen.get(key) == rival.get(key) for key in ("mode", "weights", "kv"))
    return same and _chips(chosen) == _chips(rival)


def _chips(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """The chip of the one pool, or of the pool that prefills and the one that decodes."""
    pools = [plan[pool] for pool in ("prefill", "decode") if plan[pool]]
    return tuple(pool["chip"] for pool in pools or [plan])
