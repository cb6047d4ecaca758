"""An inference: one quantity by one equation, from listed prices, under named assumptions.

A reading is evaluated at every corner of what it assumes. Each equation rises or falls in each of
its symbols wherever the others stand, so that the least and the most of the corners are the ends.

What an inference assumes: a name, and the values that its symbols may take together.

A number is assumed between two ends. A chip is assumed to be one of several: each with its peak in
bf16 or in fp8, and the least and the most of its listed rents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import sympy as sp

from planner.architecture import Model, read_config
from planner.architecture.counts import ModelSizes, model_sizes
from planner.catalogue import models
from planner.catalogue.chips import Chip
from planner.catalogue.listed_prices import DEFAULT_PRICE_TIER, default_price, given_price, rentals
from planner.catalogue.systems import System, system_names
from planner.catalogue.systems import system as system_named
from planner.problems.prices.question import GivenFacts, PricesScenario
from planner.protocol.document import json_key
from planner.protocol.plan import DataSource
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import resolved_system
from planner.text.errors import CatalogueError, FieldError
from planner.text.wording import count, digits

if TYPE_CHECKING:
    from formulas.algebra.derivation import Derivation
    from formulas.algebra.equation import Equation


MIN_COUNT = 1000.0  # from here on a number is one of tokens or parameters
PEAKS = ("bf16", "fp8")  # what dense products of served models are computed in
# Default ranges: observed efficiencies of dense products and memory reads; price over cost.
DEFAULTS: Mapping[str, tuple[float, float]] = {
    "prefill_efficiency": (0.25, 0.65),
    "decode_efficiency": (0.4, 0.9),
    "margin": (1.0, 6.0),
}
SYMBOLS = {
    "n_active": "N_active", "n_total": "N_total", "context": "L_ctx", "margin": "mu_mark",
    "prefill_efficiency": "e_pf", "decode_efficiency": "e_dec",
}  # fmt: skip
READING_NAMES = {
    "n_active": "active parameters", "n_total": "parameters", "context": "mean context",
    "margin": "price over cost", "prefill_efficiency": "share of the peak in prefill",
    "decode_efficiency": "share of bandwidth in decode",
}  # fmt: skip


@dataclass(frozen=True)
class Assumption:
    """Values that symbols may take together, in base units.

    `points` are all corners; between them anything is possible, or between those of one of the
    `machines`, which name the machine of each point. `derived` is one that an inference of the same
    sheet gave, not the scenario or a default.
    """

    name: str
    words: str
    points: tuple[Mapping[str, float], ...]
    derived: bool = False
    machines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.words

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that it gives values to."""
        return tuple(self.points[0])


def range_note(name: str, symbol: str, ends: tuple[float, float], words: str) -> Assumption:
    """A number between two ends."""
    low, high = ends
    written = count if low >= MIN_COUNT else digits
    span = written(low) if low == high else f"{written(low)} to {written(high)}"
    return Assumption(name, f"{words} {span}", tuple({symbol: end} for end in dict.fromkeys(ends)))


def fact(stated: GivenFacts, key: str) -> Assumption | None:
    """Stated range of `key` as an assumption, or its default range; None without either."""
    ends = getattr(stated, key)
    if ends is None and key in DEFAULTS:
        return range_note(key, SYMBOLS[key], DEFAULTS[key], f"{READING_NAMES[key]} (default)")
    return (
        None if ends is None else range_note(f"given.{key}", SYMBOLS[key], ends, READING_NAMES[key])
    )


@dataclass(frozen=True)
class RentedChip:
    """A chip with the least and the most of its rents [USD/(chip*s)]."""

    chip: Chip
    rents: tuple[float, float]

    def points(self) -> tuple[dict[str, float], ...]:
        """Its corners: peaks by rents, with memory and bandwidth."""
        flops = self.chip.flops
        peaks = {flops[x] for x in PEAKS if x in flops} or {*flops.values()}
        rest = {"W": self.chip.memory_bandwidth, "M": self.chip.memory}
        rents = sorted({*self.rents})
        return tuple({"F": x, "D_step": rent, **rest} for x in sorted(peaks) for rent in rents)


