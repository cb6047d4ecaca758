"""Published tables of measurements in, typed rows out; every row comes back, computed or with why.

`read` takes any file that `recognised` knows. `runs` and `read_runs` take runs of whole engines,
`steadies` and `read_steady` steady batches with phases apart, `owns` a user's own table.
"""

from planner.measurements.readers.engine_runs import read_runs, run, runs
from planner.measurements.readers.file_kinds import located, read, recognised
from planner.measurements.readers.own_table import owns
from planner.measurements.readers.sheets import Readings
from planner.measurements.readers.steady_batches import read_steady, steadies, steady

__all__ = [
    "Readings",
    "located",
    "owns",
    "read",
    "read_runs",
    "read_steady",
    "recognised",
    "run",
    "runs",
    "steadies",
    "steady",
]
