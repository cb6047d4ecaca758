"""Every number of a plan is its equation's, and a number that is not is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.problems.budget.outputs import budget_point, recheck
from planner.problems.budget.plan import BudgetPoint
from planner.protocol.document import json_schema, to_document
from planner.protocol.problem import get_problem
from planner.text.errors import SolverError
from planner.token_costs.spending import Spending
from tests.cases.budget import question, solved
from tests.loops import for_all

BEST = solved(question(served=2e12, rl_tokens=2e11))
WRONG = 1.334


def dearer(spending: Spending) -> Spending:
    """The same spending at a wrong price."""
    return replace(spending, usd=(spending.usd or 0.0) * WRONG)


def mutants() -> dict[str, BudgetPoint]:
    """The plan of a budget with one number wrong."""
    point = budget_point(BEST)
    cost, tokens = point.cost, point.tokens
    return {
        "the objective": replace(point, cost=replace(cost, total=dearer(cost.total))),
        "the cost of a phase": replace(point, cost=replace(cost, pretrain=dearer(cost.pretrain))),
        "FLOP done": replace(point, cost=replace(cost, total=replace(cost.total, flop=1e20))),
        "FLOP paid for": replace(
            point, cost=replace(cost, total=replace(cost.total, flop_paid=1e20))
        ),
        "the loss": replace(point, loss=(point.loss or 0.0) * (1 + 1e-6)),
        "the tokens": replace(point, tokens=replace(tokens, pretrain=tokens.pretrain * WRONG)),
        "the size": replace(point, n_active=point.n_active * WRONG),
        "all parameters": replace(point, n_total=point.n_total * WRONG),
        "over-training": replace(point, over_training=(point.over_training or 0.0) * WRONG),
        "tokens per parameter": replace(point, tokens_per_parameter=1.0),
        "a share": replace(point, share=replace(point.share, rl=0.9)),
    }


def test_a_plan_as_it_is_passes():
    """The check itself refuses nothing that is right."""
    recheck(budget_point(BEST), BEST)


@for_all("name", mutants())
def test_a_wrong_number_is_refused(name):
    """By its equation walked without a kernel, or by the program's own sum."""
    with pytest.raises(SolverError, match="in the plan, but"):
        recheck(mutants()[name], BEST)


@pytest.mark.parametrize("kind", ["budget", "lifecycle"])
def test_an_answers_schema_knows_every_key_and_unit(kind):
    """The JSON Schema is made of the type that the JSON is made of."""
    schema = json_schema(get_problem(kind).plan_type.answer_type, kind)
    defined = schema["$defs"]
    spending = defined["Spending"]["properties"]
    assert spending["usd"]["unit"] == "USD"
    assert spending["flop"]["unit"] == "flop"
    if kind == "budget":
        document = to_document(budget_point(BEST))
        assert document.keys() == defined["BudgetPoint"]["properties"].keys()
