"""Killed at random moments and resumed, a sweep has every point exactly once."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from tests.test_planner.sweep.test_cluster import Running, started

pytestmark = pytest.mark.filterwarnings("ignore")

POINTS = 160
# kills of each kind, of which there are five; the campaign has more
SIZED = pytest.mark.parametrize("trials", [8])
SMALL = """\
problem: serving
model: llama-3.1-8b
system: hgx-h100
chips: 1
price: $2.50/hour
workload: {input_tokens: 500, output_tokens: 100}
choose: {mode: aggregated}
"""


def arguments() -> list[str]:
    """Of the sweep, begun or resumed."""
    over = f"workload.input_tokens=lin(101..{100 + POINTS},{POINTS})"
    return ["sweep", "small.yaml", "--over", over, "--out", "a.csv", "--resume"]


def command(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """The sweep, begun or resumed."""
    (folder / "small.yaml").write_text(SMALL)
    return subprocess.Popen(
        [sys.executable, "-m", "planner", *arguments(), *words], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def parts(folder: Path) -> int:
    """How many parts are kept."""
    return len(list(folder.glob("a.csv.parts/*.csv")))


def at_work(folder: Path, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the process has kept a part more; false if it ended."""
    before = parts(folder)
    while process.poll() is None:
        if parts(folder) > before:
            return True
        time.sleep(0.02)
    return False


def assert_whole(folder: Path) -> None:
    """Every point once, in order, each with an answer; nothing is left beside the file."""
    with (folder / "a.csv").open(newline="") as lines:
        table = list(csv.DictReader(lines))
    assert [float(row["workload.input_tokens"]) for row in table] == [
        float(i) for i in range(101, 101 + POINTS)
    ]
    assert {row["status"] for row in table} == {"optimal"}
    assert all(float(row["usd_per_mtok"]) > 0 for row in table)
    assert not (folder / "a.csv.parts").exists()
    assert not list(folder.glob(".*"))


def children(pid: int) -> list[int]:
    """Processes that a process started to solve."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == pid and b"spawn_main" in (each / "cmdline").read_bytes():
                found.append(int(each.name))
        except (OSError, IndexError):
            continue
    return found


def begun_anew(folder: Path) -> None:
    """A sweep that came to its end is looked at and removed, so that another can be killed."""
    assert_whole(folder)
    for file in folder.glob("a.csv*"):
        file.unlink()


def killed(cluster: Running, part: str) -> bool:
    """Whether the scheduler, or the process in which its first worker computes, was killed."""
    if part == "scheduler":
        alive = cluster.scheduler.poll() is None
        cluster.scheduler.kill()
        cluster.scheduler.wait()
        return alive
    computing = children(cluster.workers[0].pid)
    for each in computing:
        os.kill(each, signal.SIGKILL)
    return bool(computing)


@pytest.mark.slow
def test_the_command_may_be_killed_while_it_puts_parts_together(tmp_path):
    """Half a file is written over by the next run; nothing of it stays."""
    killed = (
        "import os, signal\n"
        "from planner import cli\n"
        "from planner.sweep import formats\n"
        "def torn(ordered, whole, kind, meta):\n"
        "    whole.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "formats.assemble_parts = torn\n"
        f"cli.main({arguments()})\n"
    )
    (tmp_path / "small.yaml").write_text(SMALL)
    torn = subprocess.run([sys.executable, "-c", killed], cwd=tmp_path, check=False)
    assert torn.returncode == -signal.SIGKILL
    assert list(tmp_path.glob(".*"))
    assert command(tmp_path).wait() == 0
    assert_whole(tmp_path)


@pytest.mark.slow
@SIZED
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_command_may_be_killed(tmp_path, workers, trials):
    """At a random moment of its life, again and again, then left alone."""
    chance, kills = random.Random(workers), 0
    while kills < trials:
        process = command(tmp_path, "--workers", workers)
        if at_work(tmp_path, process):
            time.sleep(chance.uniform(0.0, 1.0))
        if process.poll() is None:
            kills += 1
            process.kill()
            process.wait()
        else:
            assert process.returncode == 0
            begun_anew(tmp_path)
    assert command(tmp_path, "--workers", workers).wait() == 0
    assert_whole(tmp_path)


@SIZED
@pytest.mark.slow
def test_workers_may_be_killed(tmp_path, trials):
    """The command goes on by itself."""
    chance, kills = random.Random(1), 0
    while kills < trials:
        process = command(tmp_path, "--workers", "2")
        while kills < trials and at_work(tmp_path, process):
            time.sleep(chance.uniform(0.0, 1.0))
            running = children(process.pid)
            if running:
                os.kill(chance.choice(running), signal.SIGKILL)
                kills += 1
        assert process.wait() == 0
        begun_anew(tmp_path)


@pytest.mark.slow
@SIZED
@pytest.mark.parametrize("part", ["worker", "scheduler"])
def test_a_cluster_may_be_killed(tmp_path, part, trials):
    """A worker costs no point; with its scheduler a sweep ends, and resumes with another."""
    pytest.importorskip("distributed")
    chance, kills, status = random.Random(2), 0, 3
    for trial in count():
        cluster = started(tmp_path / f"dask{trial}")
        process = command(tmp_path, "--scheduler", cluster.address)
        try:
            while kills < trials and at_work(tmp_path, process):
                time.sleep(chance.uniform(0.0, 1.0))
                kills += process.poll() is None and killed(cluster, part)
            status = process.wait(timeout=300)
        finally:
            process.kill()
            cluster.stop()
        assert status in (0, 3)
        if status == 0:
            begun_anew(tmp_path)
            if kills == trials:
                return
