"""Does it fit, how much context, how many requests, from how many chips and which share?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from planner.architecture.counts import ModelSizes
from planner.memory import engine_room as rooms
from planner.memory.cache_groups import CacheGroups
from planner.memory.engine_table import GIB, ChipMemory, EngineMemory
from planner.memory.held_requests import HeldRequests
from planner.text.wording import wrapped

MAX_CHIPS = 64  # of a replica that is sought


@dataclass(frozen=True)
class FitQuestion:
    """A model, an engine and a chip type, and the requests whose caches must fit at once.

    `requests` of `context` tokens per copy of the engine's cache; `room` is what a log printed, in
    place of the terms [byte], `cache` what the engine is told of the cache's size on a chip, by
    cache_bytes [byte], cache_blocks [block] and cache_tokens [token].
    """

    sizes: ModelSizes
    chip: ChipMemory
    chip_name: str
    engine: EngineMemory
    layout: rooms.ReplicaLayout
    limits: rooms.EngineLimits
    context: int
    requests: int = 1
    room: float | None = None
    cache: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()

    def on(self, tp: int) -> FitQuestion:
        """Return a copy with `tp` ways, over whose chips experts lie as before, or cut less."""
        layout, ways = replace(self.layout, tp=tp), tp * self.layout.dp
        if layout.tp_expert is not None:
            cut = min(layout.tp_expert, ways) if layout.ep > 1 else ways
            layout = replace(layout, ep=ways // cut, tp_expert=cut)
        elif layout.ep > 1:
            layout = replace(layout, ep=ways)
        limits = replace(self.limits, tp=tp, dcp=min(self.limits.dcp, tp))
        return replace(self, layout=layout, limits=limits)

    @cached_property
    def left(self) -> rooms.CacheRoom:
        """The room on the fullest chip."""
        model = rooms.model_memory(self.sizes, self.layout, self.engine)
        room = rooms.engine_room(model, self.chip, self.engine, self.limits)
        if self.room is not None:
            return replace(room, room=self.room, low=self.room, high=self.room)
        return self._as_told(room) if self.cache else room

    def _as_told(self, left: rooms.CacheRoom) -> rooms.CacheRoom:
        """The room of a cache of a size that the engine is told; vLLM's may pass its share."""
        groups, visible = self.groups, self.chip.visible
        token = groups.of_request(self.context, left.tokens) * groups.page / self.context
        byte = {"cache_bytes": 1.0, "cache_blocks": groups.page, "cache_tokens": token}
        size = min(number * byte[unit] for unit, number in self.cache)
        if self.engine.rules["meaning"] != "profiled":
            room, low, high = (min(x, size) for x in (left.room, left.low, left.high))
            return replace(left, room=room, low=low, high=high)
        share, surely = (left.share + (size - x) / visible for x in (left.room, left.low))
        left = replace(left, share=max(left.share, share), outside=(1 - surely) * visible)
        return replace(left, room=size, low=size, high=size)

    @cached_property
    def groups(self) -> CacheGroups:
        """The cache in groups."""
        model = rooms.model_memory(self.sizes, self.layout, self.engine)
        return rooms.engine_groups(model, self.engine, self.limits)

    @property
    def verdict(self) -> str:
        """Fits, probably, or does not fit."""
        return verdict(self.left, self.groups, self.context, self.requests)


