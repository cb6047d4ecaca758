"""The lecture's claims under physical assumptions: real chips and models, the same equations."""

from __future__ import annotations

from planner.claims.figure import PhysicalFigure

__all__ = ["PhysicalFigure", "physical", "physical_ids"]


def physical(claim: str) -> tuple[PhysicalFigure, ...]:
    """The physical numbers of a claim; empty where the catalogues have nothing to add."""
    found = _all().get(claim)
    return found() if found else ()


def physical_ids() -> tuple[str, ...]:
    """The claims that have physical numbers."""
    return tuple(_all())


def _all() -> dict:
    from planner.claims import batches, racks

    return {**batches.FIGURES, **racks.FIGURES}
