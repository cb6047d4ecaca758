"""Elasticities of an answer: what one percent of each given quantity is worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from planner.protocol.elasticity import Elasticity
from planner.text.errors import Infeasible, InputError

if TYPE_CHECKING:
    from planner.protocol.plan import Plan
    from planner.uncertainty.global_study import Study


def _rank(row: Elasticity) -> tuple[bool, float, str]:
    return (not row.known, -abs(row.elasticity) if row.known else 0.0, row.path)


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

            return sensitivity_text(self.document)
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {value:+.3f}" for name, value in self.items())


def sensitivity(
    of: Plan | Any,
    *,
    output: str | None = None,
    sets: Sequence[str] = (),
    switches: bool = False,
    sobol: int | None = None,
    morris: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Elasticities | Study:
    """What one percent of each given quantity is worth.

    Parameters
    ----------
    of : a plan, or what `planner.solve` takes. Of a plan alone come the elasticities of its
        objective, which it has from the multipliers of its geometric program (envelope theorem)
        without another solve; a quantity without influence is absent.
    output : what of the answer is looked at, such as cost, tpot, throughput, tokens or
        over_training; the cost if None. All given quantities are then in the table.
    sets : changes "path.in.file=value" made before.
    switches : seek, for each quantity, the nearest change each way at which another choice is
        the best, by solving again.
    sobol, morris, seed, workers : study what the scenario's `uncertain:` says instead, with so
        many base draws, or trajectories, in so many processes: a `Study` comes back.

    Raises
    ------
    InputError
        With every mistake in the input, or if the answer has no such output.
    Infeasible
        If nothing keeps the promises.
    """
    from planner.protocol.plan import Plan

    if sobol is not None or morris is not None:
        from planner.uncertainty.global_study import explore

        source = of.document["scenario"] if isinstance(of, Plan) else of
        return explore(source, output, sets, sobol=sobol, morris=morris, seed=seed, workers=workers)
    if isinstance(of, Plan):
        if output is None and not sets and not switches:
            ranked = sorted(of.elasticities.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
            return Elasticities(ranked)
        of = of.document["scenario"]
    return elasticity_table(of, output, sets, switches=switches)


def elasticity_table(
    source: Any,
    output: str | None = None,
    sets: Sequence[str] = (),
    *,
    switches: bool | None = None,
    swing: float | None = None,
    shown: bool = False,
) -> Elasticities:
    """Elasticities of one output to every parameter of a scenario, with its choices held.

    With `switches` the next switches of the choice are sought, which a kind whose search is slow
    does only when told to; with `swing` the document has the `bars` of a tornado, every parameter
    less and more by that share. `shown` draws a bar on standard error while switches are sought.

    Raises
    ------
    Infeasible
        If nothing keeps the promises.
    InputError
        If the plan has no such output.
    """
    from planner.protocol.output import output_named
    from planner.protocol.problem import problem_of
    from planner.scenario import opened, resolved
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
    document: dict[str, Any] = {
        "problem": problem.kind,
        "status": "optimal",
        "scenario": resolved(question),
        "of": name,
        "value": best.outputs[name],
        "unit": target.unit,
        "choice": best.choice,
        "counts": best.small_counts,
        "rows": [],
        "bars": None,
        "provenance": {"version": version("token-planner")},
    }
    table = Elasticities.of(rows, document)
    document["rows"] = [row.document() for row in table.rows]
    if swing is not None:
        document["bars"] = tornado_bars(parameters, rows, document, swing)
    return table
