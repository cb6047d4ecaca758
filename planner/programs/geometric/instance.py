"""A lowered problem with numbers put in.

A coefficient that is zero at these givens would be minus infinity in logarithms. Its term is given
the size exp(-70), 4e-31, at the largest it can reach inside the bounds of the choices, against a
right side of 1: lost in rounding, and nothing is compiled again.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.programs.geometric.cone import Array
from planner.programs.geometric.structure import BOUND, ProblemError, ProgramStructure

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
    figures = _figures(problem, numbers)
    values = _values(problem, figures)
    exponents = values[problem.exponent]
    top, bottom = values[problem.numerator], values[problem.divisor]
    _check_signs(problem, top, bottom)
    matrix = problem.table.exponents(exponents)
    zero = top == 0
    if zero[problem.table.rows == len(problem.rows) - 1].all():
        raise ProblemError(f"{problem.title}: the objective is zero at these givens")
    logs = np.log(np.where(zero, 1.0, top)) - np.log(bottom)[problem.table.rows]
    low, high, centre = _box(problem, matrix, logs, zero)
    reach = np.maximum(matrix[zero] * low, matrix[zero] * high).sum(axis=1)
    logs[zero] = NEGLIGIBLE - reach
    return Instance(figures, values, zero, logs, exponents, matrix, low, high, centre)


def _figures(problem: ProgramStructure, numbers: Mapping[Hashable, float]) -> tuple[float, ...]:
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
    return figures


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


def _check_signs(problem: ProgramStructure, top: Array, bottom: Array) -> None:
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
