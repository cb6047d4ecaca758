"""What a model keeps per sequence and reads per step, by kind of cache."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from planner.architecture.layers import Cache, Layer
from planner.architecture.quantization import Precision

# Kinds of one vector a token that all heads share, in place of keys and values by head: whole, the
# best of it picked by an indexer, or several tokens in one entry.
LATENT = frozenset({"latent", "sparse", "compressed", "compressed_sparse"})


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
        """Whether an entry is one vector that all heads share."""
        return self.kind in LATENT

    def reach(self, context: float) -> float:
        """How many of `context` tokens one query attends to [token]."""
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