def rented_chips(question: PricesScenario) -> tuple[tuple[RentedChip, ...], tuple[DataSource, ...]]:
    """Chips that may serve the sheet's model, and the sources of their rents.

    Raises FieldError for a topology file, or for a chip that nobody is known to rent out.
    """
    choices = question.chips
    if choices is None:
        listed = dict.fromkeys(
            row.chip for row in rentals() if row.tier == DEFAULT_PRICE_TIER and row.verified != "no"
        )
        machines = [system_named(name) for name in listed if name in system_names()]
    else:
        several = choices if isinstance(choices, tuple) else (choices,)
        machines = [_machine(resolved_system(choice)) for choice in several]
    chips, data = [], {}
    for machine in machines:
        try:
            listed_rent = default_price(machine.chip.name) if machine.price is None else None
        except CatalogueError as error:
            raise FieldError(("chips", str(error))) from error
        price = listed_rent or given_price(machine.price or 0.0)
        chips.append(RentedChip(machine.chip, (price.low, price.high)))
        if price.as_of:
            source = DataSource(f"rent of {machine.chip.name}", price.source, price.as_of)
            data[machine.chip.name] = source
    return tuple(chips), tuple(data.values())


def _machine(machine: System | File) -> System:
    if isinstance(machine, File):
        raise FieldError(("chips", "a price names no network: give a system with its chip"))
    return machine


def chip_assumption(chips: Sequence[RentedChip]) -> Assumption:
    """Assumption that any of these chips serves, at any of its rents."""
    low = min(rent for chip in chips for rent in chip.rents) * 3600
    high = max(rent for chip in chips for rent in chip.rents) * 3600
    names = ", ".join(dict.fromkeys(each.chip.name for each in chips))
    many = names if len(chips) <= 3 else f"one of {len(chips)} chips"
    rent = f"${digits(low)}" if low == high else f"${digits(low)} to ${digits(high)}"
    points = [(each.chip.name, point) for each in chips for point in each.points()]
    return Assumption(
        "chips", f"{many} at {rent} per hour, {' or '.join(PEAKS)}",
        tuple(point for _, point in points),
        machines=tuple(f"{name} at {point['F']:g} FLOP/s" for name, point in points),
    )  # fmt: skip


def known_sizes(stated: GivenFacts) -> ModelSizes | None:
    """The counts of the model where it is known by name or file."""
    model = stated.model
    if model is None:
        return None
    if isinstance(model, str):
        layers: Model = models.load(model)
    elif isinstance(model, File):
        layers = read_config(model.path)
    else:
        raise FieldError(("given.model", "give a name of the catalogue or a config.json"))
    return model_sizes(layers)


def stated_size(
    name: str, stated: GivenFacts, counts: ModelSizes | None
) -> tuple[float, float] | None:
    """The ends of a size that is stated, or that of the model that is; None without either."""
    ends: tuple[float, float] | None = getattr(stated, name)
    if ends is not None or counts is None:
        return ends
    size = counts.n_total if name == "n_total" else counts.n_active["no_input_embedding"]
    return float(size), float(size)


def stated_quantities(stated: GivenFacts, counts: ModelSizes | None) -> dict[str, Assumption]:
    """Assumptions for the quantities stated, or derived from the stated model, by quantity name."""
    pinned = {}
    for name, words in (("n_active", "active parameters"), ("n_total", "parameters")):
        ends = stated_size(name, stated, counts)
        if ends is not None:
            whose = words if getattr(stated, name) is not None else f"{words} of the model"
            pinned[name] = range_note(f"given.{name}", SYMBOLS[name], ends, whose)
    if counts is not None and stated.context is not None:
        read = sorted({counts.read_bytes(length) / length for length in stated.context})
        pinned["kv_bytes_per_token"] = range_note(
            "given.model", "b_kv", (read[0], read[-1]), "bytes that the model reads per token"
        )
    return pinned


Sense = Literal["=", "<=", ">="]
CONSTANTS = {"c_fwd": 2.0, "m_pos": 1.0, "g": 1.0}  # FLOP a parameter; a token a step, no drafts


