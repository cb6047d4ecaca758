"""The margin over a plan of one's own: what a host charges over what serving the model costs us."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from formulas.economics import price_sheet as equations
from planner.catalogue.listed_prices import default_price
from planner.problems import serving
from planner.problems.prices.assumptions import between
from planner.problems.prices.inferences import Reading, SheetInference, without_reading
from planner.problems.prices.listed_sheet import PriceSheet
from planner.problems.prices.question import PricesScenario
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import SystemReference
from planner.text.errors import FieldError, InputError
from planner.text.wording import digits

PROMISES = {"ttft": "2 s", "tpot": "50 ms"}
TOKENS = {"input_tokens": 3000, "output_tokens": 1000}  # the 3 : 1 that lists are compared at
CHIPS = (8, 16, 32)
SYSTEM = "hgx-h200"
MILLION = 1e6


@dataclass(frozen=True)
class OwnPrice:
    """What a token of the mix costs us [USD/token], at the least and the most of the rents."""

    low: float
    middle: float
    high: float
    choice: str


def margin_reading(sheet: PriceSheet, question: PricesScenario) -> SheetInference:
    """Price over cost, at three tokens in for one out, on the cheapest plan of each rent."""
    origin = "mix of 3 : 1 over our own plan"
    priced = _own_price(question)
    if isinstance(priced, str):
        return without_reading("margin", origin, priced)
    cost = between("own plan", "C_mark", (priced.low, priced.high), "cost per token of our plan")
    ends = f"${digits(priced.low * MILLION)} to ${digits(priced.high * MILLION)} per Mtok"
    cost = replace(cost, words=f"our cost {ends}, {priced.choice}")
    line = Reading(
        "margin", equations.mark_up, {"p_mix": sheet.mix}, (cost,), "the host runs such a plan",
        origin,
    ).inference("at least our rents and utilisation: price over cost")  # fmt: skip
    below = "below our cost at every rent" if line.ends[1] < 1 else "price over cost"
    return replace(line, mid=sheet.mix / priced.middle, verdict=below)


def _own_price(question: PricesScenario) -> OwnPrice | str:
    """Our cost on the cheapest of the systems; a sentence where none of them serves it so."""
    choices = SYSTEM if question.chips is None else question.chips
    several = choices if isinstance(choices, tuple) else (choices,)
    plans = (_on(question, choice) for choice in several)
    priced = [plan for plan in plans if plan is not None]
    if not priced:
        return f"no plan serves it on {max(CHIPS)} chips at {PROMISES['tpot']} per token"
    return min(priced, key=lambda plan: plan.middle)


def _on(question: PricesScenario, choice: SystemReference) -> OwnPrice | None:
    """Our cost on one system; None where nothing keeps the promises.

    Raises FieldError for a model or a machine that no plan is known for.
    """
    keys: Mapping[str, Any] = {
        "problem": "serving", "model": question.stated.model, "system": choice,
        "chips": list(CHIPS), "workload": TOKENS, "promises": PROMISES,
    }  # fmt: skip
    try:
        scenario = serving.QUESTION.model_validate(keys)
        best = serving.PROBLEM.search(scenario)
        (machine,) = scenario.systems()
        rent = default_price("") if isinstance(machine, File) else scenario.price_of(machine)
    except (ValidationError, InputError) as error:
        raise FieldError(("given.model", f"no plan of our own: {error}")) from error
    if not best.feasible:
        return None
    price = best.outputs[serving.PROBLEM.outputs[0].name] / MILLION
    low, high = (price * end / rent.value for end in (rent.low, rent.high))
    return OwnPrice(low, price, high, best.choice)
