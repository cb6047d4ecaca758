"""An all-reduce over several devices in PyTorch: a process for each, their slowest time kept."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from planner.benchmark.device import Reduced, TimingSample, Unsupported
from planner.benchmark.kernels import REDUCED, AllReduce

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

BACKENDS = {"cuda": "nccl", "xpu": "xccl", "cpu": "gloo"}
PATIENCE = 120.0  # [s] that processes may take to meet, and to finish after
LEAVE = 2.0  # [s] that a process may take to leave
READING = 16  # sums in one reading
SAMPLES = 64


def all_reduce(kind: str, devices: int, sizes: Sequence[int], repeats: int) -> Iterator[Reduced]:
    """Times of every size, in the order given; raises Unsupported where processes fail."""
    if kind not in BACKENDS:
        raise Unsupported(f"several devices of kind {kind} do not sum together")
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
        seconds = np.array([each["seconds"][at] for each in answers]).max(axis=0)
        parts = np.array([each["parts"][at] for each in answers])
        # Every device must hold the sum, not the first alone.
        results = np.array([each["results"][at] for each in answers])
        sample = TimingSample({"parts": np.tile(parts, devices)}, results.reshape(-1))
        yield Reduced(work, tuple(seconds.tolist()), sample)


def _waited(group: Sequence[BaseProcess], folder: Path) -> None:
    """Wait for the files of all processes; raises Unsupported if one fails or they take too long.

    Not for the processes themselves: taking a group down hangs in some versions of gloo.
    """
    end = time.monotonic() + PATIENCE
    while not all(_file(folder, rank).is_file() for rank in range(len(group))):
        failed = any(process.exitcode for process in group)
        if failed or time.monotonic() > end:
            faults = sorted(folder.glob("*.fault"))
            why = faults[0].read_text() if faults else f"no answer in {PATIENCE:g} s"
            raise Unsupported(f"an all-reduce over {len(group)} devices failed: {why}")
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
        _measured(rank, devices, kind, sizes, repeats, at)
    except Exception as error:  # whatever it is, the parent tells it
        (at / f"{rank}.fault").write_text(str(error).strip().split("\n")[0][:200])
        raise SystemExit(1) from error


def _measured(
    rank: int, devices: int, kind: str, sizes: Sequence[int], repeats: int, folder: Path
) -> None:
    """Times and samples of one process, in its file before the group is taken down."""
    import torch
    import torch.distributed as group

    place = "cpu" if kind == "cpu" else f"{kind}:{rank}"
    if kind == "cpu":
        torch.set_num_threads(1)
    else:
        getattr(torch, kind).set_device(rank)
    group.init_process_group(
        BACKENDS[kind],
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=devices,
        timeout=timedelta(seconds=PATIENCE / 2),
    )
    results: dict[str, list[object]] = {"seconds": [], "parts": [], "results": []}
    for size in sizes:
        for key, value in _one_process(torch, group, place, kind, rank, size, repeats).items():
            results[key].append(value)
    group.barrier()
    part = folder / f"{rank}.part"
    part.write_text(json.dumps(results))
    part.replace(_file(folder, rank))  # whole or not there
    group.destroy_process_group()


def _one_process(
    torch: ModuleType, group: ModuleType, place: str, kind: str, rank: int, size: int, repeats: int
) -> dict[str, list[float]]:
    """Readings of one size, then one sum that is checked."""
    torch.manual_seed(rank)
    part = torch.empty(max(1, size // REDUCED), device=place).uniform_(-1, 1)
    whole = torch.zeros_like(part)

    def wait() -> None:
        if kind != "cpu":
            getattr(torch, kind).synchronize()

    seconds = []
    for reading in range(repeats + 1):
        group.barrier()
        wait()
        start = time.perf_counter()
        for _ in range(READING):
            group.all_reduce(whole)  # zeros stay zeros, however often they are summed
        wait()
        if reading:  # the first joins the devices up
            seconds.append((time.perf_counter() - start) / READING)
    whole.copy_(part)
    group.all_reduce(whole)
    wait()
    seen = [round(x) for x in np.linspace(0, part.numel() - 1, SAMPLES).tolist()]
    return {"seconds": seconds, "parts": part[seen].tolist(), "results": whole[seen].tolist()}


def _file(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.json"
