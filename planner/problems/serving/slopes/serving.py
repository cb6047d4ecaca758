"""The rows of a serving scenario: along its equations, or evaluated again where queues come in."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from planner.problems.serving.deployment.alternatives import winner
from planner.problems.serving.deployment.questions import all_searches, best_plans
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.question import Scenario
from planner.problems.serving.slopes.fixed_layout import (
    Bound,
    SymbolPowers,
    elasticities,
    fix_layouts,
    symbol_powers,
)
from planner.problems.serving.task.resolve import resolve, resolve_hardware
from planner.protocol.elasticity import EVERYTHING_FOLLOWS, LAYOUT_HELD, Elasticity, counted_sides
from planner.protocol.parameter import Parameter
from planner.protocol.problem import search

METHOD = "slopes of the equations, layout held"
METHOD_RESIZED = f"{METHOD}, replicas as real numbers"
RE_SOLVED = "solved again with a few fewer and a few more"


def serving_rows(scenario: Scenario, name: str) -> list[Elasticity]:
    """Elasticities of one output with respect to every parameter of a scenario with a plan.

    Where replicas are counted there are two rows of each: one with the layout held, one where
    replicas, pools and chips follow. First comes the layout held, unless replicas are many.
    """
    bound, givens = _bound(scenario)
    powers = symbol_powers(bound, givens)
    rows = _rows(bound, givens, powers, name)
    if bound.may_follow:
        rows += _rows(replace(bound, follows=not bound.resized), givens, powers, name)
    counted = {given.path: _counted(given, name) for given in givens if given.whole}
    return [*counted.values(), *(row for row in rows if row.path not in counted)]


def _bound(scenario: Scenario) -> tuple[Bound, list[Parameter]]:
    questions, points = best_plans(all_searches(resolve(scenario)))
    best = points[0]
    givens = serving_parameters(scenario, resolve_hardware(scenario))
    return fix_layouts(scenario, winner(questions, best).question, best), givens


def _rows(
    bound: Bound, givens: Sequence[Parameter], powers: SymbolPowers, name: str
) -> list[Elasticity]:
    """A row for every parameter, replicas held or following as `bound` says."""
    _, slopes = elasticities(bound, givens, powers)
    slope = slopes[name]
    reach = np.max([np.abs(each).max(axis=0) for each in slopes.values()], axis=0)
    resized = bound.resized and bound.counted
    basis, question = (METHOD_RESIZED, EVERYTHING_FOLLOWS) if resized else (METHOD, LAYOUT_HELD)
    return [
        Elasticity(
            given.path,
            given.value,
            given.unit,
            given.group,
            float(slope[0, i]) + 0.0,
            float(slope[1, i]) + 0.0,
            "slope",
            basis,
            question,
            reach=float(reach[i]),
        )
        for i, given in enumerate(givens)
    ]


def layout_held(scenario: Scenario, paths: Collection[str]) -> dict[str, tuple[float, float]]:
    """{path: d ln price / d ln parameter, left and right} with the layout held.

    Empty where it is the same question as that of the multipliers, where everything follows.
    """
    bound, every = _bound(scenario)
    if not bound.may_follow:
        return {}
    givens = [each for each in every if each.path in paths]
    _, slopes = elasticities(replace(bound, follows=False), givens)
    price = slopes["usd_per_mtok"]
    return {each.path: (float(price[0, i]), float(price[1, i])) for i, each in enumerate(givens)}


def _counted(row: Parameter, name: str) -> Elasticity:
    """The row of a whole number, from solving with a few fewer and a few more."""
    value = row.value or 1.0

    def log(count: float) -> float | None:
        output = search(row.to(count / value)).outputs.get(name) if row.to else None
        return None if output is None else math.log(output)

    left, right = counted_sides(value, log)
    return Elasticity(row.path, row.value, row.unit, row.group, left, right, "re-solve", RE_SOLVED)


def all_parameters(scenario: Scenario) -> list[Parameter]:
    """Every given of a scenario, its catalogues' figures among them."""
    return serving_parameters(scenario, resolve_hardware(scenario))
