"""Chips that a KV cache moves between: a sending layout, for each number that receives.

Which layouts of two pools one engine runs together, as groups within which they are paired.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.problems.serving.search.sizing import PhaseLayouts
from planner.problems.serving.step.runnable import tied_stages


def by_engine(prefill: PhaseLayouts, decode: PhaseLayouts) -> tuple[PhaseLayouts, PhaseLayouts]:
    """Both pools once for each engine, which runs the two of a pair or neither: its groups.

    Of an engine that moves caches into one stage or into as many as they come from, layouts that
    prefill stand beside either: once in the group of one stage, once in that of their own.
    """
    every = [each.engines for each in (prefill, decode)]
    tied = tied_stages() if (decode.stages > 1).any() else 0
    if not all(x.size for x in every) or np.bitwise_and.reduce(np.concatenate(every)) & ~tied:
        return prefill, decode
    either = int(np.bitwise_or.reduce(every[0]) & np.bitwise_or.reduce(every[1]))
    groups = [
        (number, int(stages))
        for number in range(either.bit_length())
        if either >> number & 1
        for stages in (np.unique(decode.stages) if tied >> number & 1 else (0,))
    ]
    runs, stages = np.array(groups, dtype=np.int64).reshape(-1, 2).T

    def split(layouts: PhaseLayouts, least: int) -> PhaseLayouts:
        alike = (stages <= least) | (layouts.stages[:, None] == stages)
        of, place = np.nonzero((layouts.engines[:, None] >> runs & 1).astype(bool) & alike)
        return replace(layouts.take(of), group=layouts.group[of] * runs.size + place)

    return split(prefill, 1), split(decode, 0)


@dataclass(frozen=True)
class ReceivingChips:
    """Layouts that send a cache, once for each number of chips it moves between, shape (n_keys,).

    `keys` are those of each of the `numbers` of receiving chips and each layout, shape
    (n_numbers, n_layouts).
    """

    numbers: np.ndarray
    layouts: np.ndarray
    chips: np.ndarray
    keys: np.ndarray

    @classmethod
    def of(cls, sending: np.ndarray, numbers: np.ndarray) -> ReceivingChips:
        """Keys per layout and distinct min(sending, receiving) chips, which limit the transfer."""
        fewer = np.minimum(sending[None, :], numbers[:, None])
        most = int(fewer.max(initial=0)) + 1
        keys, back = np.unique(np.arange(sending.size) * most + fewer, return_inverse=True)
        return cls(numbers, keys // most, keys % most, back.reshape(fewer.shape))

    def grouped(self, prefill: PhaseLayouts) -> PhaseLayouts:
        """Sized keys as layouts, one group for each number of receiving chips."""
        # A key may occur at several batches; each of its entries gets a row.
        number, layout = (each.ravel() for each in np.indices(self.keys.shape))
        order = np.argsort(prefill.rows, kind="stable")
        begin, end = (
            np.searchsorted(prefill.rows[order], self.keys.ravel(), side=side)
            for side in ("left", "right")
        )
        count = end - begin
        wanted = np.repeat(begin - np.cumsum(count) + count, count) + np.arange(count.sum())
        sized = prefill.take(order[wanted])
        return replace(
            sized, rows=np.repeat(layout, count), group=self.numbers[np.repeat(number, count)]
        )
