"""From a scenario to tasks: names looked up, lists unfolded, the unanswered refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING

from planner.architecture.abstract import abstract_sizes
from planner.architecture.counts import Sizes, sizes
from planner.architecture.huggingface import read_config
from planner.calibration.profile import Profile, choose_profile
from planner.catalogue import models
from planner.catalogue.chips import Chip
from planner.catalogue.systems import System
from planner.errors import FieldError, InputError
from planner.scenario import File, ModelDescription, Scenario, Workload
from planner.serving.lecture import LECTURE
from planner.serving.network import machine_of
from planner.serving.task import Task

if TYPE_CHECKING:
    from planner.architecture.layers import Model

__all__ = ["CHUNK", "RESERVE", "Asked", "ask"]

CHUNK = 8192  # tokens of prompt per step: vLLM's default max_num_batched_tokens for servers
RESERVE = 0.10  # share of memory left to the runtime: vLLM's default gpu_memory_utilization is 0.90
LAYOUT_KEYS = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "replicas")


@dataclass(frozen=True)
class Asked:
    """The tasks of one scenario, what was looked up for them, and what the user should know."""

    tasks: tuple[Task, ...]
    data: tuple[dict[str, str], ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Notes:
    """What is gathered on the way."""

    today: date
    data: list[dict[str, str]]
    warnings: list[str]


def ask(scenario: Scenario, today: date | None = None) -> Asked:
    """Everything a serving scenario asks, looked up.

    Raises
    ------
    InputError
        For what cannot be looked up, contradicts itself, or is not answered by this version.
    """
    _refuse_unanswered(scenario)
    notes = _Notes(today or date.today(), [], [])
    with _at("model"):
        model = _model(scenario, notes)
    tasks: list[Task] = []
    for system in scenario.systems():
        if isinstance(system, File):
            told = (
                f"{system.given}: topology files are not read by this version; "
                "describe the system inline or give a catalogue name"
            )
            raise FieldError(("system", told))
        tasks += _tasks(scenario, model, system, notes)
    return Asked(tuple(tasks), tuple(notes.data), tuple(dict.fromkeys(notes.warnings)))


@contextmanager
def _at(path: str) -> Iterator[None]:
    """What is refused while a value is looked up is the fault of that value."""
    try:
        yield
    except InputError as error:
        if error.mistakes or isinstance(error, FieldError):
            raise
        raise FieldError((path, str(error))) from error


def _refuse_unanswered(scenario: Scenario) -> None:
    found: list[tuple[str, str]] = []
    demand, promises = scenario.workload.demand, scenario.promises
    if demand is not None and scenario.choose.batch is not None:
        told = "under demand the batch is what gathers; leave one of the two out"
        found.append(("choose.batch", told))
    for tail in ("ttft_p95", "ttft_p99"):
        if demand is None and getattr(promises, tail) is not None:
            told = "without demand nobody queues, and the mean is all there is; promise ttft"
            found.append((f"promises.{tail}", told))
    if "disaggregated" in (scenario.choose.mode or ()):
        told = (
            "disaggregated pools are not planned by this version; "
            "plan the two phases apart with mode: prefill and mode: decode"
        )
        found.append(("choose.mode", told))
    if any(n != 1 for n in scenario.choose.cp or (1,)):
        told = "context parallelism is not planned by this version; leave it 1"
        found.append(("choose.cp", told))
    if found:
        raise FieldError(*found)


def _tasks(
    scenario: Scenario, model: Model | ModelDescription, system: System, notes: _Notes
) -> Iterator[Task]:
    choose, lengths = scenario.choose, scenario.workload
    with _at("price"):
        price = scenario.price_of(system)
    with _at("profile"):
        profile, borrowed = _profile(scenario, system)
    lecture = scenario.assumptions == "lecture"
    notes.warnings.extend(_warnings(scenario, system, price.warning(notes.today), borrowed))
    notes.data.extend(_sources(system, price.source, price.as_of, profile))
    hardware = machine_of(system, scenario.chips[-1], lecture=lecture)
    weights_own, kv_own, activations_own = _own_dtypes(scenario)
    options = product(
        choose.mode or ("aggregated",),
        choose.weights or (weights_own,),
        choose.kv or (kv_own,),
        choose.activations or (activations_own,),
        choose.chunk or (CHUNK,),
    )
    promises = {
        "ttft": scenario.promises.ttft,
        "ttft_p95": scenario.promises.ttft_p95,
        "ttft_p99": scenario.promises.ttft_p99,
        "tpot": scenario.promises.slowest_tpot,
        "e2e": scenario.promises.e2e,
    }
    positions, emitted = _speculation(scenario)
    for mode, weights, kv, activations, chunk in options:
        with _at("model"):
            counted = _sizes(model, weights, kv, activations)
        yield Task(
            sizes=counted,
            chip=_lecture_chip(system) if lecture else system.chip,
            machine=hardware,
            price=price.value,
            profile=profile,
            chips=scenario.chips,
            limits_of={k: tuple(v) for k in LAYOUT_KEYS if (v := getattr(choose, k)) is not None},
            input_tokens=lengths.input_tokens.mean,
            output_tokens=_outputs(mode, lengths.output_tokens.mean),
            context=lengths.input_tokens.mean if mode == "prefill" else _context(lengths),
            cached_input=lengths.cached_input,
            chunk=float(chunk),
            mode=mode,
            batches=_batches(scenario),
            kappa=1.0 if lengths.concurrency is None else 0.5,
            promises=_promises(mode, promises),
            objective=scenario.objective,
            estimate=scenario.estimate,
            lecture=lecture,
            reserve=0.0 if lecture else RESERVE,
            power=system.chip.power and system.chip.power * (scenario.pue or 1.0),
            arrivals=_arrivals(scenario),
            spare=lengths.spare_replicas,
            headroom=lengths.headroom,
            input_spread=lengths.input_tokens.cv,
            positions_per_step=positions,
            tokens_per_step=emitted,
        )


def _model(scenario: Scenario, notes: _Notes) -> Model | ModelDescription:
    asked = scenario.model
    if isinstance(asked, ModelDescription) and asked.like is None:
        notes.data.append({"what": "model", "source": "described in the scenario", "as_of": ""})
        return asked
    name = asked.like if isinstance(asked, ModelDescription) else asked
    if isinstance(name, File):
        notes.data.append({"what": f"model {name.given}", "source": name.given, "as_of": ""})
        return read_config(name.path)

    record = models.record(name)
    notes.data.append({"what": f"model {name}", "source": record.source, "as_of": record.as_of})
    return models.load(name)


def _own_dtypes(scenario: Scenario) -> tuple[str | None, str | None, str | None]:
    """Dtypes that the scenario's model description gives for weights, cache and activations."""
    asked = scenario.model
    if not isinstance(asked, ModelDescription):
        return None, None, None
    return asked.weights, asked.kv, asked.activations


