"""The linear relaxation of a mixed integer program, lifted by rounding cuts, with its duals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from planner.programs.integer.integer_program import Array, MixedProgram
from planner.programs.integer.rounding_cuts import rounding_cuts

LARGE = 3000  # variables from which the interior point method is the faster one
STOPPED = 1e-4  # relative rise of the bound from one round of cuts below which there is no other


class NoPoint(ValueError):  # noqa: N818 - a finding, raised
    """No point keeps all rows."""


@dataclass(frozen=True)
class LinearPoint:
    """The optimum of a relaxation: value, point (n,), what one more of each row's side is worth.

    `duals` (rows,) are d value / d side: of the lower side where that binds, else of the upper.
    """

    value: float
    point: Array
    duals: Array
    reduced: Array


def relaxed(program: MixedProgram) -> LinearPoint:
    """The linear program with all variables continuous.

    Raises NoPoint where nothing keeps the rows.
    """
    rows = program.rows
    equal = rows.low == rows.high
    above = np.flatnonzero(~equal & np.isfinite(rows.low))
    under = np.flatnonzero(~equal & np.isfinite(rows.high))
    level = np.flatnonzero(equal)
    one_sided = sp.vstack([-rows.matrix[above], rows.matrix[under]], format="csr")
    result: Any = linprog(  # type: ignore[call-overload, misc]  # its stubs know no sparse rows
        program.cost,
        A_ub=one_sided if one_sided.shape[0] else None,
        b_ub=np.append(-rows.low[above], rows.high[under]) if one_sided.shape[0] else None,
        A_eq=rows.matrix[level] if level.size else None,
        b_eq=rows.low[level] if level.size else None,
        bounds=np.column_stack([np.zeros(program.most.size), program.most]),
        method="highs-ipm" if program.cost.size > LARGE else "highs-ds",
    )
    if result.x is None:
        raise NoPoint(str(result.message))
    duals = np.zeros(rows.low.size)
    sides = result.ineqlin.marginals if one_sided.shape[0] else np.zeros(0)
    duals[above] -= sides[: above.size]
    duals[under] += sides[above.size :]
    if level.size:
        duals[level] = result.eqlin.marginals
    reduced = result.lower.marginals + result.upper.marginals
    return LinearPoint(float(result.fun), result.x, duals, reduced)


def tightened(
    program: MixedProgram, rounds: int, most: int = 20_000
) -> tuple[MixedProgram, LinearPoint, int]:
    """The program with rounding cuts that lift its relaxation, that relaxation, and their number.

    Raises NoPoint.
    """
    linear, count = relaxed(program), 0
    base = program
    for _ in range(rounds):
        cuts = rounding_cuts(base, linear.point, most)
        if not cuts.low.size:
            break
        program, count = program.with_rows(cuts), count + cuts.low.size
        lifted = relaxed(program)
        rise = lifted.value - linear.value
        linear = lifted
        if rise <= STOPPED * abs(linear.value):
            break
    return program, linear, count
