"""Elasticities by solving again, and the answer with each parameter less and more: a tornado."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from planner.protocol.elasticity import OFFSETS, STEP, Elasticity, one_sided
from planner.protocol.parameter import Parameter
from planner.protocol.problem import HasElasticities, Problem, search
from planner.text.errors import InputError

__all__ = ["AGAIN", "MOST", "SWING", "re_solved_row", "rows_of", "tornado_bars"]

AGAIN = "solved again on either side"
SWING = 0.2
MOST = 14
NOTHING = 1e-3  # elasticity below which there is no bar


def rows_of(problem: Problem[Any], question: Any, name: str) -> list[Elasticity]:
    """A row for every parameter: by the kind's own method, else by solving again."""
    if isinstance(problem, HasElasticities):
        return list(problem.elasticities(question, name))
    return [
        re_solved_row(problem, question, row, name)
        for row in problem.parameters(question)
        if row.to is not None and not row.whole
    ]


def re_solved_row(problem: Problem[Any], question: Any, row: Parameter, name: str) -> Elasticity:
    """The elasticity of an output to a parameter, its choice held and everything else searched."""

    def logs(step: float) -> list[float | None]:
        """The output's logarithm at the offsets; None where there is no answer."""
        values = [_held(problem, question, row, math.exp(offset * step)) for offset in OFFSETS]
        return [math.log(value[name]) if value.get(name) else None for value in values]

    at = math.log(problem.search(question).outputs[name])
    left, right = one_sided(at, logs(STEP), logs)
    return Elasticity(row.path, row.value, row.unit, row.group, left, right, "re-solve", AGAIN)


def _held(
    problem: Problem[Any], question: Any, row: Parameter, factor: float
) -> Mapping[str, float]:
    """The outputs with a parameter times a factor; none where there is no such question."""
    if row.to is None:
        return {}
    try:
        return problem.search(row.to(factor)).outputs
    except InputError:
        return {}


def tornado_bars(
    parameters: Sequence[Parameter],
    rows: Sequence[Elasticity],
    document: Mapping[str, Any],
    swing: float = SWING,
    most: int = MOST,
) -> list[dict[str, Any]]:
    """A bar for each quantity that matters, the longest first.

    `less` and `more` are the output with the quantity less or more by the share `swing`, None where
    nothing keeps the promises; `solved` says that the problem was solved again.
    """
    varied = {parameter.path: parameter for parameter in parameters}
    name, middle = document["of"], document["value"]
    ranked = sorted((row for row in rows if row.known), key=lambda row: -abs(row.elasticity))
    bars = []
    for row in [row for row in ranked if abs(row.elasticity) >= NOTHING][:most]:
        parameter = varied.get(row.path)
        if parameter is not None and parameter.to is not None and not parameter.whole:
            less, more = (_solved(parameter, factor, name) for factor in (1 - swing, 1 + swing))
            solved = True
        else:
            less = middle * (1 - swing) ** row.left
            more, solved = middle * (1 + swing) ** row.right, False
        bars.append({"path": row.path, "less": less, "more": more, "solved": solved,
                     "swing": swing})  # fmt: skip
    return sorted(bars, key=lambda bar: -_length(bar, middle))


def _solved(parameter: Parameter, factor: float, name: str) -> float | None:
    if parameter.to is None:
        return None
    try:
        return search(parameter.to(factor)).outputs.get(name)
    except InputError:
        return None


def _length(bar: Mapping[str, Any], middle: float) -> float:
    return max(abs(value - middle) for value in (bar["less"], bar["more"], middle) if value)
