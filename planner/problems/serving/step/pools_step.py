"""Two pools together: their rates in, what a plan of both gives out; one kernel for every use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.problems.serving.step.kernels import fed, lowered, walked

WORDS = (
    "usd_per_token", "usd_per_input_token", "usd_per_output_token", "usd_per_request", "usd_per_s",
    "power_usd_per_s", "requests", "ttft", "latency", "in_flight", "tokens_per_s",
    "input_tokens_per_s", "tokens_per_s_per_chip", "tokens_per_s_per_user",
)  # fmt: skip
ENERGY = ("joule_per_request", "joule_per_token")
POWERS = frozenset({"P_chip_pf", "P_chip_dec"})


def _words(symbols: Mapping[str, float]) -> tuple[str, ...]:
    """Every output by its word, the price first; energy where both powers are bound."""
    return (*WORDS, *(ENERGY if symbols.keys() >= POWERS else ()))


def pools_values(load: str, symbols: Mapping[str, float]) -> dict[str, float]:
    """Every output of two pools: money [USD], rates [1/s], times [s], energy [J]."""
    values = fed(lowered("pools", load, *_words(symbols)), symbols)
    return {name: float(value) for name, value in values.items()}


def pools_recomputed(load: str, symbols: Mapping[str, float]) -> dict[str, float]:
    """The same by walking the equations with plain floats."""
    return walked("pools", load, *_words(symbols), names=frozenset(symbols))(symbols)


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
