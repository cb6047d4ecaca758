"""Your own chip: what of its peaks it sustains, timed and checked, as a dated file."""

from planner.benchmark.ceilings import ceilings, chip_mismatch
from planner.benchmark.record import MeasuredChip, TimedKernel, read_measured

__all__ = ["MeasuredChip", "TimedKernel", "ceilings", "chip_mismatch", "read_measured"]
