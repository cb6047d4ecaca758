"""Every number of a life's plan is its equation's, and a number that is not is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import planner
from planner.problems.lifecycle.comparisons import optimum_point, recheck
from planner.problems.lifecycle.plan import LifecyclePoint
from planner.problems.lifecycle.problem import PROBLEM
from planner.problems.lifecycle.resolve import resolve_life
from planner.problems.lifecycle.search.optimal_size import FixedLayoutOptimum, optimal_size
from planner.protocol.output import output_values
from planner.scenario import load
from planner.text.errors import SolverError
from planner.token_costs.budget_task import compute_optimal_tokens
from planner.token_costs.outputs import loss_equations
from planner.token_costs.phase_costs import symbol_values
from planner.token_costs.spending import Spending
from tests.cases.lifecycle import scenario
from tests.loops import for_all

WRONG = 1.334


# Serving is used three quarters of the time that is paid.
QUESTION = scenario(serving={**scenario()["serving"], "utilisation": 0.75}, draws=0)


@pytest.fixture(scope="module")
def best() -> FixedLayoutOptimum:
    """The optimum of a scenario."""
    optimum = optimal_size(resolve_life(load(QUESTION)), 1.0)
    assert isinstance(optimum, FixedLayoutOptimum)
    return optimum


def _of_cost(name: str, change: Callable[[Spending], Spending]) -> Callable[..., LifecyclePoint]:
    def mutant(point: LifecyclePoint) -> LifecyclePoint:
        cost = replace(point.cost, **{name: change(getattr(point.cost, name))})
        return replace(point, cost=cost)

    return mutant


def _dearer(spending: Spending) -> Spending:
    return replace(spending, usd=(spending.usd or 0.0) * WRONG)


MUTANTS: dict[str, Callable[[LifecyclePoint], LifecyclePoint]] = {
    "the objective": _of_cost("total", _dearer),
    "the cost of training": _of_cost("pretrain", _dearer),
    "the cost of serving": _of_cost("inference", _dearer),
    "FLOP done": _of_cost("total", lambda x: replace(x, flop=x.flop * WRONG)),
    "FLOP paid for": _of_cost("total", lambda x: replace(x, flop_paid=x.flop_paid * WRONG)),
    "chip hours": _of_cost("inference", lambda x: replace(x, chip_hours=1.0)),
    "the price": lambda point: replace(point, usd_per_mtok=point.usd_per_mtok * WRONG),
    "the price without idle time": lambda point: replace(
        point, usd_per_mtok=point.usd_per_mtok * 0.75
    ),
    "the loss": lambda point: replace(point, loss=point.loss * (1 + 1e-6)),
    "the tokens": lambda point: replace(
        point, tokens=replace(point.tokens, pretrain=point.tokens.pretrain * WRONG)
    ),
    "the size": lambda point: replace(point, n_active=point.n_active * WRONG),
    "all parameters": lambda point: replace(point, n_total=point.n_total * WRONG),
    "over-training": lambda point: replace(
        point, over_training=(point.over_training or 0.0) * WRONG
    ),
    "tokens per parameter": lambda point: replace(point, tokens_per_parameter=1.0),
    "a share": lambda point: replace(point, share=replace(point.share, pretrain=0.99)),
}


@pytest.mark.slow
def test_a_plan_as_it_is_passes(best):
    """The check itself refuses nothing that is right."""
    recheck(optimum_point(best), best)


@for_all("name", MUTANTS)
def test_a_wrong_number_is_refused(best, name):
    """By its equation walked without a kernel, or by the search's own sum."""
    with pytest.raises(SolverError, match="in the plan, but"):
        recheck(MUTANTS[name](optimum_point(best)), best)


@pytest.mark.slow
def test_outputs_are_what_their_equations_give(best):
    """At the symbols of the plan each expression evaluates to the number beside it."""
    plan = planner.solve(QUESTION)
    point, task = plan.answer.plan, best.answer.task
    values = symbol_values(task.phases, point.n_active, point.tokens)
    values |= {"D_inf": point.tokens.inference, "C_mix": point.usd_per_mtok / 1e6}
    values |= {"sigma": point.sparsity, "D_opt": compute_optimal_tokens(task.terms, point.n_active)}
    for _, symbols in loss_equations(task, point.n_active, point.tokens):
        values |= symbols
    equations = {output: output.equation(plan) for output in PROBLEM.outputs if output.equation}
    assert len(equations) == 8
    for output, expression in equations.items():
        again = expression.subs({x: values[x.name] for x in expression.free_symbols})
        printed = output_values([output], point)[output.name]
        assert float(again) == pytest.approx(printed, rel=1e-12), output.name
