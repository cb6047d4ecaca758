"""A lowered problem with numbers put in.

A coefficient that is zero at these givens would be minus infinity in logarithms. Its term is given
the size exp(-70), 4e-31, at the largest it can reach inside the bounds of the choices, against a
right side of 1: lost in rounding, and nothing is compiled again.

The way out of a problem without a solution: how far its promises would have to be eased.

Only promises are stretched, lhs <= s * rhs with the smallest s >= 1; laws (roofs), limits and
bounds hold. One program answers all questions: a vector says which rows take part.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.programs.geometric.cone import Array, ConePoint, ExponentTable, LogProgram
from planner.programs.geometric.structure import (
    AUXILIARY,
    BOUND,
    OBJECTIVE,
    PROMISE,
    ProblemError,
    ProgramStructure,
)
from planner.text.errors import Infeasible, SolverError
from planner.text.tolerances import AGREE
from planner.text.wording import excess

Mask = npt.NDArray[np.bool_]

NEGLIGIBLE = -70.0
RECIPROCAL_RANGE = 60.0


@dataclass(frozen=True)
class Instance:
    """One set of figures for the givens, and everything that follows from it before solving.

    `logs` are the logarithms of the terms' coefficients, `matrix` the exponents, `low` and `high`
    the logarithms of the bounds, `zero` marks the terms whose coefficient is zero.
    """

    figures: tuple[float, ...]
    values: Array
    zero: Mask
    logs: Array
    exponents: Array
    matrix: Array
    low: Array
    high: Array
    centre: Array


def instance(problem: ProgramStructure, numbers: Mapping[Hashable, float]) -> Instance:
    """Put numbers in.

    Raises ProblemError where a given is missing or not finite, a coefficient has no value or is
    negative, or the right side of a constraint is not positive.
    """
    symbols = problem.coefficients.givens
    if missing := [symbol for symbol in symbols if symbol not in numbers]:
        names = ", ".join(map(str, missing))
        raise ProblemError(f"{problem.title}: no value for {names}")
    if len(numbers) > len(symbols):
        strange = sorted(map(str, set(numbers) - set(symbols)))
        raise ProblemError(
            f"{problem.title}: a value for {', '.join(strange)}, which the program was not "
            "compiled for (a symbol of the same name but other assumptions is another symbol)"
        )
    figures = tuple(float(numbers[symbol]) for symbol in symbols)
    signs = problem.coefficients.nonnegative
    for symbol, figure, nonnegative in zip(symbols, figures, signs, strict=True):
        if not np.isfinite(figure) or (figure < 0 and nonnegative):
            raise ProblemError(f"{problem.title}: {symbol} = {figure} is not a number it can take")
    values = _values(problem, figures)
    exponents = values[problem.exponent]
    top, bottom = values[problem.numerator], values[problem.divisor]
    for term in np.flatnonzero(top < 0).tolist():
        row = problem.rows[problem.table.rows[term]]
        raise ProblemError(
            f"{problem.title}: {row.name}: the coefficient "
            f"{problem.coefficients.texts[problem.numerator[term]]} is {top[term]:.6g}, "
            f"and a geometric program takes no negative one, in\n    {row.text}"
        )
    for place in np.flatnonzero(bottom <= 0).tolist():
        row = problem.rows[place]
        raise ProblemError(
            f"{problem.title}: {row.name}: {row.divisor} is {bottom[place]:.6g}: nothing positive "
            f"is at most that, in\n    {row.text}"
        )
    matrix = problem.table.exponents(exponents)
    zero = top == 0
    if zero[problem.table.rows == len(problem.rows) - 1].all():
        raise ProblemError(f"{problem.title}: the objective is zero at these givens")
    logs = np.log(np.where(zero, 1.0, top)) - np.log(bottom)[problem.table.rows]
    low, high, centre = _box(problem, matrix, logs, zero)
    reach = np.maximum(matrix[zero] * low, matrix[zero] * high).sum(axis=1)
    logs[zero] = NEGLIGIBLE - reach
    return Instance(figures, values, zero, logs, exponents, matrix, low, high, centre)


def _values(problem: ProgramStructure, figures: tuple[float, ...]) -> Array:
    coefficients = problem.coefficients
    try:
        values = coefficients.values(figures)
        if np.isfinite(values).all():
            return values
        reason = "not finite"
    except (ArithmeticError, ValueError, TypeError) as error:
        reason = str(error)
    named = "; ".join(coefficients.undefined(figures)) or "a coefficient"
    raise ProblemError(f"{problem.title}: {named} has no value at these givens ({reason})")


def _box(
    problem: ProgramStructure, matrix: Array, logs: Array, zero: Mask
) -> tuple[Array, Array, Array]:
    """Bounds of every variable's logarithm and a point to measure from.

    Those of auxiliaries and of the objective follow from the choices they are held up by.
    """
    size = len(problem.variables)
    low, high, centre = np.zeros(size), np.zeros(size), np.zeros(size)
    rows = problem.table.rows
    for i, row in enumerate(problem.rows):
        if row.kind == BOUND:
            (term,) = np.flatnonzero(rows == i)
            if zero[term]:
                raise ProblemError(f"{problem.title}: {row.name}: a bound must be positive")
            (bounded,) = np.flatnonzero(matrix[term])
            if matrix[term, bounded] < 0:
                low[bounded] = logs[term]
            else:
                high[bounded] = -logs[term]
    centre[: problem.choices] = (low + high)[: problem.choices] / 2
    for column in range(problem.choices, size):
        terms = [
            np.flatnonzero((rows == i) & ~zero & (matrix[:, column] < 0))
            for i in problem.owned[column]
        ]
        terms = [each for each in terms if len(each)]
        if not terms:
            low[column] = high[column] = centre[column] = NEGLIGIBLE
            continue
        others = matrix.copy()
        others[:, column] = 0
        least = logs + np.minimum(others * low, others * high).sum(axis=1)
        most = logs + np.maximum(others * low, others * high).sum(axis=1)
        middle = logs + others @ centre
        low[column] = max(least[each].max() for each in terms)
        high[column] = max(np.logaddexp.reduce(most[each]) for each in terms)
        centre[column] = max(np.logaddexp.reduce(middle[each]) for each in terms)
        if any(problem.rows[i].reciprocal for i in problem.owned[column]):
            high[column] += RECIPROCAL_RANGE
    return low, high, centre


ACTIVE_RELAXATION = 1e-4
SOLVED = ("optimal", "optimal_inaccurate")


@dataclass(frozen=True)
class ProgramShortfall:
    """An infeasible promise, and the factors on its larger side that would help.

    Eased by `factor` each, all the shortfalls together make the problem solvable; `alone` would do
    with every other promise kept, and is None where no factor does.
    """

    name: str
    text: str
    factor: float
    alone: float | None


class InfeasibleProgram(Infeasible):
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

    def shortage(self, at: Instance) -> InfeasibleProgram:
        """Say which promises fall short, and by how much.

        Raises SolverError when nothing falls short.
        """
        rows, promised = self._problem.rows, self._promised
        common = self.least_common(at)
        if common is None:
            return InfeasibleProgram(self._problem.title, (), None, self._conflict(at))
        needed = dict.fromkeys(promised, common)
        for i in promised:
            # Minimum stretch of each promise in turn, the others relaxed by their present stretch.
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
        return InfeasibleProgram(self._problem.title, tuple(shortfalls), float(np.exp(common)), ())

    def least_common(self, at: Instance) -> float | None:
        """Logarithm of the least factor that, given to every promise, makes the problem solvable.

        None if no factor does. Raises SolverError when nothing falls short.
        """
        common, _ = self._smallest_stretch(at, self._promised)
        if common is not None and common <= AGREE:
            raise SolverError(
                f"{self._problem.title}: the solver found no solution though the constraints "
                "are feasible; rescale the givens or widen the bounds of the choices"
            )
        return common

    def _conflict(self, at: Instance) -> tuple[tuple[str, str], ...]:
        rows = self._problem.rows
        everything = [i for i, row in enumerate(rows) if row.kind not in (OBJECTIVE, AUXILIARY)]
        _, point = self._smallest_stretch(at, everything)
        return tuple(
            (rows[i].name, rows[i].text)
            for i in everything
            if point.multipliers[i] > ACTIVE_RELAXATION
        )

    def _smallest_stretch(
        self, at: Instance, eased: list[int], eased_before: Mapping[int, float] | None = None
    ) -> tuple[float | None, ConePoint]:
        """Logarithm of the smallest common stretch of these rows, None if no stretch is enough.

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
