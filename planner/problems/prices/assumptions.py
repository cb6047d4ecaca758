"""What an inference assumes: a name, and the values that its symbols may take together.

A number is assumed between two ends. A chip is assumed to be one of several: each with its peak in
bf16 or in fp8, and the least and the most of its listed rents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.architecture import Model, read_config
from planner.architecture.counts import Sizes, sizes
from planner.catalogue import models
from planner.catalogue.chips import Chip
from planner.catalogue.listed_prices import COUNTED, default_price, given_price, rentals
from planner.catalogue.systems import System, system_names
from planner.catalogue.systems import system as system_named
from planner.problems.prices.question import GivenFacts, PricesScenario
from planner.protocol.plan import DataSource
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import resolved_system
from planner.text.errors import CatalogueError, FieldError
from planner.text.wording import count, digits

COUNTED_FROM = 1000.0  # from here on a number is one of tokens or parameters
PEAKS = ("bf16", "fp8")  # what dense products of served models are computed in
# Where nothing is stated: what is seen of dense products and of reads, and of prices over costs.
DEFAULTS: Mapping[str, tuple[float, float]] = {
    "prefill_efficiency": (0.25, 0.65),
    "decode_efficiency": (0.4, 0.9),
    "margin": (1.0, 6.0),
}
SYMBOLS = {
    "n_active": "N_active", "n_total": "N_total", "context": "L_ctx", "margin": "mu_mark",
    "prefill_efficiency": "e_pf", "decode_efficiency": "e_dec",
}  # fmt: skip
WORDS = {
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


def between(name: str, symbol: str, ends: tuple[float, float], words: str) -> Assumption:
    """A number between two ends."""
    low, high = ends
    written = count if low >= COUNTED_FROM else digits
    span = written(low) if low == high else f"{written(low)} to {written(high)}"
    return Assumption(name, f"{words} {span}", tuple({symbol: end} for end in dict.fromkeys(ends)))


def fact(stated: GivenFacts, key: str) -> Assumption | None:
    """What is stated of a key, or its default; None where there is neither."""
    ends = getattr(stated, key)
    if ends is None and key in DEFAULTS:
        return between(key, SYMBOLS[key], DEFAULTS[key], f"{WORDS[key]} (default)")
    return None if ends is None else between(f"given.{key}", SYMBOLS[key], ends, WORDS[key])


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
    """The chips that may stand behind the sheet, and where their rents are listed.

    Raises FieldError for a topology file, or for a chip that nobody is known to rent out.
    """
    choices = question.chips
    if choices is None:
        listed = dict.fromkeys(
            row.chip for row in rentals() if row.tier == COUNTED and row.verified != "no"
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


def of_chips(chips: Sequence[RentedChip]) -> Assumption:
    """That one of these chips serves, at one of its rents."""
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


def known_sizes(stated: GivenFacts) -> Sizes | None:
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
    return sizes(layers)


def stated_size(name: str, stated: GivenFacts, counts: Sizes | None) -> tuple[float, float] | None:
    """The ends of a size that is stated, or that of the model that is; None without either."""
    ends: tuple[float, float] | None = getattr(stated, name)
    if ends is not None or counts is None:
        return ends
    size = counts.n_total if name == "n_total" else counts.n_active["no_input_embedding"]
    return float(size), float(size)


def stated_quantities(stated: GivenFacts, counts: Sizes | None) -> dict[str, Assumption]:
    """What is stated of a quantity, or follows from the model that is, by its name."""
    pinned = {}
    for name, words in (("n_active", "active parameters"), ("n_total", "parameters")):
        ends = stated_size(name, stated, counts)
        if ends is not None:
            whose = words if getattr(stated, name) is not None else f"{words} of the model"
            pinned[name] = between(f"given.{name}", SYMBOLS[name], ends, whose)
    if counts is not None and stated.context is not None:
        read = sorted({counts.read_bytes(length) / length for length in stated.context})
        pinned["kv_bytes_per_token"] = between(
            "given.model", "b_kv", (read[0], read[-1]), "bytes that the model reads per token"
        )
    return pinned
