"""What a scenario gives, each as a number that may be varied, and the scenario with it varied.

A given bears the path that `--set` takes. What a catalogue or a profile gives in many numbers at
once (a model's bytes, an engine's overhead) has a name of its own, and moves as a whole.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING

from planner.network.system_network import UNUSED
from planner.problems.serving.question import Scenario
from planner.protocol.parameter import Parameter
from planner.scenario.keys.system_keys import SystemDescription
from planner.text.errors import InputError

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


def _quantities() -> tuple[ServingQuantity, ...]:
    """The rows of `quantities.toml`."""
    file = files("planner.problems.serving").joinpath("quantities.toml")
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["quantities"]
    return tuple(
        ServingQuantity(**row | {"symbols": tuple(row.get("symbols", ()))}) for row in rows
    )


QUANTITIES = _quantities()
BY_PATH = {row.path: row for row in QUANTITIES}
BATCHES = tuple(row.path for row in QUANTITIES if row.owner == "batch")
WHOLE = tuple(row.path for row in QUANTITIES if row.whole)


def is_array(path: str) -> bool:
    """Whether a path is one number of the equations, so that arrays may stand in its place."""
    row = BY_PATH.get(path)
    owned = row is not None and row.owner is not None
    return owned or path.startswith(PEAKS) or path in names_of("lengths")


def names_of(owner: str) -> dict[str, str]:
    """{path: what an owner calls the quantity there}."""
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
    to: Callable[[float], Scenario] | None,
    *,
    quantity: str | None = None,
    unit: str | None = None,
) -> Parameter:
    """The parameter of a quantity; of one of several systems the `quantity` is that of one."""
    row = BY_PATH[quantity or path]
    return Parameter(
        path,
        value,
        unit or row.unit,
        row.group,
        to,
        row.symbols,
        whole=row.whole,
        array=is_array(path),
    )


def _of_systems(scenario: Scenario, hardware: Sequence[Hardware]) -> Iterator[Parameter]:
    several = len(hardware) > 1
    for k, machine in enumerate(hardware):
        prefix = f"system.{k}" if several else "system"
        vary = partial(_described, scenario, k)
        chip = machine.chip

        def row(
            name: str,
            value: float,
            prefix: str = prefix,
            vary: Callable[[Mapping[str, object]], Scenario] = vary,
        ) -> Parameter:
            to = partial(_times, vary, name, value)
            return _row(f"{prefix}.{name}", value, to, quantity=f"system.{name}")

        yield row("memory_bandwidth", chip.memory_bandwidth)
        yield row("memory", chip.memory)
        faster = partial(_faster, vary, chip.flops)
        yield _row(f"{prefix}.flops", None, faster, quantity="system.flops")
        if chip.sram and scenario.estimate == "bound":
            yield row("sram", chip.sram)
        if chip.power and (scenario.objective == "energy" or scenario.power_price):
            yield row("power", chip.power)
        if machine.fabric is None and scenario.assumptions != "lecture":
            for link in ("scale_up", "scale_out"):
                rate = getattr(machine.machine, link)
                if rate is not None and rate != UNUSED:
                    yield row(link, rate)


def _of_workload(scenario: Scenario) -> Iterator[Parameter]:
    load = scenario.workload

    def row(
        name: str, value: float, change: Callable[[float], object], unit: str | None = None
    ) -> Parameter:
        def to(factor: float) -> Scenario:
            varied = load.model_copy(update={name: change(factor)})
            return scenario.model_copy(update={"workload": varied})

        return _row(f"workload.{name}", value, to, unit=unit)

    for name in ("input_tokens", "output_tokens"):
        lengths = getattr(load, name)
        yield row(name, lengths.mean, partial(_longer, lengths))
    if load.cached_input:
        yield row("cached_input", load.cached_input, partial(_cached, load.cached_input))
    if load.routing_skew > 1:
        yield row("routing_skew", load.routing_skew, lambda f: max(load.routing_skew * f, 1.0))
    demand = load.demand
    if demand is not None and math.isfinite(demand.value):
        unit = "seq/s" if demand.per == "request" else "token/s"
        more = partial(_demanded, demand)
        yield row("demand", demand.value, more, unit)
    if load.concurrency is not None:
        count = load.concurrency
        yield row("concurrency", float(count), lambda f: max(round(count * f), 1))


def _demanded(demand: Demand, factor: float) -> Demand:
    return replace(demand, value=demand.value * factor)


def _cached(share: float, factor: float) -> float:
    if share * factor >= 1:
        raise InputError("workload.cached_input: expected less than 1")
    return share * factor


def _longer(lengths: Distribution, factor: float) -> Distribution:
    return replace(lengths, mean=lengths.mean * factor)


def _of_promises(scenario: Scenario) -> Iterator[Parameter]:
    for path in (row.path for row in QUANTITIES if row.group == "promises"):
        name = path.removeprefix("promises.")
        value = getattr(scenario.promises, name)
        if value is None:
            continue

        def to(factor: float, name: str = name, value: float = value) -> Scenario:
            promises = scenario.promises.model_copy(update={name: value * factor})
            return scenario.model_copy(update={"promises": promises})

        yield _row(path, value, to)


def _of_prices(scenario: Scenario, hardware: Sequence[Hardware]) -> Iterator[Parameter]:
    if scenario.price is not None or len(hardware) == 1:
        rent = hardware[0].price
        yield _row("price", rent, partial(_rented, scenario, rent))
    else:
        for k, machine in enumerate(hardware):
            vary = partial(_described, scenario, k)
            to = partial(_times, vary, "price", machine.price)
            yield _row(f"system.{k}.price", machine.price, to, quantity="system.price")
    for name in ("power_price", "pue"):
        value = getattr(scenario, name)
        if value is not None and (name == "power_price" or value > 1):
            yield _row(name, value, partial(_scaled, scenario, name, value))


def _rented(scenario: Scenario, value: float, factor: float) -> Scenario:
    systems = tuple(_unpriced(each) for each in _choices(scenario))
    system = systems if len(systems) > 1 else systems[0]
    return scenario.model_copy(update={"price": value * factor, "system": system})


def _scaled(scenario: Scenario, name: str, value: float, factor: float) -> Scenario:
    return scenario.model_copy(update={name: value * factor})


def _times(
    vary: Callable[[Mapping[str, object]], Scenario], name: str, value: float, factor: float
) -> Scenario:
    return vary({name: value * factor})


def _faster(
    vary: Callable[[Mapping[str, object]], Scenario], flops: Mapping[str, float], factor: float
) -> Scenario:
    return vary({"flops": {unit: rate * factor for unit, rate in flops.items()}})


def _choices(scenario: Scenario) -> tuple[object, ...]:
    return scenario.system if isinstance(scenario.system, tuple) else (scenario.system,)


def _described(scenario: Scenario, k: int, figures: Mapping[str, object]) -> Scenario:
    """The scenario with figures of one of its systems in place of what they are.

    They are put in as they are: what a file could not say, such as twice a dense peak, may well be
    what a chip of another day does.
    """
    choices = list(_choices(scenario))
    system = choices[k]
    described = (
        system if isinstance(system, SystemDescription) else SystemDescription(like=str(system))
    )
    choices[k] = described.model_copy(update=dict(figures))
    systems = tuple(choices) if len(choices) > 1 else choices[0]
    return scenario.model_copy(update={"system": systems})


def _unpriced(choice: object) -> object:
    """A system without a price of its own, which the scenario's would contradict."""
    return (
        choice.model_copy(update={"price": None})
        if isinstance(choice, SystemDescription)
        else choice
    )
