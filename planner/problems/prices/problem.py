"""Prices as a problem kind: inferences from a sheet about the machine, and contradictions.

Beside a plan of one's own it says the margin: what a host charges over what serving costs us.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from formulas.economics import price_sheet as equations
from formulas.economics.prices import fixed_share
from planner.catalogue.listed_prices import Price, default_price
from planner.problems import serving
from planner.problems.prices import inferences, level_readings
from planner.problems.prices import plan as price_plan
from planner.problems.prices.contradictions import contradictions
from planner.problems.prices.listed_sheet import PriceSheet, price_sheet
from planner.problems.prices.presentation import head, readings_picture, sections
from planner.problems.prices.question import PricesScenario
from planner.protocol.output import Output
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import DataSource, KnownAnswer, Plan, Provenance
from planner.protocol.problem import Problem, Search
from planner.scenario import resolve_keys
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import SystemReference
from planner.text.errors import FieldError, InputError
from planner.text.wording import digits

if TYPE_CHECKING:
    from planner.architecture.counts import ModelSizes
    from planner.problems.prices.inferences import RentedChip

METHOD = "rows of a linear program in logarithms; a clash by its dual, made minimal by deletion"
EQUATIONS: Mapping[str, Any] = {
    "n_active": equations.active_from_level, "n_total": equations.fitted_total,
    "kv_bytes_per_token": equations.cache_from_step, "output_price": equations.fitted_output,
    "memory_over_arithmetic": equations.memory_share,
    "batch_over_critical": equations.least_batch_over_critical,
    "afforded_context": equations.context_below_ratio,
    "balance_context": equations.balance_from_step,
    "attention_context": equations.attention_from_step, "fixed_share": fixed_share,
    "batch_over_normal": equations.mode_batch, "speed_limit": equations.mode_limit,
    "idle_share": equations.idle_share, "hold_price": equations.hold_price,
    "write_surcharge": equations.write_surcharge, "hold_over_input": equations.hold_over_input,
    "break_even_reads": equations.break_even_reads,
    "break_even_requests": equations.break_even_requests, "margin": equations.mark_up,
}  # fmt: skip
PRICES = ("input", "output", "cached", "storage")
SPANS = {"n_active": "param", "n_total": "param", "context": "token", "margin": "1",
         "prefill_efficiency": "1", "decode_efficiency": "1"}  # fmt: skip


def _expression(name: str) -> Callable[[Plan], Any]:
    return lambda plan: EQUATIONS[name].rhs


class Prices(Problem["PricesScenario", price_plan.PricesPlan]):
    """Readings of a price sheet, each an interval with its assumptions."""

    kind = "prices"
    version = 1
    plan_type = price_plan.PricesPlan
    outputs = tuple(
        Output(
            name,
            price_plan.UNITS[name],
            ("cost",) * (name == "n_active"),
            equation=_expression(name),
            key=f"values.{name}",
        )
        for name in EQUATIONS
    )
    head = staticmethod(head)
    sections = staticmethod(sections)
    picture = staticmethod(readings_picture)

    def parameters(self, question: PricesScenario) -> list[Parameter]:
        """Parameters: prices of a sheet in rows, multipliers, and facts given as a single value."""
        rows = []
        if not isinstance(question.sheet, str):
            values = {name: getattr(question.sheet, name) for name in PRICES}
            rows += [
                Parameter(f"sheet.{x}", value, "USD/(token*s)" if x == "storage" else "USD/token",
                          "prices")
                for x, value in values.items() if value
            ] + [
                Parameter(f"sheet.write.{i}.price", row.price, "USD/token", "prices")
                for i, row in enumerate(question.sheet.write)
            ]  # fmt: skip
        rows += [Parameter(f"multiply.{x}", each, "1", "prices")
                 for x, each in question.multiply.items()]  # fmt: skip
        for name, unit in SPANS.items():
            ends = getattr(question.stated, name)
            if ends is not None and ends[0] == ends[1]:
                rows.append(Parameter(f"given.{name}", ends[0], unit, "given"))
        return settable(question, rows)

    def value(self, question: PricesScenario, path: str) -> float | None:
        """Value of a question at a path; of a range, its value if both ends are equal."""
        part, _, name = path.partition(".")
        ends = getattr(question.stated, name, None) if part == "given" else None
        if isinstance(ends, tuple):
            return float(ends[0]) if ends[0] == ends[1] else None
        return super().value(question, path)

    def check(self, question: PricesScenario) -> None:
        """Refuse a sheet, a model or machines that are not known."""
        _prepared(question)
        if question.stated.model is not None:
            for choice in _own_choices(question):
                _own_question(question, choice)

    def search(
        self, question: PricesScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The readings; a sheet leaves nothing to choose."""
        point = _point(question)[0]
        return Search(point.values, point.sheet.name, point.sheet.output, point, gap=0.0)

    def answer(self, question: PricesScenario) -> price_plan.PricesPlan:
        """Readings of the sheet and their contradictions, as a plan."""
        point, provenance = _point(question)
        answer = price_plan.PricesAnswer(
            scenario=resolve_keys(question),
            plan=point,
            gap=0.0,
            certificate=price_plan.PricesCertificate(METHOD, len(point.inferences)),
            provenance=provenance,
        )
        return price_plan.PricesPlan(KnownAnswer(answer), question)


