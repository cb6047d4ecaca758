"""What each face of the planner costs, as multiples of importing the libraries it stands on.

Run by `pytest tests/benches/bench_faces.py -m benchmark -s`. CPU time, not time on the wall,
and the unit is measured in the same run, so that two machines and a busy one can be compared.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import planner
from tests.cases.frozen import command
from tests.machine import LIBRARIES, child
from tests.paths import ROOT

pytestmark = [pytest.mark.benchmark, pytest.mark.filterwarnings("ignore")]

EXAMPLE = "examples/serve-deepseek-v3-h200.yaml"
UNKNOWN = (
    "uncertain={workload.input_tokens: {uniform: [3000, 5000]}, "
    "workload.output_tokens: {uniform: [800, 1200]}}"
)
DRAWS = int(os.environ.get("BENCH_SOBOL", "16"))  # base draws; a study of two solves four times it
POINTS = 8
TO_REACH = ("1.3", "2", "8 for 64 draws", "0.15", "0.5", "0.5", "0.03")  # by row of the table
FRESH = itertools.count()


def here(run: Callable[[], object]) -> float:
    """CPU seconds of a call in this process."""
    begun = time.process_time()
    with contextlib.redirect_stderr(io.StringIO()):
        run()
    return time.process_time() - begun


def median(run: Callable[[], float], rounds: int) -> float:
    """The middle one of so many timings."""
    return statistics.median(run() for _ in range(rounds))


def proven() -> None:
    """A plan with its proof, which is worked out when it is looked at, and its whole document."""
    plan = planner.solve(ROOT / EXAMPLE)
    assert plan.certificate.programs_solved > 0
    json.dumps(plan.to_json())


def explained() -> float:
    """CPU seconds of `why` on a plan that was proven, but not explained before."""
    plan = planner.solve(ROOT / EXAMPLE)
    json.dumps(plan.to_json())
    return here(plan.why)


def swept(folder: Path) -> float:
    """CPU seconds a point of a sweep over lengths not swept before, both modes free."""
    least = 3000 + next(FRESH)
    over = f"workload.input_tokens=lin({least}..{least + 1400},{POINTS})"
    out = str(folder / f"{least}.csv")
    begun = time.process_time()
    status, _, messages = command("sweep", EXAMPLE, "--over", over, "--out", out)
    assert status == 0, messages
    return (time.process_time() - begun) / POINTS


def test_faces(tmp_path: Path) -> None:
    """Cold and warm commands, explanations, sensitivities, studies and sweeps, in one table."""
    cli = ("-m", "planner")
    unit = median(lambda: child("-c", LIBRARIES), 5)
    rows = {
        "cold command `planner solve`": median(lambda: child(*cli, "solve", EXAMPLE), 5),
        "`planner sensitivity`": median(lambda: child(*cli, "sensitivity", EXAMPLE), 3),
        f"`planner sensitivity --sobol {DRAWS}`, two unknowns": child(
            *cli, "sensitivity", EXAMPLE, "--set", UNKNOWN, "--sobol", str(DRAWS)
        ),
    }
    here(proven)
    rows["warm solve with its certificate and document"] = median(lambda: here(proven), 7)
    rows["`plan.why()` for the first time in a process"] = explained()
    rows["`plan.why()` of a fresh plan, warm"] = median(explained, 3)
    swept(tmp_path)
    rows["a point of a sweep, both modes free, warm"] = median(lambda: swept(tmp_path), 3)
    print(f"\nload {os.getloadavg()[0]:.1f}; unit {unit:.2f} s of CPU: {LIBRARIES}")
    for (name, seconds), goal in zip(rows.items(), TO_REACH, strict=True):
        print(f"{name:58} {seconds:8.3f} s {seconds / unit:8.3f}  to reach {goal}")
