"""Timings of sweeps; run by `pytest tests/benches/bench_sweep.py -m benchmark -s`."""

from __future__ import annotations

import csv
import itertools
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from planner.sweep.run import prepare_sweep, run_sweep
from planner.sweep.table import SweepParts
from tests.paths import ROOT
from tests.test_planner.sweep.test_cluster import started
from tests.test_planner.sweep.test_vectorized import FIXED

pytestmark = [pytest.mark.benchmark, pytest.mark.filterwarnings("ignore")]

POINTS = 800  # that are solved, some hundredths of a second each
FRESH = itertools.count()
SMALL = """\
problem: serving
model: llama-3.1-8b
system: hgx-h100
chips: 1
price: $2.50/hour
workload: {input_tokens: 500, output_tokens: 100}
choose: {mode: aggregated}
"""


def swept(folder: Path, points: int) -> float:
    """Seconds of a closed-form sweep with numbers never asked for before, file included."""
    number = next(FRESH)
    over = {
        "workload.input_tokens": f"log(100..{100_000 + number},100)",
        "system.memory_bandwidth": "lin(3 TB/s..8 TB/s,100)",
        "choose.batch": f"1..{points // 10_000}",
    }
    start = time.perf_counter()
    order = prepare_sweep(FIXED, over)
    parts = SweepParts(folder / f"{number}.parquet", order.meta, resume=False)
    run_sweep(order, parts)
    return time.perf_counter() - start


def test_a_million_points_of_the_closed_form(benchmark: Any, tmp_path: Path) -> None:
    """Parquet file included; to reach: 2 s."""
    pytest.importorskip("pyarrow")
    benchmark.pedantic(lambda: swept(tmp_path, 1_000_000), rounds=5, warmup_rounds=1)


def test_memory_of_ten_million_points(tmp_path: Path) -> None:
    """Largest resident set of a process of its own; to reach: 1 GB."""
    pytest.importorskip("pyarrow")
    run = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from tests.benches.bench_sweep import swept\n"
        "seconds = swept(Path(sys.argv[1]), 10_000_000)\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6\n"
        "print(f'10,000,000 points: {seconds:.1f} s, {peak:.2f} GB')\n"
    )
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    print(subprocess.check_output([sys.executable, "-c", run, str(tmp_path)], env=here, text=True))


def solved(folder: Path, name: str, *words: str) -> tuple[float, float]:
    """Seconds of wall and of processor that a command takes, workers on this machine included."""
    (folder / "small.yaml").write_text(SMALL)
    over = f"workload.input_tokens=lin(101..{100 + POINTS},{POINTS})"
    run = [sys.executable, "-m", "planner", "sweep", "small.yaml", "--over", over]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*run, "--out", f"{name}.csv", *words], cwd=folder, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, sum(after[:2]) - sum(before[:2])


def busy(folder: Path, name: str, wall: float) -> float:
    """Share of two workers' time in which they solved, start-up of the command included.

    On a machine that others use it says what T1 / (2 T2) cannot.
    """
    with (folder / f"{name}.csv").open(newline="") as lines:
        return sum(float(row["elapsed_s"]) for row in csv.DictReader(lines)) / (2 * wall)


def test_two_workers(tmp_path: Path) -> None:
    """One process, two, and a cluster of two; efficiency is T1 / (2 T2), start-up included."""
    alone, alone_cpu = solved(tmp_path, "one")
    print(f"\nload {os.getloadavg()[0]:.1f}; {POINTS} points")
    print(f"one process  {alone:6.1f} s, {alone_cpu:6.1f} s of CPU")
    two, two_cpu = solved(tmp_path, "two", "--workers", "2")
    shares = f"efficiency {alone / two / 2:.2f}, of CPU {alone_cpu / two_cpu:.2f}, "
    shares += f"busy {busy(tmp_path, 'two', two):.2f}"
    print(f"two          {two:6.1f} s, {two_cpu:6.1f} s of CPU; {shares}")
    pytest.importorskip("distributed")
    cluster = started(tmp_path / "dask")
    try:
        time.sleep(5)  # a cluster is up before a sweep is
        solved(tmp_path, "warm", "--scheduler", cluster.address, "--set", "chips=2")
        dask, _ = solved(tmp_path, "dask", "--scheduler", cluster.address)
        shares = f"efficiency {alone / dask / 2:.2f}, busy {busy(tmp_path, 'dask', dask):.2f}"
        print(f"Dask         {dask:6.1f} s; {shares}; load {os.getloadavg()[0]:.1f}")
    finally:
        cluster.stop()