def _point(question: PricesScenario) -> tuple[price_plan.PriceInferences, Provenance]:
    """Every reading of the sheet, and its contradictions."""
    sheet, (machines, sources), counts = _prepared(question)
    lines = tuple(_readings(question, counts, machines))
    clashes, left_out = contradictions(lines, inferences.stated_quantities(question.stated, counts))
    values: dict[str, float] = {}
    for line in lines:
        ends = (line.mid, line.low, line.high)
        value = next((each for each in ends if each is not None), None)
        if value is not None and line.reading is not None:
            values.setdefault(line.name, value)
    prices = price_plan.SheetPrices(sheet.name, sheet.input, sheet.output, sheet.cached)
    provenance = Provenance(data=(*sheet.data, *sources), warnings=sheet.warnings)
    return price_plan.PriceInferences(prices, lines, clashes, left_out, values), provenance


def _prepared(
    question: PricesScenario,
) -> tuple[PriceSheet, tuple[tuple[RentedChip, ...], tuple[DataSource, ...]], ModelSizes | None]:
    sheet = price_sheet(question, date.today())
    return sheet, inferences.rented_chips(question), inferences.known_sizes(question.stated)


def _readings(
    question: PricesScenario, counts: ModelSizes | None, machines: Sequence[RentedChip]
) -> list[inferences.SheetInference]:
    """The lines of the answer, in the order of the seven groups."""
    sheet, stated = price_sheet(question, date.today()), question.stated
    chips = inferences.chip_assumption(machines)
    lines = [*level_readings.size_readings(sheet, stated, chips, counts)]
    size = level_readings.size_assumption(stated, counts, lines[0])
    lines += level_readings.ratio_readings(sheet, stated, chips, size, counts)
    lines += level_readings.step_readings(sheet, stated, chips, size)
    lines += level_readings.tier_readings(sheet)
    lines += level_readings.cache_readings(sheet, chips)
    if stated.model is not None:
        lines.append(margin_reading(sheet, question))
    return lines


PROBLEM = Prices()


PROMISES = {"ttft": "2 s", "tpot": "50 ms"}
TOKENS = {"input_tokens": 3000, "output_tokens": 1000}  # the 3 : 1 that lists are compared at
CHIPS = (8, 16, 32)
SYSTEM = "hgx-h200"
MTOK = 1e6


@dataclass(frozen=True)
class OwnPrice:
    """Own cost per token of the mix [USD/token], at the lowest, listed and highest rent."""

    low: float
    middle: float
    high: float
    choice: str


def margin_reading(sheet: PriceSheet, question: PricesScenario) -> inferences.SheetInference:
    """Price over cost, at three tokens in for one out, on the cheapest plan of each rent."""
    origin = "mix of 3 : 1 over our own plan"
    priced = _own_price(question)
    if isinstance(priced, str):
        return inferences.without_reading("margin", origin, priced)
    cost = inferences.range_note(
        "own plan", "C_mark", (priced.low, priced.high), "cost per token of our plan"
    )
    ends = f"${digits(priced.low * MTOK)} to ${digits(priced.high * MTOK)} per Mtok"
    cost = replace(cost, words=f"our cost {ends}, {priced.choice}")
    line = inferences.Reading(
        "margin", equations.mark_up, {"p_mix": sheet.mix}, (cost,), "the host runs such a plan",
        origin,
    ).inference("at least our rents and utilisation: price over cost")  # fmt: skip
    below = "below our cost at every rent" if line.ends[1] < 1 else "price over cost"
    return replace(line, mid=sheet.mix / priced.middle, verdict=below)


def _own_price(question: PricesScenario) -> OwnPrice | str:
    plans = (_on(question, choice) for choice in _own_choices(question))
    priced = [plan for plan in plans if plan is not None]
    if not priced:
        return f"no plan serves it on {max(CHIPS)} chips at {PROMISES['tpot']} per token"
    return min(priced, key=lambda plan: plan.middle)


def _own_choices(question: PricesScenario) -> tuple[SystemReference, ...]:
    choices = SYSTEM if question.chips is None else question.chips
    return choices if isinstance(choices, tuple) else (choices,)


def _on(question: PricesScenario, choice: SystemReference) -> OwnPrice | None:
    scenario, rent = _own_question(question, choice)
    best = serving.PROBLEM.search(scenario)
    if not best.feasible:
        return None
    price = best.outputs[serving.PROBLEM.outputs[0].name] / MTOK
    low, high = (price * end / rent.value for end in (rent.low, rent.high))
    return OwnPrice(low, price, high, best.choice)


def _own_question(
    question: PricesScenario, choice: SystemReference
) -> tuple[serving.Scenario, Price]:
    """The serving question of our own plan on one system, and its rent.

    Raises FieldError for a model or a machine that no plan is known for.
    """
    keys: Mapping[str, Any] = {
        "problem": "serving", "model": question.stated.model, "system": choice,
        "chips": list(CHIPS), "workload": TOKENS, "promises": PROMISES,
    }  # fmt: skip
    try:
        scenario = serving.QUESTION.model_validate(keys)
        serving.PROBLEM.check(scenario)
        (machine,) = scenario.systems()
        rent = default_price("") if isinstance(machine, File) else scenario.price_of(machine)
    except (ValidationError, InputError) as error:
        raise FieldError(("given.model", f"no plan of our own: {error}")) from error
    return scenario, rent
