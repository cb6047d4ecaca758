"""The lecture's claims under physical assumptions: real chips and models, the same equations."""

from planner.claims.physical_column import PhysicalFigure, physical, physical_ids

__all__ = ["PhysicalFigure", "physical", "physical_ids"]
