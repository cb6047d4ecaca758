"""A real Dask scheduler with two workers: the rows of one process, also when something dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.sweep import workers as cluster_module
from planner.sweep.workers import UnsolvedChunks, connect_dask
from planner.text.errors import SolverError
from tests.paths import ROOT
from tests.test_planner.sweep.test_workers import SMALL, answer, by_point, once, pieces, poisoned

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Dask are its own


@dataclass
class Running:
    """A scheduler and its workers, as processes."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    def stop(self) -> None:
        """End them all."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def started(folder: Path, workers: int = 2) -> Running:
    """A scheduler on a port of its own choice, and workers of one thread that find the tests."""
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "scheduler.json"
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    quiet: dict[str, Any] = {
        "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": here
    }  # fmt: skip
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    scheduler = subprocess.Popen(
        [*run, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(known),
         "--no-dashboard", "--no-show"], **quiet
    )  # fmt: skip
    address = reported(known, scheduler)
    work = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
            "--no-dashboard", "--local-directory", str(folder),
            "--death-timeout", "60"]  # fmt: skip
    found = [subprocess.Popen(work, **quiet) for _ in range(workers)]
    return Running(address, scheduler, found)


def reported(known: Path, scheduler: subprocess.Popen[bytes]) -> str:
    """The address that a scheduler wrote into a file once it listens."""
    while scheduler.poll() is None:
        try:
            return str(json.loads(known.read_text())["address"])
        except (OSError, ValueError, KeyError):
            time.sleep(0.05)
    pytest.fail(f"the scheduler ended with status {scheduler.returncode}")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One cluster for the tests of this file."""
    found = started(tmp_path_factory.mktemp("dask"))
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy starts workers late."""
    monkeypatch.setattr(cluster_module, "ANSWERS", 60.0)


@pytest.mark.slow
def test_a_cluster_gives_the_rows_of_one_process(running):
    """Timings apart; the part files are written here."""
    over = {"promises.tpot": "20 ms,1 us,50 ms", "system": "hgx-h100,hgx-h200"}
    alone = planner.sweep(SMALL, over)
    shared = planner.sweep(SMALL, over, scheduler=running.address)
    for ours, theirs in zip(alone, shared, strict=True):
        assert answer(ours) == answer(theirs)


@pytest.mark.slow
def test_a_point_that_kills_dask_workers_is_a_row(running, tmp_path):
    """Dask gives up on a task that killed four workers; its points are then tried one by one."""
    with connect_dask(running.address) as cluster:
        found = by_point(cluster.solved(pieces(tmp_path, 12, 4), poisoned))
    assert sorted(found) == list(range(12))
    assert [point for point, status in found.items() if status == "failed"] == [7]


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_costs_no_point(running, tmp_path):
    """Its nanny starts another one."""
    with connect_dask(running.address) as cluster:
        found = by_point(cluster.solved(pieces(tmp_path, 12, 4), once))
    assert found == dict.fromkeys(range(12), "optimal")


@pytest.mark.slow
def test_rows_that_die_with_their_worker_are_solved_again(running, tmp_path):
    """A worker that dies after its chunk, before the rows are fetched; the scheduler is well."""
    (chunk,) = pieces(tmp_path, 3, 3)
    with connect_dask(running.address) as cluster:
        address, process = next(iter(cluster.client.run(os.getpid).items()))
        future = cluster.client.submit(poisoned, chunk, workers=[address], pure=False)
        future.result(timeout=60)
        os.kill(process, signal.SIGKILL)
        limit = time.monotonic() + 60
        while future.status == "finished" and time.monotonic() < limit:
            time.sleep(0.01)
        assert future.status == "lost"
        assert cluster._rows(future, chunk) == UnsolvedChunks((chunk,))


@pytest.mark.slow
def test_a_scheduler_that_dies_is_said(tmp_path):
    """The message names it; nothing waits for ever."""
    own = started(tmp_path, workers=1)
    try:
        with connect_dask(own.address) as cluster:
            done = cluster.solved(pieces(tmp_path, 200, 1))
            next(done)
            own.scheduler.kill()
            monotonic = time.monotonic()
            with pytest.raises(SolverError, match=f"the scheduler at {own.address} went away"):
                list(done)
            assert time.monotonic() - monotonic < 600
    finally:
        own.stop()
