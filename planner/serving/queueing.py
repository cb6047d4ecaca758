"""Open arrivals on a replica: how busy its readers of prompts are, and how long requests wait."""

from __future__ import annotations

from functools import cache

import numpy as np

from formulas.evaluate import Kernel, kernel
from formulas.prefill import new_tokens
from formulas.queues import (
    prompt_occupancy,
    reader_utilisation,
    waiting_quantile,
    waiting_time,
)

__all__ = ["TAILS", "queue"]

# Shares of the requests that wait longer than the quantile of that name.
TAILS = {"ttft_p95": 0.05, "ttft_p99": 0.01}


def queue(given: dict, found: dict, load: np.ndarray) -> dict[str, np.ndarray]:
    """Utilisation of the readers, mean wait and its quantiles [s], at `load` requests/s a replica.

    Where readers cannot keep up the wait has no end: it is infinite, and so are its quantiles.
    `given` holds the values of the step's symbols, `found` what the step computed; the arrays have
    the shape of the points.
    """
    values = {**given, **found, "x_load": np.maximum(load, np.finfo(float).tiny)}
    at = _readers()(**{name: values[name] for name in _readers().names})
    busy = at["rho_pf"]
    endless = busy >= 1
    ready = np.where(endless, 0.0, busy)
    served = _wait()(rho_pf=ready, S_occ=at["S_occ"], v_occ=values["v_occ"])["T_wait"]
    wait = np.where(endless, np.inf, served)
    tails = {
        name: np.where(endless, np.inf, _quantile(served, ready, share))
        for name, share in TAILS.items()
    }
    return {"readers": busy, "wait": wait, **{f"wait.{name}": tail for name, tail in tails.items()}}


def _quantile(wait: np.ndarray, busy: np.ndarray, share: float) -> np.ndarray:
    """The wait that this share exceeds; zero where so many do not wait at all."""
    found = _tail()(T_wait=wait, rho_pf=np.maximum(busy, share), x_tail=share)["T_tail"]
    return np.where(busy > share, found, 0.0)


@cache
def _readers() -> Kernel:
    return kernel((new_tokens, prompt_occupancy, reader_utilisation), ["rho_pf", "S_occ"])


@cache
def _wait() -> Kernel:
    return kernel([waiting_time], ["T_wait"])


@cache
def _tail() -> Kernel:
    return kernel([waiting_quantile], ["T_tail"])
