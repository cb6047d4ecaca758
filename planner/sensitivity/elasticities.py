"""Elasticities of an answer: what one percent of each given quantity is worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from planner.protocol.elasticity import Elasticity
from planner.text.errors import Infeasible, InputError

if TYPE_CHECKING:
    from planner.protocol.output import Output
    from planner.protocol.problem import Search
    from planner.scenario.loading import Question, Source


def _rank(row: Elasticity) -> tuple[bool, float, str]:
    return (not row.solved, -abs(row.elasticity) if row.solved else 0.0, row.path)


class Elasticities(dict[str, float]):
    """{path in the scenario: d ln output / d ln quantity}, largest first; prints as a table.

    `rows` say more of each; `document` is all that `--json` prints. Both are empty where only the
    multipliers of a plan were asked for.
    """

    rows: tuple[Elasticity, ...] = ()
    document: dict[str, Any] | None = None

    @classmethod
    def of(cls, rows: Iterable[Elasticity], document: dict[str, Any] | None = None) -> Elasticities:
        """Those of some rows."""
        ranked = sorted(rows, key=_rank)
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
    from planner.protocol.problem import problem_of
    from planner.scenario import opened
    from planner.sensitivity.re_solve import rows_of, tornado_bars
    from planner.sensitivity.switch_point import switched

    _, question = opened(source, sets)
    problem = problem_of(question.problem)
    target = output_named(problem, question, output or "cost")
    name = target.name
    best = problem.search(question)
    if not best.feasible:
        raise Infeasible(
            "nothing keeps the promises, so there is no answer to vary; planner solve says which "
            "fall short, and by how much"
        )
    if name not in best.outputs:
        raise InputError(f"--of: this plan has no {name} (it has {', '.join(best.outputs)})")
    rows = rows_of(problem, question, name)
    sought = switches or (switches is None and not problem.slow)
    parameters = problem.parameters(question) if sought or swing is not None else ()
    if sought:
        nearest = switched(best, parameters, rows, shown=shown)
        rows = [replace(row, switches=nearest.get(row.path)) for row in rows]
    document = _document(problem.kind, question, best, target)
    table = Elasticities.of(rows, document)
    document["rows"] = [row.document() for row in table.rows]
    if swing is not None:
        document["bars"] = tornado_bars(parameters, rows, document, swing)
    return table


def _document(kind: str, question: Question, best: Search, target: Output) -> dict[str, Any]:
    """What `--json` prints of a table, its rows left out."""
    from planner.scenario import resolved

    return {
        "problem": kind,
        "status": "optimal",
        "scenario": resolved(question),
        "of": target.name,
        "value": best.outputs[target.name],
        "unit": target.unit,
        "choice": best.choice,
        "counts": best.small_counts,
        "rows": [],
        "bars": None,
        "provenance": {"version": version("token-planner")},
    }
