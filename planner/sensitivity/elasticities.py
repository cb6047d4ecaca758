"""Elasticities of an answer by each given quantity, by duals, slopes or solving again; tornado."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from planner.protocol import elasticity
from planner.protocol.elasticity import Elasticity
from planner.protocol.parameter import Parameter
from planner.protocol.problem import Problem, search
from planner.text.errors import Infeasible, InputError

if TYPE_CHECKING:
    from planner.protocol.output import Output
    from planner.protocol.problem import Search
    from planner.scenario.loading import Question, Source


Q = TypeVar("Q", bound="Question")

RE_SOLVED = "solved again on either side"
METHOD_COUNTED = "solved again with a few fewer and a few more"
DUAL = "multipliers (envelope theorem)"
SLOPE = "slopes of the equations, layout held"
MAX_BARS = 14
ZERO_ELASTICITY = 1e-3  # elasticity below which there is no bar


class Elasticities(dict[str, float]):
    """{path in the scenario: d ln output / d ln quantity}, largest first; prints as a table.

    `rows` say more of each; `document` is all that `--json` prints. Both are empty where only the
    multipliers of a plan were asked for.
    """

    rows: tuple[Elasticity, ...] = ()
    document: dict[str, Any] | None = None

    @classmethod
    def of(cls, rows: Iterable[Elasticity], document: dict[str, Any] | None = None) -> Elasticities:
        """Sort rows into a table: solved rows first, by absolute elasticity."""
        ranked = sorted(
            rows, key=lambda x: (not x.solved, -abs(x.elasticity) if x.solved else 0.0, x.path)
        )
        table = cls((row.path, row.elasticity) for row in ranked)
        table.rows, table.document = tuple(ranked), document
        return table

    def __str__(self) -> str:
        if self.document is not None:
            from planner.report.text.sensitivity import sensitivity_text

            return sensitivity_text(self.document, self.rows)
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {value:+.3f}" for name, value in self.items())


def elasticity_table(
    source: Source,
    output: str | None = None,
    sets: Sequence[str] = (),
    *,
    switches: bool | None = None,
    swing: float | None = None,
    shown: bool = False,
) -> Elasticities:
    """Elasticities of one output to every parameter of a scenario, with its choices held.

    With `switches` the next switches of the choice are sought, which a kind whose search is slow
    does only when asked to; with `swing` the document has the `bars` of a tornado, every parameter
    less and more by that share. `shown` draws a bar on standard error while switches are sought.
    Raises Infeasible if nothing keeps the promises; InputError if the plan has no such output.
    """
    from planner.protocol.output import output_named
    from planner.protocol.problem import get_problem
    from planner.scenario import load_tree
    from planner.sensitivity.elasticities import elasticity_rows, tornado_bars
    from planner.sensitivity.switch_point import switch_points

    _, question = load_tree(source, sets)
    problem = get_problem(question.problem)
    target = output_named(problem, question, output or "cost")
    name = target.name
    best = problem.search(question)
    if not best.feasible:
        raise Infeasible(
            "no plan keeps the promises, so no answer can be varied; planner solve says which "
            "fall short, and by how much"
        )
    if name not in best.outputs:
        raise InputError(f"--of: this plan has no {name} (it has {', '.join(best.outputs)})")
    rows = elasticity_rows(problem, question, name)
    sought = switches or (switches is None and not problem.slow)
    parameters = problem.parameters(question) if sought or swing is not None else ()
    if sought:
        nearest = switch_points(best, parameters, rows, shown=shown)
        rows = [replace(row, switches=nearest.get(row.path)) for row in rows]
    document = _document(problem.kind, question, best, target)
    table = Elasticities.of(rows, document)
    document["rows"] = [row.document() for row in table.rows]
    if swing is not None:
        document["bars"] = tornado_bars(parameters, rows, document, swing)
    return table


def _document(kind: str, question: Question, best: Search, target: Output) -> dict[str, Any]:
    """Return the `--json` document of a table, without its rows."""
    from planner.scenario import resolve_keys

    return {
        "problem": kind,
        "status": best.status,
        "gap": best.gap,
        "scenario": resolve_keys(question),
        "of": target.name,
        "value": best.outputs[target.name],
        "unit": target.unit,
        "usd_per_hour": best.outputs.get("usd_per_hour"),
        "choice": best.choice,
        "counts": best.small_counts,
        "rows": [],
        "bars": None,
        "provenance": {"version": version("token-planner")},
    }


def elasticity_rows(problem: Problem[Q, Any], question: Q, name: str) -> list[Elasticity]:
    """The rows of every parameter: duals and slopes where the kind has them, else solved again."""
    table = problem.elasticities(question, name)
    if table is not None:
        return elasticity.one_per_parameter(table)
    duals, slopes = problem.duals(question, name), problem.slopes(question, name)
    rows = []
    for parameter in problem.parameters(question):
        begin = (parameter.path, parameter.value, parameter.unit, parameter.group)
        dual, slope = duals.get(parameter.path), slopes.get(parameter.path)
        if dual is not None:
            rows.append(Elasticity(*begin, dual, dual, "dual", DUAL, elasticity.EVERYTHING_FOLLOWS))
        elif parameter.to is not None:
            rows.append(re_solved_row(problem, question, parameter, name))
        if slope is not None:
            rows.append(Elasticity(*begin, *slope, "slope", SLOPE, elasticity.LAYOUT_HELD))
    return elasticity.one_per_parameter(rows)


def re_solved_row(problem: Problem[Q, Any], question: Q, row: Parameter, name: str) -> Elasticity:
    """The elasticity of an output to a parameter by searching again on either side of it."""
    begin = (row.path, row.value, row.unit, row.group)
    if row.whole:
        value = row.value or 1.0
        left, right = elasticity.counted_sides(value, lambda n: _log(row, n / value, name))
        return Elasticity(
            *begin, left, right, "re-solve", METHOD_COUNTED, elasticity.EVERYTHING_FOLLOWS
        )

    at = math.log(problem.search(question).outputs[name])

    def logs(step: float) -> list[float | None]:
        """The output's logarithm at the offsets; None where there is no answer."""
        return [_log(row, math.exp(offset * step), name) for offset in elasticity.OFFSETS]

    left, right = elasticity.one_sided(at, logs(elasticity.STEP), logs)
    return Elasticity(*begin, left, right, "re-solve", RE_SOLVED, elasticity.EVERYTHING_FOLLOWS)


def _log(row: Parameter, factor: float, name: str) -> float | None:
    value = _solved(row, factor, name)
    return math.log(value) if value else None


def tornado_bars(
    parameters: Sequence[Parameter],
    rows: Sequence[Elasticity],
    document: Mapping[str, Any],
    swing: float,
) -> list[dict[str, Any]]:
    """A bar for each quantity that matters, the longest first.

    `less` and `more` are the output with the quantity less or more by the share `swing`, None where
    nothing keeps the promises; `solved` says that the problem was solved again.
    """
    varied = {parameter.path: parameter for parameter in parameters}
    name, middle = document["of"], document["value"]
    ranked = sorted((row for row in rows if row.solved), key=lambda row: -abs(row.elasticity))
    bars = []
    for row in [row for row in ranked if abs(row.elasticity) >= ZERO_ELASTICITY][:MAX_BARS]:
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
