"""What a scenario gives, each as a number that may be varied, and the scenario with it varied.

A given bears the path that `--set` takes. What a catalogue or a profile gives in many numbers at
once (a model's bytes, an engine's overhead) has a name of its own, and moves as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from planner.network.system_network import UNUSED
from planner.problems.serving.bounds.binding_limits import QUANTITIES
from planner.protocol.parameter import Parameter
from planner.scenario import Scenario, SystemDescription
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.problems.serving.task.task_builder import Hardware
    from planner.scenario.keys.workload import Distribution

__all__ = ["GROUPS", "serving_parameters"]

GROUPS = ("chip", "network", "model", "workload", "promises", "prices", "engine", "law", "phases")
PROMISES = ("ttft", "ttft_p95", "ttft_p99", "tpot", "e2e", "tokens_per_s_per_user")
# Numbers of a catalogue or a profile that move together: symbols of the equations.
TOGETHER = {
    name: symbols for name, symbols in QUANTITIES.items() if name.startswith(("model.", "engine."))
}


def serving_parameters(scenario: Scenario, hardware: Sequence[Hardware]) -> list[Parameter]:
    """Every given quantity of a serving scenario; `hardware` are its systems, looked up."""
    return [
        *_of_systems(scenario, hardware),
        *(Parameter(name, None, "", name.partition(".")[0], symbols=symbols)
          for name, symbols in TOGETHER.items()),
        *_of_workload(scenario),
        *_of_promises(scenario),
        *_of_prices(scenario, hardware),
    ]  # fmt: skip


def _of_systems(scenario: Scenario, hardware: Sequence[Hardware]) -> Iterator[Parameter]:
    several = len(hardware) > 1
    for k, own in enumerate(hardware):
        path = f"system.{k}" if several else "system"
        vary = partial(_described, scenario, k)
        chip = own.chip
        for name in ("memory_bandwidth", "memory"):
            value = getattr(chip, name)
            unit = "byte" if name == "memory" else "byte/s"
            yield Parameter(
                f"{path}.{name}", value, unit, "chip", partial(_times, vary, name, value)
            )
        yield Parameter(f"{path}.flops", None, "flop/s", "chip", partial(_faster, vary, chip.flops))
        if chip.sram and scenario.estimate == "bound":
            yield Parameter(f"{path}.sram", chip.sram, "byte", "chip",
                        partial(_times, vary, "sram", chip.sram))  # fmt: skip
        if chip.power and (scenario.objective == "energy" or scenario.power_price):
            yield Parameter(f"{path}.power", chip.power, "J/s", "chip",
                        partial(_times, vary, "power", chip.power))  # fmt: skip
        if own.fabric is None and scenario.assumptions != "lecture":
            for link in ("scale_up", "scale_out"):
                rate = getattr(own.machine, link)
                if rate is not None and rate != UNUSED:
                    yield Parameter(f"{path}.{link}", rate, "byte/s", "network",
                                partial(_times, vary, link, rate))  # fmt: skip


def _of_workload(scenario: Scenario) -> Iterator[Parameter]:
    load = scenario.workload

    def given(name: str, unit: str, value: float, change: Callable[[float], Any]) -> Parameter:
        def to(factor: float) -> Scenario:
            changed = load.model_copy(update={name: change(factor)})
            return scenario.model_copy(update={"workload": changed})

        return Parameter(
            f"workload.{name}", value, unit, "workload", to, whole=name == "concurrency"
        )

    for name in ("input_tokens", "output_tokens"):
        lengths = getattr(load, name)
        yield given(name, "token", lengths.mean, partial(_longer, lengths))
    if load.cached_input:
        yield given("cached_input", "1", load.cached_input, partial(_cached, load.cached_input))
    if load.routing_skew > 1:
        yield given("routing_skew", "1", load.routing_skew,
                    lambda f: max(load.routing_skew * f, 1.0))  # fmt: skip
    demand = load.demand
    if demand is not None and math.isfinite(demand.value):
        unit = "seq/s" if demand.per == "request" else "token/s"
        yield given("demand", unit, demand.value,
                    lambda f: replace(demand, value=demand.value * f))  # fmt: skip
    if load.concurrency is not None:
        count = load.concurrency
        yield given("concurrency", "seq", float(count), lambda f: max(round(count * f), 1))


def _cached(share: float, factor: float) -> float:
    if share * factor >= 1:
        raise InputError("workload.cached_input: expected less than 1")
    return share * factor


def _longer(lengths: Distribution, factor: float) -> Distribution:
    return replace(lengths, mean=lengths.mean * factor)


def _of_promises(scenario: Scenario) -> Iterator[Parameter]:
    for name in PROMISES:
        value = getattr(scenario.promises, name)
        if value is None:
            continue

        def to(factor: float, name: str = name, value: float = value) -> Scenario:
            made = scenario.promises.model_copy(update={name: value * factor})
            return scenario.model_copy(update={"promises": made})

        unit = "token/s" if name == "tokens_per_s_per_user" else "s"
        yield Parameter(f"promises.{name}", value, unit, "promises", to)


def _of_prices(scenario: Scenario, hardware: Sequence[Hardware]) -> Iterator[Parameter]:
    unit = "USD/(chip*s)"
    if scenario.price is not None or len(hardware) == 1:
        rent = hardware[0].price
        yield Parameter("price", rent, unit, "prices", partial(_rented, scenario, rent))
    else:
        for k, own in enumerate(hardware):
            vary = partial(_described, scenario, k)
            yield Parameter(f"system.{k}.price", own.price, unit, "prices",
                        partial(_times, vary, "price", own.price))  # fmt: skip
    for name, base in (("power_price", "USD/J"), ("pue", "1")):
        value = getattr(scenario, name)
        if value is not None and (name == "power_price" or value > 1):
            yield Parameter(name, value, base, "prices", partial(_scaled, scenario, name, value))


def _rented(scenario: Scenario, value: float, factor: float) -> Scenario:
    systems = tuple(_unpriced(each) for each in _choices(scenario))
    system = systems if len(systems) > 1 else systems[0]
    return scenario.model_copy(update={"price": value * factor, "system": system})


def _scaled(scenario: Scenario, name: str, value: float, factor: float) -> Scenario:
    return scenario.model_copy(update={name: value * factor})


def _times(
    vary: Callable[[Mapping[str, Any]], Scenario], name: str, value: float, factor: float
) -> Scenario:
    return vary({name: value * factor})


def _faster(
    vary: Callable[[Mapping[str, Any]], Scenario], flops: Mapping[str, float], factor: float
) -> Scenario:
    return vary({"flops": {unit: rate * factor for unit, rate in flops.items()}})


def _choices(scenario: Scenario) -> tuple[Any, ...]:
    return scenario.system if isinstance(scenario.system, tuple) else (scenario.system,)


def _described(scenario: Scenario, k: int, figures: Mapping[str, Any]) -> Scenario:
    """The scenario with figures of one of its systems in place of what they are.

    They are put in as they are: what a file could not say, such as twice a dense peak, may well be
    what a chip of another day does.
    """
    choices = list(_choices(scenario))
    own = choices[k]
    described = own if isinstance(own, SystemDescription) else SystemDescription(like=str(own))
    choices[k] = described.model_copy(update=dict(figures))
    system = tuple(choices) if len(choices) > 1 else choices[0]
    return scenario.model_copy(update={"system": system})


def _unpriced(choice: Any) -> Any:
    """A system without a price of its own, which the scenario's would contradict."""
    return (
        choice.model_copy(update={"price": None})
        if isinstance(choice, SystemDescription)
        else choice
    )
