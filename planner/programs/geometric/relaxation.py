"""The way out of a problem without a solution: how far its promises would have to be eased.

Only promises are stretched, lhs <= s * rhs with the smallest s >= 1; laws (roofs), limits and
bounds hold. One program answers all questions: a vector says which rows take part.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.programs.geometric.cone import Array, ConePoint, ExponentTable, LogProgram
from planner.programs.geometric.instance import Instance
from planner.programs.geometric.structure import AUXILIARY, OBJECTIVE, PROMISE, ProgramStructure
from planner.text.errors import Infeasible, SolverError
from planner.text.tolerances import AGREE
from planner.text.wording import excess

PRESSED = 1e-4
SOLVED = ("optimal", "optimal_inaccurate")


@dataclass(frozen=True)
class ProgramShortfall:
    """A promise that cannot be kept, and the factors on its larger side that would help.

    Eased by `factor` each, all the shortfalls together make the problem solvable; `alone` would do
    with every other promise kept, and is None where no factor does.
    """

    name: str
    text: str
    factor: float
    alone: float | None


class Shortage(Infeasible):
    """No choice satisfies every constraint.

    `common` is the smallest factor that, given to every promise at once, makes the problem
    solvable, None if no factor does; then `conflict` holds the names and texts of constraints that
    contradict each other. `shortfalls` lists the promises that take part.
    """

    def __init__(
        self,
        title: str,
        shortfalls: tuple[ProgramShortfall, ...],
        common: float | None,
        conflict: tuple[tuple[str, str], ...],
    ) -> None:
        self.shortfalls = shortfalls
        self.common = common
        self.conflict = conflict
        super().__init__(_message(title, shortfalls, common, conflict))


class ProgramRelaxation:
    """The program with one extra variable, compiled the first time something is infeasible."""

    def __init__(self, problem: ProgramStructure) -> None:
        self._problem = problem
        self._promised = [i for i, row in enumerate(problem.rows) if row.kind == PROMISE]
        table = problem.table
        self._terms = np.flatnonzero(table.rows != len(problem.rows) - 1)
        last = len(problem.variables) - 1
        fixed = table.fixed[self._terms]
        fixed[:, last] = 0
        extra = len(self._terms)
        entries = len(table.places)
        inside = np.isin(table.terms, self._terms)
        stretched = ExponentTable(
            table.rows[self._terms],
            fixed,
            np.concatenate([np.searchsorted(self._terms, table.terms[inside]), np.arange(extra)]),
            np.concatenate([table.variables[inside], np.full(extra, last)]),
            np.concatenate([table.places[inside], entries + table.rows[self._terms]]),
        )
        self._program = LogProgram(stretched, floor=True)

    def shortage(self, at: Instance) -> Shortage:
        """Say which promises fall short, and by how much.

        Raises SolverError when nothing falls short.
        """
        rows, promised = self._problem.rows, self._promised
        common = self.least_common(at)
        if common is None:
            return Shortage(self._problem.title, (), None, self._conflict(at))
        needed = dict.fromkeys(promised, common)
        for i in promised:
            # Each in turn as little as the others, eased as far as they are now, allow.
            least, _ = self._smallest_stretch(at, [i], needed)
            needed[i] = common if least is None else min(least, common)
        shortfalls = []
        for i in promised:
            alone, _ = self._smallest_stretch(at, [i])
            if needed[i] > AGREE:
                factor = None if alone is None else float(np.exp(alone))
                row = rows[i]
                shortfalls.append(
                    ProgramShortfall(row.name, row.text, float(np.exp(needed[i])), factor)
                )
        return Shortage(self._problem.title, tuple(shortfalls), float(np.exp(common)), ())

    def least_common(self, at: Instance) -> float | None:
        """Logarithm of the least factor that, given to every promise, makes the problem solvable.

        None if no factor does. Raises SolverError when nothing falls short.
        """
        common, _ = self._smallest_stretch(at, self._promised)
        if common is not None and common <= AGREE:
            raise SolverError(
                f"{self._problem.title}: the solver found no solution, yet every promise can be "
                "kept; rescale the givens or widen the bounds of the choices"
            )
        return common

    def _conflict(self, at: Instance) -> tuple[tuple[str, str], ...]:
        """Names and texts of the constraints that press when all of them may be eased."""
        rows = self._problem.rows
        everything = [i for i, row in enumerate(rows) if row.kind not in (OBJECTIVE, AUXILIARY)]
        _, point = self._smallest_stretch(at, everything)
        return tuple(
            (rows[i].name, rows[i].text) for i in everything if point.multipliers[i] > PRESSED
        )

    def _smallest_stretch(
        self, at: Instance, eased: list[int], eased_before: Mapping[int, float] | None = None
    ) -> tuple[float | None, ConePoint]:
        """Logarithm of the smallest common stretch of these rows, None where none is enough.

        `eased_before` gives the logarithms by which other rows are eased already.
        """
        count = len(self._problem.rows)
        mode, slack = np.zeros(count), np.zeros(count)
        for i, logarithm in (eased_before or {}).items():
            slack[i] = logarithm
        mode[eased], slack[eased] = -1.0, 0.0
        exponents: Array = np.concatenate([at.exponents, mode])
        centre = at.centre.copy()
        centre[-1] = 0.0
        logs = (at.logs - slack[self._problem.table.rows])[self._terms]
        point = self._program.solve(logs, exponents, centre)
        if point.status not in SOLVED:
            return None, point
        return max(0.0, float(point.logs[-1])), point


def _message(
    title: str,
    shortfalls: tuple[ProgramShortfall, ...],
    common: float | None,
    conflict: tuple[tuple[str, str], ...],
) -> str:
    lines = [f"{title}: no plan satisfies every constraint."]
    if common is None:
        lines.append("  No easing of the promises helps; these contradict each other")
        return "\n".join(lines + [f"    {name}   ({text})" for name, text in conflict])
    lines.append("  The nearest plan")
    lines += [f"    misses {x.name} by {excess(x.factor)}   ({x.text})" for x in shortfalls]
    alone = [f"{x.name} by {excess(x.alone)}" for x in shortfalls if x.alone is not None]
    if alone and len(shortfalls) > 1:
        lines.append(f"  Easing one alone would do: {', or '.join(alone)}")
    return "\n".join(lines)
