"""The numbers of a budget's or a life's plan: equations, their values, and their check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from planner.laws.law_forms import form_equation
from planner.laws.laws import scaling_law
from planner.protocol.output import Output
from planner.protocol.parameter import with_value
from planner.text.errors import SolverError
from planner.token_costs.budget_task import BudgetTask, compute_optimal_tokens
from planner.token_costs.optimum import BudgetOptimum
from planner.token_costs.phase_costs import PHASES
from planner.token_costs.spending import LifePlan, LifePoint, LifeSpending, PhaseShares, PhaseTokens

if TYPE_CHECKING:
    import sympy as sp

    from formulas.algebra.equation import Equation
    from planner.protocol.plan import Plan
    from planner.scenario.loading import Question

Q = TypeVar("Q", bound="Question")


def formula(name: str, *absent: str) -> Callable[[Plan], sp.Expr]:
    """The expression of an equation of outputs, where some tokens are absent; it loads SymPy."""

    def expression(plan: Plan) -> sp.Expr:
        from formulas.nomenclature.symbols import SYMBOLS
        from formulas.scaling import budget_outputs

        equation: Equation = getattr(budget_outputs, name)
        return equation.rhs.subs({SYMBOLS[tokens]: 0 for tokens in absent})

    return expression


def _loss(plan: Plan) -> sp.Expr | None:
    from formulas.scaling.budget_outputs import reinforcement_loss

    assert isinstance(plan, LifePlan)
    laws, beside = plan.question.law, plan.question.rl.loss
    equation = form_equation(scaling_law(laws[0] if isinstance(laws, tuple) else laws).form)
    return equation and equation.expanded.rhs + (reinforcement_loss.rhs if beside else 0)


OUTPUTS = (
    Output("cost.total.usd", "USD", ("cost", "cost.total"), promise="cost",
           applies=lambda q: q.in_usd, equation=formula("life_cost")),
    Output("cost.total.flop_paid", "flop", promise="cost", equation=formula("paid_arithmetic"),
           applies=lambda q: not q.in_usd and q.rated),
    Output("cost.total.flop", "flop", ("cost", "cost.total"), promise="cost",
           applies=lambda q: not q.in_usd, equation=formula("done_arithmetic")),
    Output("cost.pretrain.usd", "USD", equation=formula("life_cost", "D_rl", "D_inf")),
    Output("cost.inference.usd", "USD", equation=formula("life_cost", "D_pt", "D_rl")),
    Output("n_active", "param", ("size", "parameters")),
    Output("n_total", "param", equation=formula("sparse_parameters")),
    Output("tokens.pretrain", "token", ("tokens",)),
    Output("tokens.rl", "token"),
    Output("over_training", "1", equation=formula("overtraining_ratio")),
    Output("tokens_per_parameter", "token/param", equation=formula("tokens_per_parameter")),
    Output("loss", "nat", promise="quality.loss", equation=_loss),
)  # fmt: skip

AGREE = 1e-9  # of a number by its equation and by another way, relative


def at_limit(question: Q, path: str, value: float) -> Q:
    """A question with a value at a path: a quality as the loss [nat], a cost in its unit."""
    values: Mapping[str, tuple[str, object]] = {
        "quality.loss": ("quality", {"loss": value}),
        "cost": ("cost", f"{value!r} {'USD' if getattr(question, 'in_usd', True) else 'FLOP'}"),
    }
    return cast("Q", with_value(question, *values.get(path, (path, value))))


def loss_equations(
    task: BudgetTask, size: float, tokens: PhaseTokens
) -> Iterator[tuple[Equation, Mapping[str, float]]]:
    """The equations whose sum is the loss, with the values of their symbols."""
    from formulas.scaling.budget_outputs import reinforcement_loss

    law, term = task.law, task.rl_term
    law.need("loss")
    equation = form_equation(law.form)
    assert equation is not None  # a law without one lacks the loss
    unique = task.unique if task.repeats else None
    values = law.symbols(size, tokens.pretrain, task.sparsity, unique, tokens.rl)
    yield equation, {name: float(value) for name, value in values.items()}
    if term is not None:
        yield reinforcement_loss, {
            "B_rl": term.coefficient, "beta_rl": term.exponent, "D_rl": tokens.rl, "one_token": 1.0,
        }  # fmt: skip


def size_overtraining_ratio(task: BudgetTask, n_active: float, pretrain: float) -> float | None:
    """Tokens over those that are compute-optimal for a size [-]; None for a law without such."""
    from formulas.scaling.budget_outputs import overtraining_ratio

    tokens = compute_optimal_tokens(task.terms, n_active)
    return None if tokens is None else evaluate(overtraining_ratio, D_pt=pretrain, D_opt=tokens)


def law_loss(task: BudgetTask, size: float, tokens: PhaseTokens, *, walk: bool = False) -> float:
    """The loss [nat] by the law's equation, compiled or, to check it, walked."""
    pairs = loss_equations(task, size, tokens)
    return sum(traverse(e, values) if walk else evaluate(e, **values) for e, values in pairs)