@dataclass(frozen=True)
class Fit(HeldRequests):
    """Memory that an engine leaves for the KV cache, and requests that fit; in byte, of one chip.

    `within` are users [seq] or a load [seq/s] of a replica that keeps its promises, where asked.
    """

    model: str
    chip: str
    layout: Mapping[str, int]
    wanted: int
    room: float
    room_range: tuple[float, float]
    token_bytes: float
    ideal_token_bytes: float
    share: float
    largest_share: float
    max_num_seqs: int
    max_num_batched_tokens: int
    visible: float
    terms: Mapping[str, float]
    notes: tuple[str, ...]
    within: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, object]:
        """Plain data for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        low, high = (x / GIB for x in self.room_range)
        longest, ideal = "{:,} to {:,}".format(*self.longest), self.ideal_token_bytes
        layout = ", ".join(f"{key} {x}" for key, x in self.layout.items() if x > 1) or "one chip"
        rows = [
            ("room for the cache", f"{self.room / GIB:.2f} GiB a chip ({low:.2f} to {high:.2f})"),
            ("tokens of cache", f"{self.tokens[0]:,} to {self.tokens[1]:,}"),
            (f"requests of {self.context:,}", f"{self.requests[0]:.1f} to {self.requests[1]:.1f}"),
            ("longest context", f"{longest} tokens, of one request"),
            ("bytes of a token", f"{self.token_bytes:,.0f} in blocks, {ideal:,.0f} alone"),
            ("least chips", "none" if self.least_chips is None else f"{self.least_chips}"),
            ("least share", "none" if self.least_share is None else f"{self.least_share:.3f}"),
        ]
        words = {"users": "in flight, --max-num-seqs at as many", "load": "requests/s"}
        rows += [
            ("within promises", f"{number:,.4g} {words[of]}" if number else f"no {words[of]}")
            for of, number in self.within.items()
        ]
        taken = [(name, f"{x / GIB:.2f} GiB") for name, x in self.terms.items() if x]
        head = f"{self.verdict}: {self.model} on {self.chip}, {layout}, {self.engine}"
        settings = (
            f"share {self.share:.3f} of {self.visible / GIB:.2f} GiB (at most "
            f"{self.largest_share:.3f}), {self.max_num_seqs:,} sequences and "
            f"{self.max_num_batched_tokens:,} tokens a step"
        )
        lines = [head, "", *_aligned(rows), "", settings, *_aligned(taken)]
        notes = [line for note in self.notes for line in wrapped(note)]
        return "\n".join([*lines, "", *notes] if notes else lines)


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    return [f"  {name:<24}{text}" for name, text in rows]


def verdict(room: rooms.CacheRoom, groups: CacheGroups, context: int, requests: int = 1) -> str:
    """`fits`, `probably`, or `does not fit`, of requests of `context` tokens at once.

    Fits where the low end of the room holds them and the engine starts; probably where the band of
    the room is needed.
    """
    if room.share > room.largest:
        return "does not fit"
    need = requests * groups.of_request(context, room.tokens)
    if groups.blocks(room.high) < need or room.high <= 0:
        return "does not fit"
    return "fits" if groups.blocks(room.low) >= need and room.starts else "probably"


def held_requests(question: FitQuestion) -> HeldRequests:
    """Tokens and requests that the KV cache of a replica holds."""
    left, groups, context = question.left, question.groups, question.context
    copies = question.layout.dp  # each with a cache of its own
    ends = [max(end, 0.0) for end in (left.low, left.high)]
    fewest, most = (copies * groups.requests(end, context, left.tokens) for end in ends)
    low, high = (int(copies * end / _ideal(question)) for end in ends)
    shortest, longest = (groups.longest(end, left.tokens) for end in ends)
    return HeldRequests(
        verdict=question.verdict,
        engine=f"{question.engine.title} {'.'.join(map(str, question.engine.version))}",
        context=context,
        tokens=(int(fewest * context), int(most * context)),
        requests=(fewest, most),
        longest=(shortest, longest),
        least_chips=_least_chips(question),
        least_share=_least_share(question),
        tokens_by_layers=None if groups.exact else (low, high),
    )


def memory_fit(question: FitQuestion) -> Fit:
    """The answer to whether a model fits, and how much of it."""
    left, groups, context = question.left, question.groups, question.context
    layout, sizes = question.layout, question.sizes
    return Fit(
        **vars(held_requests(question)),
        model=sizes.name,
        chip=question.chip_name,
        layout={
            "tp": layout.tp,
            "pp": layout.pp,
            "dp_attention": layout.dp,
            "ep": layout.ep,
            "dcp": question.limits.dcp,
        },
        wanted=question.requests,
        room=left.room,
        room_range=(left.low, left.high),
        token_bytes=groups.of_request(context, left.tokens) * groups.page / context,
        ideal_token_bytes=_ideal(question),
        share=left.share,
        largest_share=left.largest,
        max_num_seqs=left.seats,
        max_num_batched_tokens=left.tokens,
        visible=question.chip.visible,
        terms=left.terms,
        notes=(*question.notes, *left.assumed, *_notes(question)),
    )


def _ideal(question: FitQuestion) -> float:
    """Bytes of a request by its layers alone, over its tokens, on one chip [byte/token]."""
    context = question.context
    caches = rooms.model_memory(question.sizes, question.layout, question.engine).caches
    return float(sum(x.bytes_of(context) for x in caches)) / context / question.limits.dcp


def _least_chips(question: FitQuestion) -> int | None:
    """Chips of the smallest replica that fits, tensor parallelism doubled from one."""
    heads = question.sizes.n_q_heads
    for tp in (2**k for k in range(int(math.log2(MAX_CHIPS)) + 1)):
        tried = replace(question.on(tp), room=None)
        need = tried.requests * tried.groups.of_request(tried.context, tried.left.tokens)
        starts = tried.left.share <= tried.left.largest
        if heads % tp == 0 and starts and tried.groups.blocks(tried.left.low) >= need:
            return tried.layout.chips
    return None


def _least_share(question: FitQuestion) -> float | None:
    """Minimum memory share that leaves the room, affine in it; rounded up to 0.001, or None."""
    shares = (0.5, 1.0)
    low, high = (
        replace(question, room=None, cache=(), limits=replace(question.limits, share=x)).left.low
        for x in shares
    )
    need = question.requests * question.groups.of_request(question.context, question.left.tokens)
    slope = (high - low) / (shares[1] - shares[0])
    if slope <= 0:
        return None
    share = shares[0] + (need * question.groups.page - low) / slope
    least = math.ceil(max(share, 0.001) * 1000) / 1000
    return least if least <= question.left.largest else None


def _notes(question: FitQuestion) -> list[str]:
    """Notes for the user: memory at start, layers without a paging rule, model context limit."""
    left, groups = question.left, question.groups
    notes = []
    if left.share > left.largest:
        notes.append(f"does not start: at most a share of {left.largest:.3f} is free at start")
    elif not left.starts:
        notes.append(
            f"{left.outside / GIB:.1f} GiB are outside the share; context, graphs and a first step "
            f"may take {left.beside / GIB:.1f}: a smaller share starts surely"
        )
    if not groups.exact:
        notes.append(
            "layers of several kinds and sizes: no rule was read for how this engine pages them; "
            "counted as if every layer held the whole context"
        )
    longest, alone = question.sizes.max_context, groups.longest(max(left.low, 0.0), left.tokens)
    if longest is not None and max(question.context, alone) > longest:
        notes.append(f"{question.sizes.name} was made for contexts of {longest:,} tokens at most")
    return notes
