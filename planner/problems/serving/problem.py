"""Serving as a problem kind: its outputs, its parameters, its search, and its abilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from planner.catalogue.ranges import ListedRange, rent_range
from planner.problems.serving.answer import answer
from planner.problems.serving.deployment.missed_promises import missed_promises
from planner.problems.serving.deployment.questions import (
    Point,
    Question,
    questions_together,
    ranked,
)
from planner.problems.serving.outputs import OUTPUTS
from planner.problems.serving.parameters import BATCHES, WHOLE, is_array
from planner.problems.serving.plan import ServingPlan
from planner.problems.serving.plan_sections import COLUMNS, row_of
from planner.problems.serving.profiled import coefficient, profiled
from planner.problems.serving.task.resolve import resolve
from planner.protocol.document import document_of
from planner.protocol.output import values_in
from planner.protocol.parameter import Parameter, value_at
from planner.protocol.plan import Plan
from planner.protocol.problem import (
    NO_PLAN,
    ArrayModel,
    Counts,
    Problem,
    Search,
    UncertainCoefficient,
)
from planner.protocol.section import Section
from planner.text.tolerances import SAME
from planner.text.wording import laid_out

if TYPE_CHECKING:
    import numpy as np

    from planner.problems.serving.deployment.frontier import Frontier
    from planner.problems.serving.question import Scenario
    from planner.protocol.elasticity import Elasticity

AXES = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert")


class ServingProblem(Problem["Scenario"]):
    """The cheapest, fastest or thriftiest layouts and batches that keep the promises."""

    kind = "serving"
    version = 1
    plan_type = ServingPlan
    columns = COLUMNS
    whole, batches = WHOLE, BATCHES
    outputs = OUTPUTS

    def parameters(self, question: Scenario) -> list[Parameter]:
        """Every parameter of a scenario, its catalogues' figures among them."""
        from planner.problems.serving.slopes.serving import parameters_of

        return parameters_of(question)

    def search(self, question: Scenario, coefficients: Mapping[str, float] | None = None) -> Search:
        """The best layouts and batches; nothing is proved of them."""
        return self.search_many([question], [coefficients or {}])[0]

    def search_many(
        self,
        questions: Sequence[Scenario],
        coefficients: Sequence[Mapping[str, float]] | None = None,
    ) -> list[Search]:
        """`search` of several questions, layouts of those that are alike evaluated together."""
        values = coefficients if coefficients is not None else [{}] * len(questions)
        pairs = zip(questions, values, strict=True)
        searched = questions_together([profiled(resolve(q), profile) for q, profile in pairs])
        return [self._best(*pair) for pair in zip(questions, searched, strict=True)]

    def _best(self, question: Scenario, searched: Sequence[Question]) -> Search:
        """The best point of a question whose pools were searched."""
        points = ranked(searched)
        if not points:
            return replace(NO_PLAN, missed=lambda: missed_promises(searched))
        best = points[0].candidate
        point = best.plan()
        plan = document_of(point)
        return Search(
            values_in(self.outputs, plan),
            choice_of(plan),
            points[0].score,
            plan,
            counts_of(plan),
            tuple((choice_of(tie), counts_of(tie)) for tie in _ties(points, plan)),
            holds_of(plan, question),
            row=partial(row_of, best, point),
        )

    def answer(self, question: Scenario) -> Plan:
        """The plan with its certificate, its rivals and its provenance."""
        return answer(question)

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The question with its numbers, one step, the memory of a chip, the next best plans."""
        from planner.problems.serving.plan_sections import sections

        return sections(self.outputs, plan)

    def value(self, question: Scenario, path: str) -> float | None:
        """What a scenario, or the catalogue behind it, has at a path."""
        value = value_at(question, path)
        if isinstance(value, int | float) and value > 0:
            return float(value)
        return {row.path: row.value for row in self.parameters(question)}.get(path)

    def elasticities(self, question: Scenario, output: str) -> list[Elasticity]:
        """Slopes of the equations along every parameter, layouts held."""
        from planner.problems.serving.slopes.serving import serving_rows

        return serving_rows(question, output)

    def is_array(self, path: str) -> bool:
        """Whether a path is one number of the equations."""
        return is_array(path)

    def array_model(self, question: Scenario, ends: Mapping[str, np.ndarray]) -> ArrayModel | None:
        """The model of one layout and one batch; None if there is a choice."""
        choose, load = question.choose, question.workload
        fixed = choose.batch is not None or load.concurrency is not None
        if load.demand is not None or not (fixed or tuple(choose.mode or ()) == ("prefill",)):
            return None  # most sweeps give no batch, and need not load the equations to know
        from planner.problems.serving.arrays import model_of

        return model_of(question, ends)

    def coefficient(self, question: Scenario, path: str) -> UncertainCoefficient | None:
        """The coefficient of the profile that a path names."""
        return coefficient(question, path)

    def listed(self, question: Scenario, path: str) -> ListedRange:
        """The listed rents of the system."""
        return rent_range(question.systems() if path in ("price", "system.price") else (), path)

    def frontier(self, question: Scenario, points: int | None) -> Frontier:
        """The cheapest plan at each speed."""
        from planner.problems.serving.deployment.frontier import POINTS, frontier

        return frontier(question, POINTS if points is None else points)


def _ties(points: Sequence[Point], plan: Mapping[str, Any]) -> list[Mapping[str, object]]:
    """The best plan and those that are as good."""
    close = [point for point in points[1:] if point.score <= points[0].score * (1 + SAME)]
    return [plan, *(document_of(point.candidate.plan()) for point in close)]


def choice_of(plan: Mapping[str, Any]) -> str:
    """The discrete choices of a plan in short words: what changes when another is best."""
    chip = plan["chip"] or f"{plan['prefill']['chip']} and {plan['decode']['chip']}"
    if plan["mode"] == "disaggregated" and not plan["demand"]:
        # How many replicas either pool has only keeps them in balance.
        pools = [{**plan[pool], "layout": {**plan[pool]["layout"], "replicas": 1}}
                 for pool in ("prefill", "decode")]  # fmt: skip
        layout = f"prefill {laid_out(pools[0])}, decode {laid_out(pools[1])}"
    else:
        layout = laid_out(plan)
    mode = "" if plan["mode"] in ("aggregated", "disaggregated") else f"{plan['mode']} "
    return f"{mode}{layout} on {plan['chips']} {chip}, weights {plan['weights']}, KV {plan['kv']}"


def counts_of(plan: Mapping[str, Any]) -> Counts:
    """The whole numbers of a plan beside its choice, each in words and the least of it.

    The batch of a load, which only follows it, is none.
    """
    if plan["demand"]:
        return ()
    counts = []
    if plan["mode"] == "disaggregated":
        replicas = [plan[pool]["layout"]["replicas"] for pool in ("prefill", "decode")]
        counts.append((f"{replicas[0]} and {replicas[1]} replicas", min(replicas)))
    batch = (plan["decode"] or plan)["batch_per_replica"]
    if plan["mode"] != "prefill":
        counts.append((f"batch {batch} a replica", batch))
    return tuple(counts)


def holds_of(plan: Mapping[str, Any], scenario: Scenario) -> tuple[str, ...]:
    """The changes of a scenario that leave it no choice but the layouts of a plan.

    Formats are put in only where the scenario lets choose between some: a checkpoint may store its
    matrices in several.
    """
    formats = [f"choose.{name}={plan[name]}" for name in ("weights", "kv")
               if getattr(scenario.choose, name) is not None]  # fmt: skip
    if plan["mode"] != "disaggregated":
        layout = plan["layout"]
        return (
            f"choose.mode={plan['mode']}", f"chips={plan['chips']}", *formats,
            *(f"choose.{axis}={layout[axis]}" for axis in AXES),
        )  # fmt: skip
    pools = []
    for pool in ("prefill", "decode"):
        layout = plan[pool]["layout"]
        sizes = ", ".join(f"{axis}: {layout[axis]}" for axis in AXES)
        pools.append(f"choose.{pool}={{{sizes}}}")
    return ("choose.mode=disaggregated", f"chips={plan['chips']}", *formats, *pools)


PROBLEM = ServingProblem()
