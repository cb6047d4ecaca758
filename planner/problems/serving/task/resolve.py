"""From a scenario to tasks: names looked up, lists unfolded, the unanswered refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from math import isinf, prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from planner.architecture.counts import ModelSizes, abstract_sizes, model_sizes
from planner.architecture.huggingface import read_config
from planner.catalogue import models
from planner.catalogue.chips import Chip, chip_power
from planner.catalogue.profile import Profile
from planner.catalogue.profile_choice import choose_profile
from planner.catalogue.systems import System
from planner.memory.engine_room import conversion_note
from planner.network.network_source import read_fabric, system_machine, topology_doubts
from planner.problems.serving.profiled import LECTURE, limit_efficiencies
from planner.problems.serving.question import UTILISATION, Scenario
from planner.problems.serving.step.runnable import refusal_location, task_refusal
from planner.problems.serving.task.drafter import depths, speculation_depth
from planner.problems.serving.task.requests import checked_promises, layout_limits, modes
from planner.problems.serving.task.task import Task, TaskPair
from planner.problems.serving.task.task_builder import (
    Hardware,
    TaskBuilder,
    engine_candidates,
    engines_read,
)
from planner.protocol.plan import DataSource
from planner.scenario.keys.engine_keys import SETTINGS
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File, profile_reference
from planner.scenario.keys.uncertain import IGNORED_NOTE
from planner.text.errors import FieldError, InputError, ModelError

if TYPE_CHECKING:
    from planner.architecture.layers import Model

SMALL_SAMPLE_RUNS = 5  # runs of a user's profile; up to this number every answer states it
OF_CHIPS = ("tp", "dp_attention", "pp", "replicas")  # ways that multiply to chips


@dataclass(frozen=True)
class ServingTasks:
    """Tasks of one scenario, its hardware, data sources and user warnings."""

    hardware: tuple[Hardware, ...]
    tasks: tuple[Task, ...]
    pools: tuple[TaskPair, ...]
    data: tuple[DataSource, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Notes:
    """Data sources and warnings collected during resolution."""

    today: date
    data: list[DataSource]
    warnings: list[str]

    def drafted(self, scenario: Scenario, counted: ModelSizes) -> None:
        """Record the source of a model's accepted lengths, and their range if not measured."""
        most = max(depths(scenario.speculation))
        drafted = speculation_depth(scenario.speculation, counted, most)
        if not drafted.source:
            return
        self.data.append(DataSource("accepted drafts", drafted.source, ""))
        if not drafted.measured:
            self.warnings.append(
                f"{drafted.source}, {drafted.emitted:.2f} tokens per step of {most} drafts; four "
                f"in five models have {drafted.low:.2f} to {drafted.high:.2f}; give "
                "speculation.accepted where it is known"
            )


