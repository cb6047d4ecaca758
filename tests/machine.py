"""Limits of processor time as multiples of a piece of work that the same machine does in the same
run: seconds say which machine it was, ratios what the program takes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from functools import cache
from statistics import median

from tests.paths import ROOT

LIBRARIES = "import sympy, cvxpy, networkx, scipy.optimize"  # a second on a fast machine


def child(*words: str) -> float:
    """CPU seconds of a fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@cache
def unit() -> float:
    """CPU seconds of an import of the libraries, the median of three; at least one."""
    return max(1.0, median(child("-c", LIBRARIES) for _ in range(3)))


def lasts_at_most(units: float, seconds: float) -> bool:
    """True if so many CPU seconds are within so many units, which are measured if they matter."""
    return seconds <= units or seconds <= units * unit()
