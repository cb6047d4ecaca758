"""A disk that is full, a folder that cannot be written, two that write one file: no row is lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import planner
from planner.text.errors import InputError
from tests.test_planner.sweep.test_killed import SMALL, assert_whole, command

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits and locks of POSIX")
OVER = "workload.input_tokens=lin(101..260,160)"


def bounded(folder: Path, most: int) -> subprocess.CompletedProcess[str]:
    """The sweep where no file may be larger than so many bytes, as on a disk that fills up."""
    (folder / "small.yaml").write_text(SMALL)
    words = [
        sys.executable,
        "-m",
        "planner",
        "sweep",
        "small.yaml",
        "--over",
        OVER,
        "--out",
        "a.csv",
        "--resume",
    ]
    return subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("most", [10, 3_000, 9_000])
def test_a_disk_that_fills_up_costs_no_row(tmp_path, most):
    """Whether the manifest, a part or the whole does not fit: a line, and --resume goes on."""
    ran = bounded(tmp_path, most)
    assert ran.returncode == 3
    assert ran.stderr.count("\n") == 1
    assert "File too large" in ran.stderr
    assert not list(tmp_path.glob("**/.*part"))
    assert command(tmp_path).wait() == 0
    assert_whole(tmp_path)


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="no folder that nobody may write")
def test_a_folder_that_cannot_be_written_is_told_before_computing(tmp_path):
    """The name of the file, and the system's reason."""
    (tmp_path / "small.yaml").write_text(SMALL)
    with pytest.raises(InputError, match=r"^/sys/kernel/a\.csv cannot be written: "):
        planner.sweep(str(tmp_path / "small.yaml"), [OVER], out="/sys/kernel/a.csv")


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(2))
def test_two_that_write_one_file_write_it_once(tmp_path, trial):
    """Begun in one moment, one of them waits for nothing: it is refused, or finds all done."""
    both = [command(tmp_path) for _ in range(2)]
    ends = sorted(process.wait() for process in both)
    assert ends in ([0, 0], [0, 2])
    assert_whole(tmp_path)