def resolve(scenario: Scenario, today: date | None = None) -> ServingTasks:
    """Everything a serving scenario asks, looked up.

    Raises InputError for what cannot be looked up, contradicts itself, or is not answered by this
    version.
    """
    if mistakes := [*_unanswered(scenario), *_too_much(scenario)]:
        raise FieldError(*mistakes)
    notes = _Notes(today or date.today(), [], [])
    with _at("model"):
        model = _model(scenario, notes)
        notes.warnings.extend(() if isinstance(model, ModelDescription) else model.warnings)
    notes.warnings.extend(_left_aside(scenario))
    notes.warnings.extend(
        f"{name} is left aside: no verified on-demand price of it is known; give price"
        for name in scenario.unrented()
    )
    hardware = tuple(_hardware(scenario, system, notes) for system in scenario.systems())
    tasks: list[Task] = []
    pools: list[TaskPair] = []
    counts: list[tuple[ModelSizes, int | None, int]] = []
    for weights, kv, activations, chunk, redundant in _formats(scenario):
        with _at("model"):
            # A description that was read has every field of a model that is counted, only frozen.
            count = abstract_sizes if isinstance(model, ModelDescription) else model_sizes
            counted = count(model, weights, kv, activations)  # type: ignore[arg-type]
        if (counted, chunk, redundant) in counts:  # a checkpoint in the very format that is tried
            continue
        counts.append((counted, chunk, redundant))
        if weights and not (scenario.tried_weights() or isinstance(model, ModelDescription)):
            notes.warnings.extend(filter(None, [conversion_note(model_sizes(model), counted)]))
        for words in context_length_warnings(scenario, counted):
            if scenario.engine not in ("any", "none"):
                raise FieldError(("workload.input_tokens", words))
            notes.warnings.append(words)
        if redundant and not counted.n_experts:
            words = f"{counted.name} has no routed experts; leave it 0"
            raise FieldError(("choose.redundant_experts", words))
        notes.drafted(scenario, counted)
        tried = depths(scenario.speculation)
        for drafts, mode in product(tried, modes(scenario)):
            if mode == "prefill" and drafts != tried[-1]:
                continue  # a pool that reads prompts alone drafts nothing
            builder = TaskBuilder(scenario, counted, chunk, redundant, drafts)
            if mode == "disaggregated":
                pools += builder.pools(hardware, notes.warnings)
            else:
                tasks += (builder.task(machine, mode) for machine in hardware)
    notes.warnings.extend(_unread(scenario, hardware))
    unfit = {*map(task_refusal, (*tasks, *(task for pair in pools for task in pair.tasks)))}
    tasks = [task for task in tasks if not task_refusal(task)]
    pools = [pair for pair in pools if not any(map(task_refusal, pair.tasks))]
    if not (tasks or pools):
        raise FieldError(*(refusal_location((), words) for words in sorted(unfit - {""})))
    notes.warnings.extend(f"left out: {words}" for words in sorted(unfit - {""}))
    warned = tuple(dict.fromkeys(notes.warnings))
    return ServingTasks(hardware, tuple(tasks), tuple(pools), tuple(notes.data), warned)


def _unread(scenario: Scenario, hardware: Sequence[Hardware]) -> Iterator[str]:
    """Warn of chips without engine rules, whose layouts are checked by arithmetic alone."""
    if scenario.assumptions == "lecture" or scenario.engine == "none":
        return
    names = [each.chip.name for each in hardware if engines_read(scenario, each.chip) is None]
    if names:
        yield (
            f"no engine was read for this model on {' and '.join(dict.fromkeys(names))}: layouts "
            "are checked by arithmetic alone"
        )


