"""A mixed integer program solved by branch and bound (HiGHS through SciPy), with its bound."""

import ctypes
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from planner.programs.integer.integer_program import Array, MixedProgram
from planner.programs.integer.linear_relaxation import NoPoint

UNLIMITED = 10**9
INFEASIBLE = 2  # what SciPy's milp reports


@dataclass(frozen=True)
class WholePoint:
    """The best point found (n,), its value, a value that none is below, and nodes looked at."""

    value: float
    point: Array
    bound: float
    nodes: int


def solved(
    program: MixedProgram, gap: float = 0.0, nodes: int = UNLIMITED, seconds: float = math.inf
) -> WholePoint | None:
    """The best point within a relative gap, or the best within the nodes and seconds.

    None where they end before there is one. Raises NoPoint where nothing keeps the rows.
    """
    result = _run(program, gap, nodes, seconds)
    if result.x is None:
        return None
    point = np.where(program.whole, np.round(result.x), result.x)
    return WholePoint(float(result.fun), point, *_proved(result))


def _run(program: MixedProgram, gap: float, nodes: int, seconds: float) -> OptimizeResult:
    options: dict[str, Any] = {"mip_rel_gap": gap, "node_limit": nodes}
    if math.isfinite(seconds):
        options["time_limit"] = seconds
    rows = program.rows
    with _silent():
        result = milp(
            program.cost,
            integrality=program.whole.astype(int),
            bounds=Bounds(np.zeros(program.most.size), program.most),
            constraints=LinearConstraint(rows.matrix, rows.low, rows.high),
            options=options,  # type: ignore[arg-type]
        )
    if result.status == INFEASIBLE:
        raise NoPoint(str(result.message))
    return result


@contextmanager
def _silent() -> Iterator[None]:
    """Without what the solver's library writes to standard output though it is told not to."""
    library = ctypes.CDLL(None)
    sys.stdout.flush()
    library.fflush(None)
    before, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        yield
        library.fflush(None)
    finally:
        os.dup2(before, 1)
        os.close(before)
        os.close(nothing)


def _proved(result: OptimizeResult) -> tuple[float, int]:
    """What no point is below, and the nodes looked at."""
    bound = result.mip_dual_bound
    if bound is None:
        bound = -math.inf if result.fun is None else result.fun
    return float(bound), int(result.mip_node_count or 0)
