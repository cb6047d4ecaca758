"""The lecture's engine: every roof is reached and nothing costs anything besides.

A profile on a chip that was measured: no efficiency above what the chip was seen to sustain.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from planner.benchmark import ceilings, read_measured
from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES, Band, Profile
from planner.catalogue.systems import System
from planner.text.errors import InputError

EXACT = Band(1.0, 1.0)

LECTURE = Profile(
    name="lecture",
    as_of="2026-04",
    engine="none",
    chips=(),
    rows=0,
    source="by definition: perfect overlap, efficiencies of one, no overhead",
    coverage=1.0,
    bands={"tpot": EXACT, "ttft": EXACT, "usd_per_mtok": EXACT},
    errors={},
    values={name: 1.0 if name in EFFICIENCIES else 0.0 for name in COEFFICIENTS},
)


def limited(profile: Profile, system: System) -> tuple[Profile, dict[str, str] | None]:
    """The profile with its efficiencies limited by the system's measured chip, and its source.

    A profile's efficiency holds what an engine loses as well, so one that is below what the chip
    sustains stays as it is; its interval ends where the chip does.

    Raises
    ------
    InputError
        If the file is no sound measurement of this chip, or the profile is the lecture's.
    """
    if system.measured is None:
        return profile, None
    if profile is LECTURE:
        raise InputError("the lecture counts no losses of chips; choose assumptions: physical")
    measured = read_measured(system.measured)
    try:
        most = ceilings(measured, system.chip, system.scale_up)
    except InputError as error:
        raise InputError(f"{system.measured.name}: {error}") from error
    values = {name: min(value, most.get(name, value)) for name, value in profile.values.items()}
    intervals = {
        name: (min(low, most.get(name, low)), min(high, most.get(name, high)))
        for name, (low, high) in profile.intervals.items()
    }
    lower = [
        f"{name} {profile.values[name]:.3g} -> {value:.3g}"
        for name, value in values.items()
        if value < profile.values[name]
    ]
    limits = ", ".join(lower) or "no efficiency of the profile is above what it sustains"
    part = "" if measured.head.complete else " (the measurement is not complete)"
    source = {
        "what": f"measured {measured.head.device}",
        "source": f"{system.measured.name}: {limits}{part}",
        "as_of": measured.head.as_of,
    }
    limited_profile = replace(
        profile,
        values=MappingProxyType(values),
        intervals=MappingProxyType(intervals),
        ceilings=MappingProxyType(dict(most)),
    )
    return limited_profile, source
