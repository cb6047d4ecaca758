"""Runs made up from a profile, some of its coefficients changed: no engine was timed."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import MappingProxyType

import numpy as np

from planner.calibration.own_fit import predict_times, seen_by_rows
from planner.calibration.own_profile import profile_text
from planner.calibration.sample import UserRows, own_sample
from planner.catalogue.profile import EFFICIENCIES, Adjustment, Band, Profile, profile
from planner.measurements.readers import read

HEAD = (
    "model", "system", "engine", "weights", "tp", "concurrency", "input_tokens", "output_tokens",
    "ttft_ms", "tpot_ms",
)  # fmt: skip
# A profile of round figures, so that what is recovered does not hang on what ships.
FIGURES = {
    "e_w": 0.8, "e_kv": 0.7, "e_c": 0.85, "e_at": 0.5, "e_pf": 0.6, "e_pf_x": 0.2, "e_pf_a": 0.3,
    "e_ar": 0.8, "e_ar_pf": 0.5, "e_ovl": 0.7, "e_a2a": 0.85, "t_layer": 45e-6, "t_moe": 50e-6,
    "t_ep": 15e-6, "t_ar": 2e-6, "t_a2a": 5e-6, "t_hop": 20e-6, "t_seq": 6e-6, "t_step": 0.2e-3,
    "t_pf_chunk": 1.4e-3, "t_pf_moe": 0.5e-3, "t_tok": 1e-6, "n_sched": 3.0, "t_request": 4e-3,
}  # fmt: skip
SURE = 1.25  # ends of intervals beside the figures
ON_HOPPER = Adjustment(("t_layer",), {"architecture": "hopper"}, 1.1, (1.05, 1.15))
BANDS = {"tpot": Band(0.8, 1.25), "ttft": Band(0.7, 1.5), "usd_per_mtok": Band(0.8, 1.25)}
PLACEHOLDER = ("100000", "100")  # times that no bound forbids
Line = tuple[str, ...]


def known() -> Profile:
    """The profile of FIGURES; a coefficient that is not among them is as it ships."""
    shipped = profile("engines-2026")
    values = {**shipped.values, **FIGURES}
    ends = {
        name: (value / SURE, min(value * SURE, 1.0) if name in EFFICIENCIES else value * SURE)
        for name, value in values.items()
    }
    return replace(
        shipped, name="known", engine="any", values=MappingProxyType(values), intervals=ends,
        adjustments=(ON_HOPPER,), models=(), bands=BANDS, all_bands={"known": {"any": BANDS}},
        errors={}, coefficient_spread=None,
    )  # fmt: skip


def known_file(folder: Path) -> Path:
    """The same profile as a file."""
    path = folder / "known.toml"
    path.write_text(profile_text(known()), encoding="utf-8")
    return path


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
    """A table whose times follow from `known` with coefficients multiplied by `changed`.

    `scatter` is the standard deviation of their logarithms, `of_engine` factors on whole times.
    """
    readings = read(table(path, [(*line, *PLACEHOLDER) for line in lines]))
    assert not readings.refused
    sample = own_sample(UserRows(readings.rows, {}, readings.lines), known().as_of)
    base = seen_by_rows(known(), sample.places)
    values = {name: value * changed.get(name, 1.0) for name, value in base.values.items()}
    times = predict_times(sample, replace(base, values=values))
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
