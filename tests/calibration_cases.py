"""Runs made up from a profile, some of its coefficients changed: no engine was timed."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from planner.calibration.adapters import read
from planner.calibration.own_fit import estimates_at, seen_by_rows
from planner.calibration.own_sample import Rows, own_sample
from planner.calibration.profile import profile

HEAD = (
    "model", "system", "engine", "weights", "tp", "concurrency", "input_tokens", "output_tokens",
    "ttft_ms", "tpot_ms",
)  # fmt: skip
LIKE = "engines-2026"
PLACEHOLDER = ("100000", "100")  # times that no bound forbids
Line = tuple[str, ...]


def settings(
    engines: Sequence[str] = ("vllm",),
    tp: Sequence[int] = (1, 2, 4, 8),
    lengths: Sequence[tuple[int, int]] = ((1024, 256), (2048, 512), (512, 1024)),
    requests: Sequence[int] = (1, 4, 16, 48),
    model: str = "llama-3.1-70b",
    system: str = "hgx-h200",
) -> list[Line]:
    """Every combination, without times."""
    return [
        (model, system, engine, "fp8", str(ways), str(n), str(into), str(out))
        for engine, ways, (into, out), n in product(engines, tp, lengths, requests)
    ]


def table(path: Path, lines: Sequence[Line]) -> Path:
    """The lines as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEAD, *lines])
    return path


def made_up(
    path: Path,
    lines: Sequence[Line],
    changed: Mapping[str, float],
    scatter: float = 0.02,
    of_engine: Mapping[str, float] | None = None,
) -> Path:
    """A table whose times follow from LIKE with coefficients multiplied by `changed`.

    `scatter` is the standard deviation of their logarithms, `of_engine` factors on whole times.
    """
    readings = read(table(path, [(*line, *PLACEHOLDER) for line in lines]))
    assert not readings.refused
    sample = own_sample(Rows(readings.rows, {}, readings.lines), profile(LIKE).as_of)
    base = seen_by_rows(profile(LIKE), sample.places)
    values = {name: value * changed.get(name, 1.0) for name, value in base.values.items()}
    times = estimates_at(sample, replace(base, values=values))
    times *= np.exp(scatter * np.random.default_rng(7).standard_normal(len(times)))
    told = {
        (row.id, row.quantity): 1e3 * time * (of_engine or {}).get(row.engine, 1.0)
        for row, time in zip(sample.rows, times, strict=True)
    }
    return table(
        path,
        [
            (*line, f"{told[str(i), 'ttft']:.6g}", f"{told[str(i), 'tpot']:.6g}")
            for i, line in enumerate(lines, start=2)
        ],
    )
