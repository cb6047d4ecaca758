"""Which works are timed on a device, and in what order: the sizes that serving meets.

What matters most comes first, so that a short budget still leaves a usable file. Sizes follow from
the device: arrays and caches are several times its last on-chip level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product

from planner.benchmark.device import Facts
from planner.benchmark.kernels import WIDTH, Attention, KernelLaunch, Product, Stream, Timed

BEYOND = 4  # times the last on-chip level, and nothing of it is still there
LEAST = 64 * 2**20  # [byte] of an array, where that level is small
DECODE = (1, 8, 16, 32, 64, 128, 256, 512)  # tokens of a decode step
PREFILL = (1024, 2048, 4096, 8192)
# (n, k) of weights: a square one, Llama-3.1-70B's gate and up of a half and down, an expert of
# DeepSeek-V3
WEIGHTS = ((8192, 8192), (28672, 8192), (8192, 28672), (2048, 7168))
CPU_WEIGHTS = ((2048, 2048), (4096, 1024))
INT8_TOKENS = 32  # fewer than 17 rows are refused by CUDA's product of whole numbers
CONTEXTS = (1024, 8192, 65536)
HEADS, KV_HEADS, HEAD_DIM = 64, 8, 128  # Llama-3.1-70B
SMALLEST_MESSAGE, LARGEST_MESSAGE = 2**13, 2**28  # [byte]


def suite(facts: Facts, *, quick: bool = False) -> tuple[Timed, ...]:
    """The works for one device, most important first; an all-reduce is not among them."""
    processor = facts.kind == "cpu"
    weights = CPU_WEIGHTS if processor else WEIGHTS
    decode = DECODE[::4] if quick else DECODE
    prefill = (512,) if processor else (PREFILL[-2:-1] if quick else PREFILL)
    works: list[Timed] = [*_streams(facts, 1), KernelLaunch("call")]
    if facts.kind == "cuda":
        works.append(KernelLaunch("graph"))
    works += _products(facts, (*prefill, *decode), weights[:1])
    works.append(_attention(facts, CONTEXTS[1]))
    if quick:
        return tuple(dict.fromkeys(works))
    works += [_attention(facts, context) for context in CONTEXTS]
    works += [*_streams(facts, 4), *_streams(facts, 16)]
    works += _products(facts, (prefill[-1], *decode[::2]), weights[1:])
    return tuple(dict.fromkeys(works))


def message_sizes(*, quick: bool = False) -> tuple[int, ...]:
    """Bytes of the all-reduces that are timed [byte]."""
    steps = int(math.log2(LARGEST_MESSAGE // SMALLEST_MESSAGE))
    return tuple(SMALLEST_MESSAGE << step for step in range(0, steps + 1, 5 if quick else 1))


def _streams(facts: Facts, times: int) -> list[Stream]:
    """Read, copy and triad over arrays `times` as large as need be."""
    least = max(2 * BEYOND * facts.cache, LEAST)
    size = times * 2 ** math.ceil(math.log2(least))
    return [Stream(kind, size) for kind in ("read", "copy", "triad")]


def _products(
    facts: Facts, tokens: Iterable[int], shapes: Iterable[tuple[int, int]]
) -> Iterator[Product]:
    for (n, k), m, dtype in product(shapes, tokens, facts.dtypes):
        if dtype == "int8" and m < INT8_TOKENS:
            continue
        yield _product(facts, dtype, m, n, k)


def _product(facts: Facts, dtype: str, m: int, n: int, k: int) -> Product:
    """Weights of a decode step come from memory; a prompt's are read once for so many tokens."""
    work_bytes = n * k * WIDTH[dtype]
    copies = 1 if m > DECODE[-1] else math.ceil(BEYOND * facts.cache / work_bytes)
    return Product(dtype, m, n, k, copies)  # type: ignore[arg-type]


def _attention(facts: Facts, context: int) -> Attention:
    """As many sequences as make the cache several times the last on-chip level."""
    dtype = "fp32" if facts.kind == "cpu" else "bf16"
    work_bytes = Attention(dtype, 1, context, HEADS, KV_HEADS, HEAD_DIM).amount  # type: ignore[arg-type]
    batch = math.ceil(max(2 * BEYOND * facts.cache, LEAST) / work_bytes)
    return Attention(dtype, batch, context, HEADS, KV_HEADS, HEAD_DIM)  # type: ignore[arg-type]
