"""What a training step is asked for: model, machine, software and workload, in base units."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalogue.training.training_stacks import TrainingStack
from planner.problems.training.step.machine import TrainingMachine
from planner.problems.training.step.training_counts import TrainingCounts

FLASH, UNFUSED = "flash", "unfused"  # attention kernels; a stack may know more by name
PLAIN, FUSED = "plain", "fused"  # norms


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
    norm: str = PLAIN
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
        """Where the coefficients of the stack are asked for; the era is its latest, if none is."""
        part = "routed" if self.counts.n_experts else "dense"
        return {
            "chip": self.machine.chip,
            "precision": self.precision,
            "kernel": self.kernel,
            "norm": self.norm,
            "era": self.era or self.stack.eras.get(part, ""),
            "part": part,
        }

    @property
    def coefficients(self) -> dict[str, float]:
        """What the stack makes of this machine."""
        return self.stack.coefficients(self.place)

    @property
    def unfused(self) -> bool:
        """Whether the softmax goes through memory."""
        return not self.kernel.startswith(FLASH)
