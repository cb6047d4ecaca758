"""Task of a training step: model, machine, software, workload in base units; layouts.

Layouts are arrays: every field broadcasts against the others, so that counts may be rows and
choices columns. Choices are integers, which `words` gives in those of a scenario.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.training.training_stacks import TrainingStack
from planner.problems.training.step.training_counts import TrainingCounts
from planner.text.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from planner.catalogue.systems import System
    from topologies.groups.strided_groups import StridedGroups
    from topologies.machines.hardware import Machine

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero-bubble")
RECOMPUTE = ("none", "selective", "full", "reversible")
OFFLOAD = ("none", "optimizer", "activations")
CHOICE_WORDS: Mapping[str, tuple[str, ...]] = {
    "schedule": SCHEDULES,
    "recompute": RECOMPUTE,
    "offload": OFFLOAD,
}
SWITCHES = ("sequence_parallel", "overlap")


@dataclass(frozen=True)
class LayoutTable:
    """Layouts as arrays of integers that broadcast against each other.

    Counts of parallel parts, sequences of a micro-batch and virtual stages; `schedule`, `recompute`
    and `offload` index SCHEDULES, RECOMPUTE and OFFLOAD; `zero` is 0 to 3, `sequence_parallel`
    and `overlap` are 0 or 1.
    """

    tp: np.ndarray
    pp: np.ndarray
    dp: np.ndarray
    cp: np.ndarray
    ep: np.ndarray
    tp_expert: np.ndarray
    micro_batch: np.ndarray
    virtual_stages: np.ndarray
    schedule: np.ndarray
    recompute: np.ndarray
    zero: np.ndarray
    offload: np.ndarray
    sequence_parallel: np.ndarray
    overlap: np.ndarray

    @classmethod
    def of(cls, **choices: object) -> LayoutTable:
        """Layouts from words, switches or numbers; fields default to 1, `1f1b`, none or hidden.

        Raises InputError for a field or a word that there is not.
        """
        names = [each.name for each in fields(cls)]
        for name in choices:
            if name not in names:
                raise InputError(f"a layout has no {name!r}{did_you_mean(name, names)}")
        values: dict[str, object] = {
            **dict.fromkeys(names, 1),
            **dict.fromkeys(("recompute", "zero", "offload"), 0),
        }
        values |= {"sequence_parallel": 0, "overlap": 1, "schedule": 1}
        for name, value in choices.items():
            values[name] = _code(name, value)
        return cls(**{name: np.asarray(value) for name, value in values.items()})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that all fields have together."""
        return np.broadcast_shapes(*(np.shape(value) for value in self.columns().values()))

    def columns(self) -> dict[str, np.ndarray]:
        """Every field by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def at(self, index: int | tuple[int, ...]) -> LayoutTable:
        """One layout, its fields without axes, at a place of the common shape."""
        shape = self.shape
        where = np.unravel_index(index, shape) if isinstance(index, int) else index
        columns = self.columns().items()
        return LayoutTable(
            **{name: np.asarray(np.broadcast_to(value, shape)[where]) for name, value in columns}
        )

    def words(self) -> dict[str, int | str | bool]:
        """One layout in the words of a scenario."""
        words: dict[str, int | str | bool] = {}
        for name, value in self.columns().items():
            number = int(value)
            if name in SWITCHES:
                words[name] = bool(number)
            else:
                words[name] = CHOICE_WORDS[name][number] if name in CHOICE_WORDS else number
        return words


def _code(name: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    words = CHOICE_WORDS.get(name, ())
    if value not in words:
        raise InputError(
            f"{name}: unknown value {value!r}; known: {', '.join(words) or 'its numbers'}"
        )
    return words.index(value)


FLASH, ATTENTION_UNFUSED = "flash", "unfused"  # attention kernels; a stack may know more by name
NORM_PLAIN, NORM_FUSED = "plain", "fused"  # norms


@dataclass(frozen=True)
class TrainingMachine:
    """A chip and its network in base units.

    `peak` in the format of the matrix products and `half` in 16 bits [flop/s]; `hbm` [byte/s];
    `memory` that its driver reports [byte]; `node` chips of a scale-up domain; `link` and `card`
    rates of a chip, one way, inside the domain and out of it, and `host` to its host [byte/s].
    `wiring` is the graph that a topology file draws: rates of groups are those that it carries.
    """

    name: str
    chip: str
    peak: float
    half: float
    hbm: float
    memory: float
    node: int
    link: float
    card: float
    host: float
    wiring: StridedGroups | None = None


def training_machine(
    system: System,
    precision: str,
    chips: int = 0,
    network: tuple[StridedGroups, Machine] | None = None,
) -> TrainingMachine:
    """A system as a training step sees it; raises CatalogueError where it lacks the arithmetic.

    Args:
        precision: bf16, fp8 or nvfp4, of the matrix products.
        chips: of the whole run, where a system's domain has no end of its own.
        network: groups and figures of a topology file, in place of the system's.
    """
    chip = system.chip
    wiring, figures = network or (None, system)
    node = figures.chips_per_domain or max(1, chips)
    link = figures.scale_up or chip.pcie or chip.memory_bandwidth
    card = figures.scale_out or link  # no scale-out: the domain is the network, or a single chip
    return TrainingMachine(
        name=system.name, chip=chip.name, peak=chip.peak(precision), half=chip.peak("bf16"),
        hbm=chip.memory_bandwidth, memory=chip.memory_reported or chip.memory, node=node,
        link=link, card=card, host=chip.pcie or card, wiring=wiring,
    )  # fmt: skip


@dataclass(frozen=True)
class StateBytes:
    """Bytes of a parameter's weight, gradient and optimiser states [byte]."""

    weights: float = 2.0
    gradients: float = 4.0
    optimizer: float = 12.0


@dataclass(frozen=True)
class TrainingTask:
    """A step of training: `batch` sequences of `sequence` tokens.

    `precision` of the matrix products; `reversible` where a model's layers can be inverted;
    `trained` is the share of the parameters that have gradients; the others are frozen.
    `kernel` and `norm` by the words of the stack; `dropout` where masks stay for the backward pass.
    """

    counts: TrainingCounts
    machine: TrainingMachine
    stack: TrainingStack
    batch: float
    sequence: float
    state: StateBytes = StateBytes()
    precision: str = "bf16"
    reversible: bool = False
    kernel: str = FLASH
    norm: str = NORM_PLAIN
    dropout: bool = False
    era: str = ""
    trained: float = 1.0

    @property
    def model_flop(self) -> float:
        """Arithmetic of the model in one step, the causal half of attention [flop].

        Frozen weights have no gradients of their own: of them one pass of three is not made.
        """
        frozen = self.counts.multiplied * (1 - self.trained)
        return self.counts.flop(self.batch, self.sequence) - 2 * frozen * self.batch * self.sequence

    @property
    def place(self) -> dict[str, str]:
        """Context of the stack coefficients; the era defaults to the latest of the stack."""
        part = "routed" if self.counts.n_experts else "dense"
        return {
            "chip": self.machine.chip, "precision": self.precision, "kernel": self.kernel,
            "norm": self.norm, "era": self.era or self.stack.eras.get(part, ""), "part": part,
        }  # fmt: skip

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of the stack in the context of this task."""
        return self.stack.coefficients(self.place)

    @property
    def unfused(self) -> bool:
        """True if the softmax goes through memory."""
        return not self.kernel.startswith(FLASH)
