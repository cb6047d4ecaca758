"""What a phase of training costs: arithmetic over what a chip delivers, at its price.

Until training layouts are planned, a chip delivers its dense peak times a share (MFU): given, or
that of a published run of the same kind. `training_cost` is the one place to change then.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalogue.chips import Chip, chip
from planner.catalogue.training_runs import TrainingRate, training_rate

__all__ = ["PRETRAIN_FLOP", "Trainer", "TrainingCost", "trainer", "training_cost"]

# FLOP per parameter and token: two forward, four backward; attention over the context aside.
PRETRAIN_FLOP = 6.0


@dataclass(frozen=True)
class Trainer:
    """One chip as training uses it.

    Attributes
    ----------
    price
        Rent [USD/(chip*s)].
    mfu
        Share of the dense peak in `dtype` that is used.
    rate
        The published run that the share was taken from; None where it was given.
    """

    chip: Chip
    dtype: str
    mfu: float
    price: float
    rate: TrainingRate | None = None

    @property
    def delivered(self) -> float:
        """Arithmetic of one chip [flop/s]."""
        return self.mfu * self.chip.peak(self.dtype)

    @property
    def usd_per_flop(self) -> float:
        """Price of the arithmetic [USD/flop]."""
        return self.price / self.delivered

    @property
    def borrowed(self) -> str | None:
        """The chip whose MFU is taken in place of this one's own, if any."""
        lent = self.rate is not None and self.rate.chip != self.chip.name
        return self.rate.chip if lent and self.rate is not None else None


@dataclass(frozen=True)
class TrainingCost:
    """Arithmetic [flop], time of all chips together [chip*s] and rent [USD] of one phase."""

    flop: float
    chip_seconds: float
    usd: float

    def chips(self, seconds: float) -> float:
        """Chips that finish in this time."""
        return self.chip_seconds / seconds


def trainer(
    on: Chip, price: float, dtype: str, mfu: float | None, *, sparse: bool = False
) -> Trainer:
    """A chip that trains at a given share of its peak, or at a published run's.

    Raises
    ------
    CatalogueError
        If no share is given and no run of the kind is known, or the chip lacks the dtype.
    """
    if mfu is not None:
        return Trainer(on, dtype, mfu, price)
    rate = training_rate(on, dtype, sparse=sparse)
    return Trainer(on, dtype, rate.mfu(chip(rate.chip).peak(dtype)), price, rate)


def training_cost(
    n_active: float, tokens: float, by: Trainer, flop_per_token: float = PRETRAIN_FLOP
) -> TrainingCost:
    """What it costs to train `n_active` parameters on `tokens`.

    `flop_per_token` counts per parameter: 6 for pre-training, 2 to 6 for reinforcement learning.
    """
    flop = flop_per_token * n_active * tokens
    return TrainingCost(flop, flop / by.delivered, flop * by.usd_per_flop)
