"""The device as PyTorch sees it: which it is, what it says of itself, and its clock."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

from planner.benchmark.device import Facts, Ready, Reduced, Unsupported
from planner.benchmark.kernels import Timed
from planner.benchmark.torch_kernels import Run, loaded
from planner.benchmark.torch_processes import all_reduce
from planner.text.errors import InputError, MissingExtra, did_you_mean

KINDS = ("cuda", "xpu", "mps", "cpu")  # those that come first are preferred
CACHE = 64 * 2**20  # [byte] taken where the last on-chip level is not told
AMD_CACHE = 256 * 2**20  # [byte] of MI300's last level, of which its driver tells the one before
DTYPES = {
    "cuda": ("bf16", "fp16", "fp8", "int8", "fp32"),
    "xpu": ("bf16", "fp16", "fp8", "int8", "fp32"),
    "mps": ("bf16", "fp16", "fp32"),
    "cpu": ("fp32", "bf16", "fp16", "fp8", "int8"),
}
DRIVERS = ("/proc/driver/nvidia/version", "/sys/module/amdgpu/version")


class TorchDevice:
    """One device of PyTorch: `place` as `cuda:0`; `count` devices of its kind take part together.

    Raises
    ------
    MissingExtra
        If PyTorch is not installed.
    InputError
        If there is no such device.
    """

    def __init__(self, place: str, count: int | None = None) -> None:
        self.torch = _torch()
        self.kind, self.index = _parsed(place)
        visible = _count(self.torch, self.kind)
        if self.index >= visible:
            seen = ", ".join(kind for kind in KINDS if _count(self.torch, kind))
            raise InputError(
                f"--device {place}: {visible} devices of kind {self.kind} are visible "
                f"(there is {seen})"
            )
        self.place = f"{self.kind}:{self.index}" if self.kind in ("cuda", "xpu") else self.kind
        if self.kind in ("cuda", "xpu"):
            getattr(self.torch, self.kind).set_device(self.index)
        self.facts = self._facts(visible if count is None else count)

    def ready(self, work: Timed) -> Ready:
        """The work in the device's memory, run once; raises Unsupported."""
        try:
            run = loaded(self.torch, self.place, work)
            in_memory = _Loaded(self, run)
            in_memory.seconds(1)
        except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
            # What a library cannot do it says in any of these.
            self.free()
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise Unsupported(first[0][:200]) from error
        return in_memory

    def all_reduce(self, sizes: Sequence[int], repeats: int) -> Iterable[Reduced]:
        """Times over all visible devices, a process each; raises Unsupported."""
        return all_reduce(self.kind, self.facts.count, sizes, repeats)

    def synchronize(self) -> None:
        """Wait for what was launched."""
        if self.kind != "cpu":
            getattr(self.torch, self.kind).synchronize()

    def free(self) -> None:
        """Give back memory that nothing uses."""
        if self.kind != "cpu":
            getattr(self.torch, self.kind).empty_cache()

    def clocked(self, work: Callable[[], None]) -> float:
        """Time of what `work` launches, on the device's own clock where it has one [s]."""
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
        return float(begin.elapsed_time(end)) * 1e-3  # it tells milliseconds

    def _facts(self, count: int) -> Facts:
        name, capacity, free, cache = _described(self.torch, self.kind, self.index)
        return Facts(
            name=" ".join("".join(c if c.isprintable() else " " for c in name).split())[:200],
            kind=self.kind,
            capacity=capacity,
            free=free,
            cache=cache,
            count=count,
            dtypes=DTYPES[self.kind],
            software=_software(self.torch, self.kind),
        )


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

    Raises
    ------
    MissingExtra
        If PyTorch is not installed.
    InputError
        If it does not load, or there is no such device.
    """
    torch = _torch()
    return TorchDevice(place or next(kind for kind in KINDS if _count(torch, kind)))


def _torch() -> ModuleType:
    try:
        import torch
    except (ImportError, OSError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise MissingExtra("torch", "measure", "measuring a chip") from error
        raise InputError(f"PyTorch is installed but does not load: {error}") from error
    return torch


def _parsed(place: str) -> tuple[str, int]:
    """Kind and number of `cuda:1`."""
    match = re.fullmatch(r"([a-z]+)(?::(\d{1,4}))?", place)
    if match is None or match[1] not in KINDS:
        hint = did_you_mean(place.partition(":")[0], KINDS) or f" (known: {', '.join(KINDS)})"
        raise InputError(f"--device {place[:60]!r}: expected a device such as cuda:0{hint}")
    return match[1], int(match[2] or 0)


def _count(torch: ModuleType, kind: str) -> int:
    """Visible devices of a kind."""
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
    """The processor as the system names it."""
    listed = Path("/proc/cpuinfo")
    if listed.is_file():
        match = re.search(r"^model name\s*:\s*(.+)$", listed.read_text("utf-8", "replace"), re.M)
        if match:
            return match[1]
    return platform.processor() or platform.machine() or "unknown processor"


def _software(torch: ModuleType, kind: str) -> dict[str, str]:
    """Versions of the library, of what it was built for, and of the driver."""
    versions = {"torch": str(torch.__version__)}
    if kind == "cuda":
        hip = getattr(torch.version, "hip", None)
        versions |= {"rocm": str(hip)} if hip else {"cuda": str(torch.version.cuda)}
        for path in map(Path, DRIVERS):
            if path.is_file():
                release = path.read_text("utf-8", "replace")
                version = re.search(r"\d+(?:\.\d+)+", release)
                versions["driver"] = version[0] if version else release.strip()[:40]
                break
    return versions