@dataclass(frozen=True)
class SheetInference:
    """A quantity's interval in base units, its formula and verdict; None for an open end."""

    json_first: ClassVar[tuple[str, ...]] = ("name", "low", "mid", "high", "from")

    name: str
    low: float | None
    mid: float | None
    high: float | None
    assumes: tuple[str, ...]
    formula: str
    verdict: str
    origin: str = json_key("from")
    reading: Reading | None = field(default=None, repr=False, compare=False)

    @property
    def ends(self) -> tuple[float, float]:
        """Interval (low, high): 0 for a missing low end, infinity for a missing high end."""
        return self.low or 0.0, math.inf if self.high is None else self.high

    @property
    def width(self) -> float:
        """Ratio of the high end to the low end; infinite if an end is missing."""
        low, high = self.ends
        return high / low if low > 0 else math.inf


@dataclass(frozen=True)
class Reading:
    """An equation with listed prices put in, and what its other symbols may be.

    Args:
        equation: its left side is the quantity.
        facts: listed prices, and what follows from them alone, by symbol.
        assumptions: what the other symbols may be.
        statement: what is taken for granted besides numbers.
        sense: whether the quantity is at most, at least or as much as the right side.
    """

    name: str
    equation: Equation
    facts: Mapping[str, float]
    assumptions: tuple[Assumption, ...]
    statement: str
    origin: str
    sense: Sense = "="

    @cached_property
    def values(self) -> Mapping[str, float]:
        """The symbols of the right side that are no assumption."""
        needed = {symbol.name for symbol in self.equation.rhs.free_symbols}
        assumed = {name for each in self.assumptions for name in each.symbols}
        return {
            name: value
            for name, value in {**CONSTANTS, **self.facts}.items()
            if name in needed - assumed
        }

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Minimum and maximum of the right side over all corners."""
        needed = {symbol.name for symbol in self.equation.rhs.free_symbols}
        axes = []
        for assumption in self.assumptions:
            points = [{x: v for x, v in p.items() if x in needed} for p in assumption.points]
            axes.append([dict(row) for row in dict.fromkeys(tuple(x.items()) for x in points)])
        joined = [{k: v for each in corner for k, v in each.items()} for corner in product(*axes)]
        corners = [{**self.values, **corner} for corner in joined]
        names = sorted(corners[0])
        values = np.asarray(
            self.equation.numpy(*names)(*(np.array([x[name] for x in corners]) for name in names))
        )
        return float(values.min()), float(values.max())

    def inference(self, verdict: str = "") -> SheetInference:
        """The reading as a line of the answer; a bound has one end."""
        low, high = self.ends
        least = None if self.sense == "<=" else low
        most = None if self.sense == ">=" else high
        mid = math.sqrt(low * high) if self.sense == "=" and low > 0 else None
        assumes = (*map(str, self.assumptions), self.statement)
        return SheetInference(
            self.name, least, mid, most, assumes, str(self.equation), verdict, self.origin, self
        )

    @cached_property
    def monomial(self) -> tuple[float, dict[str, float]] | None:
        """ln of the constant, and the power of every assumed symbol; None for no such product."""
        named = {x.name: x for x in self.equation.rhs.free_symbols}
        rest = self.equation.rhs.subs({named[x]: v for x, v in self.values.items()})
        powers: dict[str, float] = {}
        constant = 1.0
        for base, power in sp.powsimp(rest).as_powers_dict().items():
            if base.is_Symbol:
                powers[base.name] = powers.get(base.name, 0.0) + float(power)
            elif not base.free_symbols:
                constant *= float(base) ** float(power)
            else:
                return None
        return (math.log(constant), powers) if constant > 0 else None


def last_step(result: Derivation | Equation) -> Equation:
    """The equation of a derivation, or the equation itself."""
    from formulas.algebra.derivation import Derivation

    return result.equation() if isinstance(result, Derivation) else result


def without_reading(name: str, origin: str, verdict: str) -> SheetInference:
    """A line that says why nothing follows."""
    return SheetInference(name, None, None, None, (), "", verdict, origin)
