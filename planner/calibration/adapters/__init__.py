"""Published tables of measurements in, typed rows out; every row comes back, computed or with why.

`runs` and `read_runs` take runs of whole engines, `steady` and `read_steady` steady batches with
phases apart.
"""

from planner.calibration.adapters.runs import read_runs, run, runs
from planner.calibration.adapters.steady import read_steady, steadies, steady
from planner.calibration.adapters.tables import Readings

__all__ = ["Readings", "read_runs", "read_steady", "run", "runs", "steadies", "steady"]
