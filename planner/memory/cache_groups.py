"""Blocks of an engine's KV cache: groups of layers, pages, and the blocks that a request takes.

vLLM splits layers that keep the same into groups of equal length, so that one block of any group is
as large as one of any other; the last group of a kind is filled up. So a window costs as much as
its share of groups says, not as its bytes do. Source: vllm/v1/core/kv_cache_utils.py at 001cabc1.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.memory.room_equations import solved

BLOCK = 16  # tokens of one block, vllm/config/cache.py
LONGER = 1.5  # ratio of largest to smallest kind [layers]; below it groups have the largest size
INDEX = 132.0  # bytes per token and layer of an indexer's keys: 128 of 8 bits, 4 of their scale


@dataclass(frozen=True)
class LayerCache:
    """Layers of one pipeline stage with equal caches (keys and values, or a state).

    `bytes` are those of one layer on one chip: per token [byte/token], or of a state, whatever the
    length [byte]. A `window` bounds what stays [token]; None for all.
    """

    layers: int
    bytes: float
    window: int | None = None
    state: bool = False

    def bytes_of(self, context: float | np.ndarray) -> np.ndarray:
        """Bytes of a request of `context` tokens, not rounded to blocks; shape of `context`."""
        tokens = np.minimum(context, 1 if self.state else self.window or np.inf)
        return np.asarray(self.layers * self.bytes * tokens)


@dataclass(frozen=True)
class CacheGroups:
    """Groups of equally many `deep` layers: how many hold all, hold windows, hold a state.

    A block of `tokens` takes `page` [byte] in one group. `exact` is false for kinds of layers that
    no rule was read for, whose bytes are added up. Any request takes the `least` blocks. Where
    every kind has pages of its own, those of windows are so `wide` in pages of one byte. In a
    pool by token windows share room with whole contexts, for a `window_share` of their tokens.
    """

    page: float
    tokens: int
    full: int
    windows: tuple[int, ...] = ()
    wide: tuple[int, ...] = ()
    states: int = 0
    exact: bool = True
    drafts: int = 0
    least: int = 0
    window_share: float = 0.0

    @property
    def widths(self) -> tuple[int, ...]:
        """Pages per block of each window's group; 1 where `wide` is empty."""
        return self.wide or (1,) * len(self.windows)

    def blocks(self, room: float) -> int:
        """Blocks that fit in `room` [byte]; 0 if `room` is negative."""
        return int(solved("blocks", {"M_room": max(room, 0.0), "M_group": self.page})["n_block"])

    def of_request(self, context: int, step: int) -> int:
        """Blocks of one request of `context` tokens, where a step has at most `step` tokens."""
        return int(self.of_requests(np.array(context), step))

    def of_requests(self, contexts: np.ndarray, step: int) -> np.ndarray:
        """Blocks of one request of each of some contexts [token], of the same shape."""
        whole = -(-contexts // self.tokens)
        blocks = self.full * whole + self.states * (1 + self.drafts)
        for window, wide in zip(self.windows, self.widths, strict=True):
            if self.window_share:
                least = np.minimum(contexts, window + step - 1) / self.window_share
                blocks = np.maximum(blocks, np.ceil(least))
            else:
                blocks = blocks + wide * np.minimum(self.most(window, step), whole + 1)
        return np.maximum(blocks, self.least)

    def requests(self, room: float, context: int, step: int) -> float:
        """Requests of `context` tokens that fit in `room` [byte]; a real number."""
        return self.blocks(room) / max(self.of_request(context, step), 1)

    def longest(self, room: float, step: int) -> int:
        """Length of the longest request that fits alone in `room` [token]; 0 if no request fits."""
        left = self.blocks(room)
        lengths = range(0, (left + 1) * self.tokens, self.tokens)
        fits = bisect_right(lengths, left, key=lambda context: self.of_request(context, step))
        return max(fits - 1, 0) * self.tokens

    def most(self, window: int, step: int) -> int:
        """Maximum blocks of a request in one window's group, with the `step` tokens of a step."""
        return -(-(window - 1 + step) // self.tokens) + 1


def cache_groups(
    caches: Sequence[LayerCache], *, hybrid: bool = True, drafts: int = 0, own_pages: bool = False
) -> CacheGroups:
    """The groups of a model's layers.

    Parameters
    ----------
    hybrid : Whether kinds of layers are told apart; else every layer holds the whole context.
    drafts : Tokens drafted per step, for each of which a state is held beside.
    own_pages : Whether layers with pages of different sizes have each its own, in one pool.
    """
    states = [x for x in caches if x.state]
    attention = [x if hybrid else replace(x, window=None) for x in caches if not x.state]
    if not attention:
        page = sum(x.layers * x.bytes for x in states)
        return CacheGroups(page, BLOCK, 0, states=1, drafts=drafts)
    if len({x.bytes for x in attention}) > 1:
        if own_pages and not states and _one_kind_a_layer(attention):
            wide = {x.window: round(BLOCK * x.layers * x.bytes) for x in attention}
            full = wide.pop(None, 0)
            return CacheGroups(1.0, BLOCK, full, tuple(x for x in wide if x), tuple(wide.values()))
        # Layers with pages of different sizes: one pool, each its own page, a block of all of them.
        # Exact if all layers hold the whole context (a cache and its index); else every layer is
        # counted as if it did.
        page = BLOCK * sum(x.layers * x.bytes for x in attention)
        exact = all(x.window is None for x in attention) and not states
        pages = math.ceil(sum(x.layers * x.bytes for x in states) / page)
        return CacheGroups(page, BLOCK, 1, states=pages, exact=exact, drafts=drafts)
    page, tokens = attention[0].bytes, BLOCK
    if states:
        largest = max(x.bytes for x in states)
        tokens = max(BLOCK, math.ceil(largest / page / BLOCK) * BLOCK)
    counts: Counter[int | None] = Counter()
    for x in attention:
        counts[x.window] += x.layers
    every = [*counts.values(), *(x.layers for x in states)]
    deep = max(every) if max(every) < LONGER * min(every) else min(every)
    windows = [w for w, n in counts.items() if w is not None for _ in range(-(-n // deep))]
    return CacheGroups(
        deep * page * tokens,
        tokens,
        full=-(-counts[None] // deep),
        windows=tuple(windows),
        states=sum(-(-x.layers // deep) for x in states),
        drafts=drafts,
    )


def _one_kind_a_layer(attention: Sequence[LayerCache]) -> bool:
    kinds = {(x.window, x.bytes) for x in attention}
    return len(kinds) == len({window for window, _ in kinds}) == 2


def pooled_groups(
    caches: Sequence[LayerCache], window_share: float = 1.0, state_share: float = 0.0
) -> CacheGroups:
    """A pool by token: windows hold a share of the tokens that whole contexts do, states a share of
    the memory that caches do. Source: SGLang, model_runner_kv_cache_mixin.py at 001ccef0.
    """
    whole = sum(x.layers * x.bytes for x in caches if x.window is None and not x.state)
    bounded = sum(x.layers * x.bytes for x in caches if x.window is not None)
    token = whole + (window_share if whole else 1.0) * bounded
    state, least = sum(x.layers * x.bytes for x in caches if x.state), 0
    if state and state_share:
        token *= 1 + state_share
        least = math.ceil(state * (1 + 1 / state_share) / token)
    windows = tuple({x.window for x in caches if x.window}) if whole else ()
    exact = not windows or len({x.bytes for x in caches if x.window is None and not x.state}) == 1
    share = window_share if windows else 0.0
    return CacheGroups(token, 1, 1, windows, exact=exact, least=least, window_share=share)
