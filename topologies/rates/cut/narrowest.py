"""The search for the narrowest cut: the least of exit(S) over the members in S."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topologies.rates.cut.max_flow import Flows

__all__ = ["Search"]

# Two cuts whose ratios differ by less are the same: below this lies the noise of sums of floats.
NOISE = 1e-12


class Search:
    """Lower the rate until no cut is narrower.

    At a trial rate x every member is a source of x, and each target must be able to take in x
    times the number of members. If it cannot, the minimum cut has a ratio below x, which is the
    next trial. Every set that is still suspected holds all targets found satisfied so far, so
    these may then supply without limit, and many targets can be satisfied in one flow.

    Attributes
    ----------
    rate, inside
        The least ratio found, and the nodes on the near side of that cut.
    passed
        Near sides of all cuts that were the narrowest for a while.
    """

    def __init__(self, flows: Flows) -> None:
        self.flows, self.arcs = flows, flows.arcs
        arcs = self.arcs
        self.count = int(arcs.is_member.sum())
        n = arcs.nodes.size
        into = np.bincount(arcs.head, arcs.rate, n).astype(float)
        into[~arcs.is_member] = np.inf
        worst = int(np.argmin(into))
        self.inside = np.ones(n, dtype=bool)
        self.inside[worst] = False
        self.rate = self._ratio(self.inside)
        self.passed = [self.inside]

    def run(self, classes: list[NDArray[np.int64]]) -> None:
        """Find the narrowest cut, from members in classes of which the first stands for all."""
        pending, size = classes, 1
        satisfied = np.zeros(self.arcs.nodes.size, dtype=bool)
        while pending and self.rate > 0:
            batch, later = pending[:size], pending[size:]
            targets = np.array([same[0] for same in batch])
            filled, inside = self.flows.fill(self.rate, targets, satisfied)
            if self._lower(inside):
                continue
            # A single target that is short by less than the noise counts as satisfied.
            if len(batch) == 1:
                filled[:] = True
            for same, full in zip(batch, filled.tolist(), strict=True):
                if full:
                    satisfied[same] = True
            short = [same for same, full in zip(batch, filled.tolist(), strict=True) if not full]
            pending = later + short
            size = max(1, size // 2) if short else 2 * size

    def _lower(self, inside: NDArray[np.bool_]) -> bool:
        """Take the cut if it is narrower than the narrowest so far."""
        if not (self.arcs.is_member & inside).any() or not (self.arcs.is_member & ~inside).any():
            return False
        ratio = self._ratio(inside)
        if ratio >= self.rate * (1 - NOISE):
            return False
        self.inside, self.rate = inside, ratio
        self.passed.append(inside)
        return True

    def _ratio(self, inside: NDArray[np.bool_]) -> float:
        leaving = inside[self.arcs.tail] & ~inside[self.arcs.head]
        held = int((self.arcs.is_member & inside).sum())
        return float(self.arcs.rate[leaving].sum()) / held
