"""Between how many chips a cache moves: a layout that sends it, for each number that receives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from planner.problems.serving.search.sizing import PhaseLayouts


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
        """A cache moves at the pace of the fewer chips: beyond what a layout sends from, more
        receivers make no difference, and each layout is sized once for each number that does."""
        fewer = np.minimum(sending[None, :], numbers[:, None])
        most = int(fewer.max(initial=0)) + 1
        keys, back = np.unique(np.arange(sending.size) * most + fewer, return_inverse=True)
        return cls(numbers, keys // most, keys % most, back.reshape(fewer.shape))

    def grouped(self, prefill: PhaseLayouts) -> PhaseLayouts:
        """Sized keys as layouts, one group for each number of receiving chips."""
        # A key may be there at several batches: each of its entries is placed by itself.
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
