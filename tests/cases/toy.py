"""A problem kind of one's own in one file: which chip, and how many requests in one batch?"""

from typing import Annotated, Literal

import sympy as sp
from pydantic import Field

from planner.protocol.enumerated import Arrays, Enumerated, crossed
from planner.protocol.output import Output
from planner.scenario.keys.fields import Quantity, QuestionRecord, Word
from planner.scenario.keys.uncertain import Uncertain

NAMES = "batch rent share weights bandwidth work flops"
batch, rent, share, weights, bandwidth, work, flops = sp.symbols(NAMES, positive=True)
STEP = sp.Max(weights / bandwidth, batch * work / flops)
CHIPS = {"chip": ("big", "small"), "bandwidth": (4.8e12, 2e12), "flops": (1e15, 0.3e15)}
CHIPS |= {"share": (1.0, 0.2)}  # of the rent


class ToyQuestion(QuestionRecord):
    """What is asked, in base units."""

    problem: Annotated[Literal["toy"], Word(("toy",))] = Field(description="the toy")
    rent: Annotated[float, Quantity("price")] = Field(4 / 3600, description="a chip [USD/(chip*s)]")
    weights: Annotated[float, Quantity("size")] = Field(141e9, description="of the model [byte]")
    work: Annotated[float, Quantity("number")] = Field(140e9, description="a token [flop]")
    promise: Annotated[float, Quantity("time")] = Field(0.08, description="time of a step [s]")
    uncertain: Uncertain | None = Field(None, description="distributions by path")


class Toy(Enumerated[ToyQuestion]):
    """Every chip with every batch."""

    kind, version = "toy", 1
    chosen = (("chip", str), ("batch", int))
    equations = (
        (Output("price", "USD per million tokens", ("cost",)), rent * share * STEP / batch * 1e6),
        (Output("tpot", "s", promise="promise"), STEP),
    )

    def choices(self, question: ToyQuestion) -> Arrays:
        return crossed(CHIPS, {"batch": range(1, 257)})


QUESTION, PROBLEM = ToyQuestion, Toy()
