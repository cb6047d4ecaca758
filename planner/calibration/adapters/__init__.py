"""Published tables of measurements in, typed rows out; every row comes back, computed or with why.

`read` takes any file that `recognised` knows. `runs` and `read_runs` take runs of whole engines,
`steadies` and `read_steady` steady batches with phases apart, `owns` a user's own table.
"""

from planner.calibration.adapters.own import owns
from planner.calibration.adapters.recognition import located, read, recognised
from planner.calibration.adapters.runs import read_runs, run, runs
from planner.calibration.adapters.steady import read_steady, steadies, steady
from planner.calibration.adapters.tables import Readings

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
