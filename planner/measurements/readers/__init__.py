"""Published tables of measurements in, typed rows out; every row comes back, computed or with why.

`read` takes any file that `detect_file_kind` knows. `runs` takes runs of whole engines,
`steadies` steady batches with phases apart, `own_runs` a user's own table.
"""

from planner.measurements.readers.engine_runs import runs
from planner.measurements.readers.file_kinds import detect_file_kind, read
from planner.measurements.readers.own_table import own_runs
from planner.measurements.readers.steady_batches import steadies

__all__ = ["detect_file_kind", "own_runs", "read", "runs", "steadies"]