@contextmanager
def _at(path: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        beside = error.mistakes and not isinstance(error, ModelError)  # a file with keys of its own
        if beside or isinstance(error, FieldError):
            raise
        raise FieldError((path, str(error))) from error


def _unanswered(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield contradictory or unsupported settings: the key, and the reason."""
    demand, promises = scenario.workload.arrivals, scenario.promises
    if scenario.assumptions == "lecture" and scenario.memory_utilisation != UTILISATION:
        yield "memory_utilisation", "the lecture fills the whole memory; leave it out"
    limits = [x for x in SETTINGS if getattr(scenario, x) is not None]
    if limits and scenario.assumptions == "lecture":
        yield limits[0], "the lecture knows no engine; leave it out"
    if demand is not None and scenario.choose.batch is not None:
        words = "under demand the batch is what gathers; leave one of the two out"
        yield "choose.batch", words
    if scenario.objective == "latency" and (load := scenario.workload.demand) and isinf(load.value):
        words = "latency is least where next to nothing arrives, not where all that can be does"
        yield "objective", f"{words}; give a demand in place of max, or choose throughput"
    for tail in ("ttft_p95", "ttft_p99"):
        alone = demand is None and scenario.workload.concurrency is None
        if alone and getattr(promises, tail) is not None:
            words = "without demand or concurrency nobody queues, and the mean is all there is"
            yield f"promises.{tail}", f"{words}; promise ttft"
    if demand is None and promises.cache_fits is not None:
        words = "without demand the batch is as given, and its caches fit; give demand with it"
        yield "promises.cache_fits", words
    if "disaggregated" not in (scenario.choose.mode or ()):
        return
    if scenario.assumptions == "lecture":
        yield "choose.mode", "the lecture has one pool; choose assumptions: physical"
    if scenario.workload.concurrency is not None:
        words = "a closed loop of two pools is not planned by this version"
        yield "workload.concurrency", f"{words}; give demand, or choose mode: aggregated"
    if scenario.paid[-1] < 2:
        yield "chips", "two pools need two chips; choose mode: aggregated"


def _too_much(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield layouts and spare replicas that are impossible on these chips for every model."""
    chips, spare = scenario.paid[-1], scenario.workload.spare_replicas
    if spare >= chips:
        words = f"{chips} chips are at most {chips} replicas, and one must serve"
        yield "workload.spare_replicas", f"{words}; give at most {chips - 1}, or more chips"
    pools = [name for name in ("prefill", "decode") if getattr(scenario.choose, name) is not None]
    if "disaggregated" not in modes(scenario):
        for name in pools:
            words = "a pool of its own layout is one of two; choose mode: disaggregated as well"
            yield f"choose.{name}", words
    elif pools:
        least = [
            prod(min(layout_limits(scenario, name).get(axis, (1,))) for axis in OF_CHIPS)
            for name in ("prefill", "decode")
        ]
        if sum(least) > chips:
            words = f"the pools need {least[0]} and {least[1]} chips at least, but chips is {chips}"
            yield f"choose.{pools[0]}", words


def resolve_hardware(scenario: Scenario) -> tuple[Hardware, ...]:
    """The machines of a scenario with their prices and profiles, looked up."""
    notes = _Notes(date.today(), [], [])
    return tuple(_hardware(scenario, system, notes) for system in scenario.systems())


def _hardware(scenario: Scenario, system: System | File, notes: _Notes) -> Hardware:
    if isinstance(system, File):
        words = (
            f"{system.written} says how chips are wired, but not which chips; "
            f"write {{like: hgx-h200, topology: {system.written}}}"
        )
        raise FieldError(("system", words))
    with _at("price"):
        price = scenario.price_of(system)
    with _at("profile"):
        profile, borrowed = _profile(scenario, system)
    with _at("system.measured"):
        profile, limits = limit_efficiencies(profile, system)
    handful = small_sample_warning(profile)
    notes.warnings.extend(
        _warnings(scenario, system, price.warning(notes.today), borrowed, handful)
    )
    notes.data.extend(_sources(system, price.source, price.as_of, profile))
    notes.data.extend([limits] if limits else [])
    draws = "power" in system.varied or not system.chip.figures
    notes.data.extend(() if draws or scenario.assumptions == "lecture" else _drawn(system.chip))
    lecture = scenario.assumptions == "lecture"
    rented = scenario.rent.on(scenario.chips, system), system.machine
    chip = _lecture_chip(system) if lecture else system.chip.usable
    if system.file is not None:
        fabric, network = read_fabric(system.file, scenario.paid[-1])
        notes.warnings.extend(topology_doubts(system.file))
        source, dated = (fabric.graph.get(key) for key in ("source", "as_of"))
        what = f"network {system.file.name}"
        notes.data.append(DataSource(what, source or "given", dated or ""))
        return Hardware(chip, network, price.value, profile, fabric, draws, *rented)
    network = system_machine(system, scenario.paid[-1], lecture=lecture)
    return Hardware(chip, network, price.value, profile, None, draws, *rented)


def _drawn(chip: Chip) -> Iterator[DataSource]:
    draw = chip_power(chip)
    if draw is not None:
        borrowed = "" if draw.measured else f"; no rows of {chip.name}: what those measured share"
        yield DataSource(f"power of {chip.name}", f"{draw.source}{borrowed}", draw.as_of)


def _formats(
    scenario: Scenario,
) -> Iterator[tuple[str | None, str | None, str | None, int | None, int]]:
    """Every choice of dtypes, chunk and copies of experts.

    Dtypes are those of a model that is described, else None: the checkpoint's own.
    """
    choose, model = scenario.choose, scenario.model
    weights = kv = activations = None
    if isinstance(model, ModelDescription):
        weights, kv, activations = model.weights, model.kv, model.activations
    return product(
        choose.weights or scenario.tried_weights() or (weights,),
        choose.kv or (kv,),
        choose.activations or (activations,),
        choose.chunk or (None,),
        choose.redundant_experts or (0,),
    )


def _model(scenario: Scenario, notes: _Notes) -> Model | ModelDescription:
    model = scenario.model
    if isinstance(model, ModelDescription) and model.like is None:
        notes.data.append(DataSource("model", "described in the scenario", ""))
        return model
    name = model.like if isinstance(model, ModelDescription) else model
    if isinstance(name, File):
        notes.data.append(DataSource(f"model {name.written}", name.written, ""))
        return read_config(name.path)

    record = models.record(name)
    notes.data.append(DataSource(f"model {name}", record.source, record.as_of))
    return models.load(name)


def _lecture_chip(system: System) -> Chip:
    """The chip in the lecture's unit, multiply-accumulates per second.

    Data sheets count two FLOP each; peaks written in the scenario are the lecture's own.
    """
    written = {name.removeprefix("flops.") for name in system.varied if name.startswith("flops.")}
    if not system.chip.figures:
        written = set(system.chip.flops)
    macs = {unit: rate if unit in written else rate / 2 for unit, rate in system.chip.flops.items()}
    return replace(system.chip, flops=MappingProxyType(macs))


def _profile(scenario: Scenario, system: System) -> tuple[Profile, str | None]:
    if scenario.assumptions == "lecture":
        return LECTURE, None
    family = getattr(_model(scenario, _Notes(date.today(), [], [])), "family", "")
    engines = engine_candidates(scenario, system.chip, family)
    return choose_profile(profile_reference(scenario.profile), system.chip.name, engines)


def small_sample_warning(profile: Profile) -> str | None:
    """Warning about a profile fitted to a handful of runs; None for other profiles."""
    if not 0 < profile.runs <= SMALL_SAMPLE_RUNS:
        return None
    runs = "one run" if profile.runs == 1 else f"{profile.runs} runs"
    return (
        f"profile {profile.name} was fitted on {runs} of one's own ({profile.source}): it is the "
        "profile that it started from, moved by what that shows"
    )


def _warnings(scenario: Scenario, system: System, *known_warnings: str | None) -> Iterator[str]:
    """Yield warnings about the figures of one system, those of its catalogues first."""
    yield from filter(None, known_warnings)
    if scenario.workload.input_tokens.cv and scenario.assumptions == "lecture":
        yield "the lecture knows no spread of input_tokens: the mean is used"
    if system.chip.sram is None and scenario.assumptions != "lecture":
        yield (
            f"the on-chip memory of {system.chip.name} is not known and taken as none: what it "
            "holds need not be read again, so the bound may be that much too high"
        )


def _left_aside(scenario: Scenario) -> Iterator[str]:
    """Yield warnings on settings that the search ignores, or does not decide exactly."""
    disaggregated = "disaggregated" in (scenario.choose.mode or ())
    if disaggregated and scenario.objective == "latency" and scenario.workload.arrivals:
        yield (
            "two pools under a load are sized by what either can carry at most; another split may "
            "have a little less latency"
        )
    if scenario.uncertain is not None:
        yield IGNORED_NOTE
    asked_modes = modes(scenario)
    pooled = "disaggregated" in asked_modes
    used = {
        name for mode in asked_modes for name in checked_promises(mode, scenario, pooled=pooled)
    }
    if scenario.promises.cache_fits is None:
        used.add("cache_fits")
    for name in checked_promises("aggregated", scenario, pooled=False).keys() - used:
        yield (
            f"promises.{name} is left aside: mode {asked_modes[0]} alone does not know of it; "
            "what would use it: choose.mode aggregated or disaggregated"
        )


def context_length_warnings(scenario: Scenario, counted: ModelSizes) -> Iterator[str]:
    """Yield a warning about requests longer than the model's maximum context."""
    load, limit = scenario.workload, counted.max_context
    into, out = load.input_tokens.mean, load.output_tokens.mean
    if limit is not None and into + out > limit:
        yield (
            f"a request of {into:.0f} tokens in and {out:.0f} out is longer than the {limit} that "
            f"{counted.name} was made for (max_position_embeddings), and engines refuse it; "
            f"what would work: at most {limit} tokens in all, or a model of a longer context"
        )


def _sources(system: System, price: str, price_date: str, profile: Profile) -> list[DataSource]:
    chip = system.chip
    figure = chip.figures.get("memory_bandwidth")
    source, date_ = (figure.source, figure.as_of) if figure else (chip.title, "")
    return [
        DataSource(f"chip {chip.name}", source, date_),
        DataSource(f"price of {chip.name}", price, price_date),
        DataSource(f"profile {profile.name}", profile.source, profile.as_of),
    ]
