"""A training scenario as tasks: model, machine, stack and price looked up, mistakes by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from planner.architecture.huggingface import read_config
from planner.architecture.layers import Model
from planner.catalogue import models
from planner.catalogue.chips import Chip, chip, chip_names, chip_power
from planner.catalogue.listed_prices import Price, chip_rent
from planner.catalogue.systems import System
from planner.catalogue.training.training_stacks import TrainingStack, choose_training_stack
from planner.problems.training.layout_lattice import ModelDivisions, choose_faults
from planner.problems.training.question import TrainingQuestion
from planner.problems.training.step.training_counts import TrainingCounts, training_counts
from planner.problems.training.step.training_task import StateBytes, TrainingTask, training_machine
from planner.protocol.plan import DataSource, Outside
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File, profile_reference
from planner.scenario.keys.uncertain import IGNORED_NOTE
from planner.text.errors import FieldError, errors_at

if TYPE_CHECKING:
    from topologies.groups.strided_groups import StridedGroups
    from topologies.machines.hardware import Machine


@dataclass(frozen=True)
class ChipDraw:
    """Power of a chip at work, idle and what arithmetic adds at its peak, and its rating [J/s]."""

    idle: float
    peak: float
    rated: float


@dataclass(frozen=True)
class TrainingCase:
    """One system with everything that its layouts need.

    `draw` is None where nobody says what the chip is rated for. The words of what is `outside` the
    measured rows are warnings too.
    """

    system: System
    task: TrainingTask
    divisions: ModelDivisions
    price: Price
    draw: ChipDraw | None
    outside: tuple[Outside, ...]

    @cached_property
    def forward_again(self) -> tuple[float, ...]:
        """Recomputed forward arithmetic of one step [flop], for each word of RECOMPUTE."""
        task, counts = self.task, self.task.counts
        whole = counts.flop(task.batch, task.sequence)
        layers = whole - 3 * 2 * counts.head * task.batch * task.sequence
        weights = 3 * 2 * counts.multiplied * task.batch * task.sequence  # in three passes
        attention = whole - weights
        return (0.0, attention / 3, layers / 3, layers / 3)


@dataclass(frozen=True)
class ResolvedTraining:
    """Cases of a scenario, with data sources and warnings."""

    question: TrainingQuestion
    cases: tuple[TrainingCase, ...]
    data: tuple[DataSource, ...]
    warnings: tuple[str, ...]


def resolve_training(question: TrainingQuestion) -> ResolvedTraining:
    """Everything a training scenario asks, looked up.

    Raises InputError for what cannot be looked up, contradicts itself, or is not answered.
    """
    data: list[DataSource] = []
    warnings: list[str] = []
    model = _model(question, data)
    cases = tuple(_case(question, system, model, data, warnings) for system in question.systems())
    warnings += [*_of_the_batch(question), *getattr(model, "warnings", ())]
    if question.uncertain is not None:
        warnings.append(IGNORED_NOTE)
    sentences = tuple(dict.fromkeys(warnings))
    return ResolvedTraining(question, cases, tuple(dict.fromkeys(data)), sentences)


def _model(question: TrainingQuestion, data: list[DataSource]) -> Model | TrainingCounts:
    """The model of the catalogue or a config.json, or counts set by `SizeLayouts.question`."""
    counted: object = question.model
    if isinstance(counted, TrainingCounts):
        return counted
    name = question.model.like if isinstance(question.model, ModelDescription) else question.model
    with errors_at("model"):
        if isinstance(name, File):
            data.append(DataSource(f"model {name.written}", name.written, ""))
            return read_config(name.path)
        assert name is not None  # the question refuses a model without layers
        record = models.record(name)
        data.append(DataSource(f"model {name}", record.source, record.as_of))
        return models.load(name)


def _case(
    question: TrainingQuestion, system: System | File, model: Model | TrainingCounts,
    data: list[DataSource], warnings: list[str],
) -> TrainingCase:  # fmt: skip
    """The task of one system; FieldError with everything in the question that does not suit it."""
    if isinstance(system, File):
        words = f"write {{like: hgx-h100, topology: {system.written}}}: the file names no chip"
        raise FieldError(("system", words))
    with errors_at("price"):
        price = chip_rent(system.chip.name, question.price, system.price)
    with errors_at("model"):
        counts = model if isinstance(model, TrainingCounts) else training_counts(model)
    with errors_at("profile"):
        routed = counts.n_experts > 0
        file = isinstance(question.profile, File)  # which may be written anew
        choose = choose_training_stack if file else _shipped_stack
        wanted = profile_reference(question.profile)
        stack = choose(wanted, system.chip.name, routed=routed)
    # Power draw of a chip: measured for its kind, or scaled from other chips by rated power.
    power = chip_power(system.chip)
    draw = None if power is None else ChipDraw(power.idle, power.peak, power.rated)
    divisions = ModelDivisions(
        heads=counts.heads, layers=counts.n_layers, ends=stack.embedding_layers,
        experts=counts.n_experts, sequence=int(question.work.sequence),
        batch=question.work.sequences, deepest_zero=3 if stack.zero_pipeline else 1,
        reversible=question.reversible,
    )  # fmt: skip
    faults = [*_unanswered(question, system, draw)]
    faults += ((f"choose.{key}", words) for key, words in choose_faults(divisions, question.choose))
    if faults:
        raise FieldError(*faults)
    with errors_at("system"):
        network = _network(system, max(question.chips), data, warnings)
        machine = training_machine(system, question.precision, max(question.chips), network)
    task = TrainingTask(
        counts=counts, machine=machine, stack=stack, batch=float(question.work.sequences),
        sequence=question.work.sequence, state=StateBytes(**dict(question.state)),
        precision=question.precision, reversible=question.reversible,
        trained=1.0
        if isinstance(model, TrainingCounts)
        else trained_share(model, question.train.lora),
    )  # fmt: skip
    outside = tuple(_outside(question.precision, system.chip, stack, routed=routed))
    sentences = (*(each.words for each in outside), price.warning(date.today()))
    warnings.extend(filter(None, sentences))
    data.extend(_sources(question, system, price, stack))
    return TrainingCase(system, task, divisions, price, draw, outside)


def _network(
    system: System, chips: int, data: list[DataSource], warnings: list[str]
) -> tuple[StridedGroups, Machine] | None:
    """Groups and figures of the file that wires a system, None without one; raises FieldError."""
    if system.file is None:
        return None
    from planner.network.network_source import (  # which loads a graph library
        read_fabric,
        topology_doubts,
    )
    from topologies.groups.strided_groups import strided_groups

    fabric, figures = read_fabric(system.file, chips)
    warnings.extend(topology_doubts(system.file))
    source, dated = (fabric.graph.get(key) for key in ("source", "as_of"))
    data.append(DataSource(f"network {system.file.name}", source or "given", dated or ""))
    return strided_groups(fabric), figures


def _outside(
    precision: str, machine: Chip, stack: TrainingStack, *, routed: bool
) -> Iterator[Outside]:
    """Extrapolations of the stack: chip or number format without a measured row."""
    if machine.name not in stack.chips:
        fit = ", ".join(chip(x).product if x in chip_names() else x for x in stack.chips)
        words = f"{machine.product} never measured (fit: {fit or 'none'})"
        yield Outside("chip", stack.chips, 1.0, "step", machine.name, words)
    if not stack.measured_in(precision, routed=routed):
        part = "routed" if routed else "dense"
        ran = tuple(each.split()[1] for each in stack.formats if each.startswith(part))
        words = f"no {part} {precision} run was measured ({', '.join(ran) or 'none'} were)"
        yield Outside("precision", ran, 1.0, "step", precision, words)


_shipped_stack = lru_cache(maxsize=256)(choose_training_stack)


def _unanswered(
    question: TrainingQuestion, system: System, draw: ChipDraw | None
) -> Iterator[tuple[str, str]]:
    """Conflicts of a question with a system: the key, and the reason."""
    chip, precision = system.chip, question.precision
    if not chip.computes(precision):
        units = ", ".join(chip.flops)
        yield "precision", f"the chip {chip.name} has no {precision} arithmetic (it has {units})"
    if draw is None and (question.power_price or question.objective == "energy"):
        words = f"nobody says what {chip.name} draws; give power, such as {{power: 700 W}}"
        yield "system", words


def _sources(
    question: TrainingQuestion, system: System, price: Price, stack: TrainingStack
) -> Iterator[DataSource]:
    name, precision = system.chip.name, question.precision
    yield DataSource(f"chip {name}, {precision} peak", *system.source_of_peak(precision))
    yield DataSource(f"price of {name}", price.source, price.as_of)
    yield DataSource(f"stack {stack.name}", stack.source, stack.as_of)


def _of_the_batch(question: TrainingQuestion) -> Iterator[str]:
    work = question.work
    if not work.global_batch.exact(work.sequence):
        yield (
            f"batch rounded to {work.sequences:,} sequences of {work.sequence:,.0f} tokens "
            f"({work.batch_tokens:,.0f} tokens)"
        )


def trained_share(model: Model, rank: int) -> float:
    """Share of the parameters that are trained [1]: all, or adapters of `rank` on every matrix.

    A matrix of a rows and b columns has adapters of rank * (a + b); experts have one pair each.
    """
    if not rank:
        return 1.0
    adapters = 0.0
    for layer in model.layers:
        part = layer.feed_forward
        experts = part.experts.routed if part is not None and part.experts is not None else 1
        for weight in layer.all_weights():
            copies = experts if weight.group == "routed" else 1
            rows = model.hidden * copies
            adapters += (
                0.0
                if not weight.linear or weight.group == "router"
                else rank * (rows + copies * weight.count / rows)
            )
    return adapters / sum(weight.count for _, weight in model.all_weights())
