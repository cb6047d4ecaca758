"""Your own chip: what of its peaks it sustains, timed and checked, as a dated file."""

from planner.benchmark.ceilings import ceilings, misfit
from planner.benchmark.record import Measured, MeasuredChip, read_measured

__all__ = ["Measured", "MeasuredChip", "ceilings", "misfit", "read_measured"]
