"""Parameters of a scenario that may be varied, and the scenario with a parameter varied.

A given bears the path that `--set` takes. What a catalogue or a profile gives in many numbers at
once (a model's bytes, an engine's overhead) has a name of its own, and moves as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from planner.network.network_source import UNUSED_RATE
from planner.problems.serving.question import Scenario
from planner.protocol.parameter import Parameter
from planner.scenario.keys.system_keys import SystemDescription
from planner.text.errors import InputError
from planner.text.tables import table

if TYPE_CHECKING:
    from planner.problems.serving.task.task_builder import Hardware
    from planner.scenario.keys.workload import Demand, Distribution

PEAKS = "system.flops."  # the peak of one dtype, below the path of all of them
MEAN = ".mean"  # a length may be written as the mean of its distribution


@dataclass(frozen=True)
class ServingQuantity:
    """One quantity that may vary: a row of `quantities.toml`, where the fields are explained."""

    path: str
    unit: str
    group: str
    symbols: tuple[str, ...] = ()
    owner: str | None = None
    name: str = ""
    whole: bool = False
    words: str = ""


QUANTITIES = tuple(
    ServingQuantity(**row | {"symbols": tuple(row.get("symbols", ()))})
    for row in table("planner.problems.serving", "quantities.toml")["quantities"]
)
BY_PATH = {row.path: row for row in QUANTITIES}
BATCHES = tuple(row.path for row in QUANTITIES if row.owner == "batch")
INTEGER_PATHS = tuple(row.path for row in QUANTITIES if row.whole)


def is_array(path: str) -> bool:
    """True if a path is a single number in the equations, so that an array may replace it."""
    row = BY_PATH.get(path)
    owned = row is not None and row.owner is not None
    return owned or path.startswith(PEAKS) or path in paths_by_field("lengths")


def paths_by_field(owner: str) -> dict[str, str]:
    """Map each path of an owner to the owner's name of the quantity."""
    names = {row.path: row.name for row in QUANTITIES if row.owner == owner}
    return names | {f"{path}{MEAN}": name for path, name in names.items() if owner == "lengths"}


def serving_parameters(scenario: Scenario, hardware: Sequence[Hardware]) -> list[Parameter]:
    """Every parameter of a serving scenario; `hardware` are its systems, looked up."""
    return [
        *_of_systems(scenario, hardware),
        *(_row(each.path, None, None) for each in QUANTITIES if each.group in ("model", "engine")),
        *_of_workload(scenario),
        *_of_promises(scenario),
        *_of_prices(scenario, hardware),
    ]


def _row(
    path: str,
    value: float | None,
    put: Callable[[object], Scenario] | None = None,
    times: Callable[[float], object] | None = None,
    *,
    quantity: str | None = None,
    unit: str | None = None,
) -> Parameter:
    """The parameter of a quantity; `put` sets it in the scenario, `times` multiplies it."""
    row = BY_PATH[quantity or path]

    def to(factor: float) -> Scenario:
        assert put is not None
        return put(times(factor) if times else (value or 0.0) * factor)

    return Parameter(
        path, value, unit or row.unit, row.group, put and to, row.symbols,
        whole=row.whole, array=is_array(path),
    )  # fmt: skip


def _of_systems(scenario: Scenario, hardware: Sequence[Hardware]) -> Iterator[Parameter]:
    several = len(_choices(scenario)) > 1
    for k, machine in zip(scenario.places(), hardware, strict=True):
        yield from _of_system(scenario, k, machine, f"system.{k}" if several else "system")
    if scenario.assumptions != "lecture":
        key, share = "memory_utilisation", scenario.memory_utilisation
        yield _row(key, share, partial(_put, scenario, None, key), lambda f: min(share * f, 1.0))


def _of_system(scenario: Scenario, k: int, machine: Hardware, prefix: str) -> Iterator[Parameter]:
    chip = machine.chip

    def row(
        name: str, value: float | None, times: Callable[[float], object] | None = None
    ) -> Parameter:
        put = partial(_described, scenario, k, name)
        return _row(f"{prefix}.{name}", value, put, times, quantity=f"system.{name}")

    yield row("memory_bandwidth", chip.memory_bandwidth)
    yield row("memory", chip.memory)
    yield row("flops", None, lambda f: {unit: rate * f for unit, rate in chip.flops.items()})
    if chip.sram and scenario.estimate == "bound":
        yield row("sram", chip.sram)
    fixed = machine.draws_given or scenario.assumptions == "lecture"
    if chip.power and fixed and (scenario.objective == "energy" or scenario.power_price):
        yield row("power", chip.power)
    if machine.fabric is None and scenario.assumptions != "lecture":
        for link in ("scale_up", "scale_out"):
            rate = getattr(machine.machine, link)
            if rate is not None and rate != UNUSED_RATE:
                yield row(link, rate)


