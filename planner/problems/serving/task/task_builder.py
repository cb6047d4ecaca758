"""One model in one set of formats, drafted into questions: a task, or a pair of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from planner.catalogue.chips import chip_power
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.models import repository
from planner.memory.engine_table import chip_memory
from planner.network.network_source import pool_link
from planner.problems.serving.question import whole_units
from planner.problems.serving.step.engine_effects import engine_name, overlaps, prefill_chunk_tokens
from planner.problems.serving.step.engine_rules import engine_tables
from planner.problems.serving.step.memory_terms import memory_rules, seen_chip
from planner.problems.serving.step.runnable import engine_pool, engines_loading_checkpoint
from planner.problems.serving.task import requests
from planner.problems.serving.task.drafter import speculation_depth
from planner.problems.serving.task.task import MAX_UTILISATION, ClosedLoop, Task, TaskPair
from planner.scenario.keys.model_keys import ModelDescription
from planner.text.errors import FieldError

if TYPE_CHECKING:
    from planner.architecture.counts import ModelSizes
    from planner.catalogue.chips import Chip
    from planner.catalogue.profile import Profile
    from planner.problems.serving.question import Scenario
    from planner.scenario.keys.workload import Workload
    from topologies import Machine
    from topologies.fabric.fabric import Fabric

MAX_SEQUENCES = 256  # sequences that engines let in unasked, vllm/engine/arg_utils.py


@dataclass(frozen=True)
class Hardware:
    """One kind of machine, its price [USD/(chip*s)], its profile, and the fabric of a file.

    Where the scenario says what a chip draws, `draws_given`, that is drawn whatever it does. Chips
    are rented `unit` at a time, of machines of `machine_chips`.
    """

    chip: Chip
    machine: Machine
    price: float
    profile: Profile
    fabric: Fabric | None = None
    draws_given: bool = False
    unit: int = 1
    machine_chips: int = 1


@dataclass(frozen=True)
class TaskBuilder:
    """Builder of the tasks of one model in one set of formats.

    `chunk` are prompt tokens of one pass, None for as many as the engine reads [token]; `drafts`
    tokens are drafted per sequence and step.
    """

    scenario: Scenario
    sizes: ModelSizes
    chunk: float | None
    redundant: int = 0
    drafts: int = 0

    def task(self, hardware: Hardware, mode: str, *, pooled: bool = False, unit: int = 0) -> Task:
        """The question of one phase, or of both in one pool, on one kind of machine.

        Beside a pool on other machines numbers of chips are multiples of a `unit` of both.
        """
        scenario, lengths = self.scenario, self.scenario.workload
        lecture = scenario.assumptions == "lecture"
        waits, loop, used = requests.arrivals(scenario), _loop(lengths), lengths.utilisation
        engine = engine_name(hardware.profile.engine, hardware.profile.as_of)
        runs = engines_read(scenario, hardware.chip)
        unbound = scenario.estimate == "bound" and scenario.engine == "any"
        place = RunContext.of(self.sizes, hardware.chip, runs=runs or ())
        phase = mode if pooled else None
        task = Task(
            sizes=self.sizes,
            chip=hardware.chip,
            machine=hardware.machine,
            fabric=hardware.fabric,
            price=hardware.price,
            profile=hardware.profile.at(replace(place, pooled=pooled)),
            chips=whole_units(scenario.chips, unit or hardware.unit),
            unit=hardware.unit,
            whole_machines=requests.whole_machines(scenario, hardware.unit, hardware.machine_chips),
            limits_of=requests.layout_limits(scenario, phase, halved=overlaps(engine)),
            input_tokens=lengths.input_tokens.mean,
            output_tokens=requests.outputs(mode, lengths.output_tokens.mean, pooled=pooled),
            context=lengths.input_tokens.mean if mode == "prefill" else requests.context(lengths),
            cached_input=lengths.cached_input,
            chunk=float(self.chunk or prefill_chunk_tokens(engine)),
            max_num_seqs=scenario.max_num_seqs,
            max_num_batched_tokens=scenario.max_num_batched_tokens,
            mode=mode,
            batches=requests.batches(scenario, phase),
            kappa=1.0 if lengths.concurrency is None else 0.5,
            promises=requests.checked_promises(mode, scenario, pooled=pooled),
            chance=requests.needed_chance(scenario, measured=hardware.profile.measured_at(place)),
            objective=scenario.objective,
            estimate=scenario.estimate,
            lecture=lecture,
            utilisation=1.0 if lecture else scenario.memory_utilisation,
            arrivals=waits if waits is None or not pooled else math.inf,  # pools divide it later
            spare=lengths.spare_replicas,
            headroom=1 - used if used else lengths.headroom,
            prefer_simple=scenario.prefer.simple or 0.0,
            busiest=min(MAX_UTILISATION, used or MAX_UTILISATION),
            input_spread=lengths.input_tokens.cv,
            output_spread=lengths.output_tokens.cv,
            pooled=pooled,
            redundant=self.redundant,
            skew=lengths.routing_skew,
            conversations=lengths.conversations or 0,
            routed=lengths.dispatch == "prefix",
            engine=engine,
            loop=loop if mode == "aggregated" and not lecture else None,
            even=loop is not None and loop.even and not lecture,
            engines=runs,
            any_layout=unbound,
        )
        task = self._with_memory(self._with_drafts(self._with_power(task, hardware)))
        return replace(task, chunk=self._chunk(task))

    def _chunk(self, task: Task) -> float:
        """Prompt tokens per pass [token]: as chosen, or the rest of a step's token limit.

        Answers of so many sequences as the engine lets in come first, in half of a step at most.
        """
        budget = task.max_num_batched_tokens
        if budget is None or self.chunk:
            return task.chunk
        seats, chip = task.max_num_seqs, chip_memory(task.chip)
        if seats is None:
            seats = next((x.limits(chip)[0] for _, x in task.memory_rules if x), MAX_SEQUENCES)
        answers = min(seats * task.positions_per_step, budget // 2)
        return float(budget - (answers if task.mode == "aggregated" else 0))

    def _with_memory(self, task: Task) -> Task:
        if task.engines is None or task.any_layout or task.lecture:
            return task
        names = engines_loading_checkpoint(engine_pool(task), task.engines) or task.engines
        rules = memory_rules(names, task.chip, self.scenario.engine_version)
        return replace(task, memory_rules=rules, chip=seen_chip(task.chip, rules))

    def _with_power(self, task: Task, hardware: Hardware) -> Task:
        """Copy of the task with its chips' power draw, electricity cost and power limit."""
        scenario, site, power = self.scenario, self.scenario.pue or 1.0, hardware.chip.power
        counted = not (task.lecture or hardware.draws_given)
        draw = chip_power(hardware.chip, self.sizes.name) if counted else None
        drawn = (power and power * site) if draw is None else draw.least * site
        electricity = _electricity(scenario, hardware.chip.name, drawn)
        return replace(
            task,
            price=task.price + electricity,
            power=drawn,
            draw=draw,
            site_power=None if task.pooled else scenario.limits.power,
            site=site,
            electricity=electricity,
            carbon=scenario.carbon,
        )

    def _with_drafts(self, task: Task) -> Task:
        """The question with the tokens that a step drafts, and those that it accepts."""
        drafted = speculation_depth(self.scenario.speculation, self.sizes, self.drafts)
        return replace(
            task,
            positions_per_step=drafted.positions,
            tokens_per_step=drafted.emitted,
            accepted_range=(drafted.low / drafted.emitted, drafted.high / drafted.emitted),
            drafter=None if task.lecture else drafted.drafter,
            drafting=requests.draft_method(self.scenario),
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
        load, together = requests.arrivals(self.scenario), first is second
        self._within_power(first.chip, second.chip)
        unit = math.gcd(first.unit, second.unit)
        rate, latency = pool_link(first.machine, second.machine, self.scenario.paid[-1],
                                together=together)  # fmt: skip
        return TaskPair(
            prefill=self.task(first, "prefill", pooled=True, unit=unit),
            decode=self.task(second, "decode", pooled=True, unit=unit),
            rate=rate,
            latency=latency + second.profile.values["t_hop"],
            together=together,
            demand=None if load is None or math.isinf(load) else load,
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
    if lengths.concurrency is None:
        return None
    return ClosedLoop(even=not (lengths.input_tokens.cv or lengths.output_tokens.cv))


def engines_read(scenario: Scenario, chip: Chip) -> tuple[str, ...] | None:
    """Admissible engines of a plan; None if no engine was read for the chip or the model.

    Weights that nobody published are loaded by no engine that was read.
    """
    model = scenario.model
    name = model.like if isinstance(model, ModelDescription) else model
    unread = name is None or (isinstance(name, str) and repository(name) is None)
    none = scenario.engine == "any" and (unread or not chip.figures)
    return (
        None
        if none or scenario.assumptions == "lecture"
        else engine_candidates(scenario, chip) or None
    )


def engine_candidates(scenario: Scenario, chip: Chip, family: str = "") -> tuple[str, ...]:
    """Engines that a question means: of any, those of the chip's maker that know the family.

    Empty where any engine's speeds will do: none is to run the plan, or none was read for the chip.
    """
    if scenario.engine != "any":
        return () if scenario.engine == "none" else (scenario.engine,)
    every = (x for x in engine_tables().values() if chip.maker in x.vendors)
    return tuple(x.name for x in every if family not in x.lacks)


def _electricity(scenario: Scenario, chip: str, drawn: float | None) -> float:
    """Electricity cost of one chip [USD/(chip*s)]; 0 without a power price.

    Raises FieldError if what the question says of power needs that of the chip, and nobody knows.
    """
    powered = {"power_price": scenario.power_price, "carbon": scenario.carbon,
               "limits.power": scenario.limits.power}  # fmt: skip
    if drawn is None and any(powered.values()):
        words = f"the catalogue has no power figure for {chip}; give power: in the system"
        raise FieldError(*((path, words) for path, value in powered.items() if value is not None))
    return scenario.power_price * drawn if scenario.power_price and drawn else 0.0
