"""What a training step needs of a machine: peak, memory, links inside a domain and out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.catalogue.systems import System


@dataclass(frozen=True)
class TrainingMachine:
    """A chip and its network in base units.

    `peak` in the format of the matrix products and `half` in 16 bits [flop/s]; `hbm` [byte/s];
    `memory` that its driver reports [byte]; `node` chips of a scale-up domain; `link` and `card`
    rates of a chip, one way, inside the domain and out of it, and `host` to its host [byte/s].
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


def training_machine(system: System, precision: str, chips: int = 0) -> TrainingMachine:
    """A system as a training step sees it; raises CatalogueError where it lacks the arithmetic.

    Parameters
    ----------
    precision : bf16, fp8 or nvfp4, of the matrix products.
    chips : of the whole run, where a system's domain has no end of its own.
    """
    chip = system.chip
    node = system.chips_per_domain or max(1, chips)
    link = system.scale_up or chip.pcie or chip.memory_bandwidth
    card = system.scale_out or link  # the domain is the network, or the chip stands alone
    return TrainingMachine(
        name=system.name,
        chip=chip.name,
        peak=chip.peak(precision),
        half=chip.peak("bf16"),
        hbm=chip.memory_bandwidth,
        memory=chip.memory_reported or chip.memory,
        node=node,
        link=link,
        card=card,
        host=chip.pcie or card,
    )
