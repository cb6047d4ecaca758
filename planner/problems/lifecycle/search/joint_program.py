"""One geometric program from the bandwidth of memory to the number of tokens of pre-training.

Size, tokens and batch are chosen together: the equations of serving on one layout stand in the
same program as the law and the arithmetic of training, and what the model is made of are monomials
of its size. It is the problem that the search takes apart, so both must agree, and its multipliers
price a megabyte of memory and an exponent of the law in the same currency.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from formulas.nomenclature.symbols import SYMBOLS, auxiliary
from planner.problems import serving
from planner.problems.lifecycle.search.optimal_size import FixedLayoutOptimum
from planner.problems.lifecycle.serving_cost import SPAN, growth_of_symbols
from planner.programs.geometric import GeometricProgram, Program

MAX_VARIABLE_RATIO = 1e3  # factor within which size and tokens are chosen
ROUNDS = 8
STOP_TOL = 1e-10  # relative change of the batch that ends the renewal of tangents
SIZE_VARIABLE, TOKENS = auxiliary("x_size", positive=True), auxiliary("x_tokens", positive=True)
POWER = auxiliary("trained_size", real=True)  # of the size in the cost of training
PRETRAIN_COST_TERM, RL_COST_TERM, SERVING_COST_TERM = (
    auxiliary(name, nonnegative=True) for name in ("u_pretrain", "u_rl", "u_served")
)


@dataclass(frozen=True)
class JointOptimum:
    """The optimum of the program: size [param], tokens, batch per replica, cost [USD].

    No choice on the layout costs less than `lower_bound`, from the dual problem.
    `elasticities` are d ln(cost) / d ln(given), by the name of the symbol.
    """

    n_active: float
    pretrain: float
    batch: float
    cost: float
    lower_bound: float
    elasticities: Mapping[str, float]


def joint_optimum(settled: FixedLayoutOptimum) -> JointOptimum | None:
    """The program at the optimum of a search, solved; None where it is not one of its form.

    It is for one pool, an additive law, and tokens of reinforcement learning that are given.
    """
    budget, parts = settled.answer.task, settled.served.parts
    terms = budget.terms
    interior = len(settled.answer.budgets.choices) == len(budget.choices) == 2
    if len(parts) != 1 or terms.power != 1 or not interior or budget.repeats or budget.rl_flop:
        return None
    pool, _, value = parts[0]
    size, tokens = settled.answer.n_active, settled.answer.pretrain
    task = replace(pool.task, sizes=settled.served.member.at(size))
    step = serving.Step(task, pool.layouts, bound=task.uses_bound)
    # Symbols that follow the size: value at the optimum, and d ln(value) / d ln N there.
    grown = growth_of_symbols(settled.served.member, step, settled.answer.n_active)
    # Symbols as the step binds them: copies of attention may share the weights of the rest.
    here = step.values(np.ones(1))
    names = [name for name in serving.shared_values(step.task) if grown.get(name)]
    model = {name: (float(np.ravel(here[name])[0]), grown[name] / SPAN) for name in names}
    used = tuple((bool(term.size), bool(term.tokens)) for term in terms.terms)
    program = _compiled(tuple(sorted(serving.declare(step).items(), key=str)), tuple(model), used)
    limit = budget.required.value(budget.law) - terms.floor if budget.required else math.nan
    # The price of the program is that of a token; whole numbers and idle time are a factor.
    whole = settled.served.price / value
    inputs = {
        SERVING_COST_TERM.name: settled.answer.cost[2] * whole / settled.served.at(size),
        PRETRAIN_COST_TERM.name: settled.answer.cost[0],
        RL_COST_TERM.name: settled.answer.cost[1],
        POWER.name: budget.phases["pretrain"].size_power(),
    }
    for place, term in enumerate(terms.terms):
        inputs[f"loss_{place}"] = float(term(size, tokens)) / limit
        inputs |= {f"size_{place}": -term.size, f"tokens_{place}": -term.tokens}
    for name, (at_size, power) in model.items():
        inputs |= {f"scale_{name}": at_size, f"power_{name}": power}
    return _solved(program, step, pool.batch, inputs, (size, tokens))


@lru_cache(maxsize=16)
def _compiled(
    words: tuple[tuple[str, Any], ...], model: tuple[str, ...], used: tuple[tuple[bool, bool], ...]
) -> Program:
    """Compile the program of a shape: serving declaration, size-dependent symbols, loss terms."""
    problem = GeometricProgram("lifecycle")
    for choice in (SIZE_VARIABLE, TOKENS):
        problem.choose(choice, within=(1 / MAX_VARIABLE_RATIO, MAX_VARIABLE_RATIO))
    problem.define(
        *(sp.Eq(SYMBOLS[name], _input("scale", name) * SIZE_VARIABLE ** _input("power", name))
          for name in model)
    )  # fmt: skip
    price = serving.layout(problem, **dict(words))
    loss = sp.Add(*(
        _input("loss", place)
        * (SIZE_VARIABLE ** -_input("size", place) if of_size else 1)
        * (TOKENS ** -_input("tokens", place) if of_tokens else 1)
        for place, (of_size, of_tokens) in enumerate(used)
    ))  # fmt: skip
    problem.subject("loss", sp.Le(loss, 1), promise=True)
    problem.minimise(
        PRETRAIN_COST_TERM * SIZE_VARIABLE**POWER * TOKENS
        + RL_COST_TERM * SIZE_VARIABLE
        + SERVING_COST_TERM * price
    )
    return problem.compile()


def _input(part: str, name: object) -> sp.Symbol:
    return auxiliary(f"{part}_{name}", positive=True)


def _solved(
    program: Program,
    step: serving.Step,
    batch: float,
    inputs: Mapping[str, float],
    reference: tuple[float, float],
) -> JointOptimum:
    """Solve, renewing the tangents in the batch until it settles."""
    names = {symbol: name for name, symbol in {**serving.CHORDS, **serving.LIMITS}.items()}
    at = batch
    for _ in range(ROUNDS):
        row = {**serving.layout_given(step, batch, at), **inputs}
        solution = program.solve({s: row[names.get(s, str(s))] for s in program.givens})
        chosen = solution.choices[SYMBOLS["B"]]
        if abs(chosen / at - 1) < STOP_TOL:
            break
        at = chosen
    slopes = {names.get(s, str(s)): slope for s, slope in solution.elasticities().items()}
    return JointOptimum(
        n_active=reference[0] * solution.choices[SIZE_VARIABLE],
        pretrain=reference[1] * solution.choices[TOKENS],
        batch=chosen,
        cost=solution.value,
        lower_bound=solution.lower_bound,
        elasticities=slopes,
    )
