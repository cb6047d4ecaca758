"""The scenario of `problem: schedule`: when batches depart, how many they take, how many arrive."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from planner.scenario.keys.fields import (
    FieldType,
    IntegerField,
    ProblemName,
    Quantity,
    QuestionRecord,
    Seconds,
    count,
)
from planner.scenario.keys.uncertain import Distributions

WITHOUT_END = ("forever", "unlimited")  # the first is how the scenario is written back
DRAWS = 400_000
MAX_DRAWS = 100_000_000
MAX_CAPACITY = 1_000_000  # each is a root of the queue, 8 bytes and more


@dataclass(frozen=True)
class SeatCapacity(FieldType):
    """Number of seats of a departure: a whole number, or unlimited."""

    def read(self, value: object) -> float:
        """Number of seats, infinite if unlimited; raises ValueError for any other value."""
        if value in WITHOUT_END or (isinstance(value, float) and value == math.inf):
            return math.inf
        try:
            return count(value, 1, MAX_CAPACITY)
        except ValueError as error:
            raise ValueError(f"{error}; or unlimited: every request that waits") from None

    def schema(self) -> dict[str, object]:
        """JSON Schema: seats, or without end."""
        seats = IntegerField(most=MAX_CAPACITY).schema()
        return {"oneOf": [seats, {"enum": list(WITHOUT_END)}]}


class ScheduleScenario(QuestionRecord):
    """One question of departing batches in base units (s, seq); frozen."""

    COUNTS: ClassVar[dict[str, str]] = {"capacity": "seq", "draws": "seq"}

    problem: ProblemName[Literal["schedule"]]
    interval: Seconds = Field(
        description="from one departure to the next; a ride takes as long [s]"
    )
    capacity: Annotated[float, SeatCapacity()] = Field(
        "forever", validate_default=True, description="seats of a departure; unlimited when absent"
    )
    arrivals: Annotated[float, Quantity("request_rate")] | None = Field(
        None, validate_default=True, description="requests that arrive at random, Poisson [seq/s]"
    )
    draws: Annotated[int, IntegerField(least=0, most=MAX_DRAWS)] = Field(
        DRAWS, description="requests of the event simulation beside the closed form; 0 for none"
    )
    uncertain: Distributions = None

    @field_validator("arrivals")
    @classmethod
    def _of_seats(cls, value: float | None, info: ValidationInfo) -> float | None:
        seats = info.data.get("capacity")
        if value is None and seats is not None and seats < math.inf:
            raise ValueError(
                'give arrivals, such as "100 requests/s": what waits for a seat depends on them'
            )
        return value

    @property
    def load(self) -> float:
        """Share of the seats that are taken [-]; at one and above the queue has no end."""
        return 0.0 if self.arrivals is None else self.arrivals * self.interval / self.capacity


QUESTION = ScheduleScenario
