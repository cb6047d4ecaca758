"""Whether the figures of a profile can be times and efficiencies at all."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.calibration.profile import EFFICIENCIES, Profile

__all__ = ["unsound"]

MOST = 1.1  # of a peak: boosts may exceed what is listed
BANDS = ("tpot", "ttft", "usd_per_mtok")


def unsound(profile: Profile) -> str | None:
    """What no profile can say, the first of it; None where all of it can be."""
    return next(_faults(profile), None)


def _faults(profile: Profile) -> Iterator[str]:
    for name, value in profile.values.items():
        if name in EFFICIENCIES and not 0 < value <= MOST:
            yield f"{name} is {value:g}, expected an efficiency above 0 and not above {MOST:g}"
        elif not 0 <= value < math.inf:
            yield f"{name} is {value:g}, expected 0 or more"
    if not 0 < profile.coverage < 1:
        yield f"coverage is {profile.coverage:g}, expected a share such as 0.8"
    for kind, engines in profile.all_bands.items():
        for engine, bands in engines.items():
            for name, band in bands.items():
                if not 0 < band.low <= band.high < math.inf:
                    yield f"the band {kind}.{engine}.{name} is {band.low:g} to {band.high:g}"
    for name in BANDS:
        if name not in profile.bands:
            yield f"no band of {name} is given"
    for each in profile.adjustments:
        if not 0 < each.factor < math.inf:
            yield f"the factor on {', '.join(each.of)} is {each.factor:g}, expected above 0"