def life_point(
    task: BudgetTask, size: float, tokens: PhaseTokens, cost: LifeSpending, unique: float | None
) -> LifePoint:
    """Fields common to the plans of a budget and of a life, every number by its equation.

    `unique` are the distinct tokens, None where nothing is said of repeating them.
    """
    from formulas.scaling import budget_outputs as equations

    trained, column = tokens.pretrain, "usd" if task.in_usd else "flop_paid"
    paid = [getattr(getattr(cost, name), column) for name in (*PHASES, "total")]
    shares = equations.phase_share.numpy()(K_phase=paid[:-1], K_life=paid[-1])
    return LifePoint(
        n_active=size,
        n_total=evaluate(equations.sparse_parameters, sigma=task.sparsity, N_active=size),
        sparsity=task.sparsity,
        tokens=tokens,
        epochs=unique and evaluate(equations.passes_over_data, D_pt=trained, D_unique=unique),
        cost=cost,
        share=PhaseShares(*np.asarray(shares).tolist()),
        over_training=size_overtraining_ratio(task, size, trained),
        tokens_per_parameter=evaluate(equations.tokens_per_parameter, D_pt=trained, N_active=size),
        loss=law_loss(task, size, tokens),
        law=task.law.name,
        coefficients=dict(task.law.values),
        objective="usd" if task.in_usd else "flop",
    )


def require(name: str, number: float | None, again: float) -> None:
    """Raise SolverError unless a number is given and equals its re-evaluation to within 1e-9."""
    if number is None or not math.isclose(number, again, rel_tol=AGREE, abs_tol=1e-300):
        raise SolverError(f"{name} is {number} in the plan, but {again:.10g} by its equation")


def recheck_shared(point: LifePoint, task: BudgetTask) -> None:
    """Recompute the fields common to a budget and a life by walking their equations."""
    size, tokens, cost = point.n_active, point.tokens, point.cost
    for column, whole in vars(cost.total).items():
        if whole is not None:
            parts = [getattr(getattr(cost, name), column) for name in PHASES]
            require(f"the sum of cost.*.{column}", math.fsum(parts), whole)
    require("loss", point.loss, law_loss(task, size, tokens, walk=True))
    require("n_total", point.n_total, point.sparsity * size)
    ratio = size_overtraining_ratio(task, size, tokens.pretrain)
    if ratio is not None:
        require("over_training", point.over_training, ratio)
    require("tokens_per_parameter", point.tokens_per_parameter, tokens.pretrain / size)


def evaluate(equation: Equation, **values: float) -> float:
    """An equation's kernel at the values of its symbols, by their names."""
    return equation.numpy().at(values)


def traverse(equation: Equation, values: Mapping[str, float]) -> float:
    """An equation at the values of its symbols without a kernel, by walking its expression."""
    from formulas.numerics.evaluate import scalar

    case = {str(symbol): values[str(symbol)] for symbol in equation.givens}
    return scalar([equation], [equation.symbol], case)[equation.symbol.name]


def overtraining_of_pools(answer: BudgetOptimum, slope_of_serving: float = 1.0) -> float | None:
    """Tokens over compute-optimal ones that the costs of the phases ask for [-].

    It is (sum of eps_i * C_i / C_pretrain)**(1/exponent), eps_i = d ln C_i / d ln N, of serving as
    given, and equals the ratio at an interior optimum. None for a law that is not additive, or
    where training costs less for a larger model.
    """
    from formulas.scaling.overtraining import overtraining as equation

    task = answer.task
    of_tokens = [each for each in task.terms.terms if each.tokens]
    if len(of_tokens) != 1 or of_tokens[0].size:
        return None
    costs = dict(zip(("C_pt", "C_rl", "C_inf"), answer.cost, strict=True))
    of_training = task.phases["pretrain"].size_power()
    if of_training < 0:  # at a corner of planned layouts: the pool shrinks as the size grows
        return None
    slopes = {
        "eps_pt": of_training,
        "eps_rl": 0.0 if task.rl_flop else 1.0,
        "eps_inf": slope_of_serving,
    }
    ratio = equation.numpy("D_opt")(1.0, beta_D=-of_tokens[0].tokens, **costs, **slopes)
    return float(ratio)
