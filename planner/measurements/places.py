"""Where a measured row stands: which adjustments of a profile hold for it, and which profile."""

from __future__ import annotations

from planner.catalogue.profile import Place, Profile, months_between, profile
from planner.measurements.measurement import Measurement

__all__ = ["engine_of", "place_of", "profile_of"]

# Days of versions that the table of runs gives without one (releases on GitHub).
RELEASED = {
    ("sglang", "0.5.1.post1"): "2025-08-27",
    ("sglang", "0.5.8.post1"): "2026-01-28",
    ("trtllm", "1.0.0rc3"): "2025-07-16",
    ("vllm", "0.12.0"): "2025-12-03",
}
USUAL = 3.0  # months before the profile's date, where nobody says
RUNS, STEADY = "engines-2026", "steady-2024"
NEW = 2025  # engines of this year and later are those of the runs


def engine_of(row: Measurement) -> str:
    """The engine without the year that some tables add."""
    name, _, year = row.engine.rpartition("-")
    return name if name and year.isdigit() else row.engine


def place_of(row: Measurement, as_of: str) -> Place:
    """The row's place as seen by a profile of a date."""
    engine = engine_of(row)
    day = row.as_of or RELEASED.get((engine, row.version), "")
    return Place.of(
        row.sizes,
        row.chip,
        engine=engine,
        version=row.version,
        months=months_between(day, as_of) if day else USUAL,
        pooled=row.pooled,
        # How long prompts queue before a pool of their own is told by no table.
        assumed=bool(row.assumed) or (row.pooled and row.quantity == "ttft"),
    )


def profile_of(row: Measurement, wanted: str) -> Profile:
    """The profile that speaks for a row.

    Parameters
    ----------
    wanted : a profile's name, or `auto`: that of whole engines for runs and for engines of 2025
        and later, that of steady batches for other static rows.

    Raises
    ------
    CatalogueError
        If there is no such profile.
    """
    if wanted != "auto":
        return profile(wanted)
    year = row.engine.rpartition("-")[2]
    new = year.isdigit() and int(year) >= NEW
    return profile(RUNS if row.looped or new else STEADY)
