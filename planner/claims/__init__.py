"""The lecture's claims under physical assumptions: real chips and models, the same equations."""

from planner.claims.figure import PhysicalFigure
from planner.claims.physical_column import physical, physical_ids

__all__ = ["PhysicalFigure", "physical", "physical_ids"]
