"""Workers: the same rows wherever they are solved, and none lost when a worker dies."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.scenario.grid import parse_grid
from planner.scenario.tree import Tree
from planner.sweep.chunk import Chunk, chunks, validate_sweep
from planner.sweep.workers import in_processes
from planner.text.errors import InputError, SolverError
from tests.paths import ROOT

SMALL = {
    "problem": "serving",
    "model": "llama-3.1-8b",
    "system": "hgx-h100",
    "chips": 1,
    "price": "$2.50/hour",
    "workload": {"input_tokens": 500, "output_tokens": 100},
    "promises": {"ttft": "2 s", "tpot": "50 ms"},
}
POISON = 7


def told(chunk: Chunk) -> list[dict[str, Any]]:
    """Which points a chunk has."""
    return [{"status": "optimal", "point": chunk.first + i} for i in range(len(chunk.points))]


def poisoned(chunk: Chunk) -> list[dict[str, Any]]:
    """Dies at one point."""
    if chunk.first <= POISON <= chunk.last:
        os.kill(os.getpid(), signal.SIGKILL)
    return told(chunk)


def once(chunk: Chunk) -> list[dict[str, Any]]:
    """Dies at one chunk the first time; `folder` holds the mark of that."""
    mark = chunk.folder / "died"
    if chunk.first <= POISON <= chunk.last and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return told(chunk)


def answer(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what depends on when and after what it was computed."""
    return {name: value for name, value in row.items() if name not in ("elapsed_s", "gap")}


def pieces(folder: Path, points: int, size: int) -> list[Chunk]:
    """Chunks of a size."""
    tree = Tree("x", {})
    return [
        Chunk(first, ((),) * min(size, points - first), tree, folder)
        for first in range(0, points, size)
    ]


def by_point(done: Any) -> dict[int, str]:
    """Status by point; each point once."""
    found: dict[int, str] = {}
    for chunk, rows in done:
        assert len(rows) == len(chunk.points)
        for i, row in enumerate(rows):
            assert chunk.first + i not in found
            found[chunk.first + i] = row["status"]
    return found


@pytest.mark.slow
def test_a_point_that_kills_its_worker_is_a_row(tmp_path):
    """The others of its chunk, and of every chunk, have their answers."""
    found = by_point(in_processes(pieces(tmp_path, 20, 4), 2, poisoned))
    assert sorted(found) == list(range(20))
    assert [point for point, status in found.items() if status == "failed"] == [POISON]


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_point(tmp_path):
    """What it was at is tried again."""
    found = by_point(in_processes(pieces(tmp_path, 20, 4), 2, once))
    assert found == dict.fromkeys(range(20), "optimal")


def test_chunks_get_smaller_towards_the_end(tmp_path):
    """Every point once, and the last chunks are of one point: workers end together."""
    base = {**SMALL, "choose": {}}
    sound = validate_sweep(base, (), parse_grid({"promises.ttft": "lin(1 s..2 s,400)"}))
    found = list(chunks(sound, [(0, 99), (150, 399)], 2))
    covered = [i for chunk in found for i in range(chunk.first, chunk.last + 1)]
    assert covered == [*range(100), *range(150, 400)]
    sizes = [len(chunk.points) for chunk in found]
    assert max(sizes) <= 32
    assert sizes[-8:] == [1] * 8


def test_processes_give_the_rows_of_one(tmp_path):
    """Timings and the last digits of the certificate apart."""
    over = {"promises.tpot": "20 ms,1 us,50 ms", "system": "hgx-h100,hgx-h200"}
    alone, shared = (planner.sweep(SMALL, over, workers=n) for n in (1, 2))
    for ours, theirs in zip(alone, shared, strict=True):
        assert answer(ours) == answer(theirs)


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    """No orphan goes on computing."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\n"
        "from tests.test_planner.sweep.test_workers import pieces, sleeping\n"
        "from planner.sweep.workers import in_processes\n"
        "if __name__ == '__main__':\n"
        "    list(in_processes(pieces(Path(sys.argv[1]), 2, 1), 2, sleeping))\n"
    )
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path)])
    for _ in range(3000):  # of a machine that is busy
        pids = [int(mark.name.split(".")[1]) for mark in tmp_path.glob("pid.*")]
        if len(pids) == 2:
            break
        time.sleep(0.1)
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    for _ in range(600):
        if not any(_alive(pid) for pid in pids):
            return
        time.sleep(0.1)
    pytest.fail("workers outlive their parent")


def sleeping(chunk: Chunk) -> list[dict[str, Any]]:
    """Says who it is and does nothing for a long time."""
    (chunk.folder / f"pid.{os.getpid()}").touch()
    time.sleep(60)
    return told(chunk)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("address", "kind", "message"),
    [
        ("localhost", InputError, "expected an address as tcp://host:8786"),
        ("tcp://", InputError, "expected an address as tcp://host:8786"),
        ("tcp://host", InputError, "expected an address as tcp://host:8786"),
        ("tcp://127.0.0.1:9", SolverError, "the scheduler at tcp://127.0.0.1:9 does not answer"),
    ],
)
def test_a_scheduler_that_is_away_is_said(address, kind, message, monkeypatch):
    """Nothing waits for ever."""
    pytest.importorskip("distributed")
    from planner.sweep import workers

    monkeypatch.setattr(workers, "ANSWERS", 1.0)
    with pytest.raises(kind, match=message):
        planner.sweep(SMALL, {"chips": "1,2"}, scheduler=address)


def begun(folder: Path, *words: str) -> subprocess.Popen[str]:
    """A sweep in a process of its own that has kept a part."""
    (folder / "s.json").write_text(json.dumps(SMALL))
    command = [sys.executable, "-m", "planner", "sweep", "s.json", "--out", "a.csv",
               "--over", "workload.input_tokens=lin(100..2000,1500)", *words]  # fmt: skip
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(folder.glob("a.csv.parts/*.csv")):
        time.sleep(0.01)
    return process


@pytest.mark.slow
def test_a_sweep_that_is_asked_to_end_says_how_to_go_on(tmp_path):
    """SIGTERM is what Ctrl-C is: two lines, and nothing of its workers."""
    process = begun(tmp_path, "--workers", "2")
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 130
    assert re.fullmatch(
        r"planner: [\d,]+ of 1,500 points are kept in a\.csv\.parts; go on with the same command "
        r"and --resume\nplanner: interrupted\n", err
    )  # fmt: skip


@pytest.mark.slow
def test_two_sweeps_of_one_file_do_not_meet(tmp_path):
    """The second is refused and touches nothing, not the manifest either, whatever it asks."""
    process = begun(tmp_path)
    manifest = tmp_path / "a.csv.parts" / "manifest.json"
    before = manifest.read_bytes()
    for over in ("workload.input_tokens=lin(100..2000,1500)", "chips=1,2"):
        with pytest.raises(InputError, match="another run is at work on this sweep"):
            planner.sweep(str(tmp_path / "s.json"), [over], out=tmp_path / "a.csv", resume=True)
    assert manifest.read_bytes() == before
    process.kill()
    process.communicate()
