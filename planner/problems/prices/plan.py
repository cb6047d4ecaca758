"""The answer to a price sheet, typed: one line for each inference, and what contradicts itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from planner.problems.prices.contradictions import Contradiction
from planner.problems.prices.inferences import SheetInference
from planner.problems.prices.question import PricesScenario
from planner.protocol.document import Unit
from planner.protocol.plan import Answer, Plan, presentation_method

# Of every quantity that an inference may be of.
UNITS: Mapping[str, str] = {
    "n_active": "param", "n_total": "param", "kv_bytes_per_token": "byte/token",
    "output_price": "USD/token", "memory_over_arithmetic": "1", "batch_over_critical": "1",
    "afforded_context": "token", "balance_context": "token", "attention_context": "token",
    "fixed_share": "1",
    "batch_over_normal": "1", "speed_limit": "1", "idle_share": "1", "hold_price": "USD/(token*s)",
    "write_surcharge": "1", "hold_over_input": "1/s", "break_even_reads": "1/s",
    "break_even_requests": "1", "margin": "1",
    "output_step": "1", "input_step": "1",
}  # fmt: skip
TokenPriceUnit = Annotated[float, Unit("USD/token")]


@dataclass(frozen=True)
class SheetPrices:
    """Token prices of the sheet, in base units."""

    name: str
    input: TokenPriceUnit
    output: TokenPriceUnit
    cached: TokenPriceUnit | None


@dataclass(frozen=True)
class PriceInferences:
    """Inferences from a sheet: `values` are the middles of the first reading of each quantity.

    `left_out` are the fewest assumptions without which all readings can hold together; empty where
    they can as they are.
    """

    sheet: SheetPrices
    inferences: tuple[SheetInference, ...]
    contradictions: tuple[Contradiction, ...]
    left_out: tuple[str, ...]
    values: Mapping[str, float]


@dataclass(frozen=True)
class PricesCertificate:
    """Method of the search for contradictions, and the number of readings."""

    method: str
    readings: int


@dataclass(frozen=True, kw_only=True)
class PricesAnswer(Answer):
    """The whole answer to a price sheet."""

    problem: str = "prices"
    plan: PriceInferences | None = None
    certificate: PricesCertificate


@dataclass(frozen=True, eq=False, repr=False)
class PricesPlan(Plan[PricesAnswer]):
    """The inferences of a sheet, and the scenario that asked for them."""

    question: PricesScenario

    kind = "prices"
    cost_of = "sheet.output"  # of an output token [USD/token]
    answer_type = PricesAnswer

    why = presentation_method("explanation_text")
