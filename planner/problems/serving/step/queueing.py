"""Open arrivals on a replica: how busy its readers of prompts are, and how long requests wait."""

from __future__ import annotations

from functools import cache

import numpy as np

from formulas.numerics.evaluate import Kernel, kernel
from formulas.serving.prefill import new_tokens
from formulas.serving.queues import (
    joining_room,
    joining_time,
    line_time,
    prompt_occupancy,
    reader_utilisation,
    reading_share,
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
    values |= _readers()(**{name: values[name] for name in _readers().names})
    busy = values["rho_pf"]
    endless = (busy >= 1) | (values["r_pf"] >= 1)
    # Those that cannot keep up are computed as if nothing arrived, and then put to infinity.
    ready = {**values, **{n: np.where(endless, 0.0, values[n]) for n in ("rho_pf", "r_pf")}}
    ready |= _wait()(**{name: ready[name] for name in _wait().names})
    tails = {
        f"wait.{name}": np.where(endless, np.inf, _quantile(ready, share))
        for name, share in TAILS.items()
    }
    return {"readers": busy, "wait": np.where(endless, np.inf, ready["T_wait"]), **tails}


def _quantile(values: dict, share: float) -> np.ndarray:
    """The wait that this share exceeds; fewer than that wait in line where readers are idler."""
    at = {**values, "rho_pf": np.maximum(values["rho_pf"], share), "x_tail": share}
    return np.asarray(_tail()(**{name: at[name] for name in _tail().names})["T_tail"])


@cache
def _readers() -> Kernel:
    return kernel(
        (new_tokens, prompt_occupancy, reader_utilisation, reading_share, joining_room),
        ["rho_pf", "r_pf", "S_occ", "w_join", "L_new"],
    )


@cache
def _wait() -> Kernel:
    return kernel([line_time, joining_time, waiting_time], ["T_line", "T_join", "T_wait"])


@cache
def _tail() -> Kernel:
    return kernel([waiting_quantile], ["T_tail"])
