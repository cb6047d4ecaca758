"""Works timed on a chip: one small frozen description for each kind of work.

A description says how much is moved or multiplied; how it is done is the device's own matter.
Sizes are in bytes, products in FLOP (2 per multiply-add).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

Count = Annotated[int, Field(strict=True, ge=1, le=1 << 53)]
Precision = Literal["bf16", "fp16", "fp8", "int8", "fp32"]
Floating = Literal["bf16", "fp16", "fp32"]

WIDTH = {"bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp32": 4}  # bytes of one number
ARRAYS = {"read": 1, "copy": 2, "triad": 3}  # arrays that pass through memory
CACHE_MULTIPLE = 4  # multiple of the last-level cache; reading it evicts all earlier data
ELEMENT_BYTES = 4  # bytes of one number of an all-reduce, fp32


class Closed:
    """A dataclass that is read from a file, where no other keys are taken."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Stream(Closed):
    """Arrays of `size` bytes of fp32 in memory: sums of rows, a copy, or a + s * b."""

    kind: Literal["read", "copy", "triad"]
    size: Count

    @property
    def amount(self) -> int:
        """Bytes that pass through memory [byte]."""
        return ARRAYS[self.kind] * self.size

    needs = amount  # of memory that is taken [byte]

    def __str__(self) -> str:
        return f"{self.kind} of {self.size} bytes"


@dataclass(frozen=True)
class Product(Closed):
    """An (m, k) activation times the transpose of an (n, k) weight, in one precision.

    `copies` of the weight are used in turn, so that none is still in a cache.
    """

    dtype: Precision
    m: Count
    n: Count
    k: Count
    copies: Count = 1

    @property
    def amount(self) -> int:
        """Arithmetic [flop]."""
        return 2 * self.m * self.n * self.k

    @property
    def weight_bytes(self) -> int:
        """Bytes of one weight [byte]."""
        return self.n * self.k * WIDTH[self.dtype]

    @property
    def needs(self) -> int:
        """Memory taken [byte]: weights, activation, and the result in four bytes."""
        return (
            self.copies * self.weight_bytes
            + self.m * self.k * WIDTH[self.dtype]
            + self.m * self.n * 4
        )

    def __str__(self) -> str:
        return f"{self.dtype} product {self.m} x {self.n} x {self.k}"


@dataclass(frozen=True)
class Attention(Closed):
    """One decode step of attention: a query token per sequence against its cached context.

    `heads` of queries share `kv_heads` of keys and values.
    """

    dtype: Floating
    batch: Count
    context: Count
    heads: Count
    kv_heads: Count
    head_dim: Count

    @property
    def amount(self) -> int:
        """Bytes of the cache, each read once [byte]."""
        tokens = self.batch * self.context
        return 2 * tokens * self.kv_heads * self.head_dim * WIDTH[self.dtype]

    @property
    def needs(self) -> int:
        """Memory taken [byte]: the cache, and scores in four bytes where they are written out."""
        return self.amount + 4 * self.batch * self.heads * self.context

    def __str__(self) -> str:
        return f"{self.dtype} attention of {self.batch} sequences over {self.context} tokens"


@dataclass(frozen=True)
class KernelLaunch(Closed):
    """The smallest kernel, one after another: each by a call, or all in one recorded graph."""

    amount: ClassVar[int] = 1  # launches [1]
    needs: ClassVar[int] = 4  # memory taken [byte]

    how: Literal["call", "graph"]

    def __str__(self) -> str:
        return f"launch by {self.how}"


@dataclass(frozen=True)
class AllReduce(Closed):
    """A sum of `size` bytes of fp32 over several devices, on every one of them."""

    backend: Annotated[str, Field(min_length=1, max_length=40)]
    devices: Annotated[int, Field(strict=True, ge=2, le=1 << 20)]
    size: Count

    @property
    def amount(self) -> float:
        """Bytes that each device sends at the least, 2 (n - 1) / n of the message [byte]."""
        return 2 * (self.devices - 1) / self.devices * self.size

    @property
    def needs(self) -> int:
        """Memory taken on each device [byte]."""
        return 2 * self.size

    def __str__(self) -> str:
        return f"all-reduce of {self.size} bytes over {self.devices} devices"


TimedKernelSpec = Stream | Product | Attention | KernelLaunch  # on one device
Work = TimedKernelSpec | AllReduce
