"""A model as a list of layers, each a mixer and a feed-forward part made of named weights.

Every weight keeps the path it has in the published checkpoint, because quantised checkpoints say
by path which matrices they leave alone. What a token carries from step to step is a `Cache`
(grows with the context, or stops at a window) or a `State` (constant per sequence).

What a model keeps per sequence and reads per step is summed by kind of cache.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from planner.architecture.quantization import DTYPES, Precision, Quantization

GROUPS = ("attention", "dense_ffn", "shared", "routed", "embedding", "head", "router", "other")


@dataclass(frozen=True, slots=True)
class Weight:
    """One parameter tensor (or one per expert, taken together).

    `module` is the checkpoint path below the layer, with expert 0 standing for all of them;
    `count` the parameters stored, `used` those one token passes through; `linear` marks a matrix
    that a quantiser of linear layers converts.
    """

    module: str
    group: str
    count: int
    used: int
    linear: bool


@dataclass(frozen=True, slots=True)
class Cache:
    """KV cache entries of one layer per token of context.

    `elements` per entry, one entry per `ratio` tokens; a token attends to at most `limit` tokens'
    worth of entries (None: all); `stored` says whether entries beyond the limit stay in memory.
    `flop` and `flop_prefill` are FLOP per (query, entry) pair in decode and in prefill; `heads`
    is over how many heads the entries can be sharded.
    """

    kind: str
    elements: int
    heads: int
    flop: int
    flop_prefill: int
    limit: int | None = None
    stored: bool = True
    ratio: int = 1


@dataclass(frozen=True, slots=True)
class State:
    """Fixed-size state of one layer per sequence: recurrent elements and convolution tail.

    `flop` is the arithmetic of one token's update of, and read from, the recurrent state.
    """

    recurrent: int
    tail: int
    flop: int
    precision: Precision = DTYPES["fp32"]

    @property
    def bytes(self) -> Fraction:
        """Memory of the state, the tail in 16 bits [byte]."""
        return self.recurrent * self.precision.bytes + self.tail * DTYPES["bf16"].bytes


@dataclass(frozen=True, slots=True)
class Mixer:
    """The part of a layer that mixes tokens: its kind, weights, caches and state."""

    kind: str
    weights: tuple[Weight, ...]
    caches: tuple[Cache, ...] = ()
    state: State | None = None
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Experts:
    """Routing of a sparse feed-forward part: how many experts, how many chosen, how many shared.

    `idle` more experts have no weights (zero, copied or constant outputs): of the `active` that a
    token is sent to, as many as their share of all are idle on average.
    `width` is the hidden width that travels to the experts and back. Routing first picks
    `groups_active` of `groups` equal groups of experts, and then experts of these alone.
    """

    routed: int
    active: int
    shared: int
    width: int
    groups: int = 1
    groups_active: int = 1
    idle: int = 0

    @property
    def passed(self) -> float:
        """Experts with weights that a token passes through on average."""
        if not self.idle:
            return self.active
        return self.active * self.routed / (self.routed + self.idle)

    def ends(self, routed: int, all_used: int) -> tuple[int, int]:
        """Minimum and maximum parameters per token; the mean is `all_used`, `routed` in experts."""
        if not self.idle:
            return all_used, all_used
        fewest, rest = max(0, self.active - self.idle), all_used - routed
        low, high = (rest + routed * n / self.passed for n in (fewest, self.active))
        return round(low), round(high)


@dataclass(frozen=True, slots=True)
class FeedForward:
    """The part of a layer that treats each token alone; `experts` is None for a dense one."""

    kind: str
    weights: tuple[Weight, ...]
    experts: Experts | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """A mixer, a feed-forward part (either may be missing in hybrids) and the norms around them.

    Parts that are `parallel` read the same vector, and their outputs are added up together.
    """

    mixer: Mixer | None
    feed_forward: FeedForward | None
    weights: tuple[Weight, ...] = ()
    parallel: bool = False

    def all_weights(self) -> Iterator[Weight]:
        """Every weight of the layer."""
        if self.mixer is not None:
            yield from self.mixer.weights
        if self.feed_forward is not None:
            yield from self.feed_forward.weights
        yield from self.weights

    @property
    def parameters(self) -> int:
        """Parameters that the layer stores."""
        return sum(weight.count for weight in self.all_weights())


@dataclass(frozen=True, slots=True)
class PredictionBlocks:
    """Blocks for multi-token prediction, left out of every total.

    `parameters` counts all of them without a copy of the embedding or the head; None where the
    block's make-up is not published precisely enough to count.
    """

    blocks: int
    parameters: int | None


@dataclass(frozen=True, slots=True)
class Model:
    """A language model: its layers, the tensors outside them, and its weights' formats.

    `weights` are the tensors outside the layers (embedding, head, final norm). `excluded` names
    the parts of the checkpoint that are not counted (vision towers, prediction blocks), `warnings`
    what of its configuration was not understood and taken not to matter.
    """

    name: str
    family: str
    hidden: int
    vocab: int
    q_heads: int
    layers: tuple[Layer, ...]
    weights: tuple[Weight, ...]
    tied: bool
    max_context: int | None
    precision: Precision = DTYPES["bf16"]
    quantization: Quantization = field(default_factory=Quantization)
    prediction: PredictionBlocks | None = None
    excluded: tuple[str, ...] = ()
    source: str = ""
    warnings: tuple[str, ...] = ()

    def __hash__(self) -> int:
        # Every question looks its model's counts up: layers, which are many, are left to `==`.
        return hash((self.name, self.family, self.hidden, self.vocab, self.q_heads, self.source))

    @property
    def states(self) -> list[State]:
        """Fixed-size states per sequence, of the layers that have a state."""
        mixers = [layer.mixer for layer in self.layers if layer.mixer is not None]
        return [mixer.state for mixer in mixers if mixer.state is not None]

    def all_weights(self) -> Iterator[tuple[str, Weight]]:
        """Every weight with its full path in the checkpoint."""
        for weight in self.weights:
            yield weight.module, weight
        for index, layer in enumerate(self.layers):
            for weight in layer.all_weights():
                yield f"layers.{index}.{weight.module}", weight


def matrix(module: str, group: str, rows: int, columns: int) -> Weight:
    """A linear layer's matrix that every token multiplies with."""
    return Weight(module, group, rows * columns, rows * columns, True)


