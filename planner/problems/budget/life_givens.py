"""What a budget or a lifecycle gives, each varied in the question that is asked of the law.

Paths are those of the scenario; coefficients of the law and the peak of a chip stand under `law.`
and `phases.`, where a file would have to describe them in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from planner.problems.budget.budget_task import BudgetTask
from planner.problems.budget.phase_costs import rl_flop_needed, served
from planner.protocol.parameter import Parameter

CURVE = {"rate": "token/s", "lifetime": "s", "growth": "1", "discount": "1", "obsolescence": "1"}
HELD = {"n_active": "param", "pretrain": "token"}


def life_givens(scenario: Any, question: BudgetTask) -> list[Parameter]:
    """Every given quantity of the scenario of a question that has an influence of its own."""
    return [
        *_of_phases(question),
        *_of_demand(scenario, question),
        *_of_reinforcement(scenario, question),
        *_of_quality(question),
        *_of_law(question),
    ]


def _row(
    question: BudgetTask,
    path: str,
    value: float | None,
    unit: str,
    group: str,
    vary: Callable[[BudgetTask, float], BudgetTask],
) -> Parameter:
    """A parameter of the question; `vary` takes a question and a factor."""
    return Parameter(path, value, unit, group, partial(vary, question))


def _of_phases(question: BudgetTask) -> Iterator[Parameter]:
    for name, phase in question.phases.items():
        if phase.mfu is None:
            continue
        yield _row(question, f"phases.{name}.mfu", phase.mfu, "1", "phases", _phase(name, mfu=True))
        if question.in_usd and phase.system is not None:
            price = phase.price.value if phase.price else None
            yield _row(
                question, f"phases.{name}.price", price, "USD/(chip*s)", "prices", _phase(name)
            )
            peak = phase.system.chip.peak(phase.dtype)
            path = f"phases.{name}.system.flops.{phase.dtype}"
            yield _row(question, path, peak, "flop/s", "chip", _phase(name, over=True))


def _phase(name: str, *, mfu: bool = False, over: bool = False) -> Callable[..., BudgetTask]:
    """A phase whose FLOP cost so much more, or less where they are done faster."""

    def vary(question: BudgetTask, factor: float) -> BudgetTask:
        phase = question.phases[name]
        rate = phase.usd_per_flop
        dearer = rate and (rate / factor if mfu or over else rate * factor)
        used = phase.mfu * factor if mfu and phase.mfu else phase.mfu
        changed = replace(phase, usd_per_flop=dearer, mfu=used)
        return replace(question, phases={**question.phases, name: changed})

    return vary


def _of_demand(scenario: Any, question: BudgetTask) -> Iterator[Parameter]:
    demand = scenario.inference
    if not question.served:
        return
    if demand.tokens is not None:
        yield _row(question, "inference.tokens", demand.tokens, "token", "demand",
                        lambda q, f: replace(q, served=q.served * f))  # fmt: skip
    for name, unit in CURVE.items():
        value = getattr(demand, name)
        if value and math.isfinite(value):

            def vary(q: BudgetTask, f: float, name: str = name, value: float = value) -> BudgetTask:
                changed = demand.model_copy(update={name: value * f})
                return replace(q, served=served(changed).counted)

            yield _row(question, f"inference.{name}", value, unit, "demand", vary)


def _of_reinforcement(scenario: Any, question: BudgetTask) -> Iterator[Parameter]:
    rl = scenario.rl
    if "rl" not in question.phases:
        return
    if rl.reward is not None:
        for name, value in rl.reward:
            if value:

                def reward(
                    q: BudgetTask, f: float, name: str = name, x: float = value
                ) -> BudgetTask:
                    changed = rl.reward.model_copy(update={name: x * f})
                    return replace(q, rl_flop=rl_flop_needed(changed))

                unit = "flop" if name == "middle" else "1"
                yield _row(question, f"rl.reward.{name}", value, unit, "demand", reward)
        return
    yield _row(question, "rl.k", rl.k, "flop/(param*token)", "phases", _costlier_rl)
    if rl.tokens:
        yield _row(question, "rl.tokens", rl.tokens, "token", "demand",
                        lambda q, f: replace(q, rl_tokens=q.rl_tokens * f))  # fmt: skip
    for name in ("coefficient", "exponent") if rl.loss is not None else ():

        def term(q: BudgetTask, f: float, name: str = name) -> BudgetTask:
            own = q.rl_term
            if own is None:
                return q
            return replace(q, rl_term=replace(own, **{name: getattr(own, name) * f}))

        yield _row(question, f"rl.loss.{name}", getattr(rl.loss, name), "1", "law", term)


def _costlier_rl(question: BudgetTask, factor: float) -> BudgetTask:
    phase = question.phases["rl"]
    changed = replace(phase, arithmetic=phase.arithmetic * factor)
    return replace(question, phases={**question.phases, "rl": changed})


def _of_quality(question: BudgetTask) -> Iterator[Parameter]:
    required, unique = question.required, question.unique
    if required is not None:
        names = {"loss": ("quality.loss", "nat"), "n_active": ("quality.like.n_active", "param"),
                 "tokens": ("quality.like.tokens", "token")}  # fmt: skip
        for name, (path, unit) in names.items():
            value = getattr(required, name)
            if value is not None:
                yield _row(question, path, value, unit, "quality", _asking(name))
    if question.limit is not None:
        unit = "USD" if question.in_usd else "flop"
        yield _row(question, "cost", question.limit, unit, "quality",
                        lambda q, f: replace(q, limit=q.limit and q.limit * f))  # fmt: skip
    if unique is not None:
        yield _row(question, "data.unique", unique, "token", "quality",
                        lambda q, f: replace(q, unique=q.unique and q.unique * f))  # fmt: skip
    for name, value in question.fixed_choices.items():

        def held(q: BudgetTask, f: float, name: str = name) -> BudgetTask:
            return replace(q, fixed_choices={**q.fixed_choices, name: q.fixed_choices[name] * f})

        yield _row(question, f"choose.{name}", value, HELD[name], "quality", held)


def _asking(name: str) -> Callable[[BudgetTask, float], BudgetTask]:
    def vary(question: BudgetTask, factor: float) -> BudgetTask:
        required = question.required
        if required is None:
            return question
        return replace(
            question, required=replace(required, **{name: getattr(required, name) * factor})
        )

    return vary


def _of_law(question: BudgetTask) -> Iterator[Parameter]:
    for name, value in question.law.values.items():
        if value:

            def coefficient(q: BudgetTask, f: float, name: str = name) -> BudgetTask:
                return replace(q, law=q.law.with_values(**{name: q.law.values[name] * f}))

            yield _row(question, f"law.{name}", value, "", "law", coefficient)
