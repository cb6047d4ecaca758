"""Blocks of an engine's KV cache: groups of layers, pages, and the blocks that a request takes.

vLLM splits layers that keep the same into groups of equal length, so that one block of any group is
as large as one of any other; the last group of a kind is filled up. So a window costs as much as
its share of groups says, not as its bytes do. Source: vllm/v1/core/kv_cache_utils.py at 001cabc1.
Layers that compress several tokens to an entry (DeepSeek-V4) share blocks of several page sizes.
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
INDEX_WIDTH, ENTRY_WIDTH = 128, 512  # elements of an indexer's key, of an entry of keys and values
INDEX = 132.0  # bytes per token and layer of an indexer's keys: 128 of 8 bits, 4 of their scale

# Blocks of compressed layers. Sources: vllm/models/deepseek_v4 (compressor.py, attention.py,
# v1/attention/backends/mla/sparse_swa.py) at 0.22 to 0.33.
COMPRESSED_BLOCK, ALIGNMENT = 256, 576  # tokens of a block, bytes of which pages are multiples
ENTRY, WINDOW_SPAN = 584, 64  # bytes of an entry: 448 of 8 bits, 64 of bf16, scales; tokens a block
OVERLAPPING = 4  # the ratio whose windows of two entries overlap; their states have half a block
STATE_BYTES = 8  # value and score of an element, both fp32


@dataclass(frozen=True)
class LayerCache:
    """Layers of one pipeline stage with equal caches (keys and values, or a state).

    `bytes` are those of one layer on one chip: per token [byte/token], or of a state, whatever the
    length [byte]. A `window` bounds what stays [token]; None for all. An entry
    compresses `ratio` tokens.
    """

    layers: int
    bytes: float
    window: int | None = None
    state: bool = False
    ratio: int = 1

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
    Blocks of windows may have `spans` of their own [token]; windows keep what is `in_flight`, the
    tokens of so many steps.
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
    spans: tuple[int, ...] = ()
    in_flight: int = 1

    @property
    def widths(self) -> tuple[int, ...]:
        """Pages per block of each window's group; 1 where `wide` is empty."""
        return self.wide or (1,) * len(self.windows)

    @property
    def window_groups(self) -> list[tuple[int, int, int]]:
        """Window [token], pages per block and tokens per block of each group of windows."""
        spans = self.spans or (self.tokens,) * len(self.windows)
        return [*zip(self.windows, self.widths, spans, strict=True)]

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
        for window, wide, span in self.window_groups:
            if self.window_share:
                least = np.minimum(contexts, window + step - 1) / self.window_share
                blocks = np.maximum(blocks, np.ceil(least))
            else:
                most = self.most(window, step, span)
                blocks = blocks + wide * np.minimum(most, -(-contexts // span) + 1)
        return np.maximum(blocks, self.least)

    def requests(self, room: float, context: int, step: int) -> float:
        """Requests of `context` tokens that fit in `room` [byte]; a real number."""
        return self.blocks(room) / max(self.of_request(context, step), 1)

    def longest(self, room: float, step: int) -> int:
        """Length of the longest request that fits alone in `room` [token]; 0 if no request fits."""
        left = self.blocks(room)
        lengths = range((left + 1) * self.tokens)
        fits = bisect_right(lengths, left, key=lambda context: self.of_request(context, step))
        return max(fits - 1, 0)

    def most(self, window: int, step: int, span: int) -> int:
        """Maximum blocks of `span` tokens that a request has of a window and `step`-token steps."""
        return -(-(window - 1 + self.in_flight * step) // span) + 1

    def scheduled(self, step: float | np.ndarray) -> float | np.ndarray:
        """Blocks of windows for the tokens of the steps in flight, of all requests together."""
        if self.window_share:
            return 0
        return sum(wide * -(-self.in_flight * step // span) for _, wide, span in self.window_groups)


def cache_groups(
    caches: Sequence[LayerCache], *, hybrid: bool = True, drafts: int = 0, own_pages: bool = False
) -> CacheGroups:
    """The groups of a model's layers.

    Args:
        hybrid: Whether kinds of layers are told apart; else every layer holds the whole context.
        drafts: Tokens drafted per step, for each of which a state is held beside.
        own_pages: Whether layers with pages of different sizes have each its own, in one pool.
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


def packed_groups(caches: Sequence[LayerCache], rule: str) -> CacheGroups:
    """Groups of layers that compress contexts, beside windows and the compressors' states.

    A block holds pages of several sizes: `tuples` of one of each size per layer, its `slots` by
    size, or the bytes of the `widest` group. Source: _get_kv_cache_groups_uniform_groups of vLLM
    0.20 to 0.28, _get_packed_kv_cache_groups from 0.29.
    """
    whole, groups = Counter[int](), dict[tuple[int, int], Counter[int]]()
    for x in caches:
        if x.window:
            states = groups.setdefault((x.window, WINDOW_SPAN), Counter())
            states[_page(WINDOW_SPAN * ENTRY)] += x.layers
            continue
        index = x.bytes * x.ratio == INDEX
        whole[_page(COMPRESSED_BLOCK // x.ratio * (INDEX if index else ENTRY))] += x.layers
        span, parts = (4, 2) if x.ratio == OVERLAPPING else (8, 1)
        states = groups.setdefault((parts * x.ratio, span), Counter())
        width = INDEX_WIDTH if index else ENTRY_WIDTH
        states[_page(span * parts * width * STATE_BYTES)] += x.layers
    deep = max(whole.values())
    counts = [max(x.values()) for x in groups.values()]
    pads = {d: sum(-n % d for n in counts) + -deep % d for d in range(deep, max(counts) + 1)}
    repeats = min(reversed(pads), key=pads.__getitem__, default=deep)
    copies = [-(-n // repeats) for n in counts]
    slots = Counter(whole)
    for group, n in zip(groups.values(), copies, strict=True):
        for page, layers in group.items():
            padded = min(x for x in whole if x >= page)
            slots[padded] = max(slots[padded], -(-layers // n))
    page = {
        "tuples": repeats * sum(whole),
        "slots": sum(x * n for x, n in slots.items()),
        "widest": sum(x * n for x, n in whole.items()),
    }[rule]
    windows, spans = zip(
        *(x for x, n in zip(groups, copies, strict=True) for _ in range(n)), strict=True
    )
    return CacheGroups(page, COMPRESSED_BLOCK, 1, windows, spans=spans)


def _page(size: float) -> int:
    return math.ceil(size / ALIGNMENT) * ALIGNMENT


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
