"""The command `planner measure`: its options, and what becomes of what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.text.console import note, show
from planner.text.errors import InputError, SolverError

__all__ = ["measure"]

Place = Annotated[
    str | None, typer.Option("--device", help="cuda, cuda:1, xpu, mps or cpu; default: the first")
]
Seconds = Annotated[float, typer.Option("--seconds", help="about how long it may take")]
Quick = Annotated[bool, typer.Option("--quick", help="fewer sizes")]
Out = Annotated[Path | None, typer.Option("--out", help="write the chip's file here: my-chip.toml")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]


def measure(
    device: Place = None,
    seconds: Seconds = 120.0,
    quick: Quick = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure your own chip: memory, matrix products, attention, launches, an all-reduce.

    Every result is checked; a wrong one is named, and its time is not kept. What is written with
    --out limits what a plan counts on: system: {like: hgx-h200, measured: my-chip.toml}. Ctrl-C
    keeps what was measured until then, marked complete = false. Needs PyTorch:
    pip install 'token-planner[measure]'.
    """
    from planner.benchmark.record_file import toml
    from planner.benchmark.session import measure as measured
    from planner.benchmark.torch_device import torch_device
    from planner.report.files import deliver
    from planner.report.formats import dumps
    from planner.report.text.benchmark import measured_document, measured_text

    if not 1 <= seconds <= 86400:
        raise InputError(f"--seconds {seconds:g}: expected from 1 s to a day, such as 120")
    if out is not None and out.is_dir():
        raise InputError(f"--out {out}: is a folder, expected a file such as my-chip.toml")
    found = measured(torch_device(device), quick=quick, budget=seconds, told=_progress)
    chip = found.chip
    if out is not None:
        deliver(toml(chip), out)
    show(dumps(measured_document(chip)) if json else measured_text(chip))
    if found.interrupted:
        raise KeyboardInterrupt
    if chip.memory_bandwidth is None and not chip.products:
        raise SolverError("nothing was measured; left_out says why of each work")


def _progress(text: str) -> None:
    note(text, warning=True)
