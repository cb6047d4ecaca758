"""A disk that is full is one fault for every face that writes: exit status 3, nothing half written.

The limit on the size of files stands for the disk: the system refuses the first byte.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.slow
CASES: dict[str, tuple[str, ...]] = {
    "an answer": ("solve", "s.yaml", "--out", "folder"),
    "a page": ("report", "s.yaml", "--out", "o.html"),
    "a frontier": ("pareto", "s.yaml", "--points", "2", "--out", "o.csv"),
    "a starter": ("init", "--out", "o.yaml"),
    "scripts": ("export", "s.yaml", "--engine", "vllm", "--out", "folder"),
    "an imported launch": (
        "import", "vllm serve meta-llama/Meta-Llama-3.1-8B", "--set", "system=hgx-h100",
        "--set", "workload.input_tokens=500", "--set", "workload.output_tokens=100",
        "--set", "current.batch=8", "--out", "o.yaml",
    ),
    "a derivation": ("derive", "critical_batch", "--format", "text", "--out", "o.txt"),
    "a schema": ("schema", "--out", "o.json"),
    "a network": ("topology", "hgx-h100", "--out", "o.json"),
    "a network for other programs": ("topology", "hgx-h100", "--out", "o.graphml"),
    "a picture of a network": ("topology", "hgx-h100", "--svg", "o.svg"),
    "a sweep": ("sweep", "s.yaml", "--over", "chips=1,2", "--out", "o.csv"),
    "lines of a sweep": ("sweep", "s.yaml", "--over", "chips=1,2", "--out", "o.jsonl"),
    "predictions": ("validate", "--data", "runs.csv", "--predictions", "o.csv"),
}  # fmt: skip
SCENARIO = """\
{problem: serving, model: llama-3.1-8b, system: hgx-h100, chips: 2, price: $2/hour,
 workload: {input_tokens: 500, output_tokens: 100}, promises: {tpot: 50 ms}}
"""
RUNS = """\
model,system,engine,weights,tp,concurrency,input_tokens,output_tokens,ttft_ms,tpot_ms
llama-3.1-8b,hgx-h100,vllm,bf16,1,8,1024,256,100,9
"""
PROGRAM = """\
import json, resource, sys
from planner.cli.app import main
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        print("\\0", end.code or 0, flush=True)
"""


@pytest.fixture(scope="module")
def statuses(tmp_path_factory):
    """The status and the message of every case, and the folder in which they ran."""
    folder = tmp_path_factory.mktemp("full")
    (folder / "s.yaml").write_text(SCENARIO)
    (folder / "runs.csv").write_text(RUNS)
    words = [sys.executable, "-c", PROGRAM, json.dumps([["-q", *case] for case in CASES.values()])]
    ran = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    lines = [int(each.split()[0]) for each in ran.stdout.split("\0")[1:]]
    assert len(lines) == len(CASES), ran.stderr
    ended = dict(zip(CASES, lines, strict=True))
    return ended, ran.stderr, folder


@pytest.mark.parametrize("name", CASES)
def test_a_full_disk_has_one_status(statuses, name):
    """Whatever is written: 3, a failure that is no mistake in the input."""
    assert statuses[0][name] == 3, statuses[1]


def test_a_full_disk_is_told_in_a_line_each_and_leaves_nothing(statuses):
    """The file, the reason, and no fault of ours; no empty file is left behind."""
    _, told, folder = statuses
    assert "fault of ours" not in told
    assert told.count("cannot be written: File too large") == len(CASES)
    left = {path.name for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    assert left == {"s.yaml", "runs.csv"}
