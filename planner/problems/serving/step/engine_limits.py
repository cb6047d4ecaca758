"""The lecture's engine: every roof is reached and nothing costs anything besides."""

from __future__ import annotations

from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES, Band, Profile

__all__ = ["LECTURE"]

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
