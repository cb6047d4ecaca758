"""Runs of two engines whose times are made from coefficients: what fits of them should find."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from planner.calibration.sample import Sample
from planner.measurements.measurement import Measurement
from planner.measurements.prediction import Features, unknowns
from planner.measurements.readers import runs
from tests.test_planner.measurements.test_measurement import RUNS_HEADER
from tools.fit.serving_fit import RUNS

WIDE = {name: (value, 3.0) for name, (value, _) in RUNS.prior.items()}
TRUTH = {name: value for name, (value, _) in RUNS.prior.items()} | {
    "e_w": 0.71,
    "e_kv": 0.83,
    "e_pf": 0.44,
    "e_ar": 0.6,
    "t_layer": 55e-6,
    "t_moe": 21e-6,
    "n_sched": 6.0,
}
SEEN = ("e_w", "e_kv", "e_pf", "e_ar", "t_layer", "t_moe", "n_sched")


def made_rows(folder: Path) -> list[Measurement]:
    """Runs of three models on two chips under two engines, times to be replaced."""
    lines = [RUNS_HEADER]
    models = {"a/Llama-3.1-70B": (1, 2, 8), "a/Qwen3-32B": (1, 4), "a/MiniMax-M2.5": (4, 8)}
    for model, tps in models.items():
        for system, engine in (("h200_sxm", "vllm"), ("b200_sxm", "trtllm")):
            for tp in tps:
                for lengths in ("1024,1024", "8192,1024", "1024,8192"):
                    lines += [
                        f"{model},{system},{engine},1,fp8,agg,{lengths},{n},1,1,fp8,fp8,{n},{tp},"
                        "1,,1,1,,,"
                        for n in (1, 4, 32, 128)
                    ]
    path = folder / "runs.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    readings = runs(path)
    assert not readings.refused
    return list(readings.rows)


def predicted(columns: Features, values: Mapping[str, float]) -> np.ndarray:
    """Times [s] of the rows under a profile's values, shape (n_rows,)."""
    return columns.times(unknowns(values))


def sample(columns, seconds, places):
    """Rows of these columns, times [s] and places, each counted once."""
    return Sample((), columns, seconds, np.ones(len(seconds)), tuple(places), {})
