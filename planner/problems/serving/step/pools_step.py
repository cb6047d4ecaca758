"""Two pools together: their rates in, what a plan of both gives out; one kernel for every use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import sympy as sp

from formulas.algebra.equation import Equation
from formulas.nomenclature.lecture import C_in, C_out
from formulas.nomenclature.pools import (
    C_bill,
    C_pools,
    C_power,
    C_seq,
    E_seq,
    E_tok,
    T_first,
    X_chip,
    X_in,
    X_out,
    X_pools,
    X_user,
    n_inside,
)
from formulas.nomenclature.serving import T_e2e
from formulas.numerics.evaluate import Kernel, kernel
from formulas.serving.outputs import carried_load, replica_rate
from formulas.serving.pools import two_pools

_OUTPUTS: Mapping[str, sp.Expr] = {
    "usd_per_token": C_pools, "usd_per_input_token": C_in, "usd_per_output_token": C_out,
    "usd_per_request": C_seq, "usd_per_s": C_bill, "power_usd_per_s": C_power,
    "requests": X_pools, "ttft": T_first, "latency": T_e2e, "in_flight": n_inside,
    "tokens_per_s": X_out, "input_tokens_per_s": X_in, "tokens_per_s_per_chip": X_chip,
    "tokens_per_s_per_user": X_user,
}  # fmt: skip
_ENERGY: Mapping[str, sp.Expr] = {"joule_per_request": E_seq, "joule_per_token": E_tok}
POWERS = frozenset({"P_chip_pf", "P_chip_dec"})


def pools_equations(load: str) -> tuple[Equation, ...]:
    """What two pools give, under a load (`none` or `given`)."""
    return two_pools(load)


def pools_outputs(symbols: Mapping[str, float]) -> dict[str, sp.Expr]:
    """Every output by its word, the price first; energy where both powers are bound."""
    return {**_OUTPUTS, **(_ENERGY if symbols.keys() >= POWERS else {})}


def pools_values(load: str, symbols: Mapping[str, float]) -> dict[str, float]:
    """Every output of two pools: money [USD], rates [1/s], times [s], energy [J]."""
    kernel = pools_kernel(load, tuple(pools_outputs(symbols)))
    return {k: float(v) for k, v in kernel(**{n: symbols[n] for n in kernel.names}).items()}


def split_values(load: str, word: str, symbols: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Requests served [1/s] and one more output of many splits, of the shape of the symbols."""
    kernel = pools_kernel(load, ("requests", word))
    return dict(kernel(**{n: symbols[n] for n in kernel.names}))  # type: ignore[arg-type]


@cache
def pools_kernel(load: str, words: tuple[str, ...]) -> Kernel:
    """Some outputs of two pools, lowered to NumPy."""
    every = {**_OUTPUTS, **_ENERGY}
    return kernel(pools_equations(load), {word: every[word] for word in words})


def replica_rates(slot: np.ndarray, busy: np.ndarray | float, free: float) -> np.ndarray:
    """Requests per second of one replica at its most, of the shape of `slot`."""
    return np.asarray(_rate()(T_slot=slot, r_busy=busy, x_free=free, one_seq=1.0)["X_rep"])


@cache
def _rate() -> Kernel:
    return kernel([replica_rate], ["X_rep"])


def load_share(rate: float, slot: float, replicas: int) -> float:
    """Share of the slots of some replicas that so many requests per second keep in use."""
    return float(_share()(X_arr=rate, T_slot=slot, n_up=replicas, one_seq=1.0)["r_load"])


@cache
def _share() -> Kernel:
    return kernel([carried_load], ["r_load"])
