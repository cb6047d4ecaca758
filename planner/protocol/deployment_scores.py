"""How far answers are from published deployments: one record for each, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class DeploymentScore:
    """A published deployment and the answer to the same question.

    Attributes
    ----------
    id, source, setting : of the row.
    measured, estimate, low, high : tokens per second of all chips, or seconds per token where
        `quantity` is `token`; None where nothing was found.
    quantity : `output`, `input` or `total` tokens per second, or `token`.
    layout : what runs, in words.
    free, assumed : what was chosen freely, and what was taken for what nobody tells.
    outside : what of the question the fit of the profile never saw.
    refused : why there is no answer to a deployment that ran; empty where there is one.
    """

    id: str
    source: str
    setting: str
    quantity: str
    measured: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    layout: str = ""
    free: tuple[str, ...] = ()
    assumed: str = ""
    outside: str = ""
    refused: str = ""

    @property
    def ratio(self) -> float | None:
        """Predicted over measured speed; a time per token is turned round. [1]"""
        if self.estimate is None:
            return None
        speed = self.measured / self.estimate
        return speed if self.quantity == "token" else 1 / speed

    @property
    def inside(self) -> bool:
        """Whether the published value lies in the band."""
        low, high = self.low, self.high
        return low is not None and high is not None and low <= self.measured <= high


@dataclass(frozen=True)
class DeploymentScores:
    """The deployments of one table, in their order."""

    table: str
    rows: tuple[DeploymentScore, ...] = field(default=())

    @property
    def inside(self) -> int:
        """How many lie in their bands."""
        return sum(row.inside for row in self.rows)

    @property
    def infeasible(self) -> int:
        """How many of them, all of which ran, have no answer."""
        return sum(row.estimate is None for row in self.rows)

    @property
    def median_error(self) -> float:
        """The median of the logarithm of predicted over measured, its sign left off. [1]"""
        return median_log([row.ratio for row in self.rows if row.ratio is not None])


def median_log(ratios: Sequence[float]) -> float:
    """The median of |log ratio|, not a number of none. [1]"""
    return median(abs(math.log(ratio)) for ratio in ratios) if ratios else math.nan