def vector(module: str, group: str, count: int) -> Weight:
    """A tensor no quantiser touches: a norm, a bias, a convolution, a decay."""
    return Weight(module, group, count, count, False)


# Kinds of one vector a token that all heads share, in place of keys and values by head: whole, the
# best of it picked by an indexer, or several tokens in one entry.
LATENT = frozenset({"latent", "sparse", "compressed", "compressed_sparse"})


# Kinds that engines cut over chips by tokens; windows, index keys, compressed entries are copied.
CUT_BY_TOKENS = frozenset({"full", "latent", "sparse", "block_sparse"})


@dataclass(frozen=True, slots=True)
class CacheKind:
    """One kind of cache, summed over the layers that have it.

    `kind` is full, latent, window, chunked, sparse, block_sparse, compressed, compressed_sparse or
    index.
    `elements_per_token` and `bytes_per_token` [byte/token] are sums over its `layers`, with
    compression counted in; `limit` bounds the tokens one query attends to (None: all of them);
    `grows` says whether what lies beyond the limit stays in memory. The FLOP are those of one
    query and one cached token that is within the limit (a chunked layer is counted at its full
    chunk, the most it reads): `flop_per_cached_token` in decode,
    `flop_per_pair_prefill` in prefill [flop]. `heads` is over how many heads it can be sharded.
    `asked_elements` are those of a position's queries and results in decode, over its layers: two
    FLOP each per entry.
    """

    kind: str
    layers: int
    elements_per_token: float
    bytes_per_token: float
    limit: int | None
    grows: bool
    flop_per_cached_token: float
    flop_per_pair_prefill: float
    heads: int
    asked_elements: float = 0.0

    @property
    def latent(self) -> bool:
        """True if an entry is one vector shared by all heads."""
        return self.kind in LATENT

    @property
    def cut(self) -> bool:
        """True if chips that hold equal heads can shard the cache by tokens."""
        return self.kind in CUT_BY_TOKENS

    def reach(self, context: float) -> float:
        """Tokens that a query attends to, at most `limit` of the `context` tokens [token]."""
        return context if self.limit is None else min(context, self.limit)

    def stored_bytes(self, context: float) -> float:
        """Memory one sequence of `context` tokens takes [byte]."""
        tokens = context if self.grows else self.reach(context)
        return self.bytes_per_token * tokens

    def read_bytes(self, context: float) -> float:
        """Bytes one decode step reads for one sequence of `context` tokens [byte]."""
        return self.bytes_per_token * self.reach(context)

    def pairs(self, tokens: float) -> float:
        """(query, key) pairs when a prompt of `tokens` is computed causally from nothing."""
        reach = self.reach(tokens)
        return reach * (reach + 1) / 2 + (tokens - reach) * reach


def uncut_share(caches: Iterable[CacheKind]) -> float:
    """Share of the bytes of a token in these caches that is not cut by tokens [1]."""
    sizes = [(one.bytes_per_token, one.cut) for one in caches]
    copied = sum(size for size, cut in sizes if not cut)
    return copied / sum(size for size, _ in sizes) if copied else 0.0


def cache_kinds(layers: Iterable[Layer], precision: Precision) -> tuple[CacheKind, ...]:
    """The caches of these layers, equal ones taken together, stored as `precision`."""
    counted: dict[Cache, int] = {}
    for layer in layers:
        for cache in layer.mixer.caches if layer.mixer is not None else ():
            counted[cache] = counted.get(cache, 0) + 1
    return tuple(_kind(cache, count, precision) for cache, count in counted.items())


def _kind(cache: Cache, count: int, precision: Precision) -> CacheKind:
    elements = Fraction(count * cache.elements, cache.ratio)
    decode, prefill = (
        _number(Fraction(count * flop, cache.ratio)) for flop in (cache.flop, cache.flop_prefill)
    )
    sizes = (count, _number(elements), float(elements * precision.bytes))
    limit, stored, heads, queried = cache.limit, cache.stored, cache.heads, count * cache.flop / 2
    return CacheKind(cache.kind, *sizes, limit, stored, decode, prefill, heads, queried)


def _number(value: Fraction) -> float:
    return value.numerator if value.denominator == 1 else float(value)


def layer_kinds(model: Model) -> list[dict[str, object]]:
    """Layers by kind in order of first appearance: mixer, window, feed-forward part, count."""
    parts = ((layer.mixer, layer.feed_forward) for layer in model.layers)
    kinds = Counter((m and m.kind, m and m.window, ffn and ffn.kind) for m, ffn in parts)
    names = ("mixer", "window", "ffn")
    return [{**dict(zip(names, kind, strict=True)), "count": n} for kind, n in kinds.items()]
