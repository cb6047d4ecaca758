"""One model in one set of formats, drafted into questions: a task, or a pair of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from planner.catalogue.chips import chip_power
from planner.catalogue.models import repository
from planner.catalogue.profile import Place
from planner.network.network_source import between
from planner.problems.serving.step.engine_effects import chunk_of, engine_called, overlaps
from planner.problems.serving.step.engine_rules import engine_tables
from planner.problems.serving.task.drafter import speculating
from planner.problems.serving.task.requests import (
    arrivals,
    batches,
    context,
    limits_of,
    method_of,
    outputs,
    promised,
)
from planner.problems.serving.task.task import BUSIEST, ClosedLoop, Task, TaskPair
from planner.scenario.keys.model_keys import ModelDescription
from planner.text.errors import FieldError

if TYPE_CHECKING:
    from planner.architecture.counts import Sizes
    from planner.catalogue.chips import Chip
    from planner.catalogue.profile import Profile
    from planner.problems.serving.question import Scenario
    from planner.scenario.keys.workload import Workload
    from topologies import Machine
    from topologies.fabric.fabric import Fabric


@dataclass(frozen=True)
class Hardware:
    """One kind of machine, its price [USD/(chip*s)], its profile, and the fabric of a file.

    Where the scenario says what a chip draws, `draws_given`, that is drawn whatever it does.
    """

    chip: Chip
    machine: Machine
    price: float
    profile: Profile
    fabric: Fabric | None = None
    draws_given: bool = False


@dataclass(frozen=True)
class TaskBuilder:
    """What the tasks of one model in one set of formats have in common.

    `chunk` are prompt tokens of one pass, None for as many as the engine reads [token]; `drafts`
    tokens are drafted per sequence and step.
    """

    scenario: Scenario
    sizes: Sizes
    chunk: float | None
    redundant: int = 0
    drafts: int = 0

    def task(self, hardware: Hardware, mode: str, *, pooled: bool = False) -> Task:
        """The question of one phase, or of both in one pool, on one kind of machine."""
        scenario, lengths = self.scenario, self.scenario.workload
        drafted = speculating(scenario.speculation, self.sizes, self.drafts)
        lecture, power = scenario.assumptions == "lecture", hardware.chip.power
        waits, loop, used = arrivals(scenario), _loop(lengths), lengths.utilisation
        site, counted = scenario.pue or 1.0, not (lecture or hardware.draws_given)
        draw = chip_power(hardware.chip, self.sizes.name) if counted else None
        drawn = (power and power * site) if draw is None else draw.least * site
        engine = engine_called(hardware.profile.engine, hardware.profile.as_of)
        return Task(
            sizes=self.sizes,
            chip=hardware.chip,
            machine=hardware.machine,
            fabric=hardware.fabric,
            price=hardware.price + _electricity(scenario, hardware.chip.name, drawn),
            profile=hardware.profile.at(Place.of(self.sizes, hardware.chip, pooled=pooled)),
            chips=scenario.paid,
            limits_of=limits_of(scenario, mode if pooled else None, halved=overlaps(engine)),
            input_tokens=lengths.input_tokens.mean,
            output_tokens=outputs(mode, lengths.output_tokens.mean, pooled=pooled),
            context=lengths.input_tokens.mean if mode == "prefill" else context(lengths),
            cached_input=lengths.cached_input,
            chunk=float(self.chunk or chunk_of(engine)),
            mode=mode,
            batches=batches(scenario, mode if pooled else None),
            kappa=1.0 if lengths.concurrency is None else 0.5,
            promises=promised(mode, scenario, pooled=pooled),
            objective=scenario.objective,
            estimate=scenario.estimate,
            lecture=lecture,
            utilisation=1.0 if lecture else scenario.memory_utilisation,
            power=drawn,
            draw=draw,
            site_power=None if pooled else scenario.limits.power,
            site=site,
            electricity=_electricity(scenario, hardware.chip.name, drawn),
            carbon=scenario.carbon,
            arrivals=waits if waits is None or not pooled else math.inf,  # pools divide it later
            spare=lengths.spare_replicas,
            headroom=1 - used if used else lengths.headroom,
            busiest=min(BUSIEST, used or BUSIEST),
            input_spread=lengths.input_tokens.cv,
            output_spread=lengths.output_tokens.cv,
            positions_per_step=drafted.positions,
            tokens_per_step=drafted.emitted,
            accepted_range=(drafted.low / drafted.emitted, drafted.high / drafted.emitted),
            drafter=None if lecture else drafted.drafter,
            pooled=pooled,
            redundant=self.redundant,
            skew=lengths.routing_skew,
            conversations=lengths.conversations or 0,
            routed=lengths.dispatch == "prefix",
            engine=engine,
            loop=loop if mode == "aggregated" and not lecture else None,
            even=loop is not None and loop.even and not lecture,
            engines=engines_read(scenario, hardware.chip),
            any_layout=scenario.estimate == "bound" and scenario.engine == "any",
            drafting=method_of(scenario),
        )

    def pools(
        self, hardware: Sequence[Hardware], warnings: list[str] | None = None
    ) -> Iterator[TaskPair]:
        """The question of two pools, of every kind of machine for either.

        Raises FieldError if two were asked for, and nothing says how fast they talk or a limit on
        power could bind them; unasked, those are left out, and `warnings` told so.
        """
        for first, second in product(hardware, repeat=2):
            try:
                yield self._pair(first, second)
            except FieldError as error:
                if self.scenario.choose.mode:
                    raise
                if warnings is not None:
                    warnings.append(f"one pool alone is sought: {error.faults[0][1]}")

    def _pair(self, first: Hardware, second: Hardware) -> TaskPair:
        load, together = arrivals(self.scenario), first is second
        self._within_power(first.chip, second.chip)
        rate, latency = between(first.machine, second.machine, self.scenario.paid[-1],
                                together=together)  # fmt: skip
        return TaskPair(
            prefill=self.task(first, "prefill", pooled=True),
            decode=self.task(second, "decode", pooled=True),
            rate=rate,
            latency=latency + second.profile.values["t_hop"],
            together=together,
            demand=None if load is None or math.isinf(load) else load,
            unit=self.scenario.rent.unit,
        )

    def _within_power(self, *kinds: Chip) -> None:
        """Raises FieldError if chips of these kinds could draw more than the site allows.

        Chips draw no more than they are rated for, so where all of them may, no limit binds.
        """
        allowed, chips = self.scenario.limits.power, self.scenario.paid[-1]
        if allowed is None:
            return
        for chip in kinds:
            _electricity(self.scenario, chip.name, chip.power)
        most = chips * max(x.power for x in kinds if x.power) * (self.scenario.pue or 1.0)
        if most > allowed:
            words = (
                f"{chips} chips may draw {most / 1e3:.4g} kW, and how two pools would share "
                f"{allowed / 1e3:.4g} kW is not decided by this version; what would work: "
                f"choose.mode=aggregated, or limits.power={math.ceil(most / 1e2) / 10:g} kW"
            )
            raise FieldError(("limits.power", words))


def _loop(lengths: Workload) -> ClosedLoop | None:
    """The closed loop of a workload, where requests are kept in flight."""
    if lengths.concurrency is None:
        return None
    return ClosedLoop(even=not (lengths.input_tokens.cv or lengths.output_tokens.cv))


def engines_read(scenario: Scenario, chip: Chip) -> tuple[str, ...] | None:
    """Engines of which one must run a plan; None where none was read for the chip or the model.

    Weights that nobody published are loaded by no engine that was read.
    """
    if scenario.assumptions == "lecture" or scenario.engine == "none":
        return None
    if scenario.engine != "any":
        return (scenario.engine,)
    model = scenario.model
    name = model.like if isinstance(model, ModelDescription) else model
    if name is None or (isinstance(name, str) and repository(name) is None) or not chip.figures:
        return None
    return tuple(x.name for x in engine_tables().values() if chip.maker in x.vendors) or None


def _electricity(scenario: Scenario, chip: str, drawn: float | None) -> float:
    """What the power of one chip costs, where the question gives its price [USD/(chip*s)].

    Raises FieldError if what the question says of power needs that of the chip, and nobody knows.
    """
    powered = {"power_price": scenario.power_price, "carbon": scenario.carbon,
               "limits.power": scenario.limits.power}  # fmt: skip
    if drawn is None and any(powered.values()):
        words = f"the catalogue has no power figure for {chip}; give power: in the system"
        raise FieldError(*((path, words) for path, value in powered.items() if value is not None))
    return scenario.power_price * drawn if scenario.power_price and drawn else 0.0
