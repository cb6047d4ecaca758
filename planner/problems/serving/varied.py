"""What of a question may be varied: each given quantity, and the question with it changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from planner.network.system_network import UNUSED
from planner.problems.serving.task.task_builder import Hardware

if TYPE_CHECKING:
    from planner.scenario import Scenario

__all__ = ["FARTHEST", "Change", "given_quantities"]

FARTHEST = 3.0  # factor of a quantity beyond which no change is sought
NUDGE = 1.1  # factor by which it is felt whether a quantity matters
SHORTEST = 8.0  # tokens; shorter requests are not varied
PROMISES = ("ttft", "ttft_p95", "ttft_p99", "tpot", "e2e", "tokens_per_s_per_user")

Asked: TypeAlias = "tuple[Scenario, tuple[Hardware, ...]]"


@dataclass(frozen=True)
class Change:
    """One given quantity, its value in base units (None where it is many), and how to vary it.

    `dimension` is that of the value. `to` gives the question with the quantity times a factor.
    """

    path: str
    value: float | None
    dimension: str
    to: Callable[[float], Asked]
    probes: tuple[float, ...] = (NUDGE,)

    def rounded(self, factor: float) -> float:
        """The factor of a value that can be said in few digits, no nearer to what is given."""
        base = 1.0 if self.value is None else self.value
        value = base * factor
        unit = 1.0 if self.dimension == "tokens" else 10.0 ** (math.floor(math.log10(value)) - 3)
        return (math.ceil if factor > 1 else math.floor)(value / unit) * unit / base


def given_quantities(
    scenario: Scenario, hardware: tuple[Hardware, ...], used: Sequence[int]
) -> Iterator[Change]:
    """The quantities of a question that are worth varying; of systems, those that are `used`."""
    yield from _of_systems(scenario, hardware, used)

    def promised(name: str, value: float) -> Callable[[float], Asked]:
        def to(factor: float) -> Asked:
            made = scenario.promises.model_copy(update={name: value * factor})
            return scenario.model_copy(update={"promises": made}), hardware

        return to

    def long(name: str) -> Callable[[float], Asked]:
        lengths = getattr(scenario.workload, name)

        def to(factor: float) -> Asked:
            longer = replace(lengths, mean=lengths.mean * factor)
            load = scenario.workload.model_copy(update={name: longer})
            return scenario.model_copy(update={"workload": load}), hardware

        return to

    for name in PROMISES:
        value = getattr(scenario.promises, name)
        if value is not None:
            dimension = "token_rate" if name == "tokens_per_s_per_user" else "time"
            yield Change(f"promises.{name}", value, dimension, promised(name, value),
                         (1 / FARTHEST, FARTHEST))  # fmt: skip
    for name in ("input_tokens", "output_tokens"):
        mean = getattr(scenario.workload, name).mean
        if mean >= SHORTEST:
            yield Change(f"workload.{name}", mean, "tokens", long(name))


def _of_systems(
    scenario: Scenario, hardware: tuple[Hardware, ...], used: Sequence[int]
) -> Iterator[Change]:
    several = len(hardware) > 1

    def changed(k: int, vary: Callable[[Hardware, float], Hardware]) -> Callable[[float], Asked]:
        def to(factor: float) -> Asked:
            varied = list(hardware)
            varied[k] = vary(hardware[k], factor)
            return scenario, tuple(varied)

        return to

    for k in used:
        path, own = f"system.{k}" if several else "system", hardware[k]
        yield Change(f"{path}.memory_bandwidth", own.chip.memory_bandwidth, "bandwidth",
                     changed(k, _memory_bandwidth))  # fmt: skip
        yield Change(f"{path}.flops", None, "", changed(k, _flops))
        if several and scenario.price is None and scenario.objective == "cost":
            yield Change(f"{path}.price", own.price, "price", changed(k, _price))
        if own.fabric is None and scenario.assumptions != "lecture":
            for link in ("scale_up", "scale_out"):
                rate = getattr(own.machine, link)
                if rate is not None and rate != UNUSED:
                    yield Change(f"{path}.{link}", rate, "bandwidth",
                                 changed(k, partial(_link, link)))  # fmt: skip


def _memory_bandwidth(hardware: Hardware, factor: float) -> Hardware:
    chip = hardware.chip
    faster = replace(chip, memory_bandwidth=chip.memory_bandwidth * factor)
    return replace(hardware, chip=faster)


def _flops(hardware: Hardware, factor: float) -> Hardware:
    rates = {unit: rate * factor for unit, rate in hardware.chip.flops.items()}
    return replace(hardware, chip=replace(hardware.chip, flops=MappingProxyType(rates)))


def _price(hardware: Hardware, factor: float) -> Hardware:
    return replace(hardware, price=hardware.price * factor)


def _link(name: str, hardware: Hardware, factor: float) -> Hardware:
    rate = getattr(hardware.machine, name) * factor
    return replace(hardware, machine=replace(hardware.machine, **{name: rate}))
