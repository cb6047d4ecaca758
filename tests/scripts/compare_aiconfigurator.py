"""Our estimates beside those of aiconfigurator on the same aggregated runs; no test, a script.

    python -m tests.scripts.compare_aiconfigurator --data serving_runs.csv --python OTHER/bin/python

`OTHER` is a virtual environment with aiconfigurator==0.12.0; the project neither needs nor imports
it. The same file runs there as a worker that reads rows as JSON lines and answers in kind. Rows
are drawn with a seed from those that count and that we predict out of sample where `--refit` is
given. Its operator tables hold these chips and engines; what it cannot answer is counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

SEED = 20261121
SAMPLE = 300
# Ids of the table that the other tool lists under another name.
NAMES = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-ai/DeepSeek-R1",
}


def main() -> None:
    """Draw rows, ask both, print a table by quantity and engine."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--python", help="of the environment that has aiconfigurator")
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--refit", choices=("configurations", "groups", "models"))
    given = parser.parse_args()
    if given.worker:
        worker()
        return
    if given.data is None or given.python is None:
        parser.error("--data and --python are needed")
    compare(given.data, given.python, given.sample, given.refit)


def worker() -> None:
    """Answer rows on standard input with {tpot, ttft} in ms, or {error}; one JSON value a line."""
    import contextlib
    import importlib
    import logging

    logging.disable(logging.CRITICAL)
    estimate = importlib.import_module("aiconfigurator.cli.api").cli_estimate
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found = estimate(**asked)
            told = {"tpot": found.tpot, "ttft": found.ttft}
        except Exception as error:  # whatever it raises is its answer to this row
            told = {"error": f"{type(error).__name__}: {str(error)[:80]}"}
        print(json.dumps(told), flush=True)


def compare(data: Path, python: str, size: int, refit: str | None) -> None:
    """Ask the other tool about a sample of our scored rows and print both errors."""
    import numpy as np

    from planner.validation.estimates import read
    from tools.fit.group_cross_validation import refitted

    table, entries = read(data)
    if refit:
        entries = refitted(entries, refit)
    scored = {(e.row, e.quantity): e for e in entries if e.scored and e.part == "aggregated"}
    rows = sorted({row for row, quantity in scored if quantity == "tpot"})
    drawn = np.random.default_rng(SEED).permutation(rows)[:size].tolist()
    asked = [_asked(table.cells(row), scored[row, "tpot"]) for row in drawn]
    answers = _answers(python, asked)
    print(f"{len(drawn)} of {len(rows)} rows; ours: {refit or 'shipped profile'}")
    errors = Counter(each["error"] for each in answers if "error" in each)
    print(f"aiconfigurator answers {sum('error' not in each for each in answers)}")
    for why, n in errors.most_common(8):
        print(f"  {n:4d} {why}")
    for quantity in ("tpot", "ttft"):
        both = [
            (scored[row, quantity], answer[quantity] / 1e3)
            for row, answer in zip(drawn, answers, strict=True)
            if "error" not in answer and (row, quantity) in scored and answer[quantity]
        ]
        _shown(quantity, both)


def _asked(cells: dict[str, str], entry: Any) -> dict[str, Any]:
    """Arguments of an estimate for one row."""
    row = entry.measurement
    ways = row.layout
    name = cells["model_path"]
    told: dict[str, Any] = {
        "model_path": NAMES.get(name, name),
        "system_name": cells["system"],
        "backend_name": cells["backend"],
        "isl": int(row.prompt),
        "osl": int(row.output),
        "batch_size": max(1, round(row.batch / ways["dp_attention"])),
        "tp_size": ways["tp"],
        "pp_size": ways["pp"],
        "attention_dp_size": ways["dp_attention"],
    }
    if row.sizes.n_experts:
        told |= {"moe_tp_size": ways["tp_expert"], "moe_ep_size": ways["ep"]}
    # Published in MXFP4 only, whatever the table calls it: its own formats are taken.
    modes = () if "gpt-oss" in name else ("gemm_quant_mode", "moe_quant_mode")
    return told | {mode: cells[mode] for mode in modes if cells[mode]}


def _answers(python: str, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    text = "".join(json.dumps(each) + "\n" for each in asked)
    run = subprocess.run(
        [python, __file__, "--worker"], input=text, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def _shown(quantity: str, both: list[tuple[Any, float]]) -> None:
    import numpy as np

    from planner.calibration.cross_validation import score

    print(f"\n{quantity:<24}{'rows':>6}{'median':>9}{'mean':>9}{'in 10%':>9}{'in 20%':>9}")
    for engine in ("all", *sorted({entry.engine for entry, _ in both})):
        some = [(e, t) for e, t in both if engine in ("all", e.engine)]
        measured = np.array([entry.seconds for entry, _ in some])
        ours = np.array([entry.prediction.estimate for entry, _ in some])
        theirs = np.array([time for _, time in some])
        for name, times in (("ours", ours), ("aiconfigurator", theirs)):
            s = score(times, measured)
            print(
                f"{engine[:12]:<12}{name:<15}{s.n:>3}{s.median:>9.1%}{s.mean:>9.1%}"
                f"{s.within_10:>9.1%}{s.within_20:>9.1%}"
            )


if __name__ == "__main__":
    main()
