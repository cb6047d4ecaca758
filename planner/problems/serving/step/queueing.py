"""Open arrivals on a replica: how busy its readers of prompts are, and how long requests wait."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

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

# Shares of the requests that wait longer than the quantile of that name.
TAILS = {"ttft_p95": 0.05, "ttft_p99": 0.01}


def queue(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Utilisation of the readers [-], mean wait and its quantiles `TAILS` [s], shaped as they are.

    `values` holds every symbol that the queue needs, `x_load` requests per second of a replica
    among them. Where readers cannot keep up the wait has no end: it is infinite, and so are its
    quantiles.
    """
    values = {**values, "x_load": np.maximum(values["x_load"], np.finfo(float).tiny)}
    values |= _readers()(**{name: values[name] for name in _readers().names})
    busy = values["rho_pf"]
    endless = (busy >= 1) | (values["r_pf"] >= 1)
    # Those that cannot keep up are computed as if nothing arrived, and then put to infinity.
    ready = {**values, **{n: np.where(endless, 0.0, values[n]) for n in ("rho_pf", "r_pf")}}
    ready |= _wait()(**{name: ready[name] for name in _wait().names})
    tails = np.where(endless, np.inf, _quantiles(ready))
    wait = np.where(endless, np.inf, ready["T_wait"])
    return {"readers": busy, "wait": wait, **dict(zip(TAILS, tails, strict=True))}


def _quantiles(values: dict) -> np.ndarray:
    """The waits that the shares of `TAILS` exceed [s], along the first axis.

    Fewer than the share wait in line where readers are idler than it.
    """
    dimensions = max(np.ndim(values[name]) for name in _tail().names if name in values)
    shares = np.array(list(TAILS.values())).reshape(-1, *[1] * dimensions)
    at = {**values, "rho_pf": np.maximum(values["rho_pf"], shares), "x_tail": shares}
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
