"""Your own chip: what of its peaks it sustains, timed and checked, as a dated file."""

from planner.measuring.ceilings import ceilings, misfit
from planner.measuring.record import Measured, MeasuredChip, read_measured

__all__ = ["Measured", "MeasuredChip", "ceilings", "misfit", "read_measured"]
