"""How the chips of one system are shared by two pools, domain by domain.

The first pool fills domains from one end and the second takes what is left, the rest of the last
domain that the first began included; a stage lies inside one domain or fills whole ones. Chips
that make no whole domain at the end serve the second pool only, unless there are no others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ChipSplit:
    """Room that a replica takes: chips of a stage, stages, chips of a domain; arrays alike."""

    stage: np.ndarray
    stages: np.ndarray
    domain: np.ndarray

    def take(self, rows: np.ndarray) -> ChipSplit:
        """The same of some rows."""
        return ChipSplit(self.stage[rows], self.stages[rows], self.domain[rows])

    @property
    def chips(self) -> np.ndarray:
        """Chips of one replica."""
        return self.stage * self.stages


def replicas_most(chips: np.ndarray, room: ChipSplit) -> np.ndarray:
    """Most replicas that `chips` chips of one pool alone hold."""
    domain = room.domain
    inside = chips // domain * (domain // room.stage) + chips % domain // room.stage
    return np.where(room.stage <= domain, inside, chips // room.stage) // room.stages


def replicas_left(
    chips: np.ndarray, first: ChipSplit, count: np.ndarray, second: ChipSplit
) -> np.ndarray:
    """Most replicas of the second pool beside `count` of the first, on `chips` chips in all.

    Negative where the first pool alone does not fit. Both rooms are of one system.
    """
    domain = np.minimum(first.domain, chips)
    whole, rest = chips // domain, chips % domain
    stages = count * first.stages
    inside = first.stage <= domain
    stages_of_domain = np.where(inside, domain // np.minimum(first.stage, domain), 1)
    full = np.where(inside, stages // stages_of_domain, stages * (first.stage // domain))
    begun = np.where(inside, stages % stages_of_domain * first.stage, 0)
    left = whole - full - (begun > 0)
    size = second.stage
    fits = size <= domain
    small = np.where(fits, domain // np.minimum(size, domain), 0)
    beside = np.where(begun > 0, (domain - begun) // size, 0) + rest // size
    stages_left = np.where(fits, left * small + beside, left // np.maximum(size // domain, 1))
    return np.where(left < 0, -1, stages_left // second.stages)
