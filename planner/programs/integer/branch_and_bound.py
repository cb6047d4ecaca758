"""A mixed integer program solved by branch and bound (HiGHS through SciPy), with its bound.

Or part by part: some variables free, all others held, again and again. A part's own program is that
of its rows, with what is held moved to their sides. From a fractional point each part becomes whole
in its turn; from a whole one each step can only make it better.
"""

import ctypes
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from planner.programs.integer.integer_program import (
    Array,
    MixedProgram,
    NoPoint,
    SparseRows,
    relaxed,
)

UNLIMITED = 10**9
TOLERANCE = 1e-6  # by which HiGHS lets a row be missed
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
    if program.rows.excess(point).max(initial=0.0) > TOLERANCE and not program.whole.all():
        point = _continuous_anew(program, point)
    return WholePoint(float(result.fun), point, *_proved(result))


def _continuous_anew(program: MixedProgram, point: Array) -> Array:
    """The best continuous variables beside the whole ones of a point; as they are if none keep."""
    part = np.flatnonzero(~program.whole)
    inner = _restricted(program, sp.csc_array(program.rows.matrix), point, part)
    try:
        better = relaxed(inner).point
    except NoPoint:
        return point
    point = point.copy()
    point[part] = better
    return point


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


MOST_GAP = 0.5  # of a part that costs next to nothing


def descend(
    program: MixedProgram, point: Array, parts: Sequence[Array], miss: float, nodes: int
) -> tuple[Array, int]:
    """The point after each part was solved in turn, whole in it; and the nodes looked at.

    A part is solved to within `miss`, in the unit of the objective. Raises NoPoint where a part has
    no point beside what is held.
    """
    columns = sp.csc_array(program.rows.matrix)
    looked = 0
    for part in parts:
        inner = _restricted(program, columns, point, part)
        now = point[part]
        whole = np.all(np.abs(now - np.round(now))[inner.whole] <= 1e-6)
        good = whole and not inner.rows.excess(now).max(initial=0.0) > TOLERANCE
        try:
            best = _solved_part(inner, miss, nodes)
        except NoPoint:  # perhaps by no more than what is held misses rows by
            if good:
                continue
            inner = _restricted(program, columns, point, part, TOLERANCE)
            best = _solved_part(inner, miss, nodes)
        looked += best.nodes
        before = program.cost[part] @ point[part]
        if good and best.value >= before:
            continue
        point = point.copy()
        point[part] = best.point
    return point, looked


def _restricted(
    program: MixedProgram, columns: sp.csc_array, point: Array, part: Array, near: float = 0.0
) -> MixedProgram:
    """The program of some variables, all others at their values, which may miss rows by `near`."""
    inner = columns[:, part]
    touched = np.unique(inner.indices)
    matrix = sp.csr_array(inner)[touched]
    rows = program.rows
    rest = rows.matrix[touched] @ point - matrix @ point[part]
    # What is held may miss a row by the rounding of solvers.
    slack = 1e-9 * (1 + np.abs(rest)) + np.minimum(rows.excess(point)[touched], near)
    held_rows = SparseRows(
        matrix, rows.low[touched] - rest - slack, rows.high[touched] - rest + slack
    )
    return MixedProgram(program.cost[part], held_rows, program.most[part], program.whole[part])


def _solved_part(inner: MixedProgram, miss: float, nodes: int) -> WholePoint:
    least = relaxed(inner).value
    gap = min(MOST_GAP, miss / max(abs(least), 1e-9))
    best = solved(inner, gap, nodes)
    if best is None:
        best = solved(inner, MOST_GAP, 100 * nodes)
    if best is None:
        raise NoPoint("a part has no whole point within its nodes")
    return best