def _of_workload(scenario: Scenario) -> Iterator[Parameter]:
    load = scenario.workload

    def row(
        name: str,
        value: float,
        times: Callable[[float], object] | None = None,
        unit: str | None = None,
    ) -> Parameter:
        put = partial(_put, scenario, "workload", name)
        return _row(f"workload.{name}", value, put, times, unit=unit)

    for name in ("input_tokens", "output_tokens"):
        lengths = getattr(load, name)
        yield row(name, lengths.mean, partial(_times, lengths, "mean"))
    if load.cached_input:
        yield row("cached_input", load.cached_input, partial(_cached, load.cached_input))
    if load.routing_skew > 1:
        yield row("routing_skew", load.routing_skew, lambda f: max(load.routing_skew * f, 1.0))
    demand = load.demand
    if demand is not None and math.isfinite(demand.value):
        unit = "seq/s" if demand.per == "request" else "token/s"
        yield row("demand", demand.value, partial(_times, demand, "value"), unit)
    if load.concurrency is not None:
        count = load.concurrency
        yield row("concurrency", float(count), lambda f: max(round(count * f), 1))


def _times(record: Demand | Distribution, name: str, factor: float) -> Demand | Distribution:
    return replace(record, **{name: getattr(record, name) * factor})


def _cached(share: float, factor: float) -> float:
    if share * factor >= 1:
        raise InputError("workload.cached_input: expected less than 1")
    return share * factor


def _of_promises(scenario: Scenario) -> Iterator[Parameter]:
    for path in (row.path for row in QUANTITIES if row.group == "promises"):
        name = path.removeprefix("promises.")
        value = getattr(scenario.promises, name)
        if value is not None:
            yield _row(path, value, partial(_put, scenario, "promises", name))


def _of_prices(scenario: Scenario, hardware: Sequence[Hardware]) -> Iterator[Parameter]:
    if scenario.price is not None or len(_choices(scenario)) == 1:
        yield _row("price", hardware[0].price, partial(_rented, scenario))
    else:
        for k, machine in zip(scenario.places(), hardware, strict=True):
            put = partial(_described, scenario, k, "price")
            yield _row(f"system.{k}.price", machine.price, put, quantity="system.price")
    for name in ("power_price", "carbon", "pue"):
        value = getattr(scenario, name)
        if value is not None and (name != "pue" or value > 1):
            yield _row(name, value, partial(_put, scenario, None, name))


def _put(scenario: Scenario, record: str | None, name: str, value: object) -> Scenario:
    if record is None:
        return scenario.model_copy(update={name: value})
    changed = getattr(scenario, record).model_copy(update={name: value})
    return scenario.model_copy(update={record: changed})


def _rented(scenario: Scenario, price: object) -> Scenario:
    """Scenario at another price; the prices of its systems are removed to avoid a conflict."""
    systems = tuple(
        choice.model_copy(update={"price": None})
        if isinstance(choice, SystemDescription)
        else choice
        for choice in _choices(scenario)
    )
    system = systems if len(systems) > 1 else systems[0]
    return scenario.model_copy(update={"price": price, "system": system})


def _choices(scenario: Scenario) -> tuple[object, ...]:
    return scenario.system if isinstance(scenario.system, tuple) else (scenario.system,)


def _described(scenario: Scenario, k: int, name: str, figure: object) -> Scenario:
    """Scenario with one property of a system replaced, even by what a file could not say."""
    choices = list(_choices(scenario))
    system = choices[k]
    described = (
        system if isinstance(system, SystemDescription) else SystemDescription(like=str(system))
    )
    choices[k] = described.model_copy(update={name: figure})
    systems = tuple(choices) if len(choices) > 1 else choices[0]
    return scenario.model_copy(update={"system": systems})
