"""PyTorch device: its identity, the facts that it reports, and its clock.

An all-reduce over several devices takes a process for each; their slowest time is kept.
"""

import json
import multiprocessing
import os
import platform
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

from planner.benchmark.device import AllReduceTime, Facts, Ready, TimingSample, UnsupportedByDevice
from planner.benchmark.torch_kernels import Run, load_kernel
from planner.benchmark.works import ELEMENT_BYTES, AllReduce, Precision, TimedKernelSpec
from planner.text.errors import InputError, MissingExtra, did_you_mean

DEVICES = ("cuda", "xpu", "mps", "cpu")  # those that come first are preferred
CACHE = 64 * 2**20  # [byte] taken where the last on-chip level is not reported
AMD_CACHE = 256 * 2**20  # [byte] MI300 last-level cache; its driver reports the level before
DTYPES: Mapping[str, tuple[Precision, ...]] = {
    "cuda": ("bf16", "fp16", "fp8", "int8", "fp32"),
    "xpu": ("bf16", "fp16", "fp8", "int8", "fp32"),
    "mps": ("bf16", "fp16", "fp32"),
    "cpu": ("fp32", "bf16", "fp16", "fp8", "int8"),
}
DRIVERS = ("/proc/driver/nvidia/version", "/sys/module/amdgpu/version")


class TorchDevice:
    """One device of PyTorch: `place` as `cuda:0`; `count` devices of its kind take part together.

    Raises MissingExtra if PyTorch is not installed; InputError if there is no such device.
    """

    def __init__(self, place: str, count: int | None = None) -> None:
        self.torch = _torch()
        match = re.fullmatch(r"([a-z]+)(?::(\d{1,4}))?", place)
        if match is None or match[1] not in DEVICES:
            hint = (
                did_you_mean(place.partition(":")[0], DEVICES) or f" (known: {', '.join(DEVICES)})"
            )
            raise InputError(f"--device {place[:60]!r}: expected a device such as cuda:0{hint}")
        self.kind, self.index = match[1], int(match[2] or 0)
        visible = _count(self.torch, self.kind)
        if self.index >= visible:
            seen = ", ".join(kind for kind in DEVICES if _count(self.torch, kind))
            raise InputError(
                f"--device {place}: {visible} devices of kind {self.kind} are visible "
                f"(there is {seen})"
            )
        self.place = f"{self.kind}:{self.index}" if self.kind in ("cuda", "xpu") else self.kind
        if self.kind in ("cuda", "xpu"):
            getattr(self.torch, self.kind).set_device(self.index)
        self.facts = self._facts(visible if count is None else count)

    def ready(self, work: TimedKernelSpec) -> Ready:
        """The work in the device's memory, run once; raises UnsupportedByDevice."""
        try:
            run = load_kernel(self.torch, self.place, work)
            in_memory = _Loaded(self, run)
            in_memory.seconds(1)
        except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
            # A library reports an unsupported operation by any of these exceptions.
            self.free()
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise UnsupportedByDevice(first[0][:200]) from error
        return in_memory

    def all_reduce(self, sizes: Sequence[int], repeats: int) -> Iterable[AllReduceTime]:
        """Times over all visible devices, a process each; raises UnsupportedByDevice."""
        return all_reduce(self.kind, self.facts.count, sizes, repeats)

    def synchronize(self) -> None:
        """Wait until all launched kernels have finished."""
        if self.kind != "cpu":
            getattr(self.torch, self.kind).synchronize()

    def free(self) -> None:
        """Give back memory that nothing uses."""
        if self.kind != "cpu":
            getattr(self.torch, self.kind).empty_cache()

    def clocked(self, work: Callable[[], None]) -> float:
        """Time of the kernels that `work` launches [s], by events on cuda, else by the host."""
        self.synchronize()
        if self.kind != "cuda":
            start = time.perf_counter()
            work()
            self.synchronize()
            return time.perf_counter() - start
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3  # it gives milliseconds

    def _facts(self, count: int) -> Facts:
        name, capacity, free, cache = _described(self.torch, self.kind, self.index)
        name = " ".join("".join(c if c.isprintable() else " " for c in name).split())[:200]
        software = {"torch": str(self.torch.__version__)}
        if self.kind == "cuda":
            hip = getattr(self.torch.version, "hip", None)
            software |= {"rocm": str(hip)} if hip else {"cuda": str(self.torch.version.cuda)}
            for path in map(Path, DRIVERS):
                if path.is_file():
                    release = path.read_text("utf-8", "replace")
                    version = re.search(r"\d+(?:\.\d+)+", release)
                    software["driver"] = version[0] if version else release.strip()[:40]
                    break
        return Facts(name, self.kind, capacity, free, cache, count, DTYPES[self.kind], software)


