"""The scenario of `problem: serving`: every key, its unit, and what its values must agree on."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from math import gcd, prod
from operator import mul
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from planner.catalogue import listed_prices
from planner.catalogue.systems import System, system
from planner.memory.engine_table import version_faults
from planner.scenario.keys import fields, system_keys
from planner.scenario.keys.buy_keys import CATALOGUE, Buy, Contract, PriceTier
from planner.scenario.keys.engine_keys import SETTINGS, EngineSettings
from planner.scenario.keys.model_keys import ModelDescription, ModelField
from planner.scenario.keys.references import File, ProfileField
from planner.scenario.keys.speculation_keys import Speculation
from planner.scenario.keys.uncertain import Distributions
from planner.scenario.keys.workload import Choose, Current, Limits, Promises, Workload
from planner.text.errors import CatalogueError
from planner.text.tables import table

OBJECTIVES = ("cost", "throughput", "latency", "energy")
ESTIMATES = ("bound", "calibrated")
ASSUMPTIONS = ("physical", "lecture")
ENGINE_CHOICES = ("any", *table("planner.problems.serving.step", "engine_rules.toml"), "none")
UTILISATION = 0.9  # what vLLM fills unasked (gpu_memory_utilization)
LAYOUT = ("replicas", "tp", "dp_attention", "cp", "pp")
# Formats that hosts serve checkpoints in, with their bits.
CANDIDATE_WEIGHT_BITS = {"bf16": 16, "fp8": 8, "int8": 8, "mxfp4": 4}


class RentedUnits(fields.Record):
    """Rental unit of chips, and the use of machines by replicas."""

    unit: fields.Count | None = None
    """chips rented together; a machine when absent, once there are chips for one"""
    even: bool | None = None
    """whether replicas fill machines or share one evenly; when absent they do where machines are
    rented whole"""

    def on(self, chips: Sequence[int], *systems: System) -> int:
        """Chips rented together on systems: as given, else the largest that all machines hold."""
        if self.unit is not None:
            return self.unit
        return gcd(*(x.machine if chips[-1] >= x.machine else 1 for x in systems)) or 1


class Prefer(fields.Record):
    """Preference for a simple plan over slightly better plans."""

    simple: Annotated[float, fields.Quantity("share", zero=True, below=1.0)] | None = None
    """share of the objective that the simplest plan may be worse: inside the measured runs, of
    whole equal machines or parts of one, without pipeline stages or overlapping half-batches"""


def whole_units(chips: Sequence[int], unit: int) -> Sequence[int]:
    """Chip counts that are multiples of `unit`, else the next multiple above the minimum."""
    if unit == 1:
        return chips
    units = tuple(number for number in chips if number % unit == 0)
    return units or (-(-chips[0] // unit) * unit,)


class Scenario(EngineSettings):
    """One serving question in base units (s, byte, flop, token, USD, J); frozen.

    Use `systems()` for the machines with their chips, and `price_of(system)` for the rent.
    """

    # Units of counts, which need none in a file.
    COUNTS: ClassVar[Mapping[str, str]] = {
        **EngineSettings.COUNTS,
        "chips": "chip",
        "choose.batch": "seq",
        "workload.concurrency": "seq",
        "workload.conversations": "seq",
        "choose.chunk": "token",
    }

    # Keys that are no part of a scenario which does not give them.
    SILENT: ClassVar[tuple[str, ...]] = (
        "nodes", "contract", "buy", "tiers", "engine_version", *SETTINGS,
    )  # fmt: skip

    problem: fields.ProblemName[Literal["serving"]]
    model: ModelField = Field(
        description="a catalogue name, a path to a Hugging Face config.json, or a description"
    )
    system: system_keys.SystemField = Field(
        description="a catalogue name, a topology file, or a description; or a list of them"
    )
    nodes: fields.ListKey | None = Field(
        default=None, description="machines, in place of chips: a number, a list, or {from, to}"
    )
    chips: fields.ListKey = Field(description="chips paid: a number, a list, or {from, to}")
    rent: RentedUnits = Field(default_factory=RentedUnits, description="how chips are rented")
    price: fields.ListedRent = None
    contract: Contract | None = Field(
        None, description="in place of price: rents by kind of contract, each a range"
    )
    workload: Workload = Field(description="what the requests are like")
    promises: Promises = Field(default_factory=Promises, description="what must hold")
    memory_utilisation: Annotated[float, fields.Quantity("share", at_most=1.0)] = Field(
        UTILISATION,
        description="share of the memory that the driver reports which the engine fills",
    )
    limits: Limits = Field(default_factory=Limits, description="what the site allows")
    choose: Choose = Field(default_factory=Choose, description="limits on, or values of, choices")
    prefer: Prefer = Field(default_factory=Prefer, description="which plan is taken of near equals")
    objective: Annotated[str, fields.EnumKey(OBJECTIVES)] = Field(
        "cost", description="what is best"
    )
    estimate: Annotated[str, fields.EnumKey(ESTIMATES)] = Field(
        "calibrated", description="which of the two estimates the plan is chosen by"
    )
    profile: ProfileField = Field(
        "auto", description="a named, dated calibration, or a file of one's own"
    )
    engine: Annotated[str, fields.EnumKey(ENGINE_CHOICES)] = Field(
        "any", description="what must run the plan: any engine that was read, or one; or none"
    )
    engine_version: str | None = Field(
        None, description="of the engine, for its memory; the newest that was read when absent"
    )
    assumptions: Annotated[str, fields.EnumKey(ASSUMPTIONS)] = Field(
        "physical", description="real figures, or the lecture's conventions"
    )
    current: Current | None = Field(None, description="the layout in use, evaluated beside")
    power_price: Annotated[float, fields.Quantity("energy_price")] | None = Field(
        None, description="electricity, paid on top of the rent [USD/J]"
    )
    pue: Annotated[float, fields.Quantity("number", least=1.0, at_most=10.0)] | None = Field(
        None, description="power drawn by the site per power drawn by the machines, at least 1"
    )
    carbon: Annotated[float, fields.Quantity("carbon")] | None = Field(
        None, description="carbon dioxide that the electricity gave off [g/J]"
    )
    speculation: Speculation | None = Field(None, description="speculative decoding")
    buy: Buy | None = Field(
        None, description="buy the tokens from a host instead: whose prices to compare with"
    )
    tiers: tuple[PriceTier, ...] | None = Field(
        None, description="listed tiers, which planner pareto marks on our curve"
    )
    uncertain: Distributions = None

    @model_validator(mode="before")
    @classmethod
    def _chips_of_nodes(cls, data: Any) -> Any:
        """Chips of the machines that are paid, where those are given."""
        if not isinstance(data, Mapping) or data.get("nodes") is None:
            return data
        try:
            nodes = fields.Choices().read(data["nodes"])
        except ValueError:
            return {"chips": 1, **data}  # refused where nodes stand
        machine = _machine_of(data.get("system"))
        chips = [machine * count for count in (nodes[0], nodes[-1])]
        paid: Any = [machine * count for count in nodes]
        if isinstance(nodes, range):
            paid = range(chips[0], chips[1] + 1, machine)
        return {"chips": paid, **data}

    @field_validator("chips")
    @classmethod
    def _as_many_as_nodes(cls, value: Sequence[int], info: ValidationInfo) -> Sequence[int]:
        nodes = info.data.get("nodes")
        machine = _machine_of(info.data.get("system"))
        if nodes is not None and tuple(value) != tuple(machine * count for count in nodes):
            machines, chips = (
                f"{xs[0]} to {xs[-1]}" if len(xs) > 1 else xs[0] for xs in (nodes, value)
            )
            words = f"{chips} here, but nodes says {machines} machines of {machine} chips"
            raise ValueError(f"{words}; leave one out")
        return value

    @field_validator("engine_version")
    @classmethod
    def _that_was_read(cls, value: str | None, info: ValidationInfo) -> str | None:
        engine = info.data.get("engine")
        if value is not None and engine and (faults := version_faults(engine, value)):
            raise ValueError(faults)
        return value

    @field_validator("contract")
    @classmethod
    def _one_rent(cls, value: Contract | None, info: ValidationInfo) -> Contract | None:
        system = info.data.get("system")
        described = isinstance(system, system_keys.SystemDescription) and system.price
        if value is not None and (described or info.data.get("price") is not None):
            place = "system.price" if described else "price"
            raise ValueError(f"give {place} (one rent) or contract (ranges), not both")
        return value

    @field_validator("buy")
    @classmethod
    def _of_a_whole_request(cls, value: Buy | None, info: ValidationInfo) -> Buy | None:
        choose = info.data.get("choose")
        modes = {*(choose.mode or ())} if choose is not None else set()
        if value is not None and modes and not {"aggregated", "disaggregated"} & modes:
            raise ValueError(
                "a host sells whole requests, and this is one phase alone; leave choose.mode "
                "out, or choose aggregated or disaggregated"
            )
        return value

    @field_validator("price")
    @classmethod
    def _one_price(cls, value: float | None, info: ValidationInfo) -> float | None:
        system = info.data.get("system")
        if value is not None and isinstance(system, system_keys.SystemDescription) and system.price:
            raise ValueError("give price here or in system, not both")
        return value

    @field_validator("choose")
    @classmethod
    def _agrees(cls, value: Choose, info: ValidationInfo) -> Choose:
        mistakes: list[tuple[fields.Path, str | ValueError]] = []
        chips = _paid(info)
        if chips is not None:
            fewest = {key: (getattr(value, key) or (1,))[0] for key in LAYOUT}
            needed = reduce(mul, fewest.values())
            if needed > chips[-1]:
                keys = [key for key in LAYOUT if fewest[key] > 1]
                product = " * ".join(f"{key} {fewest[key]}" for key in keys)
                key = max(keys, key=lambda name: fewest[name])
                mistakes.append(
                    ((key,), f"{product} needs {needed} chips, but chips is {chips[-1]}")
                )
        for item in _systems_of(info.data.get("system")):
            mistakes += system_keys.arithmetic_mistakes(value, item)
        if mistakes:
            raise fields.Refusals(mistakes)
        return value

    @field_validator("current")
    @classmethod
    def _fits(cls, value: Current | None, info: ValidationInfo) -> Current | None:
        chips = _paid(info)
        if value is not None and chips is not None:
            pools = (value.prefill, value.decode) if value.prefill else (value,)
            sizes = ((x.tp, x.dp_attention, x.cp, x.pp, x.replicas or 1) for x in pools if x)
            needed = sum(map(prod, sizes))
            if needed > chips[-1]:
                raise ValueError(f"this layout needs {needed} chips, but chips is {chips[-1]}")
        return value

    @property
    def paid(self) -> Sequence[int]:
        """Chip counts that may be billed, in whole rental units."""
        return whole_units(self.chips, self.unit)

    @property
    def unit(self) -> int:
        """Chips rented together on every system."""
        return self.rent.on(self.chips, *(x for x in self.systems() if isinstance(x, System)))

    def systems(self) -> tuple[System | File, ...]:
        """The systems asked about, with the chip's figures varied as given; one unless a list.

        Those of a list that nobody is known to rent out are left aside, unless all of them are.
        """
        return tuple(self._choices()[place] for place in self.places())

    def places(self) -> tuple[int, ...]:
        """List indices of the systems with a known rent, or of all systems if no rent is known."""
        every = tuple(enumerate(self._choices()))
        return tuple(k for k, system in every if self._rented(system)) or (*range(len(every)),)

    def unrented(self) -> tuple[str, ...]:
        """Names of the systems of a list that are excluded because their rent is unknown."""
        every, places = enumerate(self._choices()), self.places()
        return tuple(x.name for k, x in every if k not in places and isinstance(x, System))

    def _choices(self) -> tuple[System | File, ...]:
        choices = self.system if isinstance(self.system, tuple) else (self.system,)
        return tuple(system_keys.resolved_system(choice) for choice in choices)

    def _rented(self, system: System | File) -> bool:
        with suppress(CatalogueError):
            return isinstance(system, File) or bool(self.price_of(system))
        return False

    def price_of(self, system: System) -> listed_prices.Price:
        """Rent per chip [USD/(chip*s)]: given here, given in the system, or the catalogue's.

        Of contracts it is the middle of the first. Raises CatalogueError when there is none.
        """
        price = self.price if self.price is not None else system.price
        if price is not None:
            return listed_prices.given_price(price)
        if self.contract is not None:
            return next(iter(self.rents_of(system).values()))
        return listed_prices.default_price(system.chip.name)

    def rents_of(self, system: System) -> dict[str, listed_prices.Price]:
        """Rents by kind of contract [USD/(chip*s)], each with its range.

        Those of `contract`; else one price where it is given, or every kind that the catalogue
        lists. Raises CatalogueError where a kind that is asked for is not listed.
        """
        chip = system.chip.name
        if self.price is not None or system.price is not None:
            return {"price": self.price_of(system)}
        if self.contract is not None:
            return {
                kind: listed_prices.contract_rent(chip, kind)
                if rent == CATALOGUE
                else listed_prices.ranged_price(*rent)
                for kind, rent in self.contract.kinds.items()
            }
        rents = {}
        for kind in listed_prices.CONTRACTS:
            with suppress(CatalogueError):
                rents[kind] = listed_prices.contract_rent(chip, kind)
        return rents

    def tried_weights(self) -> tuple[str | None, ...]:
        """Formats of the weights to try where tokens may be bought instead: hosts convert them.

        The checkpoint's own, and each that all chips multiply, the widest first; of two with as
        many bits the first. Empty where the scenario says which, or nothing is to be bought.
        """
        model, choose = self.model, self.choose
        chosen = choose.weights or choose.activations
        described = isinstance(model, ModelDescription) and model.like is None
        if self.buy is None or chosen or described or self.assumptions == "lecture":
            return ()
        if isinstance(model, ModelDescription) and model.weights:
            return ()
        chips = [each.chip for each in self.systems() if isinstance(each, System)]
        runs = [
            x for x in CANDIDATE_WEIGHT_BITS if chips and all(chip.computes(x) for chip in chips)
        ]
        return (None, *{CANDIDATE_WEIGHT_BITS[name]: name for name in reversed(runs)}.values())


QUESTION = Scenario


def _machine_of(choice: Any) -> int:
    choices = choice if isinstance(choice, list | tuple) else [choice]
    names = [x if isinstance(x, str) else _like(x) for x in choices]
    with suppress(CatalogueError):
        return gcd(*(system(name).machine for name in names if name is not None)) or 1
    return 1


def _like(choice: Any) -> str | None:
    like = choice.get("like") if isinstance(choice, Mapping) else getattr(choice, "like", None)
    return like if isinstance(like, str) else None


def _paid(info: ValidationInfo) -> Sequence[int] | None:
    chips, rent = info.data.get("chips"), info.data.get("rent")
    if chips is None or rent is None:
        return chips
    return whole_units(chips, rent.on(chips, *_systems_of(info.data.get("system"))))


def _systems_of(choice: Any) -> tuple[System, ...]:
    choices = choice if isinstance(choice, tuple) else (choice,)
    resolved = [system_keys.resolved_system(item) for item in choices if item is not None]
    return tuple(item for item in resolved if isinstance(item, System))
