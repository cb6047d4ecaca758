"""The scenario of `problem: fleet`: models with demand, pools with contracts, what must hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from planner.catalogue.systems import System, machine_chips
from planner.problems.fleet import fleet_fields as fields
from planner.problems.fleet.demand import demand_file
from planner.problems.fleet.fleet_fields import FleetRegion, Fraction
from planner.scenario.keys.fields import (
    ChoiceListField,
    Count,
    EnumKey,
    Faults,
    IntegerField,
    Path,
    ProblemName,
    Quantity,
    QuestionRecord,
    Record,
    Refusals,
    Rent,
    Seconds,
    check_faults,
    unknown_key,
)
from planner.scenario.keys.model_keys import ModelField
from planner.scenario.keys.references import ProfileField
from planner.scenario.keys.system_keys import SystemField, resolved_system
from planner.scenario.keys.uncertain import Uncertain
from planner.scenario.keys.workload import Promises, Workload
from planner.text.quantities import show

MONTHS = [{days * demand_file.DAY} for days in range(28, 32)]
MAX_VARIABLES = 1_000_000
FLEET_LEVEL_KEYS = ("demand", "utilisation", "concurrency", "spare_replicas", "headroom")
DEFAULTS = {"spare_replicas": (None, 0), "headroom": (None, 0.0)}  # what a default resolves to
PHASES, MODES = ("prefill", "decode"), ("aggregated", "disaggregated")


class GivenColumn(Record):
    """Measured replica: its pool, its number of chips, and its rate within the promises."""

    pool: str = Field(description="one of pools")
    chips: Count = Field(description="of one replica")
    rate: Annotated[float, Quantity("request_rate")] = Field(
        description="requests that a replica serves within the promises [seq/s]"
    )
    name: str | None = Field(None, description="what it is called in the answer")
    ttft_p95: Seconds | None = Field(None, description="at that rate [s]; for requests that move")
    phase: Annotated[str, EnumKey(PHASES)] | None = Field(
        None, description="what it does alone; a pool that prefills has columns that decode too"
    )


class ModelChoice(Record):
    """Options that the serving questions of a model choose from."""

    mode: Annotated[tuple[str, ...], ChoiceListField(MODES)] = ("aggregated",)
    """replicas of all of a request, of prefill and of decode by themselves, or a list of both"""


class FleetModel(Record):
    """Model of the fleet: a serving question, or measured replicas."""

    model: ModelField | None = Field(None, description="as in a serving question")
    workload: Workload | None = Field(None, description="as in a serving question; no demand")
    promises: Promises = Field(default_factory=Promises, description="as in a serving question")
    choose: ModelChoice = Field(default_factory=ModelChoice, description="{mode}")
    profiles: dict[str, ProfileField] = Field(
        default_factory=dict, description="by pool: a name, or a file that planner calibrate wrote"
    )
    demand: Annotated[demand_file.FleetDemand, BeforeValidator(demand_file.described_demand)] = (
        Field(description="a rate, {mean, peak_to_mean, peak_hour, weekend}, a list, or a CSV file")
    )
    columns: tuple[GivenColumn, ...] | None = Field(
        None, description="replicas of one's own; no serving question is asked then"
    )

    @field_validator("workload", mode="before")
    @classmethod
    def _once(cls, value: object) -> object:
        words = {"spare_replicas": "spare: {replicas: 1}", "headroom": "spare: {headroom: 15%}"}
        faults: Faults = [
            ((key,), f"not inside a fleet: {words.get(key, 'demand beside workload')} says it once")
            for key in FLEET_LEVEL_KEYS
            if isinstance(value, Mapping) and value.get(key) not in DEFAULTS.get(key, (None,))
        ]
        return check_faults(value, faults)

    @model_validator(mode="after")
    def _complete(self) -> FleetModel:
        faults: Faults = []
        if self.columns is None:
            for key, example in (
                ("model", "a name of `planner catalog models`"),
                ("workload", "{input_tokens: 3000, output_tokens: 800}"),
            ):
                if getattr(self, key) is None:
                    words = f"missing required key '{key}', such as {example}; or give columns"
                    faults.append(((key,), words))
        elif not self.columns:
            faults.append((("columns",), "expected at least one column, got an empty list"))
        if "disaggregated" in self.choose.mode and self.promises.e2e is not None:
            words = "is of both phases of a request; with mode: disaggregated promise ttft and tpot"
            faults.append((("promises", "e2e"), words))
        if self.columns is not None and self.profiles:
            words = "are of serving questions; columns of one's own are measured: leave one out"
            faults.append((("profiles",), words))
        most = self.promises.ttft_p95
        for i, column in enumerate(self.columns or ()):
            late = column.ttft_p95
            if late is not None and most is not None and late > most and column.phase != "decode":
                words = (
                    f"{show(late, 'time')} is above the promise of {show(most, 'time')}: such a "
                    "replica serves nothing; give the rate at which it keeps it, or leave it out"
                )
                faults.append((("columns", i, "ttft_p95"), words))
            there = {each.phase for each in self.columns or () if each.pool == column.pool}
            if column.phase and not there >= {*PHASES}:
                words = f"{column.pool} has no column of the other phase: give it one of each"
                faults.append((("columns", i, "phase"), words))
        if self.demand.tokens_per_day is not None and self.workload is None:
            words = (
                "a demand in tokens needs lengths: give workload: {input_tokens: 3000, "
                "output_tokens: 800}, or requests/s"
            )
            faults.append((("demand", "tokens_per_day"), words))
        return check_faults(self, faults)

    @property
    def tokens(self) -> float | None:
        """Tokens of a mean request, input and output; None without a workload."""
        if self.workload is None:
            return None
        return self.workload.input_tokens.mean + self.workload.output_tokens.mean


class OnDemand(Record):
    """Machines by the hour."""

    price: Rent = Field(description="per chip [USD/(chip*s)]")
    most: Annotated[int, fields.Machines()] | None = None
    """machines at a time"""


class Reserved(Record):
    """Machines for a whole term."""

    price: Rent = Field(description="per chip [USD/(chip*s)]")
    term: Seconds | None = Field(None, description="for how long [s]")
    most: Annotated[int, fields.Machines()] | None = None
    """machines"""


class SpotOffer(Record):
    """Machines that may be taken away."""

    price: Rent = Field(description="per chip [USD/(chip*s)]")
    machines: Annotated[int, fields.Machines()] = Field(description="what is offered")
    lost: Annotated[float, fields.HourlyChance()] | None = None
    """chance per hour that a machine is lost; 5%/hour when absent"""
    redo: Fraction = Field(1.0, description="share of a lost machine's work that is done again")


class FleetPool(Record):
    """A kind of machine and the contracts it is offered under."""

    system: SystemField | None = Field(None, description="a catalogue name or a description")
    size: Count | None = Field(None, description="chips of a machine; the system's when absent")
    on_demand: Annotated[OnDemand | None, BeforeValidator(fields.contract_as_mapping)] = None
    """per chip [USD/(chip*s)], or {price, most}"""
    reserved: Annotated[Reserved | None, BeforeValidator(fields.contract_as_mapping)] = None
    """per chip [USD/(chip*s)], or {price, term, most}"""
    spot: SpotOffer | None = Field(None, description="{price, machines, lost, redo}")
    region: str | None = Field(
        None, description="one of regions; in each, limits of contracts each its own, when absent"
    )

    @model_validator(mode="after")
    def _sized(self) -> FleetPool:
        if self.size is None and self.system is None:
            raise Refusals([(("system",), "give system, such as hgx-h200, or size: chips")])
        if isinstance(self.system, tuple):
            raise Refusals([(("system",), "a pool is of one system; give each a pool")])
        return self

    @property
    def machine(self) -> int:
        """Chips of a machine."""
        if self.size is not None:
            return self.size
        assert self.system is not None
        assert not isinstance(self.system, tuple)
        system = resolved_system(self.system)
        if not isinstance(system, System):
            return machine_chips("")
        domain, machine = system.chips_per_domain, machine_chips(system.chip.name)
        if domain is None or domain % machine == 0 or machine % domain == 0:
            return machine
        return domain


class Spare(Record):
    """Spare capacity for failures and for unforeseen demand."""

    replicas: Annotated[int, IntegerField(least=0)] = 0
    """of each model that may be down in any hour: 1 for N+1"""
    headroom: Annotated[float, Quantity("share", zero=True, below=10.0)] = 0.0
    """share of the demand that is kept free"""


class ReplicaStart(Record):
    """Time and cost of starting a replica."""

    time: Annotated[float, Quantity("time", zero=True, at_most=3600.0)] | None = None
    """at most an hour [s]; from the bytes of the weights when absent"""
    cost: Annotated[str, EnumKey(("paid", "free"))] = "paid"
    """whether the chips are paid for that time beside the hour"""


class ForecastErrors(Record):
    """Standard deviations of the logarithms of sampled demand and speed."""

    demand: Fraction = Field(0.1, description="of a model's demand over its forecast")
    speed: Fraction = Field(
        0.1, description="of a replica's rate over that given; of serving questions their band's"
    )


class FleetScenario(QuestionRecord):
    """One fleet question in base units (s, token, seq, USD); frozen."""

    problem: ProblemName[Literal["fleet"]]
    models: dict[str, FleetModel] = Field(min_length=1, description="by name")
    pools: dict[str, FleetPool] = Field(min_length=1, description="by name")
    hours: Annotated[int, fields.Hours()] = Field(
        demand_file.DAY, description="24 (day), 168 (week) or 720 (month), from Monday 0:00 UTC"
    )
    spare: Spare = Field(default_factory=Spare, description="N+1 and headroom")
    start: ReplicaStart = Field(default_factory=ReplicaStart, description="of a replica")
    have: dict[str, Annotated[int, fields.Machines()]] = Field(
        default_factory=dict, description="machines owned or reserved already, by pool"
    )
    spot_share: Fraction = Field(
        1.0, description="most of a model's demand that may rest on spot machines, in every hour"
    )
    layouts: Annotated[str, EnumKey(("one", "free"))] = Field(
        "one", description="of a model on a kind of machine: one, or as many as lower the bill"
    )
    chance: Annotated[float, Quantity("share", below=1.0)] | None = Field(
        None, description="share of draws of demand and speed in which all promises are kept"
    )
    errors: ForecastErrors = Field(
        default_factory=ForecastErrors, description="what is drawn, with chance"
    )
    uncertain: Uncertain | None = Field(None, description="distributions by path")
    regions: dict[str, FleetRegion] = Field(
        default_factory=dict, description="where demand comes from, by name: {demand, utc, moves}"
    )

    @field_validator("models", mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {name: demand_file.named_column(model, str(name)) for name, model in value.items()}

    @field_validator("hours", mode="before")
    @classmethod
    def _of_a_calendar(cls, value: object, info: ValidationInfo) -> object:
        models = info.data.get("models", {}).values()
        listed = {len(model.demand.hourly) for model in models if model.demand.hourly}
        return listed.pop() if value == "month" and listed in MONTHS else value

    @model_validator(mode="after")
    def _agrees(self) -> FleetScenario:
        faults = self._unknown_names()
        for name, model in self.models.items():
            hourly = model.demand.hourly
            if hourly is not None and len(hourly) != self.hours:
                count = len(hourly)
                words = f"expected {self.hours} hours (hours), got {count}; or say hours: {count}"
                faults.append((("models", name, "demand"), words))
        for name, pool in self.pools.items():
            if not (pool.on_demand or pool.reserved or pool.spot or self.have.get(name)):
                words = "has no contract: give on_demand, reserved or spot, or have of it"
                faults.append((("pools", name), words))
            if len(self.regions) > 1 and pool.region is None and self.have.get(name):
                faults.append((("have", name), f"in which region? give pools.{name}.region"))
        shares = sum(region.demand for region in self.regions.values())
        if self.regions and abs(shares - 1) > 1e-6:
            words = f"the shares of demand are together {100 * shares:.6g}%, not 100 %"
            faults.append((("regions",), words))
        return check_faults(self, faults)

    def _unknown_names(self) -> Faults:
        """Pools and regions that are named somewhere and are none."""
        pools: list[tuple[Path, str]] = [(("have", pool), pool) for pool in self.have]
        for name, model in self.models.items():
            for i, column in enumerate(model.columns or ()):
                pools.append((("models", name, "columns", i, "pool"), column.pool))
            pools += [(("models", name, "profiles", pool), pool) for pool in model.profiles]
        regions: list[tuple[Path, str]] = [
            (("pools", name, "region"), pool.region)
            for name, pool in self.pools.items()
            if pool.region is not None
        ]
        for name, region in self.regions.items():
            latencies = {*(region.latency or ())} - {"*"}
            regions += [(("regions", name, "latency"), to) for to in sorted(latencies)]
        return [
            (path, unknown_key(name, names).replace("unknown key", f"no {kind}")
             if names else f"no {kind} {name!r}: the scenario has no {kind}s")
            for kind, names, paths in (("pool", {*self.pools}, pools),
                                       ("region", {*self.regions}, regions))
            for path, name in paths
            if name not in names
        ]  # fmt: skip

    @property
    def placed_pools(self) -> dict[str, tuple[str, str | None]]:
        """Every pool as it is in the answer, with its name in pools and its region."""
        if not self.regions:
            return {name: (name, None) for name in self.pools}
        return {
            (name if pool.region else f"{name} {region}"): (name, region)
            for name, pool in self.pools.items()
            for region in ([pool.region] if pool.region else self.regions)
        }


QUESTION = FleetScenario