class _Loaded:
    """A work ready to be run on a device."""

    def __init__(self, device: TorchDevice, run: Run) -> None:
        self.device, self.run = device, run
        self.sample = run.sample

    def seconds(self, calls: int) -> float:
        """Time of `calls` runs [s]."""
        return self.device.clocked(lambda: self.run(calls)) / self.run.at_once

    def close(self) -> None:
        """Give its memory back."""
        del self.run, self.sample
        self.device.free()


def torch_device(place: str | None = None) -> TorchDevice:
    """The device named as in `cuda`, `cuda:1`, `cpu`; without a name the first accelerator.

    Raises MissingExtra if PyTorch is not installed; InputError if it does not load, or there is no
    such device.
    """
    torch = _torch()
    return TorchDevice(place or next(kind for kind in DEVICES if _count(torch, kind)))


def _torch() -> ModuleType:
    try:
        import torch
    except (ImportError, OSError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise MissingExtra("torch", "measure", "measuring a chip") from error
        raise InputError(f"PyTorch is installed but does not load: {error}") from error
    return torch


def _count(torch: ModuleType, kind: str) -> int:
    if kind == "cpu":
        return 1
    if kind == "mps":
        return int(torch.backends.mps.is_available())
    module = getattr(torch, kind, None)
    return int(module.device_count()) if module is not None and module.is_available() else 0


def _described(torch: ModuleType, kind: str, index: int) -> tuple[str, int, int, int]:
    """Name, capacity, free memory and last on-chip level [byte]."""
    if kind in ("cuda", "xpu"):
        module = getattr(torch, kind)
        properties = module.get_device_properties(index)
        total = int(properties.total_memory)
        free = int(module.mem_get_info(index)[0]) if hasattr(module, "mem_get_info") else total
        level = getattr(properties, "L2_cache_size", 0) or getattr(
            properties, "last_level_cache_size", 0
        )
        least = AMD_CACHE if getattr(torch.version, "hip", None) else 0
        return str(properties.name), total, free, max(int(level) or CACHE, least)
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    if kind == "mps":
        return f"{_processor()} (mps)", total, int(torch.mps.recommended_max_memory()), CACHE
    has_sysconf = "SC_AVPHYS_PAGES" in os.sysconf_names
    free = page * os.sysconf("SC_AVPHYS_PAGES") if has_sysconf else total
    level = os.sysconf("SC_LEVEL3_CACHE_SIZE") if "SC_LEVEL3_CACHE_SIZE" in os.sysconf_names else 0
    return f"{_processor()}, {torch.get_num_threads()} threads", total, free, level or CACHE


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    if listed.is_file():
        match = re.search(r"^model name\s*:\s*(.+)$", listed.read_text("utf-8", "replace"), re.M)
        if match:
            return match[1]
    return platform.processor() or platform.machine() or "unknown processor"


BACKENDS = {"cuda": "nccl", "xpu": "xccl", "cpu": "gloo"}
RENDEZVOUS_TIMEOUT_S = 120.0  # [s] that processes may take to meet, and to finish after
LEAVE = 2.0  # [s] that a process may take to leave
READING = 16  # sums in one reading
SAMPLES = 64


def all_reduce(
    kind: str, devices: int, sizes: Sequence[int], repeats: int
) -> Iterator[AllReduceTime]:
    """Times of every size, in the order given; raises UnsupportedByDevice if a process fails."""
    if kind not in BACKENDS:
        raise UnsupportedByDevice(f"several devices of kind {kind} do not sum together")
    with TemporaryDirectory() as folder:
        start = multiprocessing.get_context("spawn")
        job = (devices, kind, tuple(sizes), repeats, folder)
        group = [start.Process(target=_rank, args=(rank, *job)) for rank in range(devices)]
        try:
            for process in group:
                process.start()
            _waited(group, Path(folder))
        finally:
            for process in group:
                if process.is_alive():
                    process.terminate()
                if process.pid is not None:
                    process.join()
        answers = [json.loads(_file(Path(folder), rank).read_text()) for rank in range(devices)]
    for at, size in enumerate(sizes):
        work = AllReduce(BACKENDS[kind], devices, size)
        seconds = np.array([each[at]["seconds"] for each in answers]).max(axis=0)
        parts = np.array([each[at]["parts"] for each in answers])
        # Every device must hold the sum, not the first alone.
        results = np.array([each[at]["results"] for each in answers])
        sample = TimingSample({"parts": np.tile(parts, devices)}, results.reshape(-1))
        yield AllReduceTime(work, tuple(seconds.tolist()), sample)


def _waited(group: Sequence[BaseProcess], folder: Path) -> None:
    """Wait for the files of all processes; raises UnsupportedByDevice on failure or timeout.

    Not for the processes themselves: taking a group down hangs in some versions of gloo.
    """
    end = time.monotonic() + RENDEZVOUS_TIMEOUT_S
    while not all(_file(folder, rank).is_file() for rank in range(len(group))):
        failed = any(process.exitcode for process in group)
        if failed or time.monotonic() > end:
            faults = sorted(folder.glob("*.fault"))
            why = faults[0].read_text() if faults else f"no answer in {RENDEZVOUS_TIMEOUT_S:g} s"
            raise UnsupportedByDevice(f"an all-reduce over {len(group)} devices failed: {why}")
        time.sleep(0.02)
    for process in group:
        process.join(LEAVE)


def _rank(
    rank: int, devices: int, kind: str, sizes: Sequence[int], repeats: int, folder: str
) -> None:
    """One process: its times and a sample of every size, written for the parent."""
    at = Path(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    try:
        import torch.distributed as group

        device = TorchDevice(f"{kind}:{rank}" if kind != "cpu" else kind)
        if kind == "cpu":
            device.torch.set_num_threads(1)
        meeting, patience = f"file://{at}/meeting", timedelta(seconds=RENDEZVOUS_TIMEOUT_S / 2)
        group.init_process_group(
            BACKENDS[kind], init_method=meeting, rank=rank, world_size=devices, timeout=patience
        )
        answers = [_one_process(device, group, size, repeats) for size in sizes]
        group.barrier()
        part = at / f"{rank}.part"
        part.write_text(json.dumps(answers))
        part.replace(_file(at, rank))  # whole or not there, before the group is taken down
        group.destroy_process_group()
    except Exception as error:  # any exception: the parent process reports it
        (at / f"{rank}.fault").write_text(str(error).strip().split("\n")[0][:200])
        raise SystemExit(1) from error


def _one_process(
    device: TorchDevice, group: ModuleType, size: int, repeats: int
) -> dict[str, list[float]]:
    """Readings of one size, then one sum that is checked."""
    device.torch.manual_seed(group.get_rank())
    part = device.torch.empty(max(1, size // ELEMENT_BYTES), device=device.place).uniform_(-1, 1)
    whole = device.torch.zeros_like(part)
    seconds = []
    for reading in range(repeats + 1):
        group.barrier()
        device.synchronize()
        start = time.perf_counter()
        for _ in range(READING):
            group.all_reduce(whole)  # zeros stay zeros, however often they are summed
        device.synchronize()
        if reading:  # the first joins the devices up
            seconds.append((time.perf_counter() - start) / READING)
    whole.copy_(part)
    group.all_reduce(whole)
    device.synchronize()
    seen = [round(x) for x in np.linspace(0, part.numel() - 1, SAMPLES).tolist()]
    return {"seconds": seconds, "parts": part[seen].tolist(), "results": whole[seen].tolist()}


def _file(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.json"
