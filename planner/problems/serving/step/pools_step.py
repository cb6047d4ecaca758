"""Two pools together: their rates in, what a plan of both gives out; one kernel for every use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.problems.serving.step.kernels import fed, lowered, walked

POWERS = frozenset({"P_chip_pf", "P_chip_dec"})


def pools_values(load: str, symbols: Mapping[str, float]) -> dict[str, float]:
    """Every output of two pools: money [USD], rates [1/s], times [s]; where powered, energy [J]."""
    values = fed(lowered("whole_pools", load, symbols.keys() >= POWERS), symbols)
    return {name: float(value) for name, value in values.items()}


def pools_recomputed(load: str, symbols: Mapping[str, float]) -> dict[str, float]:
    """The same by walking the equations with plain floats."""
    powered = symbols.keys() >= POWERS
    return walked("whole_pools", load, powered, names=frozenset(symbols))(symbols)


def split_values(load: str, word: str, symbols: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Requests served [1/s] and one more output of many splits, of the shape of the symbols."""
    return fed(lowered("pools", load, "requests", word), symbols)


def replica_rates(slot: np.ndarray, busy: np.ndarray | float, free: float) -> np.ndarray:
    """Requests per second of one replica at its most, of the shape of `slot`."""
    rate = lowered("replica_most")
    return np.asarray(rate(T_slot=slot, r_busy=busy, x_free=free, one_seq=1.0)["X_rep"])


def load_share(rate: float, slot: float, replicas: int) -> float:
    """Share of the slots of some replicas that so many requests per second keep in use."""
    values = lowered("load_share")(X_arr=rate, T_slot=slot, n_up=replicas, one_seq=1.0)
    return float(values["r_load"])
