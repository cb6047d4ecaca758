"""A mixed integer program solved by branch and bound (HiGHS through SciPy), with its bound.

Or part by part: some variables free, all others held, again and again. A part's own program is that
of its rows, with what is held moved to their sides. From a fractional point each part becomes whole
in its turn; from a whole one each step can only make it better.

The cheapest whole cover of a demand, of many demands at a time, by dynamic programming.

Items of two classes cover a target; those of the first alone cover a second, smaller one. Amounts
are counted in parts of the target: rounded up, no cover costs less than what is returned; rounded
down, the counts that are returned do cover. Where parts lie within one bin, the items are the ways
in which a bin is filled (cutting stock).
"""

import ctypes
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from planner.programs.integer.integer_program import (
    Array,
    MixedProgram,
    NoPoint,
    SparseRows,
    solve_lp_relaxation,
)


@dataclass(frozen=True)
class Covers:
    """Costs of covers of B demands (B,), infinite without a cover, and the counts of each item.

    `counts` is (B, 2 n): items of the first class, then of the second.
    """

    costs: Array
    counts: Array


def minimum_covers(
    target: Array, firm_target: Array, amounts: tuple[Array, Array], costs: tuple[Array, Array],
    parts: int, up: bool,
) -> Covers:  # fmt: skip
    """Minimum-cost covers of each target, with `firm_target` covered by the first class alone.

    Args:
        target, firm_target: (B,), the first above zero.
        amounts, costs: of n items of the first class (B, n), and of the second; costs infinite
            where an item is not offered.
        parts: of a target in which amounts are counted.
        up: whether amounts are rounded up, for a bound, or down, for covers.
    """
    unit = target / parts
    rounded = np.ceil if up else np.floor
    near = -1e-9 if up else 1e-9
    steps = [np.clip(rounded(a / unit[:, None] + near), 0, parts).astype(int) for a in amounts]
    if up:
        firm_steps = np.floor(firm_target / unit + 1e-9).astype(int)
    else:
        firm_steps = np.ceil(firm_target / unit - 1e-9).astype(int)
    firm_steps = np.clip(firm_steps, 0, parts)
    every = np.arange(target.size)
    table = np.full((parts + 1, target.size), np.inf)
    table[0] = 0.0
    first = _filled(table, steps[0], costs[0])
    # The first class alone must reach the firm target: lower levels have the cost of the target.
    table = np.maximum(table, table[firm_steps, every][None, :])
    second = _filled(table, steps[1], costs[1])
    # The items of each cover, walked back from the whole target.
    size, items = steps[0].shape
    counts = np.zeros((size, 2 * items), int)
    level = np.full(size, parts)
    for last, step, offset in ((second, steps[1], items), (first, steps[0], 0)):
        if last is first:
            level = np.maximum(level, firm_steps)
        while True:
            item = last[level, every]
            moves = np.flatnonzero(item >= 0)
            if not moves.size:
                break
            np.add.at(counts, (moves, offset + item[moves]), 1)
            level[moves] = np.maximum(0, level[moves] - step[moves, item[moves]])
    counts[~np.isfinite(table[parts])] = 0
    return Covers(table[parts], counts)


def _filled(table: Array, steps: Array, costs: Array) -> Array:
    """Last item of a cheapest cover of each height, -1 if no item is cheaper; fills the table."""
    height, size = table.shape
    rows = np.arange(size)[:, None]
    last = np.full((height, size), -1, np.int16)
    usable = np.where(steps > 0, costs, np.inf)
    for level in range(1, height):
        ways = table[np.maximum(level - steps, 0), rows] + usable
        item = ways.argmin(axis=1)
        cost = ways[rows[:, 0], item]
        better = cost < table[level]
        table[level] = np.where(better, cost, table[level])
        last[level] = np.where(better, item, -1)
    return last


MAX_PATTERNS = 400  # of one kind of bin


class TooManyWays(ValueError):  # noqa: N818 - a finding, raised
    """A bin is filled in more ways than are listed."""


def needs_ways(parts: Iterable[int], size: int) -> bool:
    """True if parts that fit by their sum may still not fit into bins of a size.

    Where every part divides the next larger one, and that the bin, they always fit.
    """
    sizes = sorted({int(each) for each in parts if each < size})
    return any(larger % smaller for smaller, larger in pairwise([*sizes, size]))


def filling_ways(parts: Iterable[int], size: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The different parts, the largest first, and how many of each fill a bin, every full way.

    Raises TooManyWays.
    """
    sizes = tuple(int(each) for each in np.unique(list(parts))[::-1])
    ways = []
    for counts in _ways(sizes, size):
        ways.append(counts)
        if len(ways) > MAX_PATTERNS:
            raise TooManyWays(f"more than {MAX_PATTERNS} ways")
    return sizes, ways


def _ways(parts: tuple[int, ...], room: int) -> Iterator[tuple[int, ...]]:
    """Counts of each part with no room left for another."""
    if len(parts) == 1:
        yield (room // parts[0],)
        return
    for count in range(room // parts[0], -1, -1):
        for rest in _ways(parts[1:], room - count * parts[0]):
            left = (
                room - count * parts[0] - sum(n * p for n, p in zip(rest, parts[1:], strict=True))
            )
            if left < parts[0]:
                yield (count, *rest)


NO_NODE_LIMIT = 10**9
TOLERANCE = 1e-6  # row violation that HiGHS allows
INFEASIBLE = 2  # what SciPy's milp reports


@dataclass(frozen=True)
class WholePoint:
    """Best integer point found (n,), its value, a lower bound, and the number of nodes."""

    value: float
    point: Array
    bound: float
    nodes: int


def solved(
    program: MixedProgram, gap: float = 0.0, nodes: int = NO_NODE_LIMIT, seconds: float = math.inf
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
    # Lower bound: the dual bound of HiGHS, or the optimum if HiGHS reports no dual bound.
    bound = result.mip_dual_bound
    if bound is None:
        bound = -math.inf if result.fun is None else result.fun
    return WholePoint(float(result.fun), point, *(float(bound), int(result.mip_node_count or 0)))


def _continuous_anew(program: MixedProgram, point: Array) -> Array:
    """Re-optimise the continuous variables at a point's integer values; unchanged if infeasible."""
    part = np.flatnonzero(~program.whole)
    inner = _restricted(program, sp.csc_array(program.rows.matrix), point, part)
    try:
        better = solve_lp_relaxation(inner).point
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
    """Suppress output that the solver's library writes despite its silent setting."""
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


MAX_BLOCK_GAP = 0.5  # of a part that costs next to nothing


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
        except NoPoint:  # fixed variables may violate rows by TOLERANCE
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
    # Fixed variables may violate a row by the rounding of solvers.
    slack = 1e-9 * (1 + np.abs(rest)) + np.minimum(rows.excess(point)[touched], near)
    held_rows = SparseRows(
        matrix, rows.low[touched] - rest - slack, rows.high[touched] - rest + slack
    )
    return MixedProgram(program.cost[part], held_rows, program.most[part], program.whole[part])


def _solved_part(inner: MixedProgram, miss: float, nodes: int) -> WholePoint:
    least = solve_lp_relaxation(inner).value
    gap = min(MAX_BLOCK_GAP, miss / max(abs(least), 1e-9))
    best = solved(inner, gap, nodes)
    if best is None:
        best = solved(inner, MAX_BLOCK_GAP, 100 * nodes)
    if best is None:
        raise NoPoint("a part has no whole point within its nodes")
    return best