def _sizes(
    model: Model | ModelDescription, weights: str | None, kv: str | None, activations: str | None
) -> Sizes:
    if isinstance(model, ModelDescription):
        # What it reads of a description is all there, only frozen.
        return abstract_sizes(model, weights, kv, activations)  # type: ignore[arg-type]
    return sizes(model, weights, kv, activations)


def _lecture_chip(system: System) -> Chip:
    """The chip in the lecture's unit, multiply-accumulates per second.

    Data sheets count two FLOP each; peaks written in the scenario are the lecture's own.
    """
    own = {name.removeprefix("flops.") for name in system.varied if name.startswith("flops.")}
    if system.topology is None:
        own = set(system.chip.flops)
    macs = {unit: rate if unit in own else rate / 2 for unit, rate in system.chip.flops.items()}
    return replace(system.chip, flops=MappingProxyType(macs))


def _profile(scenario: Scenario, system: System) -> tuple[Profile, str | None]:
    if scenario.assumptions == "lecture":
        return LECTURE, None
    return choose_profile(scenario.profile, system.chip.name)


def _warnings(scenario: Scenario, system: System, *told: str | None) -> Iterator[str]:
    """What the user should know of the figures of one system, `told` by their catalogues first."""
    yield from filter(None, told)
    if scenario.workload.input_tokens.cv:
        yield (
            "the spread of input_tokens lengthens queues under demand; elsewhere the mean is used"
            if scenario.workload.demand is not None
            else "the spread of input_tokens is not modelled: the mean is used"
        )
    if system.chip.sram is None and scenario.assumptions != "lecture":
        yield (
            f"the on-chip memory of {system.chip.name} is not known and taken as none: what it "
            "holds need not be read again, so the bound may be that much too high"
        )


def _sources(system: System, price: str, price_date: str, profile: Profile) -> list[dict[str, str]]:
    chip = system.chip
    figure = chip.figures.get("memory_bandwidth")
    return [
        {
            "what": f"chip {chip.name}",
            "source": figure.source if figure else chip.title,
            "as_of": figure.as_of if figure else "",
        },
        {"what": f"price of {chip.name}", "source": price, "as_of": price_date},
        {"what": f"profile {profile.name}", "source": profile.source, "as_of": profile.as_of},
    ]


def _batches(scenario: Scenario) -> tuple[int, ...] | None:
    wanted, loop = scenario.choose.batch, scenario.workload.concurrency
    if loop is None:
        return None if wanted is None else tuple(wanted)
    if wanted is not None and tuple(wanted) != (loop,):
        told = f"workload.concurrency keeps {loop} requests in flight, so the batch is not free"
        raise FieldError(("choose.batch", f"{told}; leave one of the two out"))
    return (loop,)


def _arrivals(scenario: Scenario) -> float | None:
    """Requests per second that arrive, infinitely many where the most are sought."""
    load = scenario.workload
    if load.demand is None:
        return None
    return load.demand.requests_per_s(load.output_tokens.mean)


def _outputs(mode: str, tokens: float) -> float:
    if mode == "aggregated" and tokens <= 1:
        told = "one output token comes from the prompt, which leaves nothing to decode"
        raise FieldError(("workload.output_tokens", f"{told}; choose mode: prefill"))
    return tokens


def _context(lengths: Workload) -> float:
    """Mean context over the decode steps: I + E[O^2]/(2 E[O])."""
    output = lengths.output_tokens
    return lengths.input_tokens.mean + output.mean * (1 + output.cv**2) / 2


def _promises(mode: str, made: dict[str, float | None]) -> dict[str, float]:
    """Promises that the mode can keep or break: a phase alone knows nothing of the other."""
    absent = {
        "decode": {"ttft", "ttft_p95", "ttft_p99", "e2e"},
        "prefill": {"tpot", "e2e"},
    }.get(mode, set())
    return {name: limit for name, limit in made.items() if limit is not None and name not in absent}


def _speculation(scenario: Scenario) -> tuple[float, float]:
    """Positions computed and tokens emitted per step: m = 1 + drafts, g = (1 - a^m)/(1 - a)."""
    asked = scenario.speculation
    if asked is None:
        return 1.0, 1.0
    m, a = 1 + asked.drafts, asked.acceptance
    emitted = float(m) if a == 1 else (1 - a**m) / (1 - a)
    return float(m), emitted
