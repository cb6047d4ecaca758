"""A problem kind of one's own in one file: which chip, and how many requests in one batch?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import sympy as sp
from pydantic import Field

from formulas.numerics.evaluate import kernel
from planner.protocol.document import Unit
from planner.protocol.output import Output, output_values
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import Answer, BindingLimit, MissedPromise, Plan, Provenance
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.scenario import resolve_keys
from planner.scenario.keys.fields import EnumKey, Quantity, QuestionRecord
from planner.scenario.keys.uncertain import Uncertain

B, rent, weights = sp.symbols("B rent weights", positive=True)
bandwidth, work, flops = sp.symbols("bandwidth work flops", positive=True)
STEP = sp.Max(weights / bandwidth, B * work / flops)
PRICE = rent * STEP / B * 1e6
OUTPUTS = kernel((), {"price": PRICE, "tpot": STEP})
CHIPS = {
    "big": {"bandwidth": 4.8e12, "flops": 1e15, "share": 1.0},
    "small": {"bandwidth": 2e12, "flops": 0.3e15, "share": 0.2},
}
UNITS = {"rent": "USD/(chip*s)", "weights": "byte", "work": "flop", "promise": "s"}


class ToyQuestion(QuestionRecord):
    """What is asked, in base units."""

    problem: Annotated[Literal["toy"], EnumKey(("toy",))] = Field(description="the toy")
    rent: Annotated[float, Quantity("price")] = Field(4 / 3600, description="a chip [USD/(chip*s)]")
    weights: Annotated[float, Quantity("size")] = Field(141e9, description="of the model [byte]")
    work: Annotated[float, Quantity("number")] = Field(140e9, description="a token [flop]")
    promise: Annotated[float, Quantity("time")] = Field(0.08, description="time of a step [s]")
    uncertain: Uncertain | None = Field(None, description="distributions by path")


@dataclass(frozen=True)
class ToyPoint:
    """The choice and its numbers."""

    chip: str
    batch: int
    price: Annotated[float, Unit("USD per million tokens")]
    tpot: Annotated[float, Unit("s")]


@dataclass(frozen=True, kw_only=True)
class ToyAnswer(Answer):
    """Everything that is printed as JSON."""

    problem: str = "toy"
    plan: ToyPoint | None = None
    bound: float | None = None
    certificate: Mapping[str, int]
    alternatives: tuple[ToyPoint, ...] = ()


class ToyPlan(Plan[ToyAnswer]):
    """The plan of a toy question."""

    kind = "toy"
    answer_type = ToyAnswer
    cost_of = "price"


class Toy(Problem[ToyQuestion, ToyPlan]):
    """Every chip and batch, compared."""

    kind, version, plan_type = "toy", 1, ToyPlan
    outputs = (
        Output("price", "USD per million tokens", ("cost",), equation=lambda plan: PRICE),
        Output("tpot", "s", promise="promise", equation=lambda plan: STEP),
    )

    def parameters(self, question: ToyQuestion) -> list[Parameter]:
        """Rent, weights, work and the promise, each varied as `--set` would."""
        rows = (Parameter(x, getattr(question, x), unit, "toy") for x, unit in UNITS.items())
        return settable(question, rows)

    def points(self, question: ToyQuestion) -> list[ToyPoint]:
        """All that keep the promise, the cheapest first."""
        points = (numbers(question, chip, batch) for chip in CHIPS for batch in range(1, 257))
        feasible = [point for point in points if point.tpot <= question.promise]
        return sorted(feasible, key=lambda point: (round(point.price, 12), point.batch))

    def search(
        self, question: ToyQuestion, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The cheapest point."""
        points = self.points(question)
        if not points:
            least = min(numbers(question, chip, 1).tpot for chip in CHIPS)
            missed = (MissedPromise("promise", least / question.promise),)
            return Search({}, NO_PLAN.choice, math.inf, missed=lambda: missed)
        best, counts = points[0], ((f"batch {points[0].batch}", points[0].batch),)
        return Search(
            output_values(self.outputs, best), best.chip, best.price, best, counts, gap=0.0
        )

    def answer(self, question: ToyQuestion) -> ToyPlan:
        """The plan."""
        best, points = self.search(question), self.points(question)
        tight = best.feasible and best.outputs["tpot"] > 0.95 * question.promise
        answer = ToyAnswer(
            gap=0.0 if points else None,
            scenario=resolve_keys(question),
            plan=best.plan,
            bound=min(numbers(question, chip, 256).price for chip in CHIPS),
            certificate={"points": 512},
            binding=(BindingLimit("promise", -1.0),) if tight else (),
            elasticities=self.duals(question, "price"),
            alternatives=tuple(points[1:3]),
            infeasible=best.shortfalls or None,
            provenance=Provenance(version="1"),
        )
        return ToyPlan(lambda: answer)

    def duals(self, question: ToyQuestion, output: str) -> dict[str, float]:
        """A price is proportional to the rent."""
        return {"rent": 1.0} if output == "price" else {}

    def slopes(self, question: ToyQuestion, output: str) -> dict[str, tuple[float, float]]:
        """Of the equations, chip and batch held."""
        best = self.points(question)[0]
        values = {**CHIPS[best.chip], **question.model_dump(), "B": best.batch}
        y = PRICE if output == "price" else STEP
        at = {x: values[x.name] for x in y.free_symbols}
        slopes = {x.name: float((sp.diff(y, x) * x / y).subs(at)) for x in at if x.name in UNITS}
        return {path: (slope, slope) for path, slope in slopes.items()}


def numbers(question: ToyQuestion, chip: str, batch: int) -> ToyPoint:
    """One chip with one batch, by the equations."""
    given = {**CHIPS[chip], **question.model_dump(), "B": float(batch)}
    given["rent"] *= given["share"]
    made = OUTPUTS(**{name: given[name] for name in OUTPUTS.names}).values()
    return ToyPoint(chip, batch, *map(float, made))


QUESTION, PROBLEM = ToyQuestion, Toy()
