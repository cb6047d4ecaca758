"""A scenario solved exactly, and nothing else: outputs, the choice, no certificate, no reasons.

What an answer becomes when each quantity is a little less or more: the bars of a tornado.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.problems.serving.parameters import Given
from planner.protocol.output import chosen, values_of
from planner.scenario import BudgetScenario, LifecycleScenario, Scenario
from planner.sensitivity.elasticities import Row
from planner.text.errors import InputError

__all__ = ["FEW", "MOST", "SWING", "Exact", "Nowhere", "counted", "exact", "swung"]

Counts = tuple[tuple[str, int], ...]

FEW = 20  # below so many, whole numbers are held: one more is over five percent
SAME = 1e-9  # plans this close are as good as each other


@dataclass(frozen=True)
class Exact:
    """The best plan of a scenario: its outputs in base units, its choice, what it is judged by.

    `counts` are whole numbers beside the choice, with the least of each in words; `equals` are the
    choices, with their counts, that are as good.
    """

    values: Mapping[str, float]
    choice: str
    score: float
    plan: Mapping[str, Any] = field(repr=False, compare=False)
    counts: Counts = ()
    equals: tuple[tuple[str, Counts], ...] = ()

    @property
    def few(self) -> str:
        """The counts of which one more or less is a switch, in words."""
        return ", ".join(told for told, least in self.counts if least < FEW)

    def switched(self, then: Exact) -> bool:
        """Whether another choice is the best then, and this one is not as good."""
        ties = then.equals or ((then.choice, then.counts),)
        return all(choice != self.choice or self._counted(counts) for choice, counts in ties)

    def told(self, then: Exact) -> str:
        """The counts of this plan that are few, as they are in another one, in words."""
        return ", ".join(
            told for (told, _), (_, least) in zip(then.counts, self.counts, strict=False)
            if least < FEW
        )  # fmt: skip

    def _counted(self, counts: Counts) -> bool:
        """Whether counts that are few differ."""
        pairs = zip(self.counts, counts, strict=False)
        return any(mine != theirs for mine, theirs in pairs if mine[1] < FEW)


Nowhere = Exact({}, "no plan", math.inf, {})
"""What is found where nothing keeps the promises."""


def exact(scenario: Any, profile: Mapping[str, float] | None = None) -> Exact:
    """The best plan; `Nowhere` if there is none.

    `profile` are coefficients in place of those of the scenario's profile.

    Raises
    ------
    InputError
        For a question that contradicts itself or that this version does not answer.
    """
    if isinstance(scenario, Scenario):
        return _serving(scenario, profile or {})
    if isinstance(scenario, BudgetScenario):
        return _budget(scenario)
    if isinstance(scenario, LifecycleScenario):
        return _lifecycle(scenario)
    raise InputError(f"problem: {scenario.problem} has no sensitivity in this version")


def counted(plan: Mapping[str, Any]) -> Counts:
    """The whole numbers of a serving plan beside its choice, each in words and the least of it.

    The batch of a load, which only follows it, is none.
    """
    if plan["demand"]:
        return ()
    found = []
    if plan["mode"] == "disaggregated":
        replicas = [plan[pool]["layout"]["replicas"] for pool in ("prefill", "decode")]
        found.append((f"{replicas[0]} and {replicas[1]} replicas", min(replicas)))
    batch = (plan["decode"] or plan)["batch_per_replica"]
    if plan["mode"] != "prefill":
        found.append((f"batch {batch} a replica", batch))
    return tuple(found)


def _serving(scenario: Scenario, profile: Mapping[str, float]) -> Exact:
    from planner.problems.serving.deployment.pools import questions_of, ranked
    from planner.problems.serving.profiled import profiled
    from planner.problems.serving.task.resolve import ask

    points = ranked(questions_of(profiled(ask(scenario), profile)))
    if not points:
        return Nowhere
    plan = points[0].candidate.plan()
    close = [point for point in points[1:] if point.score <= points[0].score * (1 + SAME)]
    plans = [plan, *(point.candidate.plan() for point in close)]
    return Exact(
        values_of("serving", plan),
        chosen("serving", plan),
        points[0].score,
        plan,
        counted(plan),
        tuple((chosen("serving", each), counted(each)) for each in plans),
    )


def _budget(scenario: BudgetScenario) -> Exact:
    from planner.problems.budget.answer import answer, plan_of
    from planner.problems.budget.optimum import BudgetOptimum, solve_many
    from planner.problems.budget.resolve import resolve_budget

    asked = resolve_budget(scenario)
    if not asked.questions:
        plan: Mapping[str, Any] = answer(scenario).chosen
        return Exact(values_of("budget", plan), "by rule", math.nan, plan) if plan else Nowhere
    solved = [each for each in solve_many(asked.questions) if isinstance(each, BudgetOptimum)]
    if not solved:
        return Nowhere
    best = min(solved, key=lambda each: each.score)
    plan = plan_of(best)
    return Exact(values_of("budget", plan), chosen("budget", plan), best.score, plan)


def _lifecycle(scenario: LifecycleScenario) -> Exact:
    from planner.problems.lifecycle.fixed_layout_optimum import FixedLayoutOptimum
    from planner.problems.lifecycle.plan import plan_of
    from planner.problems.lifecycle.resolve import resolve_life
    from planner.problems.lifecycle.search import optimal_size

    life = resolve_life(scenario)
    found = [optimal_size(life, sparsity) for sparsity in life.sparsities]
    settled = [each for each in found if isinstance(each, FixedLayoutOptimum)]
    if not settled:
        return Nowhere
    best = min(settled, key=lambda each: each.whole.total)
    plan = plan_of(best)
    return Exact(values_of("lifecycle", plan), chosen("lifecycle", plan), best.whole.total, plan)


SWING = 0.2
MOST = 14
NOTHING = 1e-3  # elasticity below which there is no bar


def swung(
    givens: Sequence[Given],
    rows: Sequence[Row],
    document: Mapping[str, Any],
    swing: float = SWING,
    most: int = MOST,
) -> list[dict[str, Any]]:
    """A bar for each quantity that matters, the longest first.

    `less` and `more` are the output with the quantity less or more by the share `swing`, None where
    nothing keeps the promises; `solved` says that the problem was solved again.
    """
    known = {given.path: given for given in givens}
    name, middle = document["of"], document["value"]
    ranked = sorted((row for row in rows if row.known), key=lambda row: -abs(row.elasticity))
    bars = []
    for row in [row for row in ranked if abs(row.elasticity) >= NOTHING][:most]:
        given = known.get(row.path)
        if given is not None and given.to is not None and not given.whole:
            less, more = (_solved(given, factor, name) for factor in (1 - swing, 1 + swing))
            solved = True
        else:
            less = middle * (1 - swing) ** row.left
            more, solved = middle * (1 + swing) ** row.right, False
        bars.append({"path": row.path, "less": less, "more": more, "solved": solved,
                     "swing": swing})  # fmt: skip
    return sorted(bars, key=lambda bar: -_length(bar, middle))


def _solved(given: Given, factor: float, name: str) -> float | None:
    if given.to is None:
        return None
    try:
        return exact(given.to(factor)).values.get(name)
    except InputError:
        return None


def _length(bar: Mapping[str, Any], middle: float) -> float:
    return max(abs(value - middle) for value in (bar["less"], bar["more"], middle) if value)
