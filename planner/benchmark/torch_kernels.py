"""Works in PyTorch: the kernels that run each, and the samples that check its result.

Weights and caches are filled at random, as real ones are: a chip multiplies zeros with less power
and so at a higher clock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from planner.benchmark.device import TimingSample, UnsupportedByDevice
from planner.benchmark.works import Attention, KernelLaunch, Product, Stream, TimedKernelSpec

if TYPE_CHECKING:
    from torch import Tensor
    from torch import dtype as torch_dtype

ROW_ELEMENTS = 16384  # numbers of one row that is summed
SCALE = 3.0  # of a triad
SAMPLES = 64
SAMPLE_LINES = 8  # checked rows and columns of a product
GRAPH = 100  # launches recorded in one graph


class Run:
    """Callable that runs a work `calls` times; `step` gets the number of runs before it."""

    def __init__(
        self, step: Callable[[int], None], sample: Callable[[int], TimingSample], at_once: int = 1
    ) -> None:
        self._step, self._sample = step, sample
        self.at_once, self.done = at_once, 0

    def __call__(self, calls: int) -> None:
        for number in range(self.done, self.done + calls):
            self._step(number)
        self.done += calls

    def sample(self) -> TimingSample:
        """Part of the last result, with its operands."""
        return self._sample(self.done)


def load_kernel(torch: ModuleType, place: str, work: TimedKernelSpec) -> Run:
    """The work with its operands in the memory of the device `place`."""
    torch.manual_seed(20261121)
    with torch.no_grad():
        if isinstance(work, Stream):
            return _stream(torch, place, work)
        if isinstance(work, Product):
            return _product(torch, place, work)
        if isinstance(work, Attention):
            return _attention(torch, place, work)
        return _launch(torch, place, work)


def _stream(torch: ModuleType, place: str, work: Stream) -> Run:
    rows = max(1, work.size // (4 * ROW_ELEMENTS))
    arrays = {"x": _plane(torch, place, rows)}
    x, seen = arrays["x"], _spaced(rows)
    to = torch.empty(rows, device=place) if work.kind == "read" else torch.empty_like(x)
    scale: dict[str, np.ndarray] = {}
    if work.kind == "read":
        once = partial(torch.sum, x, 1, out=to)
    elif work.kind == "copy":
        once = partial(to.copy_, x)
    else:
        arrays["y"], scale["scale"] = _plane(torch, place, rows), np.array(SCALE)
        once = partial(torch.add, x, arrays["y"], alpha=SCALE, out=to)

    def sample(_: int) -> TimingSample:
        operands = {name: _array(each[seen]) for name, each in arrays.items()}
        return TimingSample(operands | scale, _array(to[seen]))

    return Run(lambda _: once(), sample)


def _plane(torch: ModuleType, place: str, rows: int) -> Tensor:
    across, down = (torch.empty(n, device=place).uniform_(-1, 1) for n in (ROW_ELEMENTS, rows))
    return across[None, :] + down[:, None]


def _product(torch: ModuleType, place: str, work: Product) -> Run:
    dtype = _dtype(torch, work.dtype)
    a = _filled(torch, place, dtype, work.m, work.k)
    weight = _filled(torch, place, dtype, work.n, work.k)
    weights = [weight, *(weight.clone() for _ in range(work.copies - 1))]
    if work.dtype == "int8":
        times: Callable[[Tensor, Tensor], Tensor] = torch._int_mm
    elif work.dtype == "fp8":
        scale = torch.ones((), device=place)
        fast = place.startswith("cuda") and not getattr(torch.version, "hip", None)
        times = partial(
            torch._scaled_mm,
            scale_a=scale,
            scale_b=scale,
            out_dtype=torch.bfloat16,
            use_fast_accum=fast,
        )
    else:
        times = torch.mm
    last: list[Tensor] = [a]

    def step(number: int) -> None:
        last[0] = times(a, weights[number % work.copies].t())

    def sample(done: int) -> TimingSample:
        rows, columns = _spaced(work.m, SAMPLE_LINES), _spaced(work.n, SAMPLE_LINES)
        b = weights[(done - 1) % work.copies]
        operands = {"a": _array(_rows(torch, a, rows)), "b": _array(_rows(torch, b, columns))}
        return TimingSample(operands, _array(last[0][rows][:, columns]))

    return Run(step, sample)


def _attention(torch: ModuleType, place: str, work: Attention) -> Run:
    """Decode attention; query heads that share keys and values are queries of one KV head.

    Without a mask that is the same arithmetic, and the cache is read once, as engines do.
    """
    dtype, shared = _dtype(torch, work.dtype), work.heads // work.kv_heads
    shape = (work.batch, work.kv_heads, work.context, work.head_dim)
    q = _filled(torch, place, dtype, work.batch, work.kv_heads, shared, work.head_dim)
    k, v = (_filled(torch, place, dtype, *shape) for _ in range(2))
    attend = torch.nn.functional.scaled_dot_product_attention
    last: list[Tensor] = [q]

    def step(_: int) -> None:
        last[0] = attend(q, k, v)

    def sample(_: int) -> TimingSample:
        ends = [(0, 0), (work.batch - 1, work.kv_heads - 1)]
        operands = {
            "q": np.stack([_array(q[b, h, 0]) for b, h in ends]),
            "k": np.stack([_array(k[b, h]) for b, h in ends]),
            "v": np.stack([_array(v[b, h]) for b, h in ends]),
        }
        return TimingSample(operands, np.stack([_array(last[0][b, h, 0]) for b, h in ends]))

    return Run(step, sample)


def _launch(torch: ModuleType, place: str, work: KernelLaunch) -> Run:
    """Kernel launches that each add one to a counter, so that a lost launch is detected."""
    count = torch.zeros(1, dtype=torch.int32, device=place)

    def once() -> None:
        count.add_(1)

    def sample(done: int) -> TimingSample:
        return TimingSample({"calls": np.array([float(done)])}, _array(count))

    if work.how == "call":
        return Run(lambda _: once(), sample)
    if not place.startswith("cuda"):
        raise UnsupportedByDevice("graphs are recorded on cuda alone")
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        once()  # libraries are loaded before recording
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        for _ in range(GRAPH):
            once()
    count.zero_()
    return Run(lambda _: graph.replay(), lambda done: sample(done * GRAPH), GRAPH)


def _dtype(torch: ModuleType, name: str) -> torch_dtype:
    names = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "int8": "int8"}
    if name != "fp8":
        return getattr(torch, names[name])
    amd = getattr(torch.version, "hip", None)
    older = amd and "gfx94" in torch.cuda.get_device_properties(0).gcnArchName
    return torch.float8_e4m3fnuz if older else torch.float8_e4m3fn


def _filled(torch: ModuleType, place: str, dtype: torch_dtype, *shape: int) -> Tensor:
    if dtype == torch.int8:
        return torch.randint(-127, 128, shape, dtype=dtype, device=place)
    if dtype.itemsize > 1:
        return torch.empty(shape, dtype=dtype, device=place).normal_()
    return torch.empty(shape, dtype=torch.bfloat16, device=place).normal_().to(dtype)


def _rows(torch: ModuleType, of: Tensor, rows: list[int]) -> Tensor:
    if of.dtype.is_floating_point and of.dtype.itemsize == 1:
        return of.view(torch.uint8)[rows].view(of.dtype).to(torch.float32)
    return of[rows]


def _spaced(length: int, most: int = SAMPLES) -> list[int]:
    return sorted({round(x) for x in np.linspace(0, length - 1, min(length, most)).tolist()})


def _array(of: Tensor) -> np.ndarray:
    values: np.ndarray = of.detach().to("cpu").double().numpy()
    return values
