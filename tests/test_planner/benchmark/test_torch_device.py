"""Works in PyTorch on the processor: each runs, is timed, and comes out right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from planner.benchmark import session
from planner.benchmark.device import (
    Facts,
    Ready,
    TimingSample,
    UnsupportedByDevice,
    time_repeatedly,
)
from planner.benchmark.session import fault, measure
from planner.benchmark.torch_device import TorchDevice, torch_device
from planner.benchmark.works import (
    AllReduce,
    Attention,
    KernelLaunch,
    Product,
    Stream,
    TimedKernelSpec,
)
from planner.text.errors import InputError

torch = pytest.importorskip("torch", reason="needs the extra measure")

WORKS: list[TimedKernelSpec] = [
    Stream("read", 2**20),
    Stream("copy", 2**20),
    Stream("triad", 2**20),
    Product("fp32", 5, 64, 256, copies=3),
    Product("bf16", 1, 64, 1024, copies=2),
    Product("fp16", 17, 64, 256),
    Product("int8", 17, 64, 256),
    Product("fp8", 16, 64, 256),
    Attention("fp32", 3, 300, 16, 2, 64),
    Attention("bf16", 2, 200, 8, 8, 32),
    KernelLaunch("call"),
]


@pytest.fixture(scope="module")
def device() -> Iterator[TorchDevice]:
    """The processor, on one thread as a busy machine has it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield TorchDevice("cpu")
    torch.set_num_threads(before)


def made(device: TorchDevice, work: TimedKernelSpec) -> Ready:
    """The work ready to be run; processors of older versions do not multiply fp8."""
    try:
        return device.ready(work)
    except UnsupportedByDevice as error:
        if isinstance(work, Product) and work.dtype == "fp8":
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize("work", WORKS, ids=str)
def test_a_work_is_timed_and_its_result_is_right(
    device: TorchDevice, work: TimedKernelSpec
) -> None:
    """Also after many runs, with weights in turn."""
    ready = made(device, work)
    try:
        found = time_repeatedly(ready, 0.01)
        assert found.median > 0
        assert fault(work, ready.sample()) is None
    finally:
        ready.close()


@pytest.mark.parametrize("work", WORKS, ids=str)
def test_a_result_that_is_changed_is_found(device: TorchDevice, work: TimedKernelSpec) -> None:
    """The sample of a device is enough to tell."""
    ready = made(device, work)
    right = ready.sample()
    wrong = TimingSample(right.operands, right.result * 1.5 + 1.0)
    assert fault(work, wrong) is not None
    ready.close()


def test_query_heads_that_share_a_cache_attend_as_written_out(device: TorchDevice) -> None:
    """Heads side by side as queries of one head: the same numbers as every head by itself."""
    work = Attention("fp32", 2, 64, 8, 2, 32)
    ready = device.ready(work)
    sample = ready.sample()
    q, k, v = (sample.operands[name] for name in ("q", "k", "v"))
    for at in range(2):
        one = torch.nn.functional.scaled_dot_product_attention(
            *(torch.tensor(x[None, None]) for x in (q[at][None], k[at], v[at]))
        )
        assert np.allclose(one.numpy()[0, 0, 0], sample.result[at], atol=1e-5)
    ready.close()


def test_the_processor_says_what_it_is(device: TorchDevice) -> None:
    """Name, memory, cache, software; one device, which is no chip of the catalogue."""
    facts = device.facts
    assert isinstance(facts, Facts)
    assert facts.name.endswith("1 threads")
    assert 0 < facts.free <= facts.capacity
    assert facts.cache > 2**20
    assert (facts.kind, facts.count) == ("cpu", 1)
    assert facts.software["torch"] == torch.__version__


def test_graphs_are_not_recorded_on_a_processor(device: TorchDevice) -> None:
    """Said as what it is not able to do."""
    with pytest.raises(UnsupportedByDevice, match="cuda alone"):
        device.ready(KernelLaunch("graph"))


def test_what_the_library_refuses_is_left_out_by_name(device: TorchDevice) -> None:
    """Memory that is not there, among others."""
    with pytest.raises(UnsupportedByDevice, match=r".+"):
        device.ready(Stream("read", 2**50))


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("gpu", "expected a device such as cuda:0"),
        ("cdua", "did you mean 'cuda'"),
        ("cpu:1", "1 devices of kind cpu are visible"),
        ("cuda:-1", "expected a device"),
        ("", "expected a device"),
    ],
)
def test_a_device_that_is_not_there_is_refused(place: str, told: str) -> None:
    """With the kinds that are known, or what there is."""
    with pytest.raises(InputError, match="--device") as caught:
        TorchDevice(place)
    assert told in str(caught.value)


def test_without_a_name_there_is_always_a_device() -> None:
    """An accelerator where one is visible, else the processor."""
    assert torch_device().facts.count >= 1


def test_a_session_on_the_processor(device: TorchDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """All works are kept, none wrong."""
    monkeypatch.setattr(session, "suite", lambda facts, quick: tuple(WORKS))
    chip = measure(device, budget=20.0).chip
    assert not chip.refused
    assert all(each.what.startswith("fp8") for each in chip.left_out)
    assert len(chip.products) + len(chip.left_out) == 5
    assert chip.head.chip == ""
    assert chip.head.complete


@pytest.mark.slow
def test_processes_sum_together() -> None:
    """Two of them over gloo: every size timed, every sum right on both."""
    found = list(TorchDevice("cpu", count=2).all_reduce((4096, 65536), 3))
    assert [each.work for each in found] == [
        AllReduce("gloo", 2, 4096),
        AllReduce("gloo", 2, 65536),
    ]
    for each in found:
        assert len(each.seconds) == 3
        assert min(each.seconds) > 0
        assert fault(each.work, each.sample) is None
